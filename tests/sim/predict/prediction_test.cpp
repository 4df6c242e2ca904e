#include "sim/predict/prediction.hpp"

#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/predict/machine_calibration.hpp"
#include "sim/predict/prediction_request.hpp"
#include "tests/support/test.hpp"

namespace {

RooflineSetup setup_of(const char* drafter = "EAGLE-3") {
  RooflineSetup setup;
  setup.model = find_model("Llama-3.1-8B");
  setup.gpu = find_gpu("H100");
  setup.engine = find_engine("SGLang");
  setup.drafter = find_drafter(drafter, setup.model);
  return setup;
}

AcceptanceEstimate model_of(const char* text) {
  return AcceptanceEstimate::of_model(make_acceptance(text, 0, "test"), text);
}

StepRatioScatter scatter() {
  return {{0.12, 0.08, 0.09, 17.0}, 0.025};
}

const PredictionRow& chain(const BatchPrediction& batch, std::int32_t k) {
  return *std::ranges::find_if(batch.rows,
                               [&](const PredictionRow& r) { return !r.form.is_tree() && r.form.depth == k; });
}

}  // namespace

TEST_CASE("typical acceptance ends with the training of a head that drafts a block, not with EAGLE-3's") {
  const auto length = [](const char* drafter, std::int32_t k) {
    return AcceptanceEstimate::typical_of(*setup_of(drafter).drafter).length({k, k}, 1024).length;
  };
  CHECK(length("DSpark", 8) < length("DSpark", 7));
  CHECK(length("DSpark", 7) == length("DFlash", 7));
  CHECK(length("DFlash", 8) > length("DFlash", 7));
  CHECK(length("EAGLE-3", 8) > length("EAGLE-3", 7));
}

TEST_CASE("a prediction's speedup is tokens of a step over step ratio, and its band spans both uncertainties") {
  const MachineCalibration machine(setup_of(), {});
  PredictOptions options;
  options.batches = {1, 64};
  const Prediction prediction = predict(machine, model_of("constant:0.7"), scatter(), options);
  const Roofline cost(machine.setup());
  for (const BatchPrediction& batch : prediction.batches) {
    const PredictionRow& row = chain(batch, 3);
    const BatchLoad load{batch.batch, options.context, false};
    CHECK(row.tokens_per_step == Approx(1 + 0.7 + 0.49 + 0.343));
    CHECK(row.step_ratio == Approx(step_ratio(cost, load, {3, 3}, DraftingKind::head)));
    CHECK(row.speedup == Approx(row.tokens_per_step / row.step_ratio));
    CHECK(row.tokens_per_second == Approx(row.speedup * batch.plain_tokens_per_second));
    // Student's t_17 has 80 % within 1.333; log errors 0.08, 0.09, 0.025.
    CHECK(std::log(row.high / row.speedup) == Approx(1.333 * std::sqrt(0.0064 + 0.0081 + 0.000625)).epsilon(1e-3));
    CHECK(row.low * row.high == Approx(row.speedup * row.speedup));
    for (const PredictionRow& other : batch.rows) CHECK(batch.rows[batch.best].speedup >= other.speedup);
  }
  // Verification is nearly free at batch 1 and costs at 64: the gain falls.
  CHECK(chain(prediction.batches[1], 8).speedup < chain(prediction.batches[0], 8).speedup);
}

TEST_CASE("speculation pays below its break-even batch and not from it on, and its band brackets it") {
  const MachineCalibration machine(setup_of(), {});
  PredictOptions options;
  options.batches = {1};
  options.context = 256;
  options.tree_nodes.clear();
  const Prediction prediction = predict(machine, model_of("constant:0.35"), scatter(), options);
  REQUIRE(prediction.break_even);
  const std::int64_t off = *prediction.break_even;
  REQUIRE(prediction.break_even_low);
  CHECK(*prediction.break_even_low <= off);
  if (prediction.break_even_high) CHECK(*prediction.break_even_high >= off);
  options.batches = {off / 2, off, 2 * off};
  const Prediction around = predict(machine, model_of("constant:0.35"), scatter(), options);
  CHECK(around.batches[0].pays());
  CHECK_FALSE(around.batches[1].pays());
  CHECK_FALSE(around.batches[2].pays());
  CHECK(prediction.load_advice.starts_with("Turn speculation off from " + std::to_string(off) +
                                           " requests at a time on."));
  CHECK(prediction.advice.ends_with(prediction.load_advice));
  // A drafter that nothing is accepted of never pays.
  options.batches = {1, 8};
  const Prediction none = predict(machine, model_of("constant:0.01"), scatter(), options);
  CHECK(none.break_even == 1);
  CHECK(none.advice.starts_with("Leave speculation off: with EAGLE-3 the best, K = 1, is 0."));
}

TEST_CASE(
    "what is said of loads is what each batch says: where plain decoding is best, and where a loss begins to be "
    "possible") {
  RooflineSetup setup = setup_of("Llama-3.1-8B");
  setup.model = find_model("Llama-3.1-70B");
  setup.engine = find_engine("vLLM");
  setup.engine.eager_layer_launch_ms = 0.45;  // a slow host
  setup.tp = 8;
  setup.drafter = find_drafter("Llama-3.1-8B", setup.model);
  const MachineCalibration machine(setup, {});
  PredictOptions options;
  options.tree_nodes.clear();
  options.batches = {1, 300, 530, 1000};
  const AcceptanceEstimate acceptance = model_of("constant:0.78");
  const Prediction prediction = predict(machine, acceptance, scatter(), options);
  REQUIRE(prediction.plain_best.size() >= 2);  // captured graphs end at 512
  options.batches.clear();
  for (const LoadInterval& off : prediction.plain_best) {
    CHECK(off.from <= off.to);
    for (const std::int64_t batch : {off.from, off.to}) options.batches.push_back(batch);
  }
  for (const BatchPrediction& batch : predict(machine, acceptance, scatter(), options).batches) {
    CAPTURE(batch.batch);
    CHECK_FALSE(batch.pays());
    CHECK(batch.rows[batch.best].speedup * std::exp(-0.005) < 1.0);  // the middle is no gain to speak of
  }
  REQUIRE(prediction.loss_possible_from);
  const std::int64_t first = *prediction.loss_possible_from;
  CHECK(first <= prediction.plain_best.front().from);
  options.batches = {first - 1, first};
  const Prediction around = predict(machine, acceptance, scatter(), options);
  CHECK(around.batches[0].rows[around.batches[0].best].low > 0.97);
  CHECK(around.batches[1].rows[around.batches[1].best].low < 1.0);
  const std::string from = std::to_string(prediction.plain_best.front().from);
  CHECK(prediction.load_advice.starts_with("Turn speculation off at " + from + " to "));
  CHECK(prediction.load_advice.find(" From " + std::to_string(first) + " on the 80 % band includes a loss") !=
        std::string::npos);
}

TEST_CASE("no draft is longer than its head has heads, and a server's that was is refused") {
  const TemporaryFolder folder;
  const auto request_of = [&](const std::string& head) {
    write_whole_file(folder.file("head.json"), R"({"hidden_size": 4096, "vocab_size": 128256, )" + head + "}");
    PredictionRequest request;
    request.model = "Llama-3.1-8B";
    request.gpu = "H100";
    request.engine = "SGLang";
    request.drafter = folder.file("head.json");
    request.acceptance = "constant:0.9";
    request.batches = {1};
    return request;
  };
  const auto is_bounded = [](const PredictionReport& report, std::int32_t most, const std::string& note) {
    std::int32_t deepest = 0;
    for (const PredictionRow& row : report.prediction.batches[0].rows) deepest = std::max(deepest, row.form.depth);
    CHECK(deepest == most);
    CHECK(std::ranges::find(report.notes, note) != report.notes.end());
  };
  PredictionRequest request = request_of(R"("medusa_num_heads": 3)");
  is_bounded(answer(request), 3, "medusa_num_heads is 3: longer drafts are not looked at.");
  is_bounded(answer(request_of(R"("model_type": "mlp_speculator", "n_predict": 2)")), 2,
             "n_predict is 2: longer drafts are not looked at.");
  is_bounded(answer(request_of(R"("architectures": ["Qwen3NextMTP"], "mtp_num_hidden_layers": 1)")), 8,
             "mtp_num_hidden_layers is 1: drafts behind run the last of its layers again, for which it is not "
             "trained.");
  request = request_of(R"("medusa_num_heads": 3)");
  request.calibrate_with = {"9.5@1:4"};
  CHECK_THAT(error_of(ErrorKind::usage, [&] { answer(request); }),
             Catch::StartsWith("--calibrate-with: is of K = 4, and Medusa (") &&
                 Catch::EndsWith(") drafts at most 3, since medusa_num_heads is 3; expected the head that ran, or no "
                                 "more drafts"));
  request.calibrate_with.clear();
  request.acceptance.clear();
  request.metrics = folder.file("rates.log");
  write_whole_file(request.metrics,
                   "INFO SpecDecoding metrics: Mean acceptance length: 2.50, Accepted throughput: 10.00 "
                   "tokens/s, Drafted throughput: 30.00 tokens/s, Accepted: 150 tokens, Drafted: 500 tokens, "
                   "Per-position acceptance rate: 0.700, 0.400, 0.200, 0.150, 0.050, Avg Draft acceptance "
                   "rate: 30.0%\n");
  CHECK_THAT(error_of(ErrorKind::usage, [&] { answer(request); }), Catch::StartsWith("--metrics: is of K = 5"));
}

TEST_CASE("as many GPUs as the least load needs with its cache, and a larger one is said to need more") {
  PredictionRequest request;
  request.model = "Llama-3.1-70B";  // 141 GB; a token caches 327,680 bytes
  request.gpu = "H100";
  request.drafter = "EAGLE-3";
  request.acceptance = "constant:0.6";
  request.batches = {1, 32};
  const auto tp_of = [&] { return inputs_of(request).preset.tp; };
  // Two GPUs leave 0.9 x 160 - 141 = 3 GB: 8 requests of 1024 tokens, and none of 16,384.
  CHECK(tp_of() == 2.0);
  const auto notes = inputs_of(request).notes;
  CHECK(std::ranges::any_of(notes, [](const std::string& note) {
    return note.starts_with("TP 2 is the least that holds the weights and the cache of ") &&
           note.ends_with(" requests: batch 32 takes --tp 4.");
  }));
  request.context = 16384;
  CHECK(tp_of() == 4.0);
  request.context = 1024;
  request.batches = {32};
  CHECK(tp_of() == 4.0);
  // A load that no machine holds leaves one request; a given --tp stays as given.
  request.batches = {1'000'000};
  CHECK(tp_of() == 2.0);
  request.tp = 8;
  CHECK(tp_of() == 8.0);
}

TEST_CASE("a latent cache lies whole on each of the GPUs that share a layer") {
  PredictionRequest request;
  request.model = "DeepSeek-V3";
  request.gpu = "H200";
  request.drafter = "n-gram";
  request.tp = 8;
  request.context = 32768;
  // 61 layers of 576 numbers in 16 bits are 70,272 bytes a token: 2.3 GB of the 43 that 84 GB of weights leave of 127.
  CHECK(answer(request).prediction.batch_of_memory == Approx(18).margin(1.0));
  request.model = "Llama-3.1-8B";  // 8 heads of 128: 131,072 bytes a token, an eighth on each GPU
  CHECK(answer(request).prediction.batch_of_memory == Approx(232).margin(4.0));
}

TEST_CASE("no draft is advised at a load that the memory does not hold") {
  PredictOptions options;
  options.context = 16384;
  const auto predicted = [&](std::vector<std::int64_t> batches) {
    options.batches = std::move(batches);
    return predict(MachineCalibration(setup_of(), {}), model_of("constant:0.7"), scatter(), options);
  };
  // 16 GB of weights in 72 of 80: 56 GB for caches of 131,072 bytes a token.
  const Prediction some = predicted({8, 100});
  CHECK(some.batch_of_memory == 26);
  CHECK(some.batches[0].fits);
  CHECK_FALSE(some.batches[1].fits);
  CHECK_THAT(some.advice, Contains("at batch 8: "));
  CHECK_THAT(some.advice, !Contains("at batch 100: "));
  CHECK_THAT(some.advice, Catch::EndsWith("Batch 100 does not fit: the memory holds 26 requests of 16384 tokens."));
  const Prediction none = predicted({32, 64});
  CHECK_THAT(none.advice, Catch::StartsWith("Batch 32, 64 does not fit: the memory holds 26 requests of 16384 tokens. "
                                            "Use EAGLE-3 with ") &&
                              Contains(" at batch 26: "));
  options.context = 1 << 20;
  CHECK_THAT(predicted({1}).advice, Catch::StartsWith("The memory does not hold one request of 1048576 tokens"));
}

TEST_CASE("a server's own K is kept where another gains little, and what stands behind the log's positions is marked") {
  AcceptanceData data;
  data.survival = {0.75, 0.55, 0.40};
  data.windows = 1;
  PredictOptions options;
  options.batches = {8};
  options.tree_nodes.clear();
  const auto predicted = [&](std::int32_t running) {
    options.running_drafts = running;
    return predict(MachineCalibration(setup_of(), {}), AcceptanceEstimate::of_data(data, std::nullopt), scatter(),
                   options);
  };
  for (const std::int32_t running : {1, 2, 3, 5}) {
    const Prediction prediction = predicted(running);
    const BatchPrediction& batch = prediction.batches[0];
    const PredictionRow& best = batch.rows[batch.best];
    const double gain = best.speedup / chain(batch, running).speedup - 1.0;
    CAPTURE(running, gain, prediction.advice);
    const std::string name = "K = " + std::to_string(running);
    CHECK(
        prediction.advice.starts_with("You run " + name + (gain < 0.03 ? ": keep it" : "; use " + name_of(best.form))));
    for (const PredictionRow& row : batch.rows) CHECK(row.extrapolated == (row.form.depth > 3));
  }
  CHECK_THAT(predicted(1).advice, Contains(" % more than K = 1"));
  CHECK_THAT(predicted(64).advice, Catch::StartsWith("Use EAGLE-3 with "));  // none of the rows
  data.survival_bounds = {{0.7, 0.8}, {0.5, 0.6}, {0.3, 0.5}};
  const Prediction bounded = predicted(3);
  CHECK_THAT(bounded.advice, Contains("The acceptance rates are bounds"));
  CHECK(bounded.batches[0].rows.size() == 3);  // none behind the positions that are bounded
}

TEST_CASE("jumps are explained where they are: graphs that end, experts that only drafts read") {
  const auto notes = [](const char* model, const char* drafter, std::int64_t batch, std::int64_t context,
                        const char* engine = "vLLM") {
    RooflineSetup setup = setup_of();
    setup.engine = find_engine(engine);
    setup.model = find_model(model);
    setup.drafter = find_drafter(drafter, setup.model);
    PredictOptions options;
    options.tree_nodes.clear();
    options.drafts_max = 3;
    options.batches = {batch};
    options.context = context;
    return predict(MachineCalibration(setup, {}), model_of("constant:0.9"), scatter(), options).batches[0].notes;
  };
  using Notes = std::vector<std::string>;
  CHECK(notes("Llama-3.1-8B", "EAGLE-3", 128, 64) == Notes{});  // 512 rows
  CHECK(notes("Llama-3.1-8B", "EAGLE-3", 129, 64) ==
        Notes{"verification of K = 3 has 516 rows, and captured graphs end at 512"});
  CHECK(notes("Llama-3.1-8B", "EAGLE-3", 513, 64) ==
        Notes{"a plain step has 513 rows, and captured graphs end at 512"});
  CHECK(notes("Llama-3.1-8B", "EAGLE-3", 129, 64, "SGLang") == Notes{});  // of requests, whatever their rows
  CHECK(notes("Llama-3.1-8B", "EAGLE-3", 513, 64, "SGLang") ==
        Notes{"a plain step has 513 requests, and captured graphs end at 512"});
  const Notes of_experts = notes("Qwen3-30B-A3B", "EAGLE-3", 1, 1024);
  REQUIRE(of_experts.size() == 1);
  CHECK(of_experts[0].starts_with("verification of K = 3 reads "));
  CHECK(of_experts[0].ends_with(" of 128 experts of a layer, a plain step 8"));
}

TEST_CASE("with the lengths of a closed loop's requests a speedup is of throughputs, and its band shrinks with it") {
  const MachineCalibration machine(setup_of(), {});
  PredictOptions options;
  options.batches = {32};
  options.context = 1100;
  const BatchPrediction decoding = predict(machine, model_of("constant:0.7"), scatter(), options).batches[0];
  options.lengths = {1000, 200};
  const BatchPrediction loop = predict(machine, model_of("constant:0.7"), scatter(), options).batches[0];
  const double share = loop.prefill_share;
  CHECK(share == Approx(prefill_share(Roofline(machine.setup()), {32, 1100, false}, {1000, 200})));
  CHECK(loop.plain_tokens_per_second == Approx((1.0 - share) * decoding.plain_tokens_per_second));
  const PredictionRow &before = chain(decoding, 3), &after = chain(loop, 3);
  CHECK(after.step_ratio == before.step_ratio);
  CHECK(1.0 / after.speedup == Approx(share + (1.0 - share) / before.speedup));
  CHECK(1.0 / after.low == Approx(share + (1.0 - share) / before.low));
  CHECK(after.tokens_per_second == Approx(after.speedup * loop.plain_tokens_per_second));
  CHECK(after.high / after.low < before.high / before.low);
}

TEST_CASE("trees have rows, and are advised where the engine takes them") {
  const MachineCalibration machine(setup_of(), {});
  PredictOptions options;
  options.batches = {1};
  const AcceptanceEstimate acceptance = model_of("constant:0.7");
  const BatchPrediction with = predict(machine, acceptance, scatter(), options).batches[0];
  REQUIRE(with.best_tree);
  CHECK(with.rows[with.best].form.is_tree());
  options.engine_takes_trees = false;
  const BatchPrediction without = predict(machine, acceptance, scatter(), options).batches[0];
  CHECK_FALSE(without.rows[without.best].form.is_tree());
  CHECK(without.best == without.best_chain);
  CHECK(without.best_tree);
  // Mixtures and recordings say nothing of siblings.
  CHECK_FALSE(model_of("beta").knows_trees());
  CHECK(model_of("ranks:0.6,0.2").knows_trees());
}

TEST_CASE("steps without a draft dilute the gain and the cost") {
  AcceptanceData data;
  data.survival = {0.8, 0.7, 0.6};
  data.acceptance_length = 3.1;
  data.draft_share = 0.4;
  const MachineCalibration machine(setup_of("n-gram"), {});
  PredictOptions options;
  options.batches = {1};
  options.drafts_max = 3;
  const Prediction diluted = predict(machine, AcceptanceEstimate::of_data(data, std::nullopt), scatter(), options);
  const PredictionRow row = chain(diluted.batches[0], 3);
  CHECK(row.tokens_per_step == Approx(1.0 + 0.4 * 2.1));
  data.draft_share.reset();
  const PredictionRow full =
      chain(predict(machine, AcceptanceEstimate::of_data(data, std::nullopt), scatter(), options).batches[0], 3);
  CHECK(full.tokens_per_step == Approx(3.1));
  CHECK(row.step_ratio <= full.step_ratio);
}

TEST_CASE("errors of counts widen the band, and a length alone is extrapolated with more") {
  AcceptanceData data;
  data.survival = {0.8, 0.6, 0.4};
  const AcceptanceEstimate exact = AcceptanceEstimate::of_data(data, std::nullopt);
  CHECK(exact.length({3, 3}, 0).spread == 0.0);
  CHECK(exact.length({3, 3}, 0).length == Approx(2.8));
  CHECK(exact.length({6, 6}, 0).spread > 0.0);
  CHECK(exact.length({12, 3}, 0).spread > 0.04);
  data.survival_error = {0.02, 0.02, 0.02};
  CHECK(AcceptanceEstimate::of_data(data, std::nullopt).length({3, 3}, 0).spread == Approx(0.06 / 2.8));
  AcceptanceData single;
  single.acceptance_length = 2.8;
  single.path = "log";
  CHECK(error_of(ErrorKind::usage, [&] { AcceptanceEstimate::of_data(single, std::nullopt); }) ==
        "log: has an acceptance length alone and does not say of how many drafts; expected their number: "
        "-k K (predict: --metrics-drafts K)");
  const AcceptanceEstimate estimate = AcceptanceEstimate::of_data(single, 3);
  CHECK(estimate.length({3, 3}, 0).length == Approx(2.8));
  CHECK(estimate.length({5, 5}, 0).length > 2.8);
  CHECK(estimate.length({5, 5}, 0).spread > 0.04);
}

TEST_CASE("measured steps of a machine move its constants to what was measured, and narrow the band") {
  // A machine with less bandwidth and a slower drafts than its preset.
  RooflineSetup truth = setup_of();
  truth.engine.constants[static_cast<std::size_t>(EngineConstant::bandwidth_efficiency)].value *= 0.9;
  truth.engine.constants[static_cast<std::size_t>(EngineConstant::pass_floor_ms)].value *= 1.7;
  truth.engine.constants[static_cast<std::size_t>(EngineConstant::speculation_ms)].value *= 1.5;
  const Roofline real(truth);
  const BatchLoad one{1, 1024, false};
  const BatchLoad eight{8, 1024, false};
  const std::vector<MeasuredStep> measured{
      {plain_step_ns(real, one) * 1e-6, one, {}, 1.0},
      {speculative_step_ns(real, one, {3, 3}, DraftingKind::head) * 1e-6, one, {3, 3}, 1.0}};
  const MachineCalibration before(setup_of(), {});
  const MachineCalibration after(setup_of(), measured);
  CHECK(after.residuals_before()[0] > 1.05);
  for (const double residual : after.residuals_after()) CHECK(residual == Approx(1.0).margin(0.02));
  const auto error = [&](const MachineCalibration& machine, const BatchLoad& load, const DraftSize& form) {
    return std::abs(std::log(step_ratio(Roofline(machine.setup()), load, form, DraftingKind::head) /
                             step_ratio(real, load, form, DraftingKind::head)));
  };
  CHECK(error(after, one, {5, 5}) < 0.6 * error(before, one, {5, 5}));
  CHECK(error(before, one, {5, 5}) > 0.03);
  CHECK(error(after, eight, {3, 3}) < 0.6 * error(before, eight, {3, 3}));
  CHECK(before.variance_left(one, {5, 5}, 1.0) == 1.0);
  CHECK(after.variance_left(one, {5, 5}, 1.0) < 0.6);
  PredictOptions options;
  options.batches = {1};
  const auto width = [&](const MachineCalibration& machine) {
    const PredictionRow row = chain(predict(machine, model_of("constant:0.7"), scatter(), options).batches[0], 5);
    return std::log(row.high / row.low);
  };
  CHECK(width(after) < 0.9 * width(before));
}

TEST_CASE("a measured step is a number, or the throughput of a log") {
  const BatchLoad load{4, 512, false};
  CHECK(read_measured_step("7.5", load, "x").batch.batch == 4);
  const MeasuredStep speculative = read_measured_step("11.2@8:3", load, "x");
  CHECK(speculative.ms == 11.2);
  CHECK(speculative.batch.batch == 8);
  CHECK(speculative.form.depth == 3);
  CHECK_THROWS_WITH(read_measured_step("11.2@x", load, "--calibrate-with"),
                    Contains("--calibrate-with: is '11.2@x'; expected MS, MS@BATCH"));
  // 800 tokens/s of 8 requests: 10 ms a token each. A window with prompts, and one of fewer requests, do not count.
  AcceptanceData plain;
  plain.throughput = {{8, 800}, {8, 300, 500}, {8, 800}, {1, 90}};
  const MeasuredStep step = step_of_windows(plain, "log", load);
  CHECK(step.batch.batch == 8);
  CHECK(step.form.nodes == 0);
  CHECK(step.ms == Approx(10.0));
  CHECK(step.prompt_tokens_per_second == 0.0);
  // Two and a half tokens of a step.
  AcceptanceData drafts;
  drafts.throughput = {{8, 800}};
  drafts.draft_len = 3;
  drafts.acceptance_length = 2.5;
  CHECK(step_of_windows(drafts, "log", load).form.depth == 3);
  CHECK(step_of_windows(drafts, "log", load).ms == Approx(25.0));
  // Depth that changes with the load: the step of the windows that are most, with theirs.
  drafts.throughput = {{8, 800, 0, 0, 2.5, 3.0}, {64, 4000, 0, 0, 1.7, 1.0}, {64, 4000, 0, 0, 1.7, 1.0}};
  CHECK(step_of_windows(drafts, "log", load).form.depth == 1);
  CHECK(step_of_windows(drafts, "log", load).ms == Approx(64 * 1.7 / 4.0));
  // SGLang's throughput is of the time since the line before, with the prompts in it: 80 tokens in two seconds, and 80
  // in half a one.
  const std::string decode = "Decode batch, #running-req: 2, #token: 104, gen throughput (token/s): ";
  ImportOptions with_plain;
  with_plain.plain = true;
  const AcceptanceData sglang = parse_acceptance(
      "Prefill batch, #new-seq: 1, #new-token: 3000, #cached-token: 0\n"
      "Prefill batch, #new-seq: 1, #new-token: 1000, #cached-token: 0\n" +
          decode + "40.0, #queue-req: 0\n" + decode + "160.0, #queue-req: 0\n",
      "log", with_plain);
  REQUIRE(sglang.throughput.size() == 2);
  CHECK(sglang.throughput[0].prompt_tokens_per_second == Approx(2000.0));
  CHECK(step_of_windows(sglang, "log", load).ms == Approx(12.5));
  // Ranks of data parallelism have batches of their own.
  plain.throughput = {{32, 1100, 0, 0}, {32, 1100, 0, 1}};
  CHECK(step_of_windows(plain, "log", load).batch.batch == 64);
  CHECK(step_of_windows(plain, "log", load).ms == Approx(32.0 / 1.1));
  // Ranks with loads of their own weigh what they run: 82 requests, steps of 44 and 38 ms. One without
  // requests does not.
  plain.throughput = {{51, 1157.2, 0, 0}, {31, 809.3, 0, 1}, {0, 0.0, 0, 2}};
  CHECK(step_of_windows(plain, "log", load).batch.batch == 82);
  CHECK(step_of_windows(plain, "log", load).ms == Approx((51 * 51e3 / 1157.2 + 31 * 31e3 / 809.3) / 82));
}

TEST_CASE("prompts are taken out of a step, and a step that is mostly prompts or out of all proportion is refused") {
  const RooflineSetup preset = setup_of();
  const Roofline cost(preset);
  const BatchLoad load{32, 1024, false};
  const double plain_ms = plain_step_ns(cost, load) * 1e-6;
  const double prompt_s = prefill_ns(cost, 1024) * 1e-9 / 1024.0;  // of a token
  // A tenth, and three quarters, of every second computes prompts.
  MeasuredStep step{plain_ms / 0.9, load, {}, 1.0, 0.1 / prompt_s};
  const CheckedStep some = checked_step(preset, step);
  CHECK(some.prefill_share == Approx(0.1));
  CHECK(some.step.ms == Approx(plain_ms));
  CHECK(some.over_preset == Approx(1.0));
  CHECK(some.refusal.empty());
  step.ms = plain_ms / 0.25;
  step.prompt_tokens_per_second = 0.75 / prompt_s;
  CHECK_THAT(checked_step(preset, step).refusal,
             Catch::StartsWith("its windows are full of prefills, ") && Contains(" take 75 % of the time"));
  // Without prompts the factor alone decides.
  for (const auto& [factor, words] :
       {std::pair(2.9, ""), {3.1, "is it another GPU"}, {0.35, ""}, {0.3, "fewer bits"}}) {
    CAPTURE(factor);
    const CheckedStep checked = checked_step(preset, {factor * plain_ms, load, {}, 1.0});
    CHECK(checked.over_preset == Approx(factor));
    CHECK(checked.refusal.empty() == (*words == '\0'));
    CHECK_THAT(checked.refusal, Contains(words));
  }
}

TEST_CASE("two dumps of a server's counters give the time of a step and the load") {
  // Between them 8 requests decode for 100 steps of 20 ms, a draft of two in each, and a step yields 1.6 tokens.
  const auto dump = [](double steps, int drafts, int first, int second) {
    std::ostringstream text;
    const auto line = [&](const std::string& name, double value, const std::string& labels = "") {
      text << "vllm:" << name << "{model_name=\"m\",engine=\"0\"" << labels << "} " << value << "\n";
    };
    line("spec_decode_num_drafts_total", drafts);
    line("spec_decode_num_draft_tokens_total", 2 * drafts);
    line("spec_decode_num_accepted_tokens_total", first + second);
    line("spec_decode_num_accepted_tokens_per_pos_total", first, ",position=\"0\"");
    line("spec_decode_num_accepted_tokens_per_pos_total", second, ",position=\"1\"");
    line("inter_token_latency_seconds_sum", 3.0 + 8 * 0.02 * steps);
    line("inter_token_latency_seconds_count", 100 + 8 * steps);
    line("iteration_tokens_total_count", 7 + steps);
    line("generation_tokens_total", 50 + 8 * 1.6 * steps);
    line("time_to_first_token_seconds_count", 50);
    return text.str();
  };
  const TemporaryFolder folder;
  write_whole_file(folder.file("before"), dump(0, 50, 30, 10));
  write_whole_file(folder.file("after"), dump(100, 850, 430, 90));
  const std::string both = folder.file("before") + ".." + folder.file("after");
  const std::optional<MeasuredStep> seen = see_log(both).step;
  REQUIRE(seen);
  const MeasuredStep& step = *seen;
  CHECK(step.batch.batch == 8);
  CHECK(step.form.depth == 2);
  CHECK(step.ms == Approx(20.0));
  const std::string bare = "vllm:spec_decode_num_drafts_total 10\nvllm:spec_decode_num_accepted_tokens_total 5\n";
  write_whole_file(folder.file("bare"), bare);
  write_whole_file(folder.file("more"), bare + "vllm:spec_decode_num_drafts_total 30\n");
  PredictionRequest request;
  request.model = "Llama-3.1-8B";
  request.gpu = "H100";
  request.drafter = "EAGLE-3";
  request.calibrate_with = {folder.file("bare") + ".." + folder.file("more")};
  CHECK_THAT(error_of(ErrorKind::input, [&] { inputs_of(request); }),
             Contains("does not say how long steps took; expected vllm:inter_token_latency_seconds"));
}

TEST_CASE("the precision is the model's own unless it is stated, and stands in the heading") {
  const auto head = [](const char* model, const char* gpu, const char* precision) {
    PredictionRequest request;
    request.model = model;
    request.gpu = gpu;
    request.drafter = "n-gram";
    request.precision = precision;
    return head_of(answer(request));
  };
  // 671 B parameters at a byte each fit eight GPUs of 141 GB, at two bytes each sixteen.
  CHECK(head("DeepSeek-V3", "H200", "") == "DeepSeek-V3 (fp8 weights) on 8 x H200 SXM 141GB, vLLM, drafter n-gram");
  CHECK(head("DeepSeek-V3", "H200", "bf16") ==
        "DeepSeek-V3 (16-bit weights) on 16 x H200 SXM 141GB, vLLM, drafter n-gram");
  CHECK(head("gpt-oss-120b", "H100", "") ==
        "gpt-oss-120b (mxfp4 experts, 16-bit weights) on H100 SXM 80GB, vLLM, drafter n-gram");
  CHECK(head("Llama-3.1-8B", "H100", "fp8, KV fp8") ==
        "Llama-3.1-8B (fp8 weights, 8-bit KV) on H100 SXM 80GB, vLLM, drafter n-gram");
  PredictionRequest small;
  small.model = "Qwen3-32B";
  small.gpu = "A100 40GB";
  small.drafter = "n-gram";
  small.tp = 1;
  CHECK(error_of(ErrorKind::usage, [&] { answer(small); }) ==
        "--tp: is 1; expected at least 2, since the 16-bit weights of Qwen3-32B do not fit fewer of these GPUs, or "
        "--precision fp8");
}
