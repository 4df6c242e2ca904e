// The one list of verifiers: what each takes, what it guarantees and where it comes from. Whatever selects a verifier
// by name (engine, traces, audit, programs) reads it here.
//
// There is no verifier "greedy" and none "one-hot": at temperature 0 the target's rows are one-hot, and a draft without
// probabilities is a one-hot proposal. Every lossless verifier is then the greedy one, or the one-hot one.
#pragma once

#include <cstdint>
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
  greedy_draft,
  traversal,
  greedy_multipath,
  coupled_list,
  typical,
  thresholds,
  top_k_resample,
  synthetic,
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

// A number that a verifier takes, as in "synthetic:rate=0.8".
struct VerifierParameter {
  std::string_view name;
  double standard;  // where it is not given
  double least, most;
  bool whole;        // a whole number
  bool above_least;  // `least` itself is outside the range
  std::string_view meaning;
};

struct VerifierInfo {
  Verifier verifier;
  std::string_view name;
  DraftForm draft;
  DraftSampling proposal;
  bool lossless;
  std::string_view guarantee;
  std::string_view source;
  std::vector<VerifierParameter> parameters;
};

std::span<const VerifierInfo> verifiers();
const VerifierInfo& info_of(Verifier verifier);
std::string_view name_of(DraftForm form);
std::string_view name_of(DraftSampling sampling);
// "chain, block, ...".
std::string verifier_names();

// A verifier with its parameters.
struct VerifierChoice {
  VerifierChoice(Verifier chosen = Verifier::chain);  // NOLINT(google-explicit-constructor): with standard parameters

  Verifier verifier;
  std::vector<double> parameters;  // as in VerifierInfo::parameters

  const VerifierInfo& info() const { return info_of(verifier); }
  // Error (internal): the verifier has no such parameter.
  double parameter(std::string_view name) const;
};

// NAME or NAME:PARAMETER=VALUE,... Errors (usage) at `where`: an unknown name or parameter, a value outside its range.
VerifierChoice parse_verifier(std::string_view text, const std::string& where);
// What parse_verifier reads back.
std::string text_of(const VerifierChoice& choice);

// Does the verifier take this draft? has_probabilities: the draft has proposal rows. Errors (usage) at `where` saying
// which verifiers take it.
void require_fit(const VerifierChoice& choice, const DraftTree& draft, bool has_probabilities,
                 const std::string& where);

}  // namespace draftproof
