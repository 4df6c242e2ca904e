#include "reference/numerics/order_key.hpp"

#include "tests/support/test.hpp"

namespace {

using Limits = std::numeric_limits<float>;

std::vector<float> many_floats() {
  std::vector<float> values;
  for (const float x : {0.0f, 1.0f, Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity()})
    values.insert(values.end(), {x, -x});
  std::mt19937 random(17);
  while (values.size() < 600) {
    const float x = bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(x)) values.push_back(x);
  }
  return values;
}

}  // namespace

TEST_CASE("Order keys compare as the floats do for every pair of a hard sample") {
  const std::vector<float> values = many_floats();
  int wrong = 0;
  for (const float a : values) {
    for (const float b : values) {
      wrong += (a < b) != (order_key(a) < order_key(b));
      wrong += (a == b) != (order_key(a) == order_key(b));
    }
  }
  CHECK(wrong == 0);
  CHECK(order_key(-0.0f) == order_key(0.0f));
  CHECK(order_key(-Limits::denorm_min()) < order_key(-0.0f));
}

TEST_CASE("The order of tokens is total and sorts values down and ids up") {
  std::mt19937 random(19);
  std::vector<float> logits;
  for (int i = 0; i < 60; ++i) logits.push_back(static_cast<float>(random() % 8) - 4.0f);
  logits[10] = 0.0f;
  logits[20] = -0.0f;
  std::vector<Token> by_key(logits.size());
  for (std::size_t i = 0; i < by_key.size(); ++i) by_key[i] = static_cast<Token>(i);
  std::vector<Token> by_value = by_key;
  const auto value = [&](Token token) { return logits[static_cast<std::size_t>(token)]; };
  std::shuffle(by_key.begin(), by_key.end(), random);
  std::sort(by_key.begin(), by_key.end(),
            [&](Token a, Token b) { return stands_before(order_key(value(a)), a, order_key(value(b)), b); });
  std::stable_sort(by_value.begin(), by_value.end(), [&](Token a, Token b) { return value(a) > value(b); });
  CHECK(by_key == by_value);
  for (const Token a : by_key) {
    CHECK_FALSE(stands_before(order_key(value(a)), a, order_key(value(a)), a));
  }
}
