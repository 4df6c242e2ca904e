// Drafts that an engine made, recorded while it ran: in files of other engines, a JSON object a line
// (docs/heads.md, "Drafts of other engines"), or of a run of ours (DraftRecorder).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/heads/head_drafter.hpp"

namespace draftproof {

struct DraftedStep {
  std::int64_t position = 0;  // of the first draft in the text: the tokens that were known when it was drafted
  DraftTree drafts;           // breadth first; empty: the step drafted nothing
  std::int64_t num_accepted = 0;
  // [n] log of what the head gave each draft, softmax(logits / T) before filters, T the draft temperature or, where
  // that is 0, 1; empty: not recorded.
  std::vector<double> log_probs;
};

struct DraftedRequest {
  std::string where;          // "run.jsonl, line 3"
  std::vector<Token> tokens;  // as the target reads them: prompt with its start token, then output
  std::int64_t prompt_len = 0;
  double temperature = 0.0;                   // of the output
  double draft_temperature = 0.0;             // 0: drafts are the most probable tokens
  std::vector<std::int64_t> prefill_chunks;   // tokens of the prompt behind the cached ones; empty: not recorded
  std::optional<std::int64_t> cached_tokens;  // of the prompt, found in the prefix cache; nothing: not recorded
  std::vector<DraftedStep> steps;
};

// Errors (input) name file, line, field and what would be right: other fields, another type, tokens outside
// [0, vocab_size), parents that do not come before, more accepted than drafted, sizes that do not add up. Whether
// accepted drafts are the output's tokens is not looked at here.
std::vector<DraftedRequest> read_recorded_run(const std::string& path, std::int64_t vocab_size);

// The line of a request, with its end of line.
std::string recorded_line(const DraftedRequest& request);

// Between an engine and a head's drafter: takes down what it drafts and what becomes of that. Of guided requests the
// companion's stream is left out.
class DraftRecorder final : public Drafter {
 public:
  // head: of the drafter, for probabilities of rows (add); null: none are recorded.
  explicit DraftRecorder(Drafter& drafter, const DraftHead* head = nullptr) : drafter_(drafter), head_(head) {}

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override {
    drafter_.propose(context, plan, chance, out);
  }
  bool has_confidences() const override { return drafter_.has_confidences(); }
  void finish(const DraftContext& context) override { drafter_.finish(context); }
  std::span<const std::int32_t> hidden_layers() const override { return drafter_.hidden_layers(); }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override {
    return drafter_.make_cache(num_blocks);
  }
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override;
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override;

  // A row that drafts are made from: for their probabilities.
  void add(const HeadRow& row);
  // The part of a request's draft that is verified, where a policy cut it.
  void keep(std::uint64_t request, const DraftTree& verified);

  // A request that has ended, with so many tokens of output, drawn at this temperature. Once.
  DraftedRequest take(std::uint64_t request, std::size_t output_len, double temperature);

 private:
  struct Pending {
    std::int64_t position = 0;
    DraftTree drafts;
  };
  struct Recording {
    DraftedRequest request;
    std::optional<Pending> pending;
    std::map<std::vector<Token>, std::vector<float>> rows;  // of the step, by path
  };

  std::vector<double> log_probs_of(const Recording& recording, const DraftTree& drafts) const;

  Drafter& drafter_;
  const DraftHead* head_;
  std::map<std::uint64_t, Recording> recordings_;
};

}  // namespace draftproof
