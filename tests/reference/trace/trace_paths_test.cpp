// Several independent draft paths in a trace, as docs/trace.md says that an engine records them: equal prefixes merged,
// or siblings repeated where a verifier counts draws. What is replayed is what the lists themselves say.
#include "reference/step/batch.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/trace/trace.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "tests/reference/trace/trace_builder.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocabSize = 5;
constexpr std::size_t kPaths = 4;
constexpr std::size_t kLength = 3;
using Path = std::vector<Token>;

// Engine with several paths, each with its own rows; equal prefixes have equal rows.
struct Engine {
  std::uint64_t salt;

  std::vector<float> row(const Path& prefix, std::uint64_t whose) const {
    std::uint64_t seed = salt + whose;
    for (const Token token : prefix) seed = seed * 31 + static_cast<std::uint64_t>(token) + 1;
    TestRandom random(seed);
    std::vector<float> values;
    for (std::int64_t i = 0; i < kVocabSize; ++i) values.push_back(1.5f * random.normal());
    to_probabilities(values, kVocabSize);
    return values;
  }
  std::vector<float> target(const Path& prefix) const { return row(prefix, 100); }
  std::vector<float> proposal(const Path& prefix) const { return row(prefix, 200); }

  std::vector<Path> paths(std::size_t length) const {
    PhiloxSource source;
    AddressedChance<PhiloxSource> chance(source, salt, 0);
    const auto distribution = [&](const Path& prefix) {
      const std::vector<float> q = proposal(prefix);
      return DenseMasses<double>(q.begin(), q.end());
    };
    return draw_iid_paths(distribution, kPaths, static_cast<std::int32_t>(length), chance);
  }
};

// One request of a trace: nodes in the order in which the paths bring them, path by path.
struct Record {
  std::vector<Token> tokens;
  std::vector<std::int32_t> parents;
  std::vector<float> target, proposal;

  Record(const Engine& engine, const std::vector<Path>& paths, bool repetitions_kept) {
    std::map<Path, std::int32_t> node_of{{{}, kRootNode}};
    add_rows(engine, {});
    for (const Path& path : paths) {
      Path prefix;
      for (const Token token : path) {
        const std::int32_t parent = node_of.at(prefix);
        prefix.push_back(token);
        const auto next = static_cast<std::int32_t>(tokens.size());
        const bool is_new = node_of.try_emplace(prefix, next).second;
        if (!is_new && !repetitions_kept) continue;
        tokens.push_back(token);
        parents.push_back(parent);
        add_rows(engine, prefix);
      }
    }
  }
  void add_rows(const Engine& engine, const Path& prefix) {
    const auto append = [](std::vector<float>& rows, const std::vector<float>& row) {
      rows.insert(rows.end(), row.begin(), row.end());
    };
    append(target, engine.target(prefix));
    append(proposal, engine.proposal(prefix));
  }

  Emission replayed(const std::string& file, const std::string& verifier, std::uint64_t seed) const {
    TraceBuilder trace;
    trace.set("target_probs", {tokens.size() + 1, kVocabSize}, target);
    trace.set("draft_probs", {tokens.size() + 1, kVocabSize}, proposal);
    trace.set("draft_tokens", tokens).set("draft_parents", parents);
    trace.set("cu_num_draft_tokens", std::vector<std::int64_t>{static_cast<std::int64_t>(tokens.size())});
    trace.set("seed", std::vector<std::uint64_t>{seed}).set("position", std::vector<std::int32_t>{7});
    trace.metadata("verifier", verifier);
    const Trace opened = Trace::open(trace.write(file));
    return verify_batch(opened.requests(), opened.verify_options(), 1).at(0);
  }
};

// Tokens that the list verifier emits, from the lists: those that agree with what was emitted stay in play.
std::vector<Token> emitted_by_lists(const Engine& engine, std::vector<Path> in_play, std::uint64_t seed) {
  PhiloxSource source;
  AddressedChance<PhiloxSource> chance(source, seed, 0);
  std::vector<Token> emitted;
  for (;;) {
    const std::size_t level = emitted.size();
    Distribution distribution;
    const std::vector<float> row = engine.target(emitted);
    distribution.make_probabilities({DType::f32, reinterpret_cast<const std::byte*>(row.data()), kVocabSize}, 0);
    const Token token =
        chance.coupled_list_race(DistributionMasses(distribution), static_cast<std::uint32_t>(7 + level), kPaths);
    emitted.push_back(token);
    std::erase_if(in_play, [&](const Path& path) { return path.size() <= level || path[level] != token; });
    if (in_play.empty()) return emitted;
  }
}

bool repeats(std::vector<Path> paths) {
  std::ranges::sort(paths);
  return std::ranges::adjacent_find(paths) != paths.end();
}

}  // namespace

TEST_CASE("paths with duplicates are recorded as a tree, and the list verifier decides as on the lists") {
  const TemporaryFolder folder;
  int repeated = 0;
  std::size_t accepted = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Engine engine{1000 + i};
    const std::vector<Path> paths = engine.paths(kLength);
    const Record record(engine, paths, false);
    CAPTURE(i);
    const Emission found = record.replayed(folder.file("paths"), "coupled_list:paths=4", i);
    CHECK(found.tokens == emitted_by_lists(engine, paths, i));
    repeated += repeats(paths) ? 1 : 0;
    accepted += found.num_accepted;
  }
  CHECK(repeated > 50);
  CHECK(accepted > 100);
}

TEST_CASE("the multi-path verifier decides on recorded paths as on the tree that was drafted") {
  const TemporaryFolder folder;
  StepWorkspace workspace;
  PhiloxSource source;
  std::size_t accepted = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Engine engine{5000 + i};
    const std::vector<Path> paths = engine.paths(kLength);
    const Record record(engine, paths, false);
    const Emission found = record.replayed(folder.file("paths"), "greedy_multipath:paths=4", i);

    // Breadth first, where the record goes path by path.
    VerifyRequest request;
    request.draft = merge_paths(paths, Duplicates::merged);
    std::vector<float> target = engine.target({});
    std::vector<float> proposal = engine.proposal({});
    for (std::int32_t node = 0; node < request.draft.size(); ++node) {
      const Path prefix = request.draft.path(node);
      for (const float p : engine.target(prefix)) target.push_back(p);
      for (const float q : engine.proposal(prefix)) proposal.push_back(q);
    }
    request.target_is_probabilities = true;
    request.target = matrix_of(target, request.rows(), kVocabSize);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix_of(proposal, request.rows(), kVocabSize);
    request.seed = i;
    VerifyOptions options;
    options.verifier = parse_verifier("greedy_multipath:paths=4", "test");
    const Emission expected = verify_step(request, options, source, workspace);
    CAPTURE(i);
    CHECK(found.tokens == expected.tokens);
    CHECK(found.logprobs == expected.logprobs);
    accepted += expected.num_accepted;
  }
  CHECK(accepted > 100);
}

TEST_CASE("a verifier that counts independent draws is given each of them, and merging them would be another step") {
  const TemporaryFolder folder;
  StepWorkspace workspace;
  PhiloxSource source;
  VerifyOptions options;
  options.verifier = Verifier::k_seq;
  int differs = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Engine engine{9000 + i};
    const std::vector<Path> paths = engine.paths(1);
    const Record record(engine, paths, true);
    REQUIRE(record.tokens.size() == kPaths);
    const Emission found = record.replayed(folder.file("paths"), "k_seq", i);

    VerifyRequest request;
    for (const Path& path : paths) request.draft.add(path[0], kRootNode);
    request.target_is_probabilities = true;
    request.target = matrix_of(record.target, request.rows(), kVocabSize);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix_of(record.proposal, request.rows(), kVocabSize);
    request.seed = i;
    CAPTURE(i);
    CHECK(found.tokens == verify_step(request, options, source, workspace).tokens);
    differs += Record(engine, paths, false).replayed(folder.file("merged"), "k_seq", i).tokens == found.tokens ? 0 : 1;
  }
  CHECK(differs > 5);
}
