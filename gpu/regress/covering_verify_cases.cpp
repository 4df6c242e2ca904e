// The covering arrays of the verifiers.
#include <algorithm>
#include <limits>
#include <span>

#include "gpu/api.hpp"
#include "gpu/regress/covering_cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/random_trees.hpp"
#include "reference/random/philox.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof::regress {
namespace {

std::int32_t kind_named(const std::string& name) {
  return name == "logits" ? DRAFTPROOF_LOGITS : name == "probabilities" ? DRAFTPROOF_PROBABILITIES : DRAFTPROOF_ONE_HOT;
}

// Rows as a call takes them: of some kind, with some stride, padding that must not be read.
draftproof_rows matrix(CaseRun& run, const Assignment& given, const std::string& name, std::vector<float> logits,
                       const std::string& kind) {
  const std::int64_t vocab_size = given.vocab_size();
  const std::int64_t rows = static_cast<std::int64_t>(logits.size()) / vocab_size;
  if (kind == "probabilities") {
    LogitsDistribution distribution;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::span<float> out(logits.data() + row * vocab_size, static_cast<std::size_t>(vocab_size));
      const std::vector<float> of_row(out.begin(), out.end());  // read until the last probability is known
      distribution.assign(of_row, row);
      for (std::int64_t i = 0; i < vocab_size; ++i)
        out[static_cast<std::size_t>(i)] = distribution.probability(static_cast<Token>(i));
    }
  }
  const std::int64_t stride = given.row_stride(name);
  std::vector<float> spaced(static_cast<std::size_t>(rows * stride), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(logits.begin() + row * vocab_size, vocab_size, spaced.begin() + row * stride);
  return run.rows(spaced, stride, given.dtype(name));
}

struct Drafts {
  RandomTrees trees;
  std::vector<float> target;    // logits [draft tokens + requests, V]
  std::vector<float> proposal;  // those of the target and noise: of a tree a row each, of a chain without the last rows
  std::vector<Token> tokens;    // drawn from their proposals
};

Drafts drafts_of(const Assignment& given, bool is_tree, std::uint64_t seed) {
  const std::vector<std::int64_t> lengths =
      given.is("requests", "one") ? std::vector<std::int64_t>{5} : std::vector<std::int64_t>{3, 0, 6, 1, 4};
  Drafts out;
  out.trees = random_trees(seed, lengths, is_tree ? 3 : 1);
  const std::int64_t vocab_size = given.vocab_size();
  const std::int64_t rows = out.trees.rows();
  out.target = normal_logits(seed, rows, vocab_size, vocab_size, 3.0f);
  const std::vector<float> noise = normal_logits(seed + 1, rows, vocab_size, vocab_size, 0.5f);
  LogitsDistribution distribution;
  for (std::int64_t b = 0; b < out.trees.requests(); ++b) {
    const std::int64_t first = out.trees.cu_num_draft_tokens[static_cast<std::size_t>(b)];
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    std::vector<std::vector<float>> of_request;
    for (std::int64_t place = 0; place <= length; ++place) {
      const std::int64_t begin = (first + b + place) * vocab_size;
      std::vector<float> row(out.target.begin() + begin, out.target.begin() + begin + vocab_size);
      for (std::int64_t i = 0; i < vocab_size; ++i)
        row[static_cast<std::size_t>(i)] += noise[static_cast<std::size_t>(begin + i)];
      if (is_tree || place < length) out.proposal.insert(out.proposal.end(), row.begin(), row.end());
      of_request.push_back(std::move(row));
    }
    for (std::int64_t node = 0; node < length; ++node) {
      const std::int64_t parent = out.trees.parents[static_cast<std::size_t>(first + node)];
      distribution.assign(of_request[static_cast<std::size_t>(is_tree ? parent + 1 : node)], node);
      out.tokens.push_back(
          distribution.draw(philox_block(seed, static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(b), 0, 1)));
    }
  }
  return out;
}

void verify(CaseRun& run, const Assignment& given, std::uint64_t number, const std::string& call) {
  const bool is_tree = call == "verify_tree";
  const Drafts drafts = drafts_of(given, is_tree, 5000 + 10 * number);
  draftproof_verify_arguments a{};
  a.requests = drafts.trees.requests();
  a.draft_tokens_total = drafts.trees.draft_tokens();
  a.draft_len_max = drafts.trees.draft_len_max + (given.is("draft_len_max", "longer") ? 2 : 0);
  a.vocab_size = given.vocab_size();
  a.draft_tokens = run.input(drafts.tokens);
  a.cu_num_draft_tokens = run.input(drafts.trees.cu_num_draft_tokens);
  if (is_tree) a.parents = run.input(drafts.trees.parents);
  if (is_tree) a.tree_rule = given.is("tree_rule", "rrsw") ? DRAFTPROOF_RRSW : DRAFTPROOF_TARGET_ONLY;

  DistributionInputs in = covering_lists(6000 + 10 * number, given, drafts.trees.rows(), a.requests, a.draft_len_max);
  std::vector<float> target = drafts.target;
  // In the first row of the first request, whose policy takes it for -infinity.
  if (given.has("parameters.nan_policy")) target[40] = std::numeric_limits<float>::quiet_NaN();
  a.target_kind = kind_named(given["target_kind"]);
  a.target = matrix(run, given, "target", std::move(target), given["target_kind"]);
  if (!given.is("unconditional.dtype", "absent"))
    a.unconditional =
        matrix(run, given, "unconditional",
               normal_logits(7000 + number, drafts.trees.rows(), a.vocab_size, a.vocab_size, 3.0f), "logits");
  a.parameters = in.parameters_in(run);
  a.constraints = in.constraints_in(run);

  a.proposal_kind = kind_named(given["proposal_kind"]);
  if (a.proposal_kind != DRAFTPROOF_ONE_HOT)
    a.proposal = matrix(run, given, "proposal", drafts.proposal, given["proposal_kind"]);
  a.draft_parameters = covering_draft_parameters(given, a.requests).parameters_in(run);

  std::vector<std::uint64_t> seed;
  std::vector<std::uint32_t> step;
  for (std::int64_t b = 0; b < a.requests; ++b) {
    seed.push_back(derive_seed(number, static_cast<std::uint64_t>(b)));
    step.push_back(static_cast<std::uint32_t>(b * 3 % 5 + 1));
  }
  a.randomness = {run.input(seed), run.input(step)};
  const std::int64_t places = a.requests * (a.draft_len_max + 1);
  a.num_accepted = run.output<std::int32_t>("num_accepted", a.requests);
  a.tokens = run.output<Token>("tokens", places);
  if (given.has("logprobs")) a.logprobs = run.output<float>("logprobs", places);
  if (is_tree && given.has("path")) a.path = run.output<std::int32_t>("path", a.requests * a.draft_len_max);
  a.status = run.output<std::int32_t>("status", a.requests);
  if (run.describes(a, call)) return;
  const auto call_with = [&](auto workspace_bytes, auto verifier) {
    a.workspace_bytes = workspace_bytes(a);
    a.workspace = run.workspace(a.workspace_bytes);
    verifier(a, run.settings());
  };
  if (is_tree) return call_with(device::verify_tree_workspace_bytes, device::verify_tree);
  if (call == "verify_block") return call_with(device::verify_block_workspace_bytes, device::verify_block);
  call_with(device::verify_chain_workspace_bytes, device::verify_chain);
}

}  // namespace

std::vector<RegressCase> covering_verify_cases(const std::string& call) {
  if (call == "verify_tree")
    return covering_cases(call, [](CaseRun& run, const Assignment& given, std::uint64_t number) {
      verify(run, given, number, "verify_tree");
    });
  if (call == "verify_block")
    return covering_cases(call, [](CaseRun& run, const Assignment& given, std::uint64_t number) {
      verify(run, given, number, "verify_block");
    });
  return covering_cases(call, [](CaseRun& run, const Assignment& given, std::uint64_t number) {
    verify(run, given, number, "verify_chain");
  });
}

}  // namespace draftproof::regress
