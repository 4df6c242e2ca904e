#include "cli/regress/library_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "exactness/audit/audit.hpp"
#include "exactness/audit/filter_check.hpp"
#include "reference/random/philox.hpp"
#include "reference/sampling/dense_draw.hpp"
#include "reference/step/step_rows.hpp"
#include "reference/trace/emitted_row.hpp"

namespace draftproof {
namespace {

using regress::DraftInputs;
using regress::KernelLibrary;
using regress::LibraryJudgement;
using regress::RowInputs;

constexpr std::int64_t kElementsOfCase = std::int64_t{1} << 23;  // of the rows of all calls
constexpr std::int64_t kElementsOfCall = std::int64_t{1} << 20;
constexpr std::int64_t kStepsOfSeed = 16;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

VerifyRequest request_of(const RowInputs& in, std::int64_t row) {
  VerifyRequest request;
  request.target = {DType::f32, in.logits.data() + row * in.row_stride, 1, in.vocab_size, in.row_stride};
  request.parameters.temperature = in.temperature[at(row)];
  request.parameters.filters.top_k = in.top_k[at(row)];
  request.parameters.filters.top_p = in.top_p[at(row)];
  request.parameters.filters.min_p = in.min_p[at(row)];
  return request;
}

// Is the kept set of a row the same under every reading of its filters, and a little beyond their cuts?
bool is_unambiguous(const VerifyRequest& request, StepWorkspace& workspace) {
  const FilterParameters& given = request.parameters.filters;
  if (request.parameters.temperature == 0.0f || (given.top_k == 0 && given.top_p == 1.0f && given.min_p == 0.0f))
    return true;
  const double tolerance = filter_tolerance(request.target.vocab_size);
  std::int64_t kept = -1;
  for (const double sign : {-1.0, 1.0}) {
    for (const FilterOrder order : {FilterOrder::joint, FilterOrder::top_k_first}) {
      for (const Ties ties : {Ties::exact_k, Ties::keep_all}) {
        VerifyRequest other = request;
        FilterParameters& filters = other.parameters.filters;
        filters.order = order;
        filters.ties = ties;
        const double top_p = static_cast<double>(given.top_p) + sign * tolerance;
        if (given.top_p < 1.0f)
          filters.top_p = std::clamp(static_cast<float>(top_p), std::numeric_limits<float>::min(), 1.0f);
        filters.min_p = std::min(1.0f, static_cast<float>(given.min_p * (1.0 + sign * tolerance)));
        const std::int64_t count = StepRows(other, {.logprobs = false}, workspace).target(0).kept_count();
        if (kept >= 0 && count != kept) return false;
        kept = count;
      }
    }
  }
  return true;
}

// Draws of a case: which row or request each was of, and its place.
struct Drawn {
  std::vector<std::int64_t> groups;  // [n]
  DrawCoordinates at;

  void add(std::int64_t group, std::uint64_t seed, std::int64_t step, std::int64_t row) {
    groups.push_back(group);
    at.seed.push_back(seed);
    at.step.push_back(step);
    at.row.push_back(row);
  }
};

// Without the draws that are malformed.
DrawCoordinates coordinates_of(const Drawn& drawn, const std::vector<std::size_t>& kept) {
  DrawCoordinates found;
  for (const std::size_t i : kept) {
    found.seed.push_back(drawn.at.seed[i]);
    found.step.push_back(drawn.at.step[i]);
    found.row.push_back(drawn.at.row[i]);
  }
  return found;
}

class Statistics {
 public:
  explicit Statistics(const StatisticsOptions& options) : options_(options) {}

  LibraryJudgement filter(const KernelLibrary& library, const RowInputs& in) const {
    const std::vector<float> filtered = library.filter(in);
    FilterSample sample;
    for (std::int64_t row = 0; row < in.rows(); ++row) sample.rows.push_back(request_of(in, row));
    sample.filtered = {DType::f32, filtered.data(), in.rows(), in.vocab_size, in.row_stride};
    const FilterCheck check = check_filter(sample, 1);
    return {check.holds ? "" : check.sentence, {}};
  }

  LibraryJudgement sample(const KernelLibrary& library, const RowInputs& in) const {
    StepWorkspace workspace;
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < in.rows(); ++row)
      if (is_unambiguous(request_of(in, row), workspace)) rows.push_back(row);
    if (rows.empty()) return {"", {}, false};
    const std::int64_t count = std::ssize(rows);
    const std::int64_t repeats =
        std::max<std::int64_t>(1, std::min(options_.draws, kElementsOfCase / in.row_stride) / count);
    Drawn drawn;
    std::vector<Token> tokens;
    std::vector<double> uniforms;
    for (const auto& [first, last] : calls(repeats, count * in.row_stride)) {
      RowInputs batch;
      batch.vocab_size = in.vocab_size;
      batch.row_stride = in.row_stride;
      std::vector<double> numbers;
      for (std::int64_t repeat = first; repeat < last; ++repeat) {
        for (std::int64_t i = 0; i < count; ++i) {
          const std::uint64_t seed = seed_of(rows[at(i)], repeat);
          const std::int64_t step = repeat % kStepsOfSeed;
          drawn.add(i, seed, step, batch.rows());
          batch.add(in, rows[at(i)], seed, static_cast<std::uint32_t>(step));
          numbers.push_back(uniform(seed, step, 0));
        }
      }
      const std::vector<Token> found = library.sample(batch, numbers);
      tokens.insert(tokens.end(), found.begin(), found.end());
      uniforms.insert(uniforms.end(), numbers.begin(), numbers.end());
    }
    if (options_.replays)
      if (const std::string wrong = what_is_wrong("uniforms", uniforms); !wrong.empty()) return {wrong, {}};
    LibraryJudgement judgement =
        options_.replays ? audit_replayed(in, rows, drawn, tokens, uniforms) : audit_drawn(in, rows, drawn, tokens);
    RowInputs drawn_from;
    drawn_from.vocab_size = in.vocab_size;
    drawn_from.row_stride = in.row_stride;
    for (const std::int64_t row : rows) drawn_from.add(in, row, 0, 0);
    judgement.parameters = regress::parameters_set(drawn_from);
    return judgement;
  }

  LibraryJudgement verify(const KernelLibrary& library, const std::string& call, const DraftInputs& given) const {
    const DraftInputs in = distributions_of(given);
    if (in.requests() == 0) return {"", {}, false};
    const std::int64_t elements = std::ssize(in.target_probs) + std::ssize(in.draft_probs);
    const std::int64_t repeats =
        std::max<std::int64_t>(1, std::min(options_.draws / in.requests(), kElementsOfCase / elements));
    std::vector<DraftInputs> batches;  // which the sample refers to
    std::vector<std::vector<double>> coins, draws;
    std::vector<regress::DraftOutputs> outputs;
    for (const auto& [first, last] : calls(repeats, elements)) {
      DraftInputs batch = in.none();
      std::vector<double> coin_numbers, draw_numbers;
      for (std::int64_t repeat = first; repeat < last; ++repeat) {
        for (std::int64_t b = 0; b < in.requests(); ++b) {
          const std::uint64_t seed = seed_of(b, repeat);
          const auto step = static_cast<std::uint32_t>(repeat % kStepsOfSeed);
          const Drafted drafted = drafted_by(in, b, seed, step);
          for (std::int64_t i = 0; i < in.draft_len(b) + (in.is_tree ? 1 : 0); ++i)
            coin_numbers.push_back(uniform(seed, step, static_cast<std::uint32_t>(i + 1)));
          draw_numbers.push_back(uniform(seed, step, 0));
          batch.add(in, b, drafted.tokens, seed, step, drafted.rows);
        }
      }
      outputs.push_back(library.verify(call, batch, coin_numbers, draw_numbers));
      if (options_.replays) {
        std::string wrong = what_is_wrong("coins", coin_numbers);
        if (wrong.empty()) wrong = what_is_wrong("draws", draw_numbers);
        if (!wrong.empty()) return {wrong, {}};
      }
      batches.push_back(std::move(batch));
      coins.push_back(std::move(coin_numbers));
      draws.push_back(std::move(draw_numbers));
    }
    const Verifier verifier = call == "verify_chain"   ? Verifier::chain
                              : call == "verify_block" ? Verifier::block
                              : in.has_proposals       ? Verifier::rrsw
                                                       : Verifier::target_only;
    return audit_verified(verifier, in.requests(), batches, coins, draws, outputs);
  }

 private:
  // Drafts of a request, and the rows that follow them.
  struct Drafted {
    std::vector<Token> tokens;
    std::vector<std::int64_t> rows;
  };

  // Drawn from the proposals, where there are any: siblings of a tree one after the other, each without those before
  // it. Behind different drafts of a tree stand different rows, behind equal paths the same.
  static Drafted drafted_by(const DraftInputs& in, std::int64_t b, std::uint64_t seed, std::uint32_t step) {
    Drafted drafted;
    const std::int64_t len = in.draft_len(b);
    drafted.rows.resize(at(len) + 1);
    for (std::int64_t i = 0; i < len; ++i) {
      const std::int64_t parent_row = in.is_tree ? in.parents[at(in.begin(b) + i)] + 1 : i;
      Token token = in.draft_tokens[at(in.begin(b) + i)];
      if (in.has_proposals) {
        const float* const q = in.draft(b, drafted.rows[at(parent_row)]);
        std::vector<double> masses(q, q + in.vocab_size);
        for (std::int64_t earlier = 0; in.is_tree && earlier < i; ++earlier)
          if (in.parents[at(in.begin(b) + earlier)] + 1 == parent_row) masses[at(drafted.tokens[at(earlier)])] = 0.0;
        const auto place = static_cast<std::uint32_t>(i);
        token = DenseDraw(masses).draw(
            philox_block(~seed, 0, place, step, static_cast<std::uint32_t>(Purpose::draft_sample)));
      }
      drafted.tokens.push_back(token);
      const auto path = static_cast<std::uint64_t>(drafted.rows[at(parent_row)] << 32 | token);
      drafted.rows[at(i + 1)] = in.is_tree ? 1 + static_cast<std::int64_t>(derive_seed(1, path) % at(len)) : i + 1;
    }
    return drafted;
  }

  // The first fault of recorded numbers; empty where all are in [0, 1].
  static std::string what_is_wrong(const std::string& name, const std::vector<double>& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!(numbers[i] >= 0.0 && numbers[i] <= 1.0))
        return name + "[" + std::to_string(i) + "] is " + std::to_string(numbers[i]) + "; expected a number in [0, 1]";
    return {};
  }

  // [first, last) repeats of each call.
  static std::vector<std::pair<std::int64_t, std::int64_t>> calls(std::int64_t repeats, std::int64_t elements) {
    const std::int64_t of_call = std::clamp<std::int64_t>(kElementsOfCall / elements, 1, repeats);
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (std::int64_t first = 0; first < repeats; first += of_call)
      found.emplace_back(first, std::min(first + of_call, repeats));
    return found;
  }

  // Several steps of a seed, so that a library needs both.
  std::uint64_t seed_of(std::int64_t group, std::int64_t repeat) const {
    return derive_seed(options_.seed, static_cast<std::uint64_t>(group << 32 | repeat / kStepsOfSeed));
  }
  // A multiple of 2^-24 in [0, 1).
  static double uniform(std::uint64_t seed, std::int64_t step, std::uint32_t index) {
    const RandomBlock block =
        philox_block(~seed, index, 0, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(Purpose::choice));
    return static_cast<double>(block.word[0] >> 8) * 0x1p-24;
  }

  AuditOptions audit_options() const {
    AuditOptions options;
    options.alpha = options_.alpha;
    options.tv_wanted = 1.0;  // any answer serves
    options.seed = options_.seed;
    return options;
  }
  static LibraryJudgement judgement_of(const Audit& audit) {
    return {audit.verdict == AuditVerdict::biased ? audit.sentence : "", {}};
  }

  LibraryJudgement audit_drawn(const RowInputs& in, const std::vector<std::int64_t>& rows, const Drawn& drawn,
                               const std::vector<Token>& tokens) const {
    DrawSample sample;
    std::vector<std::map<Token, std::int64_t>> counts(rows.size());
    std::vector<std::size_t> kept;
    OrderedDraws ordered;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] < 0 || tokens[i] >= in.vocab_size) {
        sample.malformed.add(static_cast<std::int64_t>(i), "token " + std::to_string(tokens[i]) +
                                                               " is outside of the vocabulary of " +
                                                               std::to_string(in.vocab_size) + " tokens");
        continue;
      }
      kept.push_back(i);
      ++counts[at(drawn.groups[i])][tokens[i]];
      ordered.tokens.push_back(tokens[i]);
      ordered.groups.push_back(static_cast<std::uint32_t>(drawn.groups[i]));
    }
    sample.begins = {0};
    for (std::size_t g = 0; g < rows.size(); ++g) {
      sample.distributions.push_back(request_of(in, rows[g]));
      validate(sample.distributions.back(), Verifier::naive, rows[g]);
      sample.group_ids.push_back(rows[g]);
      for (const auto& [token, count] : counts[g]) sample.counts.push_back({token, count});
      sample.begins.push_back(sample.counts.size());
    }
    ordered.at = coordinates_of(drawn, kept);
    sample.ordered = std::move(ordered);
    return judgement_of(audit_draws(sample, audit_options()));
  }

  // As steps without drafts, whose token is the bonus token.
  LibraryJudgement audit_replayed(const RowInputs& in, const std::vector<std::int64_t>& rows, const Drawn& drawn,
                                  const std::vector<Token>& tokens, const std::vector<double>& uniforms) const {
    StepSample sample;
    Drawn taken;
    sample.groups.emplace();
    sample.begins = {0};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      VerifyRequest request = request_of(in, rows[at(drawn.groups[i])]);
      request.recorded.uniforms = RecordedNumbers{};
      request.recorded.draw_uniforms = RecordedNumbers{{}, std::span(uniforms).subspan(i, 1)};
      const std::array<std::int64_t, 1> row{tokens[i]};
      add_step(sample, std::move(request), row, i, in.vocab_size);
      if (sample.requests.size() > taken.groups.size())
        taken.add(rows[at(drawn.groups[i])], drawn.at.seed[i], drawn.at.step[i], drawn.at.row[i]);
    }
    return audit_taken(std::move(sample), std::move(taken));
  }

  // The requests of which every row is a distribution, normalised again: rows of 16 bits are rounded. Of a tree a
  // proposal has as many tokens as a node has children.
  static DraftInputs distributions_of(const DraftInputs& given) {
    constexpr double kRounding = 0.02;
    const auto sum_of = [&](const float* row) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < given.vocab_size; ++i) sum += row[i] >= 0.0f ? static_cast<double>(row[i]) : -1e9;
      return sum;
    };
    const auto is_distribution = [&](const float* row) { return std::abs(sum_of(row) - 1.0) < kRounding; };
    const auto support_of = [&](const float* row) {
      return std::count_if(row, row + given.vocab_size, [](float x) { return x > 0x1p-40f; });
    };
    DraftInputs in = given.none();
    for (std::int64_t b = 0; b < given.requests(); ++b) {
      std::int64_t children_max = 0;
      for (std::int64_t i = given.begin(b); given.is_tree && i < given.begin(b + 1); ++i)
        children_max = std::max<std::int64_t>(
            children_max, std::count(given.parents.begin() + given.begin(b), given.parents.begin() + given.begin(b + 1),
                                     given.parents[at(i)]));
      bool sound = true;
      for (std::int64_t place = 0; place <= given.draft_len(b); ++place)
        sound = sound && is_distribution(given.target(b, place));
      for (std::int64_t place = 0; given.has_proposals && place < given.proposal_rows(b); ++place)
        sound = sound && is_distribution(given.draft(b, place)) && support_of(given.draft(b, place)) >= children_max;
      const auto first = given.draft_tokens.begin() + given.begin(b);
      if (sound) in.add(given, b, {first, first + given.draft_len(b)}, 0, 0);
    }
    for (std::vector<float>* const matrix : {&in.target_probs, &in.draft_probs}) {
      for (std::size_t begin = 0; begin < matrix->size(); begin += at(in.row_stride)) {
        const double sum = sum_of(matrix->data() + begin);
        for (std::int64_t i = 0; i < in.vocab_size; ++i) {
          float& x = (*matrix)[begin + at(i)];
          x = static_cast<float>(static_cast<double>(x) / sum);
        }
      }
    }
    return in;
  }

  // `row` [K + 1] is what the step emitted, with its padding; one that no step may emit is noted as malformed.
  static void add_step(StepSample& sample, VerifyRequest request, std::span<const std::int64_t> row, std::size_t index,
                       std::int64_t vocab_size, Verifier verifier = Verifier::chain) {
    const EmittedRow emitted = read_emitted_row(row, request.draft, vocab_size);
    if (!emitted.wrong.empty())
      return sample.malformed.add(static_cast<std::int64_t>(index),
                                  "step " + std::to_string(index) + " " + emitted.wrong);
    for (const std::int64_t token : row.first(emitted.count)) sample.tokens.push_back(static_cast<Token>(token));
    sample.begins.push_back(sample.tokens.size());
    validate(request, verifier, static_cast<std::int64_t>(index));
    sample.requests.push_back(std::move(request));
  }

  LibraryJudgement audit_taken(StepSample sample, Drawn taken, Verifier verifier = Verifier::chain) const {
    sample.groups = std::move(taken.groups);
    sample.at = std::move(taken.at);
    AuditOptions options = audit_options();
    options.verifier = VerifierChoice(verifier);
    return judgement_of(audit_steps(sample, options));
  }

  // `requests`: of the case, which the batches repeat.
  LibraryJudgement audit_verified(Verifier verifier, std::int64_t requests, const std::vector<DraftInputs>& batches,
                                  const std::vector<std::vector<double>>& coins,
                                  const std::vector<std::vector<double>>& draws,
                                  const std::vector<regress::DraftOutputs>& outputs) const {
    StepSample sample;
    Drawn taken;
    sample.begins = {0};
    if (batches.front().is_tree) sample.path_nodes.emplace();
    for (std::size_t call = 0; call < batches.size(); ++call) {
      const DraftInputs& batch = batches[call];
      const std::int64_t width = batch.draft_len_max() + 1;
      for (std::int64_t b = 0; b < batch.requests(); ++b) {
        const std::int64_t k = batch.draft_len(b);
        const auto drafts = std::span(batch.draft_tokens).subspan(at(batch.begin(b)), at(k));
        VerifyRequest request;
        request.draft = DraftTree::chain(drafts);
        if (batch.is_tree) {
          const auto first = batch.parents.begin() + batch.begin(b);
          request.draft = DraftTree{{drafts.begin(), drafts.end()}, {first, first + k}};
        }
        request.target_is_probabilities = true;
        request.target = {DType::f32, batch.target(b, 0), k + 1, batch.vocab_size, batch.row_stride};
        if (batch.has_proposals) {
          request.proposal_kind = ProposalKind::probabilities;
          request.proposal = {DType::f32, batch.draft(b, 0), batch.proposal_rows(b), batch.vocab_size,
                              batch.row_stride};
        }
        if (options_.replays) {
          // A tree has a coin for each row; with RRSw it is that of the draft before it.
          const std::int64_t first = batch.begin(b) + (batch.is_tree ? b : 0);
          const std::int64_t skipped = verifier == Verifier::rrsw ? 1 : 0;
          const std::int64_t count = k + (verifier == Verifier::target_only ? 1 : 0);
          request.recorded.uniforms =
              RecordedNumbers{{}, std::span(coins[call]).subspan(at(first + skipped), at(count))};
          request.recorded.draw_uniforms = RecordedNumbers{{}, std::span(draws[call]).subspan(at(b), 1)};
        }
        const std::span<const Token> tokens = std::span(outputs[call].tokens).subspan(at(b * width), at(width));
        const std::vector<std::int64_t> row(tokens.begin(), tokens.end());
        const std::size_t steps = sample.requests.size();
        add_step(sample, std::move(request), row, steps, batch.vocab_size, verifier);
        if (sample.requests.size() == steps) continue;
        const std::int64_t emitted = std::ssize(sample.tokens) - static_cast<std::int64_t>(sample.begins[steps]);
        const std::int32_t accepted = outputs[call].num_accepted[at(b)];
        if (accepted != emitted - 1)
          return {"num_accepted is " + std::to_string(accepted) + " of a request that emitted " +
                      std::to_string(emitted) + " tokens; expected one less than these",
                  {}};
        if (batch.is_tree) {
          const std::span<const std::int32_t> path =
              std::span(outputs[call].path).subspan(at(b * (width - 1)), at(width - 1));
          if (const std::string wrong = what_is_wrong(path, sample.requests.back().draft, sample.emitted(steps));
              !wrong.empty())
            return {wrong, {}};
          sample.path_nodes->insert(sample.path_nodes->end(), path.begin(), path.begin() + accepted);
        }
        taken.add(b % requests, batch.seeds[at(b)], batch.steps[at(b)], b);
      }
    }
    return audit_taken(std::move(sample), std::move(taken), verifier);
  }

  // The fault of a path that is not that of the accepted drafts.
  static std::string what_is_wrong(std::span<const std::int32_t> path, const DraftTree& draft,
                                   std::span<const Token> emitted) {
    std::int32_t parent = kRootNode;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const std::int32_t node = path[i];
      const std::string is = "path[" + std::to_string(i) + "] is " + std::to_string(node);
      if (i + 1 >= emitted.size()) {
        if (node != -1) return is + " behind the accepted drafts; expected -1";
        continue;
      }
      if (node < 0 || node >= static_cast<std::int32_t>(draft.size()) || draft.parents[at(node)] != parent ||
          draft.tokens[at(node)] != emitted[i])
        return is + "; expected the child of node " + std::to_string(parent) + " with token " +
               std::to_string(emitted[i]);
      parent = node;
    }
    return {};
  }

  StatisticsOptions options_;
};

}  // namespace

regress::LibraryJudge statistical_judge(const StatisticsOptions& options) {
  return [statistics = Statistics(options)](const KernelLibrary& library, const regress::LibraryCase& one,
                                            const regress::LibraryInputs& inputs) {
    if (one.call == "filter") return statistics.filter(library, std::get<RowInputs>(inputs));
    if (one.call == "sample") return statistics.sample(library, std::get<RowInputs>(inputs));
    if (const auto* const drafts = std::get_if<DraftInputs>(&inputs))
      return statistics.verify(library, one.call, *drafts);
    if (one.call == "guidance") return judge_guidance(library, std::get<regress::GuidanceInputs>(inputs));
    return judge_bits(library, one, inputs);
  };
}

}  // namespace draftproof
