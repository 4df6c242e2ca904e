// The goals of the cost model on published speedups, where these are at hand, and that the shipped constants are
// theirs.
#include "sim/cost/validation.hpp"
#include "tests/support/test.hpp"

TEST_CASE("Published speedups are predicted within the goals by constants that have not seen their source") {
  const auto path = shared_data("speedups.csv");
  if (!path) return;
  const MeasuredData data = read_measured_data(*path);
  CHECK(data.points.size() + data.excluded.size() == 601);
  CHECK(data.excluded.empty());
  const Validation validation = validate(data, shipped_fit(), Constants::refitted);
  std::map<std::string, GroupFigures> groups(validation.groups.begin(), validation.groups.end());
  const GroupFigures& complete = groups.at("complete");
  CHECK(complete.rows >= 200);
  CHECK(complete.step_ratio_median <= 0.10);
  CHECK(complete.step_ratio_p90 <= 0.25);
  CHECK(complete.regret <= 0.01);
  CHECK(groups.at("moe").step_ratio_median <= 0.20);
  CHECK(groups.at("moe").step_ratio_p90 <= 0.40);
  CHECK(validation.overall.step_ratio_median <= 0.5 * validation.overall.textbook_median);
  CHECK(validation.overall.regret <= 0.01);
  CHECK(validation.calibrated_complete.step_ratio_median <= 0.03);
  CHECK(validation.calibrated_complete.step_ratio_p90 <= 0.10);
  for (const PredictedPoint& predicted : validation.points) CHECK_FALSE(predicted.from_shipped);
}

TEST_CASE("Bands of 80 per cent hold four fifths of the rows of a laboratory that is new") {
  const auto seen_path = shared_data("speedups.csv");
  const auto path = shared_data("speedups_more.csv");
  if (!seen_path || !path) return;
  const MeasuredData seen = read_measured_data(*seen_path);
  const MeasuredData data = read_measured_data(*path);
  const std::set<std::string> chosen(shipped_fit().sources.begin(), shipped_fit().sources.end());
  const auto base = scatter_of(validate(seen, shipped_fit(), Constants::refitted).points, chosen, FitRecord().scatter);
  const std::vector<PredictedPoint> points = validate(data, shipped_fit(), Constants::as_shipped).points;
  std::map<std::string, std::pair<double, double>> laboratories;  // rows in the band, rows
  for (const PredictedPoint& point : points) {
    std::vector<PredictedPoint> others;
    for (const PredictedPoint& other : points)
      if (other.point->source != point.point->source) others.push_back(other);
    PredictedPoint judged = point;
    judged.half_width =
        band_half_width(scatter_of(others, {}, base)[scatter_class(*point.point)], shipped_fit().noise, 0.8);
    auto& [covered, rows] = laboratories[point.point->source];
    covered += judged.in_band() ? 1.0 : 0.0;
    rows += 1.0;
  }
  double by_laboratory = 0.0;
  for (const auto& [name, counted] : laboratories)
    by_laboratory += counted.first / counted.second / static_cast<double>(laboratories.size());
  CHECK(laboratories.size() == 5);
  CHECK(by_laboratory >= 0.75);
  CHECK(by_laboratory <= 0.88);
  // The shipped scatter is that with all five.
  const auto all = scatter_of(points, {}, base);
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    CHECK(shipped_fit().scatter[kind].total == Approx(all[kind].total).epsilon(0.01));
    CHECK(shipped_fit().scatter[kind].degrees == Approx(all[kind].degrees));
  }
  const SwitchDecisions decisions = figures_of([&] {
                                      std::vector<const PredictedPoint*> pointers;
                                      for (const PredictedPoint& point : points) pointers.push_back(&point);
                                      return pointers;
                                    }())
                                        .decisions;
  CHECK(decisions.losses == 26);
  CHECK(decisions.losses_found >= 22);
  CHECK(decisions.gains_kept >= 65);
}

TEST_CASE(
    "A source that the shipped constants have seen, alone in its file, is predicted by those shipped without it") {
  const auto path = shared_data("speedups.csv");
  if (!path) return;
  const MeasuredData data = read_measured_data(*path);
  const Validation whole = validate(data, shipped_fit(), Constants::refitted);
  MeasuredData alone;
  std::vector<double> expected;
  for (const PredictedPoint& predicted : whole.points)
    if (predicted.point->source == "spec-bench") {
      alone.points.push_back(*predicted.point);
      expected.push_back(predicted.log_ratio);
    }
  for (const Constants constants : {Constants::refitted, Constants::as_shipped}) {
    const Validation part = validate(alone, shipped_fit(), constants);
    REQUIRE(part.points.size() == 17);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK(part.points[i].from_shipped);
      CHECK(part.points[i].log_ratio == Approx(expected[i]).margin(1e-3));
      if (constants == Constants::as_shipped)
        CHECK(part.points[i].half_width == band_half_width(shipped_fit().scatter[1], shipped_fit().noise, 0.8));
    }
  }
}

TEST_CASE("The shipped constants are what calibrate makes of the published speedups") {
  const auto path = shared_data("speedups.csv");
  if (!path) return;
  const MeasuredData data = read_measured_data(*path);
  std::vector<const MeasuredPoint*> points;
  for (const MeasuredPoint& point : data.points) points.push_back(&point);
  const EngineFit fit = fit_engines(points, fit_prior());
  CHECK(fit.sources == shipped_fit().sources);
  for (std::size_t i = 0; i < fit.state.offset.size(); ++i) {
    INFO(fit_parameters()[i].name);
    CHECK(shipped_fit().state.offset[i] == Approx(fit.state.offset[i]).margin(2e-3));
    CHECK(shipped_fit().state.spread[i] == Approx(fit.state.spread[i]).epsilon(0.01));
  }
}
