// The figures of a validation: bands on synthetic scatter, calibration, regret.
#include "sim/cost/validation.hpp"
#include "tests/support/test.hpp"

namespace {

struct Scattered {
  std::vector<MeasuredPoint> points;
  std::vector<PredictedPoint> residuals;
};

// Sources whose step ratios are off by exp(source + configuration + noise).
Scattered scattered(int sources, int configurations, int rows, double source, double configuration, double noise,
                    std::uint64_t seed) {
  TestRandom random(seed);
  Scattered result;
  for (int s = 0; s < sources; ++s) {
    const double of_source = source * random.normal();
    for (int c = 0; c < configurations; ++c) {
      const double of_configuration = configuration * random.normal();
      for (int r = 0; r < rows; ++r) {
        MeasuredPoint point;
        point.source = "s" + std::to_string(s);
        point.configuration = point.source + "-" + std::to_string(c);
        point.step_ratio = 1.5 * std::exp(of_source + of_configuration + noise * random.normal());
        result.points.push_back(point);
      }
    }
  }
  for (const MeasuredPoint& point : result.points) {
    PredictedPoint predicted;
    predicted.point = &point;
    predicted.log_ratio = std::log(1.5);
    result.residuals.push_back(predicted);
  }
  return result;
}

}  // namespace

TEST_CASE("Bands from the scatter of some sources cover 80 per cent of the rows of others") {
  const FitRecord before;
  for (const auto& [source, configuration] : {std::pair{0.15, 0.12}, std::pair{0.05, 0.15}, std::pair{0.12, 0.02}}) {
    INFO("source " << source << ", configuration " << configuration);
    double covered = 0.0;
    double rows = 0.0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const Scattered seen = scattered(12, 6, 3, source, configuration, 0.025, seed);
      const auto scatter = scatter_of(seen.residuals, {}, before.scatter);
      Scattered unseen = scattered(60, 2, 1, source, configuration, 0.025, 1000 + seed);
      for (PredictedPoint& predicted : unseen.residuals) {
        predicted.half_width = band_half_width(scatter[scatter_class(*predicted.point)], before.noise, 0.8);
        covered += predicted.in_band() ? 1.0 : 0.0;
        rows += 1.0;
      }
    }
    // 7,200 rows of 3,600 sources: the standard error is below 0.006; the rest is the estimate's own bias.
    CHECK(covered / rows > 0.75);
    CHECK(covered / rows < 0.88);
  }
}

TEST_CASE("Many sources give the variance components that they were made with") {
  const Scattered data = scattered(800, 6, 3, 0.1, 0.14, 0.025, 7);
  const FitRecord::Scatter scatter = scatter_of(data.residuals, {}, FitRecord().scatter)[0];
  CHECK(scatter.configuration == Approx(0.14).epsilon(0.05));
  CHECK(scatter.total == Approx(std::hypot(0.1, 0.14)).epsilon(0.08));
  CHECK(scatter.degrees > 800.0);
}

TEST_CASE("One laboratory that is far off does not widen the bands of all") {
  Scattered data = scattered(12, 4, 1, 0.08, 0.06, 0.02, 3);
  const double before = scatter_of(data.residuals, {}, FitRecord().scatter)[0].total;
  for (int i = 0; i < 4; ++i) data.points[static_cast<std::size_t>(i)].step_ratio *= 3.0;
  CHECK(scatter_of(data.residuals, {}, FitRecord().scatter)[0].total < 1.25 * before);
}

TEST_CASE("A calibrating configuration scales the cost beyond a plain step") {
  // Predicted 1.4, measured 1.6 there: half as much again beyond 1; another draft predicted at 1.8 costs 2.2.
  CHECK(std::exp(calibrated_log_ratio(std::log(1.8), std::log(1.6), std::log(1.4))) == Approx(2.2));
  CHECK(std::exp(calibrated_log_ratio(std::log(1.4), std::log(1.6), std::log(1.4))) == Approx(1.6));
  // Where drafts cost nothing there is nothing to scale.
  CHECK(std::exp(calibrated_log_ratio(std::log(1.1), std::log(0.99), std::log(1.001))) == Approx(1.1 * 0.99 / 1.001));
}

TEST_CASE("Regret is the share of the best speedup that the model's choice loses") {
  std::vector<MeasuredPoint> points(3);
  std::vector<PredictedPoint> predicted(3);
  const double measured[] = {1.5, 2.0, 1.8};
  const double modelled[] = {1.4, 1.6, 1.9};  // takes the third: loses a tenth
  for (std::size_t i = 0; i < 3; ++i) {
    points[i].choice = "machine";
    points[i].configuration = std::to_string(i);
    points[i].acceptance_length = 3.0;
    points[i].speedup = measured[i];
    points[i].step_ratio = 3.0 / measured[i];
    points[i].textbook_ratio = 1.0 + 0.1 * static_cast<double>(i);  // takes the first: loses a quarter
    predicted[i].point = &points[i];
    predicted[i].log_ratio = std::log(3.0 / modelled[i]);
  }
  const GroupFigures figures = figures_of({&predicted[0], &predicted[1], &predicted[2]});
  CHECK(figures.choices == 1);
  CHECK(figures.regret == Approx(0.1));
  CHECK(figures.textbook_regret == Approx(0.25));
}

TEST_CASE("The mean over a band is that of the normal distribution that it stands for, summed up numerically") {
  for (const double middle : {0.8, 0.99, 1.02, 1.7})
    for (const double half_width : {0.05, 0.2, 0.5}) {
      CAPTURE(middle, half_width);
      const SpeedupBand band{middle, half_width};
      double mass = 0.0;
      double inside = 0.0;
      double loss = 0.0;
      double time = 0.0;
      constexpr double kStep = 1e-3;
      for (double z = -9.0; z < 9.0; z += kStep) {  // midpoints
        const double weight = std::exp(-0.5 * (z + 0.5 * kStep) * (z + 0.5 * kStep));
        const double speedup = middle * std::exp((z + 0.5 * kStep) * band.spread());
        mass += weight;
        inside += speedup > band.low() && speedup < band.high() ? weight : 0.0;
        loss += speedup < 1.0 ? weight : 0.0;
        time += weight / speedup;
      }
      CHECK(inside / mass == Approx(0.8).margin(1e-3));
      CHECK(band.loss_probability() == Approx(loss / mass).margin(1e-3));
      CHECK(band.expected_time() == Approx(time / mass));
      CHECK(band.may_lose() == (band.loss_probability() > 0.1));
    }
  CHECK(SpeedupBand{0.99, 0.0}.loss_probability() == 1.0);
  CHECK(SpeedupBand{1.01, 0.0}.loss_probability() == 0.0);
  CHECK(SpeedupBand{1.01, 0.0}.pays());
  CHECK_FALSE(SpeedupBand{1.01, 0.3}.pays());  // it loses more than it gains
}

TEST_CASE("Decisions count measured losses and gains by what their bands say") {
  // Measured 0.9 and 1.2; predicted far below 1, near 1 and far above.
  std::vector<MeasuredPoint> points(6);
  std::vector<PredictedPoint> predicted(6);
  std::vector<const PredictedPoint*> all;
  constexpr double kPredicted[] = {0.7, 1.05, 1.6};
  for (std::size_t i = 0; i < 6; ++i) {
    points[i].source = "laboratory";
    points[i].acceptance_length = 3.0;
    points[i].speedup = i < 3 ? 0.9 : 1.2;
    points[i].step_ratio = 3.0 / points[i].speedup;
    points[i].textbook_ratio = 1.0;
    predicted[i].point = &points[i];
    predicted[i].log_ratio = std::log(3.0 / kPredicted[i % 3]);
    predicted[i].half_width = 0.15;
    all.push_back(&predicted[i]);
  }
  const SwitchDecisions decisions = figures_of(all).decisions;
  CHECK(decisions.losses == 3);
  CHECK(decisions.losses_found == 2);
  CHECK(decisions.losses_off == 1);
  CHECK(decisions.gains == 3);
  CHECK(decisions.gains_kept == 1);
  CHECK(decisions.gains_on == 2);
}
