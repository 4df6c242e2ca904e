// A drafting head at work on one request at a time, with every draft written down: the head's candidates at each slot,
// its confidence, what the target made of it, and the states that a chain went on from.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/decode/paired_run.hpp"
#include "engine/heads/head_drafter.hpp"

namespace draftproof {

inline constexpr std::size_t kHeadCandidates = 5;  // of a slot, at most

struct HeadCandidate {
  Token token = 0;
  float probability = 0.0f;
  std::string text;  // fit for one line; empty until it is labelled
};

// A slot of a draft, the first at index 0.
struct HeadSlot {
  HeadCandidate draft;                    // with the head's probability, at the temperature that it drafts at
  float confidence = 0.0f;                // what policies see: of its confidence head, else its largest probability
  std::vector<HeadCandidate> candidates;  // the most probable first
  bool reached = false;                   // the slots before it were accepted
  bool accepted = false;
  std::optional<HeadCandidate> emitted;  // where it was reached: the token there, without a probability
};

struct HeadStep {
  std::int64_t output_len = 0;  // tokens of the output before it
  std::size_t stream_len = 0;   // tokens before it, as the target reads them
  std::vector<HeadSlot> slots;
  std::size_t num_accepted = 0;
  HeadCandidate next;  // behind the accepted drafts: recovered, or the bonus token
  // For chain heads: the state at index i stands for the token before slot i + 2, which the head drafts that slot from.
  // As many as slots from the second on were reached.
  std::vector<std::vector<float>> states;
};

// Stands between an engine that runs one request and a head.
class HeadRecorder final : public Drafter {
 public:
  explicit HeadRecorder(std::shared_ptr<DraftHead> head);
  HeadRecorder(const HeadRecorder&) = delete;
  HeadRecorder& operator=(const HeadRecorder&) = delete;

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  bool has_confidences() const override { return true; }
  std::span<const std::int32_t> hidden_layers() const override { return head_.hidden_layers(); }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override {
    return head_.make_cache(num_blocks);
  }
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override;
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override;

  // For OnVerified.
  void verified(const SpeculativeStep& step);

  const DraftHead& head() const { return head_.head(); }
  // Steps that had a draft, and the tokens behind the last of them as the target reads them; forgotten here.
  std::vector<HeadStep> take_steps() { return std::move(steps_); }
  std::vector<Token> take_stream() { return std::move(stream_); }

 private:
  void add(const HeadRow& row);

  HeadDrafter head_;
  float temperature_ = 1.0f;  // of the draft under way
  struct Slot {
    std::vector<float> logits, state;
  };
  std::vector<Slot> rows_;  // of the draft under way, by slot
  std::vector<Token> stream_;
  std::vector<HeadStep> steps_;
};

struct RecordedHeadRun {
  Generation generation;
  std::vector<HeadStep> steps;
  std::vector<Token> stream;  // as the target reads it, up to the last step's tokens
};

// Decodes the job. drafter: the recorder, or what shows it the engine's tokens and features. check: called between two
// steps, and may throw. Errors: what makes the job impossible.
RecordedHeadRun run_recorded(LanguageModel& target, Drafter& drafter, HeadRecorder& recorder, const DecodeJob& job,
                             const std::function<void()>& check);

}  // namespace draftproof
