// The one table of verifiers: what each takes, guarantees and draws, and where it comes from. Whatever depends on the
// verifier (engine, traces, replay, audit, programs) reads its row here; verify_step_of.hpp names its template.
//
// There is no verifier "greedy" and none "one-hot": at temperature 0 the target's rows are one-hot, and a draft without
// probabilities is a one-hot proposal. Every lossless verifier is then the greedy one, or the one-hot one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/verify/draft_tree.hpp"

namespace draftproof {

enum class Verifier : std::uint8_t {
  chain,
  block,
  sampler_match,
  coupled,
  naive,
  target_only,
  rrs,
  rrsw,
  k_seq,
  importance,
  greedy_draft,
  traversal,
  greedy_multipath,
  coupled_list,
  typical,
  thresholds,
  top_k_resample,
  synthetic,
  spectr_gbv,
  ensemble,
  fly,
  relaxed,
  accept_k,
};

// The widest form of draft that a verifier takes; each form is a special case of the next.
enum class DraftForm : std::uint8_t {
  chain,     // every node has one child
  siblings,  // a tree, judged node by node: what matters is how the children of one node were drawn
  tree,      // a tree, of which the verifier uses more than one node's children at a time, or that may be of any origin
};

// How the drafts must have been drawn. A draft drawn otherwise makes the output biased, and no file can show it.
enum class DraftSampling : std::uint8_t {
  any,                  // in any way that does not look at the verifier's coins
  drawn,                // every token from its proposal row; one-hot where there are no probabilities
  independent,          // siblings independently from one row, repetitions kept
  without_replacement,  // siblings one after the other from one row, each without those before it
  greedy,               // siblings: the k - 1 most probable, then one draw from the rest
  independent_paths,    // num_paths independent paths of one length, equal prefixes merged
};

// The recorded coins of an engine that stand for those of a verifier.
enum class Coins : std::uint8_t {
  none,              // it throws none
  of_drafts,         // one for each draft
  of_rows,           // one for each row, which all its drafts share
  of_selected_path,  // one for each draft of the path that it selects: recorded coins cannot stand for them
};

// The noise of plain decoding by race with which a verifier draws, and which a drafter may share.
enum class SharedNoise : std::uint8_t {
  none,
  one_row,       // one row of noise for each position
  row_per_path,  // several for each position, as many as paths: recorded noise cannot stand for them
};

// How the decisions on drafts show in what a step emits: what the audit tests and a replay compares.
enum class Decisions : std::uint8_t {
  unknown,           // the audit knows no rates for them
  coin_per_draft,    // of a chain: coins of min(1, p/q), up to the first rejection
  last_passing,      // all coins are thrown, and the last that passed counts
  leaf_by_leaf,      // leaves are accepted or deleted one after the other
  target_draw,       // a draft stands where the target draws it
  coin_per_sibling,  // a rule judges the children of a node one after the other
};

// Tokens that may be drawn at a node after its coins failed.
enum class Recovered : std::uint8_t {
  undrafted,  // none of the node's drafts
  sibling,    // a draft of the node, which is accepted then
  rejected,   // any draft of the node; one whose coin failed keeps mass
};

// A number that a verifier takes, as in "synthetic:rate=0.8".
struct VerifierParameter {
  std::string_view name;
  double standard;  // where it is not given
  double least, most;
  bool whole;        // a whole number
  bool above_least;  // `least` itself is outside the range
  std::string_view meaning;
  std::optional<double> exact = std::nullopt;  // a lossy verifier is lossless where all its parameters have this value
};

struct VerifierInfo {
  Verifier verifier;
  std::string_view name;
  DraftForm draft;
  DraftSampling proposal;
  bool lossless;
  std::string_view guarantee;
  std::string_view source;
  std::vector<VerifierParameter> parameters = {};
  Coins coins = Coins::none;
  SharedNoise noise = SharedNoise::none;
  Decisions decisions = Decisions::unknown;
  Recovered recovered = Recovered::undrafted;
  // Judges a draft by the probability of its path. The completed string then follows the target, and a node's token
  // alone does not.
  bool joint = false;
  bool keeps_support = true;           // emits no token of target probability 0
  bool takes_first_of_equals = false;  // of siblings with one token it accepts the first alone

  // Emits the tokens of plain decoding by race with the same seed.
  bool is_coupled() const { return noise != SharedNoise::none; }
  // Takes independent paths of one length, as many as its parameter "paths" says.
  bool takes_paths() const;
  // Can recorded randomness (verify/recorded_randomness.hpp) stand for all that it draws?
  bool is_replayable() const { return coins != Coins::of_selected_path && noise != SharedNoise::row_per_path; }
};

std::span<const VerifierInfo> verifiers();
const VerifierInfo& info_of(Verifier verifier);
std::string_view name_of(DraftForm form);
std::string_view name_of(DraftSampling sampling);
std::string_view name_of(Coins coins);
std::string_view name_of(SharedNoise noise);
std::string_view name_of(Decisions decisions);
std::string_view name_of(Recovered recovered);
// "chain, block, ...": all, or those that fit.
std::string verifier_names(const std::function<bool(const VerifierInfo&)>& fits = {});

// A verifier with its parameters.
struct VerifierChoice {
  VerifierChoice(Verifier chosen = Verifier::chain);  // NOLINT(google-explicit-constructor): with standard parameters

  Verifier verifier;
  std::vector<double> parameters;  // as in VerifierInfo::parameters

  const VerifierInfo& info() const { return info_of(verifier); }
  // Error (internal): the verifier has no such parameter.
  double parameter(std::string_view name) const;
  // With these parameters.
  bool is_lossless() const;
};

// NAME or NAME:PARAMETER=VALUE,... Errors (usage) at `where`: an unknown name or parameter, a value outside its range.
VerifierChoice parse_verifier(std::string_view text, const std::string& where);
// Inverse of parse_verifier.
std::string text_of(const VerifierChoice& choice);

// Does the verifier take this draft? has_probabilities: the draft has proposal rows. Errors (usage) at `where` saying
// which verifiers take it.
void require_fit(const VerifierChoice& choice, const DraftTree& draft, bool has_probabilities,
                 const std::string& where);

}  // namespace draftproof
