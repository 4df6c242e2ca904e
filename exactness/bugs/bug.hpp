// Bugs: one fault of a real engine each, switched on in our own code, which the lab must find. A lab that cannot be
// shown to catch what shipped proves nothing by being silent.
//
// How a fault gets into code that has none: algorithms are templates over their Chance, their rows and their masks, so
// a fault of addresses, of residuals or of row mapping is a faulty policy handed to the very template that production
// runs. Where the fault sits in what is no template (a filter, a counter), it is a small replica of the faulty path,
// written next to its hunt. Either way production code holds no switch and a release build no dead branch.
//
// Every hunt is run twice, with the fault and without: a detector that also accuses the sound twin has caught nothing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

enum class Detector : char {
  key_audit = 'K',     // an address was used twice (random/audit.hpp)
  enumeration = 'E',   // exact distribution on a tiny vocabulary (verify/enumerating_chance.hpp)
  injection = 'X',     // words at the ends of the range (random/injected.hpp)
  batch = 'B',         // a row's result depends on its neighbours, on their order or number
  support = 'V',       // a token that is impossible or outside the vocabulary
  tail = 'T',          // the share of rare tokens
  ragged = 'R',        // rows or requests of unequal kinds against each alone
  replay = 'S',        // speculative against plain decoding with the same state
  differential = 'D',  // bits against the reference
  acceptance = 'A',    // the distribution of the number of accepted drafts
  independence = 'I',  // draws whose every marginal is right depend on each other (audit/independence.hpp)
  output = 'O',        // an audit of what was emitted, beside the rows (audit/audit.hpp)
};

inline constexpr std::string_view kDetectorLetters = "KEXBVTRSDAIO";
inline std::string letter_of(Detector detector) {
  return {static_cast<char>(detector)};
}
// As heads of columns, in the order of the letters.
inline constexpr std::array<std::string_view, kDetectorLetters.size()> kDetectorNames{
    "reused keys", "enumeration", "range ends", "batches",    "support",      "rare tokens",
    "ragged rows", "replay",      "bits",       "acceptance", "independence", "output audit"};
inline std::string_view name_of(Detector detector) {
  return kDetectorNames.at(kDetectorLetters.find(static_cast<char>(detector)));
}

// Verdict of one detector on one piece of code.
struct Finding {
  bool caught = false;
  std::int64_t cases = 0;  // looked at until then
  std::string unit;        // what a case is: "outcomes", "draws", "rows"
  std::string evidence;    // one sentence on what was seen, with the numbers; empty where nothing was
};

// Looks at the cases in order until evidence_of(case) is not empty.
template <class Cases, class EvidenceOf>
Finding first_evidence(std::string unit, const Cases& cases, const EvidenceOf& evidence_of) {
  Finding finding{false, 0, std::move(unit), {}};
  for (const auto& one : cases) {
    ++finding.cases;
    finding.evidence = evidence_of(one);
    finding.caught = !finding.evidence.empty();
    if (finding.caught) break;
  }
  return finding;
}

#ifdef __EMSCRIPTEN__
struct Hunt {  // A page shows what bugs do and hunts none: what a hunt takes along is not in it.
  Detector detector;
  template <class Run>
  Hunt(Detector of, const Run&) : detector(of) {}
};
#else
struct Hunt {
  Detector detector;
  std::function<Finding(bool faulty)> run;  // the same code with its fault and without
};
#endif

// Single draws of faulty code, for the distribution lab.
struct LargeSampler {
  std::vector<double> distribution;               // [V] that the draws should have
  std::function<Token(std::uint64_t draw)> draw;  // token of draw number 0, 1, ..., by the faulty code
};

struct RowParameters;  // logits/parameters.hpp
struct FixedRows;      // a target and a proposal, the same after every prefix (fixed_rows.hpp)

struct Bug {
  std::string id = {};      // "B01" (docs/exactness.md), several joined by '/'
  std::string source = {};  // where it shipped
  std::string fault = {};   // what the code does
  std::vector<Hunt> hunts = {};
  // The sampler on these rows, if the fault shows on any p and q. Null: it needs more than a p and a q.
  std::function<LargeSampler(const std::shared_ptr<const FixedRows>&)> rows_sampler = nullptr;
  // The sampler of a row of these logits [V] under any parameters but temperature 0, if the fault is one of the
  // filters. Null: the fault is elsewhere.
  std::function<LargeSampler(const std::vector<float>& logits, const RowParameters& parameters)> filter_sampler =
      nullptr;
};

// Code that is right although it looks like a bug: every hunt must stay silent. `faulty` is passed as true.
using Control = Bug;

// A fault, or part of one, that lives where this project has no code yet. Those of kernels are in gpu/faults.
struct WaitingBug {
  std::string id;
  std::string source;
  std::string waits_for;
};

std::vector<Control> bug_controls();
std::vector<WaitingBug> waiting_bugs();

}  // namespace draftproof
