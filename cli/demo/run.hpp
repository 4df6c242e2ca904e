// Computation of `draftproof demo`, before any of it is shown: generation with and without speculation, and acceptance
// measured over many continuations of the corpus. Results depend on the options and the corpus alone, not on threads or
// kernels.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/demo/distribution.hpp"
#include "cli/demo/options.hpp"
#include "engine/decode/generate.hpp"
#include "engine/model/corpus.hpp"
#include "engine/model/ngram_language_model.hpp"
#include "reference/step/consistency.hpp"

namespace draftproof {

// The ways in which tokens of a text with speculation come about, by name.
inline constexpr std::array<std::pair<const char*, TokenOrigin>, 3> kDraftedOrigins{
    {{"accepted", TokenOrigin::accepted}, {"recovered", TokenOrigin::recovered}, {"bonus", TokenOrigin::bonus}}};

// The trained models, shared by all threads.
struct DemoModels {
  DemoModels(const DemoOptions& options, Corpus corpus_read);

  Corpus corpus;
  NgramModel target;
  std::optional<NgramModel> draft;  // nothing where drafts are looked up
};

// One thread's view of the models, with its buffers.
class DemoWorker {
 public:
  DemoWorker(const DemoModels& models, const DemoOptions& options);

  LanguageModel& target_model() { return target_model_; }
  ModelSession& target() { return target_; }
  Drafter& drafter() { return *drafter_; }
  DecodingWorkspace& workspace() { return workspace_; }

 private:
  NgramLanguageModel target_model_;
  ModelSession target_;
  std::optional<NgramLanguageModel> draft_model_;
  std::unique_ptr<Drafter> drafter_;
  DecodingWorkspace workspace_;
};

struct DemoRun {
  std::vector<Token> prompt;
  DecodingOptions decoding;
  Generation speculative;  // the text that is shown, with its steps
  Generation plain;
  std::vector<VerifyRequest> requests;  // of the shown steps, views of `speculative`
  AcceptanceMetrics acceptance;         // of the measured continuations
  DistributionCheck distribution;
  ConsistencyReport consistency;
  double training_ms = 0.0;
  double speculative_ms = 0.0;
  double plain_ms = 0.0;
  double acceptance_ms = 0.0;
  double distribution_ms = 0.0;

  bool is_failure() const {
    return distribution.is_failure() || (distribution.lossless && consistency.distribution_changes);
  }
};

// The options must be valid. Errors (input): the corpus; a row that the options leave nothing of. Progress goes to
// standard error.
std::unique_ptr<DemoRun> run_demo(const DemoOptions& options);

}  // namespace draftproof
