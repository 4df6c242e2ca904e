// process_rows, sample, verify.
#include <algorithm>

#include "base/parallel.hpp"
#include "base/split.hpp"
#include "python/src/bindings.hpp"
#include "python/src/requests.hpp"
#include "reference/shard/sharded_masses.hpp"
#include "reference/step/batch.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof::python {
namespace {

Sampler sampler_of(const Arguments& arguments) {
  const std::string name = arguments.text("sampler", "inverse");
  if (name != "inverse" && name != "race")
    throw usage_error("sampler", "is '" + name + "'; expected 'inverse' or 'race'");
  return name == "race" ? Sampler::race : Sampler::inverse;
}

Convention convention_of(const Arguments& arguments) {
  const std::string name = arguments.text("convention", "draftproof");
  for (const ConventionInfo& info : kConventions)
    if (info.name == name) return info.convention;
  throw usage_error("convention",
                    "is '" + name + "'; expected one of " + joined(kConventions, ", ", &ConventionInfo::name));
}

// visit(b, distribution) of the one row of every request. Errors name the request.
template <class Visit>
void for_each_row(const Requests& batch, int threads, const Visit& visit) {
  std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(threads));
  parallel_for(static_cast<std::int64_t>(batch.requests.size()), threads, [&](std::int64_t b, int thread) {
    const VerifyRequest& request = batch.requests[static_cast<std::size_t>(b)];
    validate(request, Verifier::naive, b);
    try {
      StepRows rows(request, {.logprobs = false}, workspaces[static_cast<std::size_t>(thread)]);
      const Distribution& distribution = rows.target(0);
      visit(static_cast<std::size_t>(b), distribution);
    } catch (const RowError& error) {
      throw error_in_request(request, b, error);
    }
  });
}

nb::dict process_rows(const nb::dict& values) {
  Arguments arguments(values);
  const Requests batch = requests_of(arguments);
  const std::size_t count = batch.requests.size();
  const auto vocab_size = static_cast<std::size_t>(batch.vocab_size());
  std::vector<float> probabilities(count * vocab_size);
  std::vector<float> kept_mass(count);
  std::vector<std::int64_t> kept_count(count);
  const int threads = arguments.threads();
  {
    const nb::gil_scoped_release release;
    for_each_row(batch, threads, [&](std::size_t b, const Distribution& distribution) {
      float* const out = probabilities.data() + b * vocab_size;
      for (std::size_t i = 0; i < vocab_size; ++i) out[i] = distribution.probability(static_cast<Token>(i));
      kept_mass[b] = static_cast<float>(distribution.kept_mass());
      kept_count[b] = distribution.kept_count();
    });
  }
  nb::dict result;
  result["probabilities"] = array_of(std::move(probabilities), {count, vocab_size});
  result["kept_mass"] = array_of(std::move(kept_mass));
  result["kept_count"] = array_of(std::move(kept_count));
  return result;
}

nb::object sample(const nb::dict& values) {
  Arguments arguments(values);
  const Requests batch = requests_of(arguments);
  const Sampler sampler = sampler_of(arguments);
  std::vector<Token> tokens(batch.requests.size());
  const int threads = arguments.threads();
  {
    const nb::gil_scoped_release release;
    for_each_row(batch, threads, [&](std::size_t b, const Distribution& distribution) {
      PhiloxSource source;
      AddressedChance<PhiloxSource> chance(source, batch.requests[b].seed, batch.requests[b].step, sampler);
      tokens[b] = chance.draw(DistributionMasses(distribution), 0, Purpose::target_sample);
    });
  }
  return array_of(std::move(tokens));
}

// all_reduce(array, op) of the caller's, in place: int64 and "sum", int32 and "max".
class CallersCollectives final : public Collectives {
 public:
  explicit CallersCollectives(nb::object all_reduce) : all_reduce_(std::move(all_reduce)) {}
  void sum(std::span<std::uint64_t> words) override {
    std::vector<std::int64_t> signed_words(words.size());  // the same sum modulo 2^64
    std::transform(words.begin(), words.end(), signed_words.begin(),
                   [](auto w) { return static_cast<std::int64_t>(w); });
    reduce(signed_words, "sum");
    std::transform(signed_words.begin(), signed_words.end(), words.begin(),
                   [](auto w) { return static_cast<std::uint64_t>(w); });
  }
  void largest(std::span<std::int32_t> numbers) override {
    std::vector<std::int32_t> copy(numbers.begin(), numbers.end());
    reduce(copy, "max");
    std::copy(copy.begin(), copy.end(), numbers.begin());
  }

 private:
  template <class Number>
  void reduce(std::vector<Number>& numbers, const char* op) const {
    if (numbers.empty()) return;
    const nb::object array = array_of(numbers);
    all_reduce_(array, op);
    const auto reduced = nb::cast<nb::ndarray<const Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(array);
    std::copy_n(reduced.data(), numbers.size(), numbers.begin());
  }

  nb::object all_reduce_;
};

// The rows lie in parts: part_0, part_1, ... are rows [B, size], `target` has their shape as a whole and is not read.
// With all_reduce, part_0 is that of the device `rank` alone.
nb::object sample_shards(const nb::dict& values) {
  Arguments arguments(values);
  const Requests batch = requests_of(arguments);
  const Sampler sampler = sampler_of(arguments);
  const auto sizes = arguments.vector<std::int64_t>("sizes");
  std::vector<TokenRange> ranges;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > kVocabularyLimit)
      throw usage_error("sizes", "holds " + std::to_string(size) + "; expected numbers of tokens, up to " +
                                     std::to_string(kVocabularyLimit));
    const Token begin = ranges.empty() ? 0 : ranges.back().end;
    ranges.push_back({begin, begin + static_cast<Token>(size)});
  }
  const bool is_one = arguments.has("all_reduce");
  const std::int64_t given_rank = arguments.integer("rank", 0);
  const auto rank = static_cast<std::size_t>(given_rank);
  if (given_rank < 0 || rank >= ranges.size() || ranges.back().end != batch.vocab_size())
    throw usage_error("sizes", "are those of " + std::to_string(ranges.size()) + " parts; expected rank " +
                                   std::to_string(given_rank) + " among them, and " +
                                   std::to_string(batch.vocab_size()) + " tokens");
  CallersCollectives collectives(is_one ? values["all_reduce"] : nb::none());
  const Devices devices = is_one ? Devices(ranges, collectives, rank) : Devices(ranges);
  std::vector<RowMatrix> parts(devices.count());
  for (std::size_t d = devices.begin_here(); d < devices.end_here(); ++d) {
    if (sizes[d] == 0) continue;
    const std::string name = "part_" + std::to_string(is_one ? 0 : d);
    parts[d] = arguments.rows(name.c_str());
    if (parts[d].vocab_size != sizes[d] || parts[d].rows != static_cast<std::int64_t>(batch.requests.size()))
      throw usage_error(name, "has shape [" + std::to_string(parts[d].rows) + ", " +
                                  std::to_string(parts[d].vocab_size) + "]; expected [" +
                                  std::to_string(batch.requests.size()) + ", " + std::to_string(sizes[d]) + "]");
  }
  std::vector<Token> tokens;
  ShardedRow row(devices);
  for (std::size_t b = 0; b < batch.requests.size(); ++b) {
    const VerifyRequest& request = batch.requests[b];
    validate(request, Verifier::naive, static_cast<std::int64_t>(b));
    const History history(request.prompt_tokens, request.output_tokens, devices.vocab_size());
    RowInput input{{}, std::nullopt, request.parameters, request.constraints, &history, {static_cast<std::int64_t>(b)}};
    input.constraints.allowed_mask = request.allowed_masks;
    std::vector<RowView> logits(devices.count());
    for (std::size_t d = devices.begin_here(); d < devices.end_here(); ++d)
      if (sizes[d] > 0) logits[d] = parts[d].row(static_cast<std::int64_t>(b));
    PhiloxSource source;
    AddressedChance<PhiloxSource> chance(source, request.seed, request.step, sampler);
    try {
      row.run(input, logits);
      tokens.push_back(chance.draw(ShardedMasses(row), 0, Purpose::target_sample));
    } catch (const RowError& error) {
      throw error_in_request(request, static_cast<std::int64_t>(b), error);
    }
  }
  return array_of(std::move(tokens));
}

nb::dict verify(const nb::dict& values) {
  Arguments arguments(values);
  const Requests batch = requests_of(arguments);
  VerifyOptions options;
  options.verifier = parse_verifier(arguments.text("verifier", "chain"), "verifier");
  options.sampler = sampler_of(arguments);
  options.convention = convention_of(arguments);
  options.raw_logprobs = false;
  options.logprobs = arguments.flag("logprobs", true);
  const int threads = arguments.threads();
  std::vector<Emission> emissions;
  std::size_t width = 1;
  {
    const nb::gil_scoped_release release;
    emissions = verify_batch(batch.requests, options, threads);
    for (std::size_t b = 0; b < batch.requests.size(); ++b) {
      const DraftTree& draft = batch.requests[b].draft;  // of a chain every draft counts, also behind a placeholder
      const auto depth = draft.is_chain() ? batch.offsets[b + 1] - batch.offsets[b] : draft.depth_max();
      width = std::max(width, static_cast<std::size_t>(depth) + 1);
    }
  }
  const std::size_t count = emissions.size();
  std::vector<Token> tokens(count * width, kPaddingToken);
  std::vector<float> logprobs(count * width, -std::numeric_limits<float>::infinity());
  std::vector<std::int32_t> path(count * (width - 1), -1);
  std::vector<std::int32_t> num_accepted(count);
  std::vector<float> token_id_logprobs;  // [L, W]
  for (std::size_t b = 0; b < count; ++b) {
    std::copy(emissions[b].tokens.begin(), emissions[b].tokens.end(),
              tokens.begin() + static_cast<std::ptrdiff_t>(b * width));
    std::copy(emissions[b].logprobs.begin(), emissions[b].logprobs.end(),
              logprobs.begin() + static_cast<std::ptrdiff_t>(b * width));
    std::copy(emissions[b].path.begin(), emissions[b].path.end(),
              path.begin() + static_cast<std::ptrdiff_t>(b * (width - 1)));
    num_accepted[b] = static_cast<std::int32_t>(emissions[b].num_accepted);
    const std::size_t ids = batch.requests[b].logprob_token_ids.size();
    const std::size_t first = token_id_logprobs.size();
    token_id_logprobs.resize(first + ids * width, -std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < emissions[b].token_id_logprobs.size(); ++i)
      token_id_logprobs[first + i % ids * width + i / ids] = emissions[b].token_id_logprobs[i];
  }
  const std::size_t id_count = token_id_logprobs.size() / width;
  nb::dict result;
  result["tokens"] = array_of(std::move(tokens), {count, width});
  result["num_accepted"] = array_of(std::move(num_accepted));
  result["logprobs"] = options.logprobs ? array_of(std::move(logprobs), {count, width}) : nb::none();
  result["token_id_logprobs"] = array_of(std::move(token_id_logprobs), {id_count, width});
  result["path"] = array_of(std::move(path), {count, width - 1});
  return result;
}

// Maps each further sampler's name to the value that switches it off.
nb::dict sampler_parameters() {
  nb::dict table;
  for (const SamplerParameterName& sampler : sampler_parameter_names())
    table[nb::str(sampler.name.data(), sampler.name.size())] = SamplerParameters{}.*sampler.value;
  return table;
}

nb::list verifier_table() {
  nb::list table;
  for (const VerifierInfo& info : verifiers()) {
    nb::dict row;
    const auto text = [](std::string_view view) { return nb::str(view.data(), view.size()); };
    row["name"] = text(info.name);
    row["draft"] = text(name_of(info.draft));
    row["drafts_drawn"] = text(name_of(info.proposal));
    row["lossless"] = info.lossless;
    row["guarantee"] = text(info.guarantee);
    row["source"] = text(info.source);
    nb::list parameters;
    for (const VerifierParameter& parameter : info.parameters) parameters.append(text(parameter.name));
    row["parameters"] = nb::tuple(parameters);
    row["coins"] = text(name_of(info.coins));
    row["noise"] = text(name_of(info.noise));
    row["decisions"] = text(name_of(info.decisions));
    row["recovered"] = text(name_of(info.recovered));
    row["joint"] = info.joint;
    row["keeps_support"] = info.keeps_support;
    row["takes_first_of_equals"] = info.takes_first_of_equals;
    row["replayable"] = info.is_replayable();
    table.append(row);
  }
  return table;
}

}  // namespace

void bind_sampling(nb::module_& module) {
  module.def("process_rows", &process_rows, nb::arg("arguments"));
  module.def("sample", &sample, nb::arg("arguments"));
  module.def("sample_shards", &sample_shards, nb::arg("arguments"));
  module.def("verify", &verify, nb::arg("arguments"));
  module.def("sampler_parameters", &sampler_parameters);
  module.def("verifiers", &verifier_table);
}

}  // namespace draftproof::python
