// Cases of tree verification.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/invalid_offsets.hpp"
#include "gpu/regress/random_trees.hpp"
#include "gpu/regress/verify_inputs.hpp"

namespace draftproof::regress {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Shape {
  std::int64_t vocab_size;
  std::int64_t row_stride;
  std::int32_t dtype = DRAFTPROOF_F32;
  std::int32_t rule = DRAFTPROOF_RRSW;
  std::int32_t target_kind = DRAFTPROOF_PROBABILITIES;
  std::int32_t proposal_kind = DRAFTPROOF_PROBABILITIES;
  float spread = 2.0f;
  double masked_share = 0.2;
  bool is_unlike = false;  // proposals have nothing to do with targets: most siblings are rejected
};

struct Inputs {
  RandomTrees trees;
  Shape shape;
  std::vector<float> target = {};    // [rows, row_stride]
  std::vector<float> proposal = {};  // the same; of target_only never read
  std::vector<std::int32_t> draft_tokens = {};
  std::vector<std::uint64_t> seed = {};
  std::vector<std::uint32_t> step = {};
  ParameterLists parameters = {};
  ParameterLists draft_parameters = {};
  bool has_logprobs = true;
  bool has_path = true;

  std::size_t at(std::int64_t row, std::int64_t token) const {
    return static_cast<std::size_t>(row * shape.row_stride + token);
  }
  // Row r of request b.
  std::int64_t row_of(std::int64_t b, std::int64_t r) const {
    return trees.cu_num_draft_tokens[static_cast<std::size_t>(b)] + b + r;
  }
  std::size_t node_of(std::int64_t b, std::int64_t node) const {
    return static_cast<std::size_t>(trees.cu_num_draft_tokens[static_cast<std::size_t>(b)] + node);
  }
};

void run(CaseRun& run, const Inputs& in) {
  const Shape& shape = in.shape;
  draftproof_verify_arguments a{};
  a.requests = in.trees.requests();
  a.draft_tokens_total = in.trees.draft_tokens();
  a.draft_len_max = in.trees.draft_len_max;
  a.vocab_size = shape.vocab_size;
  a.draft_tokens = run.input(in.draft_tokens);
  a.cu_num_draft_tokens = run.input(in.trees.cu_num_draft_tokens);
  a.parents = run.input(in.trees.parents);
  a.tree_rule = shape.rule;
  a.target_kind = shape.target_kind;
  a.target = run.rows(in.target, shape.row_stride, shape.dtype);
  a.parameters = in.parameters.parameters_in(run);
  a.constraints.history_len_max = a.draft_len_max;
  if (shape.rule == DRAFTPROOF_RRSW && a.draft_tokens_total > 0) {
    a.proposal_kind = shape.proposal_kind;
    a.proposal = run.rows(in.proposal, shape.row_stride, shape.dtype);
    a.draft_parameters = in.draft_parameters.parameters_in(run);
  }
  a.randomness = {run.input(in.seed), run.input(in.step)};
  run_verifier({"verify_tree", device::verify_tree_workspace_bytes, device::verify_tree}, run, a, in.has_logprobs,
               in.has_path);
}

// A token by the given probabilities, or by none in particular where they sum to too little.
std::int32_t drawn(const float* probabilities, std::int64_t vocab_size, double u) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < vocab_size; ++i) {
    sum += static_cast<double>(probabilities[i]);
    if (u < sum) return static_cast<std::int32_t>(i);
  }
  return static_cast<std::int32_t>(u * static_cast<double>(vocab_size));
}

// Drafts are drawn from proposals that resemble the targets, siblings one after the other, so that nodes are accepted
// and rejected, siblings repeat each other, and some cannot come from the proposal.
Inputs make_inputs(std::uint64_t seed, const Shape& shape, RandomTrees trees) {
  const Noise noise(seed);
  const std::int64_t rows = trees.rows();
  const std::int64_t vocab_size = shape.vocab_size;
  const std::int64_t stride = shape.row_stride;
  Inputs in{std::move(trees), shape};
  const auto rows_of = [&](std::uint64_t of, float spread, std::int32_t kind) {
    if (kind == DRAFTPROOF_PROBABILITIES)
      return probability_rows(of, rows, vocab_size, stride, spread, shape.masked_share);
    std::vector<float> logits = normal_logits(of, rows, vocab_size, stride, spread);
    mask_some(of + 1, logits, rows, vocab_size, stride, shape.masked_share);
    return logits;
  };
  // The same seed and another spread: the same order of tokens, another distribution.
  in.target = rows_of(seed, shape.spread, shape.target_kind);
  const std::uint64_t drafter = shape.is_unlike ? seed + 1000 : seed;
  in.proposal = rows_of(drafter, 0.6f * shape.spread, shape.proposal_kind);
  const std::vector<float> distributions =
      probability_rows(drafter, rows, vocab_size, stride, 0.6f * shape.spread, 0.0);
  for (std::int64_t b = 0; b < in.trees.requests(); ++b) {
    in.seed.push_back(noise.word(static_cast<std::uint64_t>(b)) * 0x100000001ull);
    in.step.push_back(static_cast<std::uint32_t>(3 * b + 1));
    const std::int64_t nodes = in.row_of(b + 1, -1) - in.row_of(b, 0);
    for (std::int64_t i = 0; i < nodes; ++i) {
      const std::int64_t row = in.row_of(b, in.trees.parents[in.node_of(b, i)] + 1);
      const double u = noise.uniform(1000 + in.node_of(b, i));
      in.draft_tokens.push_back(drawn(distributions.data() + row * stride, vocab_size, u));
    }
  }
  return in;
}

std::string kind_text(std::int32_t kind) {
  return kind == DRAFTPROOF_PROBABILITIES ? "probabilities" : "logits";
}

RegressCase late_case(const std::string& what, const Shape& shape, std::int64_t requests, const LateInputs<Inputs>& in,
                      std::vector<int> block_threads) {
  const std::string rule =
      shape.rule == DRAFTPROOF_RRSW ? "rrsw_" + kind_text(shape.proposal_kind) : std::string("target_only");
  const std::string name = "verify_tree/" + what + "/" + kind_text(shape.target_kind) + "/" + rule + "/" +
                           dtype_text(shape.dtype) + "/V" + std::to_string(shape.vocab_size) + "/B" +
                           std::to_string(requests);
  return {name, [in](CaseRun& r) { run(r, *in); }, std::move(block_threads)};
}

RegressCase make(const std::string& what, Inputs in, std::vector<int> block_threads = {0}) {
  const Shape shape = in.shape;
  const std::int64_t requests = in.trees.requests();
  return late_case(what, shape, requests, LateInputs<Inputs>(std::move(in)), std::move(block_threads));
}

// The same with make_inputs(seed, shape, trees).
RegressCase make(const std::string& what, std::uint64_t seed, const Shape& shape, const RandomTrees& trees,
                 std::vector<int> block_threads = {0}) {
  const LateInputs<Inputs> in([seed, shape, trees] { return make_inputs(seed, shape, trees); });
  return late_case(what, shape, trees.requests(), in, std::move(block_threads));
}

const std::vector<std::int64_t> kRagged = {6, 0, 12, 1, 9, 7, 3};

RandomTrees ragged_trees(std::uint64_t seed) {
  return random_trees(seed, kRagged, 3);
}

// The rules and kinds that a call may combine.
std::vector<Shape> combinations(std::int64_t vocab_size, std::int64_t row_stride, std::int32_t dtype) {
  constexpr std::int32_t kProbabilities = DRAFTPROOF_PROBABILITIES;
  constexpr std::int32_t kLogits = DRAFTPROOF_LOGITS;
  std::vector<Shape> shapes;
  for (const std::int32_t target : {kProbabilities, kLogits}) {
    // The larger the vocabulary, the more peaked, so that drafts have a chance.
    const float spread = vocab_size > 1000 ? 5.0f : 2.0f;
    shapes.push_back({vocab_size, row_stride, dtype, DRAFTPROOF_TARGET_ONLY, target, kProbabilities, spread});
    for (const std::int32_t proposal : {kProbabilities, kLogits})
      shapes.push_back({vocab_size, row_stride, dtype, DRAFTPROOF_RRSW, target, proposal, spread});
  }
  return shapes;
}

void add_sizes(std::vector<RegressCase>& cases) {
  std::uint64_t seed = 100;
  for (const std::int64_t vocab_size : kSmallVocabularies) {
    for (const std::int32_t dtype : {DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16}) {
      for (const Shape& shape : combinations(vocab_size, padded(vocab_size), dtype)) {
        const bool sweeps = vocab_size == 33 || (vocab_size == 4097 && dtype == DRAFTPROOF_F32);
        ++seed;
        if (vocab_size > 4000 && dtype != DRAFTPROOF_F32 && seed % 3 != 0) continue;
        cases.push_back(make("padded", seed, shape, ragged_trees(seed),
                             sweeps ? std::vector<int>{128, 256, 512} : std::vector<int>{0}));
      }
    }
  }
  const std::vector<std::int64_t> few = {5};
  for (const Shape& shape : combinations(32000, 32000, DRAFTPROOF_BF16)) {
    ++seed;
    cases.push_back(make("model", seed, shape, random_trees(seed, few, 3), {256}));
  }
}

// Whole rows that are special: every request shows another one at its root.
void add_special_rows(std::vector<RegressCase>& cases) {
  const Shape shape{40, 41};
  for (const std::int32_t rule : {DRAFTPROOF_TARGET_ONLY, DRAFTPROOF_RRSW}) {
    Shape of = shape;
    of.rule = rule;
    Inputs in = make_inputs(7, of, random_trees(7, std::vector<std::int64_t>(9, 6), 4));
    const auto fill = [&](std::vector<float>& rows, std::int64_t b, std::int64_t r, const auto& value) {
      for (std::int64_t i = 0; i < 40; ++i) rows[in.at(in.row_of(b, r), i)] = value(i);
    };
    const auto one_hot = [](std::int64_t token) {
      return [token](std::int64_t i) { return i == token ? 1.0f : 0.0f; };
    };
    const auto all = [&](std::vector<float>& rows, std::int64_t b, const auto& value) {
      for (std::int64_t r = 0; r <= 6; ++r) fill(rows, b, r, value);
    };
    // Requests 1 to 3 and 8 have siblings only.
    std::fill_n(in.trees.parents.begin() + 6, 3 * 6, -1);
    std::fill_n(in.trees.parents.begin() + 8 * 6, 6, -1);
    // 0: p and q the same everywhere: the first sibling stands. 1: p on one token, drafted by none but the last.
    all(in.target, 0, [](std::int64_t) { return 0x1p-5f; });
    all(in.proposal, 0, [](std::int64_t) { return 0x1p-5f; });
    all(in.target, 1, one_hot(17));
    std::fill_n(in.draft_tokens.begin() + 6, 6, 3);
    in.draft_tokens[11] = 17;
    // 2: siblings that q cannot produce. 3: all siblings are the same token.
    all(in.proposal, 2, one_hot(39));
    std::fill_n(in.draft_tokens.begin() + 2 * 6, 6, 5);
    std::fill_n(in.draft_tokens.begin() + 3 * 6, 6, 21);
    // 4: q above p everywhere but for a token that q forgets. 5: q covers p after the first trial: no residual.
    all(in.target, 4, [](std::int64_t i) { return i == 8 ? 0x1p-20f : 0x1p-6f; });
    all(in.proposal, 4, [](std::int64_t i) { return i == 8 ? 0.0f : 0x1.8p-6f; });
    all(in.target, 5, [](std::int64_t i) { return i < 32 ? 0x1p-5f : 0.0f; });
    all(in.proposal, 5, [](std::int64_t i) { return i < 33 ? 0x1.8p-5f : 0.0f; });
    std::fill_n(in.draft_tokens.begin() + 5 * 6, 6, 32);
    // 6: the smallest probabilities that there are, beside one. 7: a proposal with all but no mass.
    all(in.target, 6, [](std::int64_t i) { return i == 0 ? 1.0f : 0x1p-149f; });
    all(in.proposal, 6, [](std::int64_t i) { return i == 1 ? 1.0f : 0x1p-62f; });
    all(in.proposal, 7, [](std::int64_t i) { return i < 3 ? 0x1p-50f : 0x1p-140f; });
    std::fill_n(in.draft_tokens.begin() + 7 * 6, 6, 30);
    in.draft_tokens[7 * 6 + 1] = 1;
    // 8: the first trial leaves nothing, so p stays; the second leaves the first one's token alone.
    all(in.target, 8, [](std::int64_t i) { return i < 32 ? 0x1p-7f : 0.0f; });
    all(in.proposal, 8, [](std::int64_t i) { return i < 32 ? 0x1p-5f : 0.0f; });
    std::iota(in.draft_tokens.begin() + 8 * 6, in.draft_tokens.end(), 4);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      for (std::uint64_t& s : in.seed) s += seed * 0x9e3779b97f4a7c15ull;
      cases.push_back(make("special_rows_seed" + std::to_string(seed), in, {128, 512}));
    }
  }
}

// Rows, ids and parents that are invalid, in places that are looked at and in places that are not.
void add_bad(std::vector<RegressCase>& cases) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Shape& shape : combinations(70, 72, DRAFTPROOF_F32)) {
    Inputs in = make_inputs(31, shape, random_trees(31, std::vector<std::int64_t>(14, 5), 2));
    const auto set = [&](std::vector<float>& rows, std::int64_t b, std::int64_t r, float value) {
      rows[in.at(in.row_of(b, r), 69)] = value;
    };
    const auto fill = [&](std::vector<float>& rows, std::int64_t b, std::int64_t r, float value) {
      std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(in.at(in.row_of(b, r), 0)), 70, value);
    };
    const bool is_logits = shape.target_kind == DRAFTPROOF_LOGITS;
    set(in.target, 0, 0, kNan);
    set(in.target, 1, 0, is_logits ? kInfinity : 1.5f);
    fill(in.target, 2, 0, is_logits ? -kInfinity : 0.0f);
    fill(in.target, 3, 0, is_logits ? 0x1.8p29f : 0.5f);
    for (std::int64_t r = 1; r <= 5; ++r) set(in.target, 4, r, kNan);  // reported if the walk goes there
    set(in.proposal, 5, 0, kNan);
    fill(in.proposal, 6, 0, shape.proposal_kind == DRAFTPROOF_LOGITS ? -kInfinity : 0.0f);
    for (std::int64_t r = 1; r <= 5; ++r) set(in.proposal, 7, r, kNan);
    set(in.target, 8, 0, kNan);
    set(in.proposal, 8, 0, kInfinity);
    in.draft_tokens[in.node_of(9, 4)] = 70;
    in.draft_tokens[in.node_of(10, 0)] = -1;
    in.trees.parents[in.node_of(11, 3)] = 3;
    in.trees.parents[in.node_of(12, 2)] = -2;
    cases.push_back(make("bad", in, {128, 256}));
  }
}

// Offsets and parents that lead out of the trees. Requests differ in every parameter, so that a row that is taken for
// another request's shows.
void add_invalid_offsets(std::vector<RegressCase>& cases) {
  for (const Shape& shape : combinations(40, 41, DRAFTPROOF_F32)) {
    if (shape.rule == DRAFTPROOF_RRSW && shape.proposal_kind != shape.target_kind) continue;
    Inputs valid = make_inputs(61, shape, random_trees(61, std::vector<std::int64_t>{4, 4, 0, 3, 4, 1, 4, 4}, 2));
    if (shape.target_kind == DRAFTPROOF_LOGITS) {
      valid.parameters.temperature = {0.5f, 0.75f, 1.0f, 1.25f, 0.0f, 1.75f, 2.0f, 0.25f};
      valid.parameters.repetition_penalty = {1.0f, 1.5f, 2.0f, 1.25f, 0.5f, 4.0f, 1.75f, 3.0f};
    }
    if (shape.proposal_kind == DRAFTPROOF_LOGITS && shape.rule == DRAFTPROOF_RRSW)
      valid.draft_parameters.temperature = {1.0f, 0.5f, 0.75f, 1.0f, 1.25f, 2.0f, 1.5f, 0.875f};
    for (InvalidOffsets& lie : invalid_draft_offsets(valid.trees.cu_num_draft_tokens)) {
      Inputs in = valid;
      in.trees.cu_num_draft_tokens = std::move(lie.offsets);
      cases.push_back(make("invalid_offsets_" + lie.what, in, {128}));
    }
    valid.trees.parents[1] = std::numeric_limits<std::int32_t>::max();
    valid.trees.parents[4] = std::numeric_limits<std::int32_t>::min();
    cases.push_back(make("far_parents", valid, {128}));
  }
}

void add_parameters(std::vector<RegressCase>& cases) {
  for (const Shape& shape : combinations(4100, 4104, DRAFTPROOF_F32)) {
    if (shape.target_kind != DRAFTPROOF_LOGITS) continue;
    Inputs in = make_inputs(41, shape, ragged_trees(41));
    in.parameters.temperature = {0.0f, 0.7f, 1.0f, 0.0f, 1.3f, 0.2f, -1.0f};
    if (shape.proposal_kind == DRAFTPROOF_LOGITS)
      in.draft_parameters.temperature = {1.0f, 0.0f, 0.5f, 1.0f, 0.0f, 2.0f, 1.0f};
    cases.push_back(make("tempered", in));
    in.parameters.temperature = {0.9f, 0.7f, 1.0f, 0.0f, 1.3f, 0.2f, 0.8f};
    in.parameters.top_k = {0, 5, 50, 3, 0, 1000, 20};
    in.parameters.top_p = {0.9f, 1.0f, 0.5f, 1.0f, 0.99f, 1.0f, 0.95f};
    if (shape.proposal_kind == DRAFTPROOF_LOGITS) in.draft_parameters.top_k = {0, 8, 0, 1, 30, 0, 4};
    cases.push_back(make("filtered", in));
    in.parameters.repetition_penalty = {1.0f, 1.5f, 2.0f, 1.2f, 1.0f, 4.0f, 0.5f};  // the history grows along each path
    cases.push_back(make("penalised_paths", in));
  }
  // Few tokens, so that every token of a path weighs in the distribution after it.
  for (const Shape& shape : combinations(12, 12, DRAFTPROOF_F32)) {
    if (shape.target_kind != DRAFTPROOF_LOGITS) continue;
    Inputs in = make_inputs(43, shape, random_trees(43, std::vector<std::int64_t>(30, 7), 2));
    for (std::int64_t b = 0; b < 30; ++b) in.parameters.repetition_penalty.push_back(b % 3 == 0 ? 0.25f : 2.5f);
    cases.push_back(make("penalised_few", in, {128}));
  }
}

}  // namespace

std::vector<RegressCase> verify_tree_cases() {
  std::vector<RegressCase> cases;
  add_sizes(cases);
  add_special_rows(cases);
  add_bad(cases);
  add_invalid_offsets(cases);
  add_parameters(cases);

  // Many small requests: whatever weighs a mass wrongly shows in some of their tokens.
  std::uint64_t seed = 900;
  for (const std::int64_t vocab_size : {5, 12, 40}) {
    for (Shape of : combinations(vocab_size, vocab_size, DRAFTPROOF_F32)) {
      of.is_unlike = true;
      ++seed;
      const RandomTrees trees = random_trees(seed, std::vector<std::int64_t>(60, 9), 5);
      cases.push_back(make("many", seed, of, trees, {128}));
    }
  }

  const Shape shape{100, 103};
  Inputs quiet = make_inputs(51, shape, ragged_trees(51));
  quiet.has_logprobs = false;
  quiet.has_path = false;
  cases.push_back(make("tokens_only", quiet));
  cases.push_back(make("no_requests", 52, shape, random_trees(52, {}, 2)));
  for (const Shape& of : combinations(100, 103, DRAFTPROOF_F32))
    cases.push_back(make("no_nodes", 53, of, random_trees(53, std::vector<std::int64_t>{0, 0}, 2)));
  cases.push_back(make("chain", 54, shape, random_trees(54, kRagged, 1)));
  // Chains among trees, drafted at temperature 0 by tokens that are not always the argmax.
  for (Shape of : combinations(12, 12, DRAFTPROOF_F32)) {
    if (of.proposal_kind != DRAFTPROOF_LOGITS) continue;
    of.spread = 0.5f;
    Inputs argmax = make_inputs(56, of, random_trees(56, std::vector<std::int64_t>(30, 3), 1));
    argmax.draft_parameters.temperature.assign(30, 0.0f);
    cases.push_back(make("argmax_chains", argmax, {128}));
  }
  for (const std::int32_t rule : {DRAFTPROOF_TARGET_ONLY, DRAFTPROOF_RRSW}) {
    Shape wide{2000, 2000};
    wide.rule = rule;
    wide.spread = 0.5f;
    // More siblings than a block has threads, and more trials than can be accepted early.
    cases.push_back(make("wide", 55, wide, random_trees(55, std::vector<std::int64_t>{300, 40}, 200), {128}));
  }
  for (RegressCase& one : far_verify_tree_cases()) cases.push_back(std::move(one));
  return cases;
}

}  // namespace draftproof::regress
