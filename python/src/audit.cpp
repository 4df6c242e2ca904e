// audit_draws, audit_listed, audit_steps, check_filter, usual_readings.

#include "exactness/audit/audit.hpp"
#include "exactness/audit/filter_check.hpp"
#include "exactness/audit/listed.hpp"
#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "python/src/bindings.hpp"
#include "python/src/requests.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/trace/emitted_row.hpp"

namespace draftproof::python {
namespace {

nb::list cells_of(const std::vector<CountedCell>& cells) {
  nb::list list;
  for (const CountedCell& cell : cells) {
    nb::dict entry;
    for (const auto& [key, value] : cell.keys) entry[key.c_str()] = value;
    entry["observed"] = cell.observed;
    entry["expected"] = cell.expected;
    list.append(entry);
  }
  return list;
}

nb::dict dict_of(const TestResult& test) {
  nb::dict entry;
  entry["name"] = test.name;
  entry["statistic_name"] = test.statistic_name;
  entry["statistic"] = test.statistic;
  entry["df"] = test.df ? nb::cast(*test.df) : nb::none();
  entry["n"] = test.n;
  entry["unit"] = test.unit;
  entry["p_value"] = test.p_value;
  entry["p_value_holm"] = test.p_value_holm;
  entry["rejects"] = test.rejects;
  entry["estimated_tv"] = test.estimated_tv;
  entry["detectable_tv"] = test.detectable_tv;
  entry["is_correlation"] = test.is_correlation;
  entry["sentence"] = test.sentence;
  entry["worst_cells"] = cells_of(test.worst_cells);
  return entry;
}

nb::dict dict_of(const Audit& audit) {
  nb::dict result;
  result["verdict"] = name_of(audit.verdict);
  result["sentence"] = audit.sentence;
  result["alpha"] = audit.alpha;
  result["tv_wanted"] = audit.tv_wanted;
  result["detectable_tv"] = audit.detectable_tv;
  result["detectable_temperature"] =
      audit.detectable_temperature ? nb::cast(*audit.detectable_temperature) : nb::none();
  result["string_tokens"] = audit.string_tokens;
  result["string_tokens_max"] = audit.string_tokens_max;
  result["string_detectable_tv"] = audit.string_detectable_tv;
  result["lossless"] = audit.lossless;
  result["n"] = audit.observations;
  result["groups"] = audit.groups;
  result["vocab_size"] = audit.vocab_size;
  result["anytime_log10_wealth"] = audit.anytime_log10_wealth ? nb::cast(*audit.anytime_log10_wealth) : nb::none();
  nb::list tests;
  for (const TestResult& test : audit.tests) tests.append(dict_of(test));
  result["tests"] = tests;
  nb::list positions;
  for (const PositionAudit& position : audit.positions) {
    nb::dict entry;
    entry["reached"] = position.reached;
    entry["accepted"] = position.accepted;
    entry["rate"] = position.rate();
    entry["interval"] = nb::make_tuple(position.interval.low, position.interval.high);
    entry["expected_rate"] = position.expected_rate;
    entry["expected_by_rows"] = position.expected_by_rows;
    positions.append(entry);
  }
  result["positions"] = positions;
  return result;
}

AuditOptions options_of(const Arguments& arguments) {
  AuditOptions options;
  options.alpha = arguments.number("alpha", options.alpha);
  options.tv_wanted = arguments.number("tv_wanted", options.tv_wanted);
  if (!(options.alpha > 0.0 && options.alpha < 1.0))
    throw usage_error("alpha", "is " + std::to_string(options.alpha) + "; expected a number in (0, 1)");
  if (!(options.tv_wanted > 0.0 && options.tv_wanted <= 1.0))
    throw usage_error("tv_wanted", "is " + std::to_string(options.tv_wanted) + "; expected a number in (0, 1]");
  options.seed = static_cast<std::uint64_t>(arguments.integer("seed", 0));
  options.threads = arguments.threads();
  options.verifier = parse_assumed_verifier(arguments.text("verifier", "chain"), "verifier");
  return options;
}

// [n] each; without what is malformed.
DrawCoordinates coordinates_of(Arguments& arguments, std::size_t n, const std::vector<std::size_t>& kept) {
  DrawCoordinates at;
  const auto take = [&](auto values, auto& into) {
    if (values.empty()) return;
    for (const std::size_t i : kept) into.push_back(values[i]);
  };
  take(arguments.vector<std::uint64_t>("at_seed", n), at.seed);
  take(arguments.vector<std::int64_t>("at_step", n), at.step);
  take(arguments.vector<std::int64_t>("at_row", n), at.row);
  take(arguments.vector<std::int64_t>("at_position", n), at.position);
  return at;
}

nb::dict audit_draws(const nb::dict& values) {
  Arguments arguments(values);
  const AuditOptions options = options_of(arguments);
  Requests rows = requests_of(arguments);
  const auto samples = arguments.vector<std::int64_t>("samples");
  const auto group = arguments.vector<std::int64_t>("group", samples.size());
  if (group.empty() && rows.requests.size() != 1 && !samples.empty())
    throw usage_error("group", "is missing; expected [n], as there are " + std::to_string(rows.requests.size()) +
                                   " rows of the distribution");
  DrawSample sample;
  const std::int64_t vocab_size = rows.vocab_size();
  std::vector<std::size_t> kept;
  OrderedDraws ordered;
  std::vector<std::int64_t> counts(rows.requests.size() * static_cast<std::size_t>(vocab_size), 0);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int64_t g = group.empty() ? 0 : group[i];
    if (g < 0 || g >= static_cast<std::int64_t>(rows.requests.size()))
      throw usage_error("group", "entry " + std::to_string(i) + " is " + std::to_string(g) +
                                     "; expected groups in [0, " + std::to_string(rows.requests.size()) + ")");
    if (samples[i] < 0 || samples[i] >= vocab_size) {
      sample.malformed.add(static_cast<std::int64_t>(i), "draw " + std::to_string(i) + " is token " +
                                                             std::to_string(samples[i]) + "; expected ids in [0, " +
                                                             std::to_string(vocab_size) + ")");
      continue;
    }
    ++counts[static_cast<std::size_t>(g * vocab_size + samples[i])];
    kept.push_back(i);
    ordered.tokens.push_back(static_cast<Token>(samples[i]));
    ordered.groups.push_back(static_cast<std::uint32_t>(g));
  }
  sample.begins = {0};
  for (std::size_t g = 0; g < rows.requests.size(); ++g) {
    sample.group_ids.push_back(static_cast<std::int64_t>(g));
    for (std::int64_t token = 0; token < vocab_size; ++token) {
      const std::int64_t count = counts[g * static_cast<std::size_t>(vocab_size) + static_cast<std::size_t>(token)];
      if (count > 0) sample.counts.push_back({static_cast<Token>(token), count});
    }
    sample.begins.push_back(sample.counts.size());
  }
  ordered.at = coordinates_of(arguments, samples.size(), kept);
  if (ordered.at.any()) sample.ordered = std::move(ordered);
  for (std::size_t b = 0; b < rows.requests.size(); ++b)
    validate(rows.requests[b], Verifier::naive, static_cast<std::int64_t>(b));
  sample.distributions = std::move(rows.requests);
  Audit audit;
  {
    const nb::gil_scoped_release release;
    audit = draftproof::audit_draws(sample, options);
  }
  return dict_of(audit);
}

nb::dict audit_listed(const nb::dict& values) {
  Arguments arguments(values);
  const AuditOptions options = options_of(arguments);
  ListedSample sample;
  const auto take = [&]<typename Value>(const char* name, std::vector<Value>& into) {
    const auto found = arguments.vector<Value>(name);
    into.assign(found.begin(), found.end());
  };
  take("probabilities", sample.probabilities);
  take("ids", sample.ids);
  take("rest", sample.rest);
  take("ranks", sample.ranks);
  take("shell_from", sample.shell_from);
  take("texts", sample.texts);
  take("positions", sample.positions);
  sample.outside = arguments.integer("outside", 0);
  sample.width = sample.ranks.empty() ? 0 : sample.ids.size() / sample.ranks.size();
  Audit audit;
  {
    const nb::gil_scoped_release release;
    audit = draftproof::audit_listed(sample, options);
  }
  return dict_of(audit);
}

nb::dict audit_steps(const nb::dict& values) {
  Arguments arguments(values);
  const AuditOptions options = options_of(arguments);
  Requests steps = requests_of(arguments);
  const std::size_t count = steps.requests.size();
  const auto tokens = arguments.vector<std::int64_t>("emitted_tokens");
  if (count > 0 && (tokens.empty() || tokens.size() % count != 0))
    throw usage_error("output_tokens", "has " + std::to_string(tokens.size()) + " elements; expected [" +
                                           std::to_string(count) + ", K + 1]");
  const std::size_t width = count > 0 ? tokens.size() / count : 0;
  const auto group = arguments.vector<std::int64_t>("group", count);
  StepSample sample;
  sample.begins = {0};
  std::vector<std::size_t> kept;
  if (!group.empty()) sample.groups.emplace();
  for (std::size_t b = 0; b < count; ++b) {
    validate(steps.requests[b], Verifier::naive, static_cast<std::int64_t>(b));
    const auto row = tokens.subspan(b * width, width);
    const EmittedRow emitted = read_emitted_row(row, steps.requests[b].draft, steps.vocab_size());
    if (!emitted.wrong.empty()) {
      sample.malformed.add(static_cast<std::int64_t>(b), "request " + std::to_string(b) + " " + emitted.wrong);
      continue;
    }
    for (const std::int64_t token : row.first(emitted.count)) sample.tokens.push_back(static_cast<Token>(token));
    sample.begins.push_back(sample.tokens.size());
    sample.requests.push_back(steps.requests[b]);
    if (sample.groups) sample.groups->push_back(group[b]);
    kept.push_back(b);
  }
  const DrawCoordinates at = coordinates_of(arguments, count, kept);
  if (at.any()) sample.at = at;
  Audit audit;
  {
    const nb::gil_scoped_release release;
    audit = draftproof::audit_steps(sample, options);
  }
  return dict_of(audit);
}

nb::dict check_filter(const nb::dict& values) {
  Arguments arguments(values);
  Requests rows = requests_of(arguments);
  FilterSample sample;
  sample.rows = std::move(rows.requests);
  if (arguments.has("kept")) {
    const auto kept = arguments.vector<std::uint8_t>("kept");
    sample.kept.assign(kept.begin(), kept.end());
  } else {
    sample.filtered = arguments.rows("filtered");
  }
  const int threads = arguments.threads();
  FilterCheck check;
  {
    const nb::gil_scoped_release release;
    check = draftproof::check_filter(sample, threads);
  }
  nb::dict result;
  result["holds"] = check.holds;
  result["sentence"] = check.sentence;
  nb::list failing;
  for (const std::int64_t index : check.failing) {
    const FilterRow& row = check.rows[static_cast<std::size_t>(index)];
    nb::dict entry;
    entry["row"] = index;
    entry["fault"] = name_of(row.fault);
    entry["expected_count"] = row.expected_count;
    entry["kept_count"] = row.kept_count;
    entry["wrongly_kept"] = nb::tuple(nb::cast(array_of(row.wrongly_kept)));
    entry["wrongly_dropped"] = nb::tuple(nb::cast(array_of(row.wrongly_dropped)));
    entry["wrongly_kept_count"] = row.wrongly_kept_count;
    entry["wrongly_dropped_count"] = row.wrongly_dropped_count;
    entry["wrongly_kept_mass"] = row.wrongly_kept_mass;
    entry["wrongly_dropped_mass"] = row.wrongly_dropped_mass;
    entry["distance"] = row.distance;
    failing.append(entry);
  }
  result["rows"] = static_cast<std::int64_t>(check.rows.size());
  result["failing"] = failing;
  return result;
}

nb::dict usual_readings(const nb::dict& values) {
  Arguments arguments(values);
  Requests rows = requests_of(arguments);
  FilterSample sample;
  sample.rows = std::move(rows.requests);
  const int threads = arguments.threads();
  UsualReadings found;
  {
    const nb::gil_scoped_release release;
    found = draftproof::usual_readings(sample, threads);
  }
  nb::dict result;
  const std::vector<std::size_t> shape{sample.rows.size(),
                                       found.must.size() / std::max<std::size_t>(1, sample.rows.size())};
  result["must"] = array_of(std::move(found.must), shape);
  result["may"] = array_of(std::move(found.may), shape);
  return result;
}

}  // namespace

void bind_audit(nb::module_& module) {
  module.def("audit_draws", &audit_draws, nb::arg("arguments"));
  module.def("audit_listed", &audit_listed, nb::arg("arguments"));
  module.def("audit_steps", &audit_steps, nb::arg("arguments"));
  module.def("check_filter", &check_filter, nb::arg("arguments"));
  module.def("usual_readings", &usual_readings, nb::arg("arguments"));
  // The distance that a chi-squared test of n counts finds with the stated power, whatever the fault looks like.
  module.def(
      "detectable_distance",
      [](double n, std::int64_t df, double alpha) {
        return n > 0.0 && df > 0 && alpha > 0.0 && alpha < 1.0 ? detectable_total_variation(n, df, alpha, kStatedPower)
                                                               : 1.0;
      },
      nb::arg("n"), nb::arg("df"), nb::arg("alpha"));
}

}  // namespace draftproof::python
