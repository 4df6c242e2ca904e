// Compares every draft of a head's run with what the head proposes after these tokens. Most faults of a head's runner
// (stale keys and values, features of the wrong tokens, wrong positions) leave the output's distribution as it is and
// cost accepted drafts alone, so no test of distributions finds them.
//
//   a row of logits that drafts were made from   equals a slow head's (slow_head.hpp), bit for bit; where drafts are
//                                                guided the slow head's two rows, combined
//   the state that the next pair begins with     the same
//   drafts that are the most probable tokens     are those of the row, in the row's order, by the head's
//                                                vocabulary
//   the proposal of drawn drafts                 is the row at the head's tokens and -infinity elsewhere; they are such
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/heads/head_drafter.hpp"
#include "engine/heads/lab/slow_head.hpp"

namespace draftproof {

enum class DraftPart : std::uint8_t { logits, state, draft, proposal };

std::string_view name_of(DraftPart part);

struct HeadDifference {
  DraftPart part = DraftPart::logits;
  HeadFamily family = HeadFamily::eagle3;
  std::uint64_t request = 0;
  std::int64_t position = 0;  // of the token that the row or draft is for
  std::int32_t depth = 0;     // of the draft, from 1
  std::int64_t column = 0;    // of the row or state; of a proposal the target's token; of a draft its node
  float of_run = 0.0f;        // the number there; of a draft its token
  float expected = 0.0f;      // of a drawn draft -1: any token of the head

  // "eagle3, request 4, position 37, depth 2: logits[113] is 3 (0x40400000), expected 3.125 (0x40480000)"
  std::string text() const;
};

class AcceptanceOracle {
 public:
  // head: what the run should be, packed as the run's. memory_max: bytes of rows that wait and of texts that are
  // remembered, each; kernels: the slow head's.
  AcceptanceOracle(std::shared_ptr<const HeadWeights> head, const TransformerModel& target,
                   const TransformerKernels& kernels = scalar_transformer_kernels(),
                   std::int64_t memory_max = std::int64_t{64} << 20);

  // Takes the rows and drafts of a HeadDrafter or a FaultyDrafter from now on. The oracle must outlive the run.
  template <class Runner>
  void attach(Runner& drafter) {
    drafter.on_row = [this](const HeadRow& row) { add(row); };
    drafter.on_draft = [this](const HeadDraft& draft) { add(draft); };
  }
  void add(const HeadRow& row);
  void add(const HeadDraft& draft);
  // Compares the rows that wait.
  void compare();
  // The same at the end of an engine, and forgets its requests, whose numbers the next engine gives again.
  void end_run();

  std::int64_t rows_compared() const { return rows_compared_; }
  std::int64_t guided_rows_compared() const { return guided_rows_compared_; }
  std::int64_t drafts_compared() const { return drafts_compared_; }  // nodes
  std::int64_t num_different() const { return num_different_; }      // rows, states, drafts and proposals
  const std::optional<HeadDifference>& first() const { return first_; }

 private:
  struct Waiting {
    std::uint64_t request;
    std::size_t stream_len;
    std::vector<Token> path;
    std::vector<float> logits, state;
    std::size_t companion_len;  // 0: not guided
    float guidance_scale;
  };
  using StreamKey = std::pair<std::uint64_t, int>;  // request; 1: the companion

  const Waiting* find(const HeadDraft& draft, const std::vector<Token>& path) const;
  void compare(const Waiting& row);
  HeadDifference place_of(DraftPart part, std::uint64_t request, std::size_t stream_len, std::size_t path_len) const;
  bool differs(HeadDifference place, std::span<const float> of_run, std::span<const float> expected);
  void remember(const StreamKey& key, std::span<const Token> tokens);
  void report(const HeadDifference& difference);

  SlowHead head_;
  std::int64_t memory_max_;
  std::vector<Waiting> waiting_;
  std::int64_t waiting_bytes_ = 0;
  bool step_is_over_ = false;
  std::map<StreamKey, std::vector<Token>> streams_;  // the longest of each request that waits
  std::map<StreamKey, SlowHead::Text> texts_;
  std::int64_t rows_compared_ = 0, guided_rows_compared_ = 0, drafts_compared_ = 0, num_different_ = 0;
  std::optional<HeadDifference> first_;
};

}  // namespace draftproof
