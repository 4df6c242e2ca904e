// The fit on step ratios that were made from known constants.
#include "sim/cost/validation.hpp"
#include "tests/support/test.hpp"

namespace {

// Points of several sources, GPUs, models and drafts, without measured ratios.
std::vector<MeasuredPoint> points_of(int sources, int configurations) {
  const char* gpus[] = {"A100", "H100", "L40", "RTX 4090"};
  const char* models[] = {"Llama-3.1-8B", "Qwen3-8B", "Llama-2-13B", "Qwen2.5-1.5B", "Qwen3-30B-A3B"};
  const char* engines[] = {"vLLM", "SGLang", "Hugging Face eager"};
  std::vector<MeasuredPoint> points;
  for (int s = 0; s < sources; ++s)
    for (int c = 0; c < configurations; ++c) {
      RooflineSetup setup;
      setup.model = find_model(models[(s + c) % 5]);
      setup.gpu = find_gpu(gpus[(s + c / 2) % 4]);
      setup.engine = find_engine(engines[s % 3]);
      setup.drafter = find_drafter(c % 3 == 0 ? "Medusa" : "EAGLE-3", setup.model);
      MeasuredPoint point;
      point.source = "s" + std::to_string(s);
      point.machine = point.source;
      point.configuration = point.source + "-" + std::to_string(c);
      point.choice = point.configuration;
      point.setups = {setup};
      point.kind = setup.drafter->kind;
      point.form = {2 + 3 * (c % 4), 2 + (c % 4), false};
      point.batch.batch = c % 2 == 0 ? 1 : 16;
      point.acceptance_length = 2.5;
      point.textbook_ratio = 1.3;
      points.push_back(point);
    }
  return points;
}

void measure(std::vector<MeasuredPoint>& points, const StepRatioModel& truth, double noise, TestRandom* random) {
  for (MeasuredPoint& point : points) {
    const double error = random ? noise * random->normal() : 0.0;
    point.step_ratio = std::exp(truth.log_ratio(point) + error);
    point.speedup = point.acceptance_length / point.step_ratio;
  }
}

std::vector<const MeasuredPoint*> pointers(const std::vector<MeasuredPoint>& points) {
  std::vector<const MeasuredPoint*> all;
  for (const MeasuredPoint& point : points) all.push_back(&point);
  return all;
}

}  // namespace

TEST_CASE("From exact step ratios of other constants the fit predicts these ratios") {
  FitState truth = fit_prior();
  truth.offset[1] = 0.2;   // FLOP efficiency
  truth.offset[4] = 0.2;   // launches
  truth.offset[10] = 0.3;  // floor of a draft pass
  std::vector<MeasuredPoint> points = points_of(12, 8);
  const StepRatioModel model(engines_with(truth));
  measure(points, model, 0.0, nullptr);
  const VarianceComponents exact{0.001, 0.001, 0.001};
  const EngineFit fit = fit_engines(pointers(points), fit_prior(), exact);
  CHECK(fit.converged);
  CHECK(fit.sources.size() == 12);
  CHECK(fit.configurations == 96);
  const StepRatioModel fitted(engines_with(fit.state));
  const StepRatioModel before(engines_with(fit_prior()));
  double worst_before = 0.0;
  for (const MeasuredPoint& point : points) {
    CHECK(fitted.log_ratio(point) == Approx(std::log(point.step_ratio)).margin(0.004));
    worst_before = std::max(worst_before, std::abs(before.log_ratio(point) - std::log(point.step_ratio)));
  }
  CHECK(worst_before > 0.05);                   // there was something to find
  CHECK(fit.determined(1, fit_prior()) > 0.8);  // the prior is tight
}

TEST_CASE("Without data for it a constant keeps its prior, and the fit says that it is not determined") {
  std::vector<MeasuredPoint> points = points_of(3, 4);
  measure(points, StepRatioModel(engines_with(fit_prior())), 0.0, nullptr);
  const EngineFit fit = fit_engines(pointers(points), fit_prior());
  const std::size_t collective = fit_parameters().size() - 1;
  CHECK(std::string(fit_parameters()[collective].name) == "collective");
  CHECK(fit.state.offset[collective] == Approx(0.0).margin(1e-6));
  CHECK(fit.determined(collective, fit_prior()) == Approx(0.0).margin(1e-6));
}

TEST_CASE("A source with ten times the rows does not pull the constants ten times as far") {
  // One source reports a slower verification; the rest agrees with the priors.
  FitState odd = fit_prior();
  odd.offset[1] = -0.8;
  std::vector<MeasuredPoint> points = points_of(6, 6);
  measure(points, StepRatioModel(engines_with(fit_prior())), 0.0, nullptr);
  std::vector<MeasuredPoint> few(points.begin(), points.begin() + 6);
  measure(few, StepRatioModel(engines_with(odd)), 0.0, nullptr);
  std::copy(few.begin(), few.end(), points.begin());
  const double once = fit_engines(pointers(points), fit_prior()).state.offset[1];
  std::vector<MeasuredPoint> many = points;
  for (int repeat = 1; repeat < 10; ++repeat) many.insert(many.end(), few.begin(), few.end());
  const double ten_times = fit_engines(pointers(many), fit_prior()).state.offset[1];
  CHECK(once < 0.0);
  CHECK(std::abs(ten_times) < 1.1 * std::abs(once));
}

TEST_CASE("The shipped engines are their priors with the shipped factors") {
  const std::vector<EngineProfile> expected = engines_with(shipped_fit().state);
  REQUIRE(shipped_fit().sources.size() > 10);
  for (std::size_t e = 0; e < expected.size(); ++e)
    for (std::size_t c = 0; c < kEngineConstants; ++c)
      CHECK(engine_presets()[e].constants[c].value == Approx(expected[e].constants[c].value).epsilon(1e-4));
}
