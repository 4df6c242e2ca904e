// A verification step replayed with the random numbers that its engine recorded (verify/replaying_chance.hpp): what it
// then emits, and where an engine departs from its own numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "reference/step/step_rows.hpp"

namespace draftproof {

// verify_step with request.recorded in place of addressed randomness; sampler and seed have no effect. The request must
// have been validated, and be replayable. RowError as of verify_step, and for a recorded token that is emitted and has
// no mass in what it should have been drawn from.
Emission replay_step(const VerifyRequest& request, const VerifyOptions& options, StepWorkspace& workspace);

// The first decision that an engine took otherwise than its own numbers say.
struct Departure {
  std::int32_t position = 0;     // of the token in what the step emits
  bool is_coin = false;          // on the draft that stands there; else the draw of a token
  bool is_sibling = false;       // the draw is of a sibling (index; the number of siblings: none of them)
  double p = 0.0, q = 0.0;       // coin
  std::optional<double> u;       // coin, draw by a uniform number
  Token token = kPaddingToken;   // coin: the draft; draw: what comes out
  Token theirs = kPaddingToken;  // draw: what the engine emitted
  bool accepted = false;         // coin: by the replay
  // How far the numbers are from deciding as the engine did: coin |u q - p| over the larger of them, draw by a uniform
  // number how far u is from the engine's token, race 1 less the share of the winner's score. 1 where they never could.
  double distance = 1.0;

  // "draft 17 at position 2 has p = 0.25, q = 0.5, u = 0.75: it is rejected, and the engine accepted it".
  std::string sentence() const;
};

// `emitted`: what the engine emitted, accepted drafts and one more token. `path`: their nodes, all but the last.
// Nothing: the replay emits just that.
std::optional<Departure> find_departure(const VerifyRequest& request, const VerifyOptions& options,
                                        std::span<const Token> emitted, std::span<const std::int32_t> path,
                                        StepWorkspace& workspace);

}  // namespace draftproof
