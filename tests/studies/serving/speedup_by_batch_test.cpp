#include "studies/serving/speedup_by_batch.hpp"

#include "studies/job.hpp"
#include "tests/support/test.hpp"

namespace {

SpeedupByBatchSnapshot snapshot_of(const SpeedupByBatchSettings& settings) {
  return last_snapshot<SpeedupByBatchSnapshot>(settings);
}

SpeedupByBatchSettings eagle_on_h100() {
  SpeedupByBatchSettings settings;
  settings.request = {};
  settings.request.model = "Llama-3.1-8B";
  settings.request.gpu = "H100";
  settings.request.drafter = "EAGLE-3";
  settings.request.trees = {16};
  settings.batch_max = 64;
  return settings;
}

const SpeedupCurve& curve(const SpeedupByBatchSnapshot& snapshot, const std::string& name) {
  const auto found = std::ranges::find(snapshot.curves, name, &SpeedupCurve::name);
  REQUIRE(found != snapshot.curves.end());
  return *found;
}

}  // namespace

TEST_CASE("the speedup panel shows the numbers that its command prints, for every preset") {
  REQUIRE(speedup_presets().size() >= 5);
  for (const SpeedupPreset& preset : speedup_presets()) {
    INFO(preset.name);
    CHECK_FALSE(preset.watch.empty());
    SpeedupByBatchSettings settings = preset.settings;
    settings.batch_max = 24;
    settings.request.acceptance_factor = 1.1;
    settings.request.draft_cost_factor = 0.75;
    const SpeedupByBatchSnapshot snapshot = snapshot_of(settings);
    const ordered_json printed = printed_by(command_arguments(settings));
    CHECK(settings_of_prediction(printed, "test").request.model == settings.request.model);
    CHECK(to_json(snapshot) == without_envelope(printed));
    CHECK(snapshot.curves.size() >= 4);
    CHECK(to_table(snapshot).rows.size() == snapshot.curves.size() * curve_batches(24).size());
    for (std::size_t c = 0; c < snapshot.curves.size(); ++c) {
      const SpeedupCurve& curve = snapshot.curves[c];
      PlottedRows points;
      for (std::size_t i = 0; i < curve.batch.size(); ++i)
        points.push_back({curve.batch[i], curve.speedup[i], curve.low[i], curve.high[i]});
      check_plotted(to_figure(snapshot), "curve" + std::to_string(c), points);
    }
  }
  CHECK(speedup_presets().front().settings == SpeedupByBatchSettings());
}

TEST_CASE("a curve of the speedup panel is the prediction's row of its draft at every batch") {
  const SpeedupByBatchSnapshot snapshot = snapshot_of(eagle_on_h100());
  const SpeedupCurve& three = curve(snapshot, "K = 3");
  REQUIRE(three.batch.size() == curve_batches(64).size());
  for (std::size_t i = 0; i < three.batch.size(); ++i) {
    const BatchPrediction& batch = snapshot.report.prediction.batches[i];
    CHECK(three.batch[i] == static_cast<double>(batch.batch));
    CHECK(three.speedup[i] == batch.rows[2].speedup);
    CHECK(three.speedup[i] <= batch.rows[batch.best].speedup);
    CHECK(snapshot.curves.front().speedup[i] == batch.rows[batch.best].speedup);
  }
  CHECK(curve(snapshot, "tree of 16").batch.size() == three.batch.size());
}

TEST_CASE("a verification pass is set against its bytes and operations at the GPU's peak rates") {
  const SpeedupByBatchSnapshot snapshot = snapshot_of(eagle_on_h100());
  const PredictionRow& row = snapshot.report.prediction.batches.front().rows[2];
  // Llama-3.1-8B by hand: 32 layers of 4096 x (4096 + 2 x 1024 + 4096 + 3 x 14336) weights and norms, 4096 x 128256 of
  // the head, 2 bytes each; 32 x 2 x 1024 values of 2 bytes of a cached token; four rows that see 1,024 tokens.
  const double body = 32.0 * (4096.0 * (4096 + 2 * 1024 + 4096 + 3 * 14336));
  const double head = 4096.0 * 128256;
  const double bytes = 2.0 * (body + head) + 1024.0 * 32 * 2 * 1024 * 2;
  const double operations = 4.0 * 2.0 * (body + head) + 4.0 * 4.0 * 1024.0 * 32 * 4096;
  CHECK(row.verify.floor.bytes == Approx(bytes).epsilon(1e-3));
  CHECK(row.verify.floor.operations == Approx(operations).epsilon(1e-3));
  CHECK(row.verify.floor.ns() == Approx(bytes / 3350e9 * 1e9).epsilon(1e-3));
  CHECK(row.verify.over_floor() > 1.0);
  CHECK(snapshot.report.prediction.ridge_intensity == Approx(989e12 / 3350e9));
  // Where the intensity passes the ridge, multiplications take over.
  const SpeedupCurve& five = curve(snapshot, "K = 5");
  for (std::size_t i = 0; i < five.batch.size(); ++i)
    CHECK((five.intensity[i] <= snapshot.report.prediction.ridge_intensity) ==
          (five.batch[i] <= static_cast<double>(five.memory_bound_up_to)));
}

TEST_CASE("what-if factors scale drafting time and accepted drafts, and nothing else") {
  SpeedupByBatchSettings settings = eagle_on_h100();
  const auto at_batch_1 = [&] { return snapshot_of(settings).report.prediction.batches.front().rows[3]; };
  const auto step_ms = [&](const PredictionRow& row, double plain_ms) { return row.step_ratio * plain_ms; };
  const SpeedupByBatchSnapshot before = snapshot_of(settings);
  const double plain_ms = before.report.prediction.batches.front().plain_ms;
  const PredictionRow one = at_batch_1();
  settings.request.draft_cost_factor = 2.0;
  const double twice = step_ms(at_batch_1(), plain_ms) - step_ms(one, plain_ms);
  settings.request.draft_cost_factor = 3.0;
  CHECK(twice > 0.1);
  CHECK(step_ms(at_batch_1(), plain_ms) - step_ms(one, plain_ms) == Approx(2.0 * twice));
  settings.request.draft_cost_factor = 1.0;
  settings.request.acceptance_factor = 1.25;
  CHECK(at_batch_1().tokens_per_step - 1.0 == Approx(1.25 * (one.tokens_per_step - 1.0)));
  CHECK(at_batch_1().step_ratio == one.step_ratio);
  settings.request.acceptance_factor = 100.0;
  CHECK(at_batch_1().tokens_per_step == Approx(5.0));  // all four, and the bonus token
}

TEST_CASE("guidance on ends the gain at a smaller batch than guidance off") {
  SpeedupByBatchSettings settings = eagle_on_h100();
  settings.request.compare_guidance = true;
  const SpeedupByBatchSnapshot snapshot = snapshot_of(settings);
  const SpeedupCurve& with = curve(snapshot, "with guidance");
  CHECK(with.kind == SpeedupCurve::Kind::compared);
  CHECK(with.speedup.back() < snapshot.curves.front().speedup.back());
}

TEST_CASE("measured points of the panel are those of its model and GPU, from each kind of file") {
  const TemporaryFolder folder;
  const SpeedupByBatchSnapshot quoted = snapshot_of(SpeedupByBatchSettings{});
  REQUIRE(quoted.report.points);
  REQUIRE(quoted.report.points->points.size() == 6);
  CHECK(quoted.report.points->points[0].speedup == 2.8);
  CHECK(quoted.report.points->points[5].batch == 128);

  SpeedupByBatchSettings settings = eagle_on_h100();
  settings.request.measured = folder.file("mine.csv");
  write_whole_file(settings.request.measured,
                   "source_id,hardware,target_model,draft_method,K,batch,tau,speedup,engine\n"
                   "me,H100,Llama-3.1-8B-Instruct,EAGLE-3,3,4,2.5,1.9,vLLM\n"
                   "me,A100,Llama-3.1-8B-Instruct,EAGLE-3,3,4,2.5,1.7,vLLM\n");
  const auto points = snapshot_of(settings).report.points;
  REQUIRE(points);
  REQUIRE(points->points.size() == 1);
  CHECK(points->others == 1);
  CHECK(points->points[0].speedup == 1.9);
  CHECK(points->points[0].draft == "K=3");

  const ordered_json validated = json_of({"validate", "--data", settings.request.measured});
  settings.request.measured = folder.file("validated.json");
  write_whole_file(settings.request.measured, validated.dump());
  const auto again = snapshot_of(settings).report.points;
  REQUIRE(again);
  REQUIRE(again->points.size() == 1);
  CHECK(again->points[0].batch == 4);
  CHECK(again->points[0].speedup == 1.9);
}

TEST_CASE("the speedup panel refuses broken files and settings in one sentence") {
  const TemporaryFolder folder;
  SpeedupByBatchSettings settings = eagle_on_h100();
  const auto refusal = [&](ErrorKind kind) { return error_of(kind, [&] { snapshot_of(settings); }); };
  settings.request.measured = folder.file("x.txt");
  CHECK_THAT(refusal(ErrorKind::input), Contains("x.txt") && Contains("expected measured speedups in .csv"));
  settings.request.measured = folder.file("x.json");
  write_whole_file(settings.request.measured, "{\"rows\": [{\"hardware\": 3}]}");
  CHECK_THAT(refusal(ErrorKind::input), Contains("x.json, row 0"));
  write_whole_file(settings.request.measured, "[1");
  CHECK_THAT(refusal(ErrorKind::input), Contains("x.json: is no document"));
  settings.request.measured = DRAFTPROOF_SOURCE_DIR "/experiments/low_acceptance/experiment.toml";
  CHECK_THAT(refusal(ErrorKind::input), Contains("is no experiment of speedups by batch size"));
  settings.request.measured.clear();
  settings.request.gpu = "H10";
  CHECK_THAT(refusal(ErrorKind::input), Contains("unknown; expected a preset"));
  settings.request.gpu = "H100";
  settings.request.acceptance = "constant:2";
  CHECK_THAT(refusal(ErrorKind::usage), Contains("expected a number in [0, 1]"));
  CHECK_THAT(error_of(ErrorKind::input,
                      [] {
                        settings_of_prediction({{"command", "draftproof demo"}}, "f.json");
                      }),
             Contains("f.json: is no document of `draftproof predict`"));
}

TEST_CASE("a prediction that is opened gives the settings that made it") {
  SpeedupByBatchSettings settings = eagle_on_h100();
  settings.request.compare_guidance = true;
  settings.request.compared_drafters = {"n-gram", "draft model of mine"};
  settings.request.acceptance = "positions:0.7,0.6";
  settings.request.acceptance_factor = 1.3;
  settings.request.tp = 2;
  settings.request.trees.clear();
  std::string command;
  for (const std::string& argument : command_arguments(settings))
    command +=
        (command.empty() ? "" : " ") + (argument.find(' ') == std::string::npos ? argument : "'" + argument + "'");
  SpeedupByBatchSettings opened = settings_of_prediction({{"command", command}}, "test");
  CHECK(opened == settings);
  const SpeedupByBatchSettings experiment =
      settings_of_experiment(DRAFTPROOF_SOURCE_DIR "/experiments/speedup_by_batch/experiment.toml");
  CHECK(experiment.request.tp == 8);
  CHECK(experiment.request.acceptance == "constant:0.78");
}

TEST_CASE("a cancelled prediction throws Cancelled and publishes nothing") {
  Job job;
  job.cancel();
  CHECK_THROWS_AS(compute(SpeedupByBatchSettings(), job, [](SpeedupByBatchSnapshot) { FAIL("published"); }), Cancelled);
}
