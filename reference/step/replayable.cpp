#include "reference/step/replayable.hpp"

#include <cmath>

#include "base/error.hpp"

namespace draftproof {
namespace {

// A recorded token can stand for a draw of a chain, whose rows are the drafts'; of a race it is the noise.
bool takes_tokens(const VerifierInfo& info) {
  return info.draft == DraftForm::chain && !info.is_coupled();
}

void require_size(const std::optional<RecordedNumbers>& numbers, std::size_t expected, const char* name,
                  const char* meaning, const std::string& where) {
  if (numbers && numbers->size() != expected)
    throw input_error(where, std::string(name) + " has " + std::to_string(numbers->size()) + " numbers; expected " +
                                 std::to_string(expected) + ", " + meaning);
}

const char* name_of_noise(const RecordedRandomness& recorded) {
  return recorded.noise_kind == NoiseKind::exponential ? "exponential_noise" : "gumbel_noise";
}

void require_one_source(const VerifyRequest& request, const VerifierInfo& info, const std::string& where) {
  const RecordedRandomness& recorded = request.recorded;
  if (recorded.draw_uniforms && recorded.noise)
    throw input_error(where, std::string("has both draw_uniforms and ") + name_of_noise(recorded) +
                                 "; expected one of them, since a draw is made once");
  const bool numbers = recorded.draw_uniforms || recorded.noise;
  const char* const draws = info.is_coupled() ? "exponential_noise or gumbel_noise"
                            : takes_tokens(info)
                                ? "recovered_tokens and bonus_tokens, draw_uniforms, exponential_noise or "
                                  "gumbel_noise"
                                : "draw_uniforms, exponential_noise or gumbel_noise";
  const bool has_drafts = !request.draft.empty();
  if (!numbers && ((has_drafts && !recorded.recovered_tokens) || !recorded.bonus_token))
    throw input_error(where, std::string("has no recorded numbers for ") +
                                 (recorded.bonus_token ? "the token after a rejection" : "the last token of a step") +
                                 "; expected " + draws);
  if (numbers && recorded.recovered_tokens && recorded.bonus_token)
    throw input_error(where, std::string("has ") + (recorded.noise ? name_of_noise(recorded) : "draw_uniforms") +
                                 " beside recovered_tokens and bonus_tokens, which are all that is drawn; expected one "
                                 "or the other");
}

}  // namespace

bool follows_convention(const VerifierChoice& verifier) {
  const Coins coins = verifier.info().coins;
  return coins == Coins::of_drafts || coins == Coins::of_selected_path;
}

void validate_recorded_numbers(const VerifyRequest& request, const std::string& where) {
  const RecordedRandomness& recorded = request.recorded;
  const auto check = [&](const std::optional<RecordedNumbers>& numbers, const char* name, auto valid,
                         const char* range) {
    for (std::size_t i = 0; numbers && i < numbers->size(); ++i)
      if (!valid((*numbers)[i]))
        throw input_error(where, std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string((*numbers)[i]) +
                                     "; expected " + range);
  };
  const auto in_unit = [](double u) { return u >= 0.0 && u <= 1.0; };
  check(recorded.uniforms, "uniforms", in_unit, "a number in [0, 1]");
  check(recorded.draw_uniforms, "draw_uniforms", in_unit, "a number in [0, 1]");
  if (recorded.noise_kind == NoiseKind::exponential) {
    check(
        recorded.noise, "exponential_noise", [](double x) { return x >= 0.0 && std::isfinite(x); },
        "a finite number, 0 or above");
  } else {
    check(
        recorded.noise, "gumbel_noise", [](double x) { return std::isfinite(x); }, "a finite number");
  }
  const auto check_token = [&](Token token, const std::string& name) {
    if (token < kPaddingToken || token >= request.target.vocab_size)
      throw input_error(where, name + " is " + std::to_string(token) + "; expected an id in [0, " +
                                   std::to_string(request.target.vocab_size) + "), or -1 where none was made");
  };
  if (recorded.recovered_tokens)
    for (std::size_t i = 0; i < recorded.recovered_tokens->size(); ++i)
      check_token((*recorded.recovered_tokens)[i], "recovered_tokens[" + std::to_string(i) + "]");
  if (recorded.bonus_token) check_token(*recorded.bonus_token, "bonus_tokens");
}

void require_replayable(const VerifyRequest& request, const VerifierChoice& verifier, const std::string& where) {
  const RecordedRandomness& recorded = request.recorded;
  const VerifierInfo& info = verifier.info();
  const std::string name = "verifier " + std::string(info.name);
  if (!info.is_replayable())
    throw usage_error(
        where, name + " takes no recorded randomness; expected one of " + verifier_names(&VerifierInfo::is_replayable));
  const std::size_t draft_len = request.draft.tokens.size();
  const auto vocab_size = static_cast<std::size_t>(request.target.vocab_size);
  if (recorded.uniforms && info.coins == Coins::none)
    throw usage_error(
        where, "has uniforms, and " + name + " throws no coins; expected them of one of " +
                   verifier_names([](const VerifierInfo& i) { return i.is_replayable() && i.coins != Coins::none; }));
  if (!recorded.uniforms && info.coins != Coins::none)
    throw input_error(where, "has no uniforms; expected them, since " + name + " throws coins");
  if (info.coins == Coins::of_drafts)
    require_size(recorded.uniforms, draft_len, "uniforms", "one for each draft", where);
  if (info.coins == Coins::of_rows)
    require_size(recorded.uniforms, draft_len + 1, "uniforms", "one for each row, which all its drafts share", where);
  if ((recorded.recovered_tokens || recorded.bonus_token) && !takes_tokens(info))
    throw usage_error(
        where, "has recovered_tokens or bonus_tokens, and " + name + " does not take them; expected them of one of " +
                   verifier_names([](const VerifierInfo& i) { return i.is_replayable() && takes_tokens(i); }));
  if (recorded.recovered_tokens && recorded.recovered_tokens->size() != draft_len)
    throw input_error(where, "recovered_tokens has " + std::to_string(recorded.recovered_tokens->size()) +
                                 " tokens; expected " + std::to_string(draft_len) + ", one for each draft");
  if (recorded.draw_uniforms && info.is_coupled())
    throw usage_error(
        where, "has draw_uniforms, and " + name + " draws by race alone; expected exponential_noise or gumbel_noise");
  require_one_source(request, info, where);
  if (recorded.draw_uniforms && recorded.draw_uniforms->size() != 1)
    require_size(recorded.draw_uniforms, draft_len + 1, "draw_uniforms", "one for each row, or 1 for the step", where);
  if (recorded.noise && recorded.noise->size() != vocab_size)
    require_size(recorded.noise, (draft_len + 1) * vocab_size, name_of_noise(recorded),
                 "a row of V for each row, or V for the step", where);
}

}  // namespace draftproof
