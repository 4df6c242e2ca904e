// A session against the model asked directly: contexts that grow, shrink, branch and follow a tree give the same rows.
#include "engine/model/model_session.hpp"

#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kNumTokens = 5;

std::vector<float> row_of(ToyModel& model, const std::vector<Token>& context) {
  std::vector<float> row(kNumTokens);
  model.logits(context, row);
  return row;
}

TEST_CASE("a session gives the model's rows after contexts that grow, shrink, branch and follow a draft tree") {
  CountingModel model(kNumTokens);
  ModelSession session(model);
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  std::vector<Token> context;
  for (int round = 0; round < 400; ++round) {
    std::vector<Token> nodes;
    std::vector<std::int32_t> parents;
    for (std::size_t n = below(7); n > 0; --n) {
      parents.push_back(static_cast<std::int32_t>(below(nodes.size() + 1)) - 1);
      nodes.push_back(static_cast<Token>(below(kNumTokens)));
    }
    std::vector<float> rows((nodes.size() + 1) * kNumTokens);
    const std::size_t stream = below(2);
    session.tree_logits(context, nodes, parents, rows, stream);
    const auto row_at = [&](std::size_t i) {
      return std::vector<float>(rows.begin() + static_cast<long>(i * kNumTokens),
                                rows.begin() + static_cast<long>((i + 1) * kNumTokens));
    };
    CHECK(row_at(0) == row_of(model.model, context));
    std::vector<std::vector<Token>> paths;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      paths.push_back(parents[i] < 0 ? context : paths[static_cast<std::size_t>(parents[i])]);
      paths.back().push_back(nodes[i]);
      CHECK(row_at(i + 1) == row_of(model.model, paths.back()));
    }
    if (!paths.empty() && below(4) != 0) context = paths[below(paths.size())];
    if (below(3) == 0) context.push_back(static_cast<Token>(below(kNumTokens)));
    if (below(10) == 0) context.resize(below(context.size() + 1));
  }
}

TEST_CASE("what a session has computed is not computed again") {
  CountingModel model(kNumTokens);
  ModelSession session(model);
  std::vector<float> row(kNumTokens);
  std::vector<Token> context{1, 2, 3, 4};
  session.logits(context, row);
  CHECK(model.computed == 5);  // with the start token
  context.push_back(0);
  session.logits(context, row);
  CHECK(model.computed == 6);
  const std::vector<Token> nodes{1, 2, 3};
  const std::vector<std::int32_t> parents{-1, -1, 1};
  std::vector<float> rows(4 * kNumTokens);
  session.tree_logits(context, nodes, parents, rows);
  CHECK(model.computed == 6 + 1 + 3);
  context.insert(context.end(), {2, 3, 4});  // nodes 1 and 2, then a new token
  session.logits(context, row);
  CHECK(model.computed == 10 + 1);
  CHECK(row == row_of(model.model, context));
}

TEST_CASE("a batch that contradicts itself is refused, and the message says where") {
  ToyModel model(kNumTokens, 1, 2);
  const auto kv = model.make_kv_cache(64);
  ForwardOutput out;
  std::vector<Token> tokens{1, 2};
  std::vector<std::int32_t> positions{3, 4};
  std::vector<std::int32_t> streams{0, 0};
  std::vector<std::int32_t> parents{-1, 0};
  std::vector<std::int64_t> slots{19, 20};
  std::vector<std::int32_t> blocks{1};
  std::vector<std::int32_t> wanted{1};
  std::int64_t length = 3;
  const auto run = [&] {
    const StreamContext context{blocks, length};
    model.forward({tokens, positions, streams, parents, slots, std::span(&context, 1), wanted, {}}, *kv, out);
  };
  CHECK_NOTHROW(run());
  const auto refused = [&](auto& value, int lie, const std::string& message) {
    const auto truth = value;
    value = lie;
    CHECK_THROWS_WITH(run(), Contains(message));
    value = truth;
  };
  refused(tokens[1], 5, "token 1 of the batch: it is 5; expected one in [0, 5)");
  refused(tokens[1], -2, "token 1 of the batch: it is -2; expected one in [0, 5)");
  refused(streams[1], 1, "its stream is 1");
  refused(parents[1], 1, "its parent is 1; expected a token before it");
  refused(positions[1], 5, "its position is 5; expected 4");
  refused(slots[1], 64, "its slot is 64");
  refused(slots[1], 19, "two tokens have slot 19");
  refused(slots[1], 18, "slot 18 is to be written and holds a committed token");
  refused(blocks[0], 4, "block 0 is 4; expected one in [0, 4)");
  refused(length, 17, "its context has 17 tokens; expected at most the 16 of its blocks");
  refused(wanted[0], 2, "logits are wanted after token 2");
  CHECK_NOTHROW(run());
}

}  // namespace
