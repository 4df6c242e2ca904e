// The roofline against sums done by hand, published step times, and what must be so whatever the constants.
#include "sim/cost/roofline.hpp"
#include "sim/cost/step_ratio.hpp"
#include "tests/support/test.hpp"

namespace {

// Constants of which every term can be computed by hand.
EngineProfile plain_engine() {
  EngineProfile engine;
  engine.name = "by hand";
  const double values[kEngineConstants] = {0.5, 0.25, 0.4, 1.0, 0.01, 0.02, 1.0, 0.1, 0.05, 0.3, 0.002};
  for (std::size_t i = 0; i < kEngineConstants; ++i) engine.constants[i].value = values[i];
  return engine;
}

RooflineSetup llama_setup() {
  RooflineSetup setup;
  setup.model = find_model("Llama-3.1-8B");
  setup.gpu = find_gpu("H100");
  setup.engine = plain_engine();
  return setup;
}

RooflineSetup on(const ModelShape& model, const Gpu& gpu, const Precision& precision) {
  RooflineSetup setup = llama_setup();
  setup.model = model;
  setup.gpu = gpu;
  setup.precision = precision;
  return setup;
}

double milliseconds(double ns) {
  return ns / 1e6;
}

}  // namespace

TEST_CASE("A plain pass of Llama-3.1-8B on an H100 takes what a sum by hand says") {
  const Roofline roofline(llama_setup());
  // 32 layers: attention 2 x 4096 x 128 x (32 + 8), feed-forward 3 x 4096 x 14336; the head 4096 x 128256.
  const double body = 32.0 * (2.0 * 4096 * 128 * 40 + 3.0 * 4096 * 14336);
  const double head = 4096.0 * 128256;
  CHECK(roofline.weight_bytes() == 2.0 * (body + head));
  CHECK(roofline.kv_bytes(1) == 131072.0);  // models.csv
  PassLoad load{4, 4, 4000, 4000, 4};
  const double memory = (2.0 * (body + head) + 4000 * 131072.0) / (0.5 * 3350e9);
  const double efficiency = 0.25 * std::pow(4.0 / 256.0, 0.2);  // four rows, and a quarter at 256
  const double compute = (2.0 * 4 * body + 2.0 * 4 * head + 4.0 * 4000 * 32 * 32 * 128) / (efficiency * 989e12);
  const double seconds = std::pow(std::pow(memory, 1.5) + std::pow(compute, 1.5), 1.0 / 1.5) + 32 * 0.01e-3;
  CHECK(milliseconds(roofline.target_ns(load)) == Approx(1e3 * seconds));
  CHECK(milliseconds(roofline.overhead_ns(4, {})) == Approx(1.0));
}

TEST_CASE("The published fit of Llama-3.1-8B on an H100 with vLLM is met within a tenth") {
  // SpecDecode-Bench/simulator@2fdccbd: verify 5.886 ms + 21.01 us a token + 39.26 ns a KV token, and 1.207 ms a step.
  RooflineSetup setup = llama_setup();
  setup.engine = find_engine("vLLM");
  const Roofline roofline(setup);
  for (const auto& [tokens, kv] : {std::pair{1, 1000}, std::pair{6, 1000}, std::pair{32, 32'000}, std::pair{64, 60'000},
                                   std::pair{256, 131'072}, std::pair{512, 0}, std::pair{512, 131'072}}) {
    INFO(tokens << " tokens, " << kv << " KV tokens");
    const double published_ms = 5.886 + 0.02101 * tokens + 39.26e-6 * kv + 1.207;
    const PassLoad load{tokens, tokens, kv, kv, tokens};
    const double modelled_ms = milliseconds(roofline.target_ns(load) + roofline.overhead_ns(tokens, {}));
    CHECK(modelled_ms == Approx(published_ms).epsilon(0.1));
  }
}

TEST_CASE("Matrix products of more rows reach more of the peak rate, up to seven tenths") {
  RooflineSetup setup = llama_setup();
  setup.engine = find_engine("vLLM");
  setup.engine.graph_rows.clear();
  setup.model.cache.clear();
  const Roofline roofline(setup);
  // From the slope of the published fit, 21.01 us a token where the peak rate takes 16.24: 0.77 between any two points.
  const auto share_of_peak = [&](std::int64_t rows) {
    const PassLoad load{rows, rows, 0, 0, rows};
    return roofline.target_floor(load).compute_ns / roofline.target_ns(load);
  };
  CHECK(share_of_peak(256) < share_of_peak(1024));
  CHECK(share_of_peak(1024) < share_of_peak(4096));
  CHECK(share_of_peak(1 << 20) == Approx(0.7).epsilon(0.01));
}

TEST_CASE("Step ratios over the batch are those of the published fit within an eighth") {
  // The same fit: drafting 2.135 ms + 0.84 us a token + 2.38 ns a KV token, for K = 3, contexts of 1,000 tokens.
  RooflineSetup setup = llama_setup();
  setup.engine = find_engine("vLLM");
  setup.drafter = find_drafter("EAGLE", setup.model);
  const Roofline roofline(setup);
  for (const int batch : {1, 8, 32, 64, 128}) {
    INFO("batch " << batch);
    const double kv = 1000.0 * batch;
    const double plain = 5.886 + 0.02101 * batch + 39.26e-6 * kv + 1.207;
    const double speculative =
        5.886 + 0.02101 * 4 * batch + 39.26e-6 * kv + 2.135 + 0.84e-3 * 3 * batch + 2.38e-6 * kv + 1.207;
    CHECK(step_ratio(roofline, {batch, 1000, false}, {3, 3, false}, DraftingKind::head) ==
          Approx(speculative / plain).epsilon(0.125));
  }
}

TEST_CASE("Draft passes take their own roofline, launches and floor, one after the other") {
  RooflineSetup setup = llama_setup();
  setup.drafter = find_drafter("EAGLE-3", setup.model);
  const Roofline roofline(setup);
  const ModelShape& head = setup.drafter->shape;
  const DraftLoad load{1, 5, 5, 0, false};
  const double memory_ms = 1e3 * 2.0 * (head.body_parameters + head.head_parameters) / (0.5 * 3350e9);
  const double efficiency = 0.25 * std::pow(1.0 / 256.0, 0.2);  // one row a pass
  const double compute_ms = 1e3 * 2.0 * (head.body_parameters + head.head_parameters) / (efficiency * 989e12);
  const double pass_ms = std::pow(std::pow(memory_ms, 1.5) + std::pow(compute_ms, 1.5), 1.0 / 1.5) + 0.02 + 0.1;
  const double first_ms = 1e3 * 2.0 * 3.0 * 4096 * 4096 / (0.5 * 3350e9);
  CHECK(milliseconds(roofline.draft_ns(load)) == Approx(5 * pass_ms + first_ms));
  DraftLoad tree = load;
  tree.tree = true;
  CHECK(milliseconds(roofline.draft_ns(tree)) == Approx(5 * (pass_ms + 0.05) + first_ms));
  CHECK(roofline.draft_ns({1, 0, 0, 0, false}) == 0.0);
  CHECK(milliseconds(roofline.overhead_ns(1, load)) == Approx(1.3));
}

// A Markov head of rank 256 over 128,256 tokens: 65.7 MB at 2 bytes for every level, from the constants of this setup.
TEST_CASE("A block with a Markov head takes one pass and a small one for every level") {
  RooflineSetup setup = llama_setup();
  setup.drafter = find_drafter("DSpark", setup.model);
  const double parameters = 256.0 * 128256.0;
  CHECK(setup.drafter->level_parameters == parameters);
  const DraftLoad one{4, 1, 4, 0, false, 1};
  DraftLoad seven = one;
  seven.depth = 7;
  const Roofline roofline(setup);
  const double memory_ms = 1e3 * 2.0 * parameters / (0.5 * 3350e9);
  const double compute_ms = 1e3 * 2.0 * 4.0 * parameters / (0.25 * 989e12);
  const double level_ms = std::pow(std::pow(memory_ms, 1.5) + std::pow(compute_ms, 1.5), 1.0 / 1.5) + 0.25 * 0.02;
  CHECK(milliseconds(roofline.draft_ns(seven) - roofline.draft_ns(one)) == Approx(6 * level_ms));
  // Without it the same pass, and no level costs anything.
  RooflineSetup without = setup;
  without.drafter->level_parameters = 0.0;
  CHECK(Roofline(without).draft_ns(seven) == Roofline(without).draft_ns(one));
  CHECK(milliseconds(roofline.draft_ns(one) - Roofline(without).draft_ns(one)) == Approx(level_ms));
}

TEST_CASE("A drafter on fewer GPUs, or on its own, drafts as on a server of these, and sends its drafts") {
  const DraftLoad load{4, 5, 20, 4000, false, 5};
  for (const char* const drafter : {"EAGLE-3", "Llama-3.2-1B"}) {
    INFO(drafter);
    RooflineSetup one = llama_setup();
    one.drafter = find_drafter(drafter, one.model);
    RooflineSetup eight = one;
    eight.tp = 8;
    RooflineSetup fewer = eight;
    fewer.draft_tp = 1;
    // The message is the constant of a collective, 0.002 ms.
    CHECK(milliseconds(Roofline(fewer).draft_ns(load)) == Approx(milliseconds(Roofline(one).draft_ns(load)) + 0.002));
    CHECK(Roofline(fewer).target_ns({8, 8, 800, 800, 8}) == Roofline(eight).target_ns({8, 8, 800, 800, 8}));
    fewer.draft_tp = 8;
    CHECK(Roofline(fewer).draft_ns(load) == Roofline(eight).draft_ns(load));
    // Two messages; a head receives 4 x 6 rows of 4,096 numbers over the slower of both links.
    RooflineSetup apart = eight;
    apart.draft_gpu = find_gpu("A100");
    RooflineSetup there = one;
    there.gpu = *apart.draft_gpu;
    const double link = std::min(eight.gpu.link_bandwidth, there.gpu.link_bandwidth);
    const double features_ms = one.drafter->kind == DraftingKind::head ? 1e3 * 24.0 * 4096.0 * 2.0 / link : 0.0;
    CHECK(milliseconds(Roofline(apart).draft_transfer_ns(load)) == Approx(0.004 + features_ms));
    CHECK(milliseconds(Roofline(apart).draft_ns(load)) ==
          Approx(milliseconds(Roofline(there).draft_ns(load)) + 0.004 + features_ms));
  }
}

TEST_CASE("Drafts that are looked up cost no pass") {
  RooflineSetup setup = llama_setup();
  setup.drafter = find_drafter("n-gram", setup.model);
  CHECK(Roofline(setup).draft_ns({8, 1, 40, 0, false}) == 0.0);
}

TEST_CASE("Experts touched grow with the rows and end at all of them") {
  RooflineSetup setup = llama_setup();
  setup.model = find_model("Qwen3-30B-A3B");
  const Roofline roofline(setup);
  CHECK(roofline.experts_touched(1, 1) == Approx(8.0));
  CHECK(roofline.experts_touched(2, 2) == Approx(128.0 * (1.0 - std::pow(1.0 - 8.0 / 128.0, 2))));
  CHECK(roofline.experts_touched(10'000, 100) == Approx(128.0));
  CHECK(Roofline(llama_setup()).experts_touched(8, 8) == 0.0);
}

TEST_CASE("Graphs are padded to their sizes, and past the largest a pass falls off the cliff") {
  RooflineSetup setup = llama_setup();
  setup.engine.graph_rows = {8, 64};
  setup.engine.eager_layer_launch_ms = 2.0;
  const Roofline roofline(setup);
  const auto pass_ms = [&](std::int64_t rows) { return milliseconds(roofline.target_ns({rows, rows, 0, 0, 1})); };
  CHECK(pass_ms(1) == pass_ms(8));
  CHECK(pass_ms(9) == pass_ms(64));
  CHECK(pass_ms(64) < 25.0);
  CHECK(pass_ms(65) > 64.0);  // 32 layers at 2 ms, and not less
}

TEST_CASE("Verification over a cache of 8 bits takes 0.3 ms a layer more on GPUs without FP8 tensor cores") {
  RooflineSetup setup = llama_setup();
  setup.gpu = find_gpu("A100");
  setup.engine = find_engine("vLLM");
  const BatchLoad batch{1, 1000, false};
  const double as_fp16 = Roofline(setup).target_ns(verify_pass(batch, {5, 5}));
  setup.precision.kv_bytes = 1.0;
  CHECK(Roofline(setup).target_ns(plain_pass(batch)) < as_fp16);
  const double added = milliseconds(Roofline(setup).target_ns(verify_pass(batch, {5, 5})) - as_fp16);
  CHECK(added > 8.7);  // measured: 8.7 to 10.7 ms a step of 32 layers
  CHECK(added < 10.7);
  setup.gpu = find_gpu("H100");
  CHECK(Roofline(setup).target_ns(verify_pass(batch, {5, 5})) < as_fp16);
}

TEST_CASE("An engine that captures graphs by requests pays for a large batch and not for its drafts") {
  RooflineSetup setup = llama_setup();
  setup.engine.graph_rows = {8, 64};
  setup.engine.eager_layer_launch_ms = 2.0;
  setup.engine.graphs_by_request = true;
  const Roofline roofline(setup);
  const auto pass_ms = [&](std::int64_t streams, std::int64_t rows) {
    return milliseconds(roofline.target_ns({streams * rows, streams, 0, 0, 1}));
  };
  CHECK(pass_ms(64, 17) < 70.0);  // 1,088 rows of 64 requests, at a third of the peak rate
  CHECK(pass_ms(65, 1) > 64.0);   // 32 layers at 2 ms
  const double graph_ms = pass_ms(64, 20);
  setup.engine.graphs_by_request = false;
  CHECK(milliseconds(Roofline(setup).target_ns({64 * 20, 64, 0, 0, 1})) > graph_ms);
  CHECK(find_engine("SGLang").graphs_by_request);
  CHECK_FALSE(find_engine("vLLM").graphs_by_request);
}

TEST_CASE("vLLM before 0.11 drafts without captured graphs, 0.64 ms a pass more") {
  RooflineSetup setup = llama_setup();
  setup.drafter = find_drafter("EAGLE-3", setup.model);
  const auto drafting_ms = [&](const char* engine) {
    setup.engine = find_engine(engine);
    return milliseconds(Roofline(setup).draft_ns(drafting({1, 1000, false}, {3, 3}, DraftingKind::head)));
  };
  CHECK(drafting_ms("vLLM 0.8.5") == Approx(drafting_ms("vLLM") + 3 * 0.64));
  CHECK(drafting_ms("vLLM v0.10.2") == Approx(drafting_ms("vLLM 0.8.5")));
  CHECK(drafting_ms("vLLM 0.11.0") == Approx(drafting_ms("vLLM")));
  CHECK(drafting_ms("vLLM 0.24.0") == Approx(drafting_ms("vLLM")));
}

TEST_CASE("A ratio of a closed loop's throughputs contains the prefills") {
  const Roofline roofline(llama_setup());
  const BatchLoad batch{32, 1100, false};
  CHECK(prefill_share(roofline, batch, {}) == 0.0);
  // A round of 32 requests: 200 plain steps and 32 prefills of 1,000 tokens.
  PassLoad prefill;
  prefill.streams = prefill.logit_rows = 1;
  prefill.rows = prefill.kv_tokens = 1000;
  prefill.attended = 500'500;
  const double prefills = 32 * roofline.target_ns(prefill);
  const double share = prefill_share(roofline, batch, {1000, 200});
  CHECK(share == Approx(prefills / (prefills + 200 * plain_step_ns(roofline, batch))));
  CHECK(with_prefill(2.0, 0.0) == 2.0);
  CHECK(with_prefill(2.0, 0.25) == Approx(1.6));  // 0.25 + 0.75 / 2 of the time
  CHECK(with_prefill(0.5, 0.25) == Approx(1.0 / 1.75));
}

TEST_CASE("Guidance doubles streams and rows of the target, and not the draft") {
  const BatchLoad plain{4, 1000, false};
  const BatchLoad guided{4, 1000, true};
  CHECK(plain_pass(guided).rows == 2 * plain_pass(plain).rows);
  CHECK(plain_pass(guided).kv_tokens == 2 * plain_pass(plain).kv_tokens);
  CHECK(verify_pass(guided, {5, 5}).rows == 48);
  CHECK(drafting(guided, {5, 5}, DraftingKind::head).rows == drafting(plain, {5, 5}, DraftingKind::head).rows);
}

TEST_CASE("More GPUs make a graph engine faster and pay two all-reduces a layer; an eager engine gains nothing") {
  RooflineSetup setup = llama_setup();
  const PassLoad load{1, 1, 1000, 1000, 1};
  const double one = Roofline(setup).target_ns(load);
  setup.tp = 4.0;
  const double four = Roofline(setup).target_ns(load);
  CHECK(four < one);
  CHECK(four > one / 4.0 + 64 * 2000.0 * 0.99);  // 64 all-reduces of 2 us
  setup.engine.eager = true;
  const double eager_four = Roofline(setup).target_ns(load);
  setup.tp = 1.0;
  CHECK(eager_four == Roofline(setup).target_ns(load));
}

TEST_CASE("Each of the GPUs that hold a cache whole reads it whole, and so the GPUs of fewer heads than they are") {
  const auto memory_ms = [](const char* model, double tp, std::int64_t context, bool eager = false) {
    RooflineSetup setup = llama_setup();
    setup.model = find_model(model);
    setup.tp = tp;
    setup.engine.eager = eager;
    const Roofline roofline(setup);
    return 1e-6 * (roofline.target_floor({1, 1, context, context, 1}).memory_ns -
                   roofline.target_floor({1, 1, 0, 0, 1}).memory_ns);
  };
  // 61 layers of 576 numbers in 16 bits of 100,000 tokens: 7.03 GB, at 3.35 TB/s, on one GPU as on each of eight.
  const double latent = 1e3 * 61.0 * 576 * 2 * 100'000 / 3350e9;
  CHECK(memory_ms("DeepSeek-V3", 1, 100'000) == Approx(latent));
  CHECK(memory_ms("DeepSeek-V3", 8, 100'000) == Approx(latent));
  // 32 layers of 8 heads: an eighth on each of eight GPUs, and of sixteen.
  const double heads = 1e3 * 131072.0 * 100'000 / 3350e9;
  CHECK(memory_ms("Llama-3.1-8B", 8, 100'000) == Approx(heads / 8));
  CHECK(memory_ms("Llama-3.1-8B", 16, 100'000) == Approx(heads / 8));
  // Four GPUs hold half of 2 KV heads each (Qwen2.5-3B); pipeline stages hold nothing twice.
  CHECK(memory_ms("Qwen2.5-3B", 4, 100'000) == Approx(1e3 * 36.0 * 512 * 2 * 100'000 / 3350e9 / 2));
  CHECK(memory_ms("DeepSeek-V3", 8, 100'000, true) == Approx(latent));
}

TEST_CASE("Weights that come from the host's memory take its link's time: 70 B in 16 bits about 5.6 s a pass") {
  RooflineSetup setup = llama_setup();
  setup.model = find_model("Llama-2-70B");
  setup.gpu = find_gpu("L40");
  setup.offloaded = true;
  CHECK(milliseconds(Roofline(setup).target_ns({1, 1, 0, 0, 1})) == Approx(137.4e9 / 25e9 * 1e3).epsilon(0.02));
}

TEST_CASE("Times are positive and finite for every load, and rise with rows, context and passes") {
  RooflineSetup setup = llama_setup();
  setup.engine = find_engine("SGLang");
  setup.drafter = find_drafter("EAGLE-3", setup.model);
  const Roofline roofline(setup);
  double last = 0.0;
  for (const std::int64_t rows : {0, 1, 7, 60, 300, 512, 513, 9000}) {
    const double ns = roofline.target_ns({rows, rows, rows * 100, rows * 100, rows});
    CHECK(std::isfinite(ns));
    CHECK(ns > 0.0);
    CHECK(ns >= last);
    last = ns;
  }
  double ratio = 1.0;
  for (const int depth : {1, 2, 3, 5, 8, 13}) {
    const double longer = step_ratio(roofline, {1, 1000, false}, {depth, depth}, DraftingKind::head);
    CHECK(longer > ratio);
    ratio = longer;
  }
}

TEST_CASE("The least number of GPUs holds the weights") {
  CHECK(least_tp(on(find_model("Llama-3.1-8B"), find_gpu("H100"), {})) == 1.0);
  CHECK(least_tp(on(find_model("Llama-3.1-70B"), find_gpu("H100"), {})) == 2.0);
  CHECK(least_tp(on(find_model("Llama-3.1-70B"), find_gpu("RTX 4090"), {})) == 8.0);
  CHECK(least_tp(on(find_model("DeepSeek-V3"), find_gpu("H200"), precision_of("fp8"))) == 8.0);
  CHECK(least_tp(on(find_model("DeepSeek-V3"), find_gpu("H100"), precision_of("fp8"))) == 16.0);
}

TEST_CASE("Groups of GPUs share requests, layers and experts") {
  const auto plain = [](const RooflineSetup& setup, std::int64_t batch) {
    return plain_step_ns(Roofline(setup), {batch, 1000, false});
  };
  RooflineSetup setup = llama_setup();
  setup.drafter = find_drafter("EAGLE-3", setup.model);
  RooflineSetup groups = setup;
  groups.dp = 4;
  // Data parallelism: a quarter of the requests each, and one request is in one group.
  CHECK(plain(groups, 32) == plain(setup, 8));
  CHECK(plain(groups, 2) == plain(setup, 1));
  CHECK(step_ratio(Roofline(groups), {32, 1000, false}, {3, 3}, DraftingKind::head) ==
        step_ratio(Roofline(setup), {8, 1000, false}, {3, 3}, DraftingKind::head));
  // A pipeline: the same and three sends of 8 rows; its last stage drafts for the four groups in turn.
  RooflineSetup stages = setup;
  stages.pp = 4;
  const double send =
      1e6 * setup.engine.value(EngineConstant::collective_ms) + 8 * 4096 * 2.0 / setup.gpu.link_bandwidth * 1e9;
  CHECK(plain(stages, 32) == Approx(plain(setup, 8) + 3 * send));
  const DraftLoad load_of_8{.requests = 8, .passes = 3, .rows = 24, .kv_tokens = 24'000, .tree = false, .depth = 3};
  const DraftLoad load_of_32{.requests = 32, .passes = 3, .rows = 96, .kv_tokens = 96'000, .tree = false, .depth = 3};
  CHECK(Roofline(stages).draft_ns(load_of_32) == Approx(4 * Roofline(setup).draft_ns(load_of_8)));
  CHECK(Roofline(groups).draft_ns(load_of_32) == Approx(Roofline(setup).draft_ns(load_of_8)));
  // Four groups have four copies of the weights, four stages one; of a mixture's experts there is one copy in all.
  CHECK(groups.weight_bytes_of_all() == 4 * setup.weight_bytes_of_all());
  CHECK(stages.weight_bytes_of_all() == setup.weight_bytes_of_all());
  RooflineSetup mixture = on(find_model("DeepSeek-V3"), find_gpu("H100"), precision_of("fp8"));
  mixture.dp = 32;
  mixture.expert_parallel = true;
  CHECK(least_tp(mixture) == 1.0);
  mixture.expert_parallel = false;
  CHECK(least_tp(mixture) == 16.0);
  // Experts that lie over two groups are touched by the rows of both as by those of one group, and each reads half.
  RooflineSetup one = on(find_model("Qwen3-30B-A3B"), find_gpu("H100"), {});
  one.engine = find_engine("SGLang");  // by whose rows of one stream share experts
  const auto expert_bytes = [](RooflineSetup with, const PassLoad& load) {
    const double all = Roofline(with).target_floor(load).bytes;
    with.model.expert_parameters = 0.0;
    return all - Roofline(with).target_floor(load).bytes;
  };
  RooflineSetup two = one;
  two.dp = 2;
  two.expert_parallel = true;
  for (const PassLoad& load : {PassLoad{64, 16, 16'000, 64'000, 64}, PassLoad{4, 1, 1000, 4000, 4}})
    CHECK(expert_bytes(two, load) == Approx(0.5 * expert_bytes(one, load)));
}

TEST_CASE("DeepSeek-V3 with its experts over 72 GPUs serves as many tokens as SGLang's team measured, within a fifth") {
  // lmsys.org/blog/2025-05-05-large-scale-ep: decoding on 9 nodes of 8 H100, 256 requests a GPU with inputs of 2,000
  // tokens and outputs of 100, 22,300 tokens a second and node; two-batch overlap, which is not modelled.
  RooflineSetup setup = on(find_model("DeepSeek-V3"), find_gpu("H100"), precision_of("fp8"));
  setup.engine = find_engine("SGLang");
  setup.dp = 72;
  setup.expert_parallel = true;
  const std::int64_t batch = 72 * 256;
  const double step_s = plain_step_ns(Roofline(setup), {batch, 2050, false}) * 1e-9;
  CHECK(static_cast<double>(batch) / step_s / 9.0 == Approx(22300.0).epsilon(0.2));
}

TEST_CASE("A recurrent state is read by every request and written behind every row that is verified") {
  RooflineSetup setup = on(find_model("Nemotron-H-8B"), find_gpu("H100"), {});
  RooflineSetup without = setup;
  without.model.state_values = 0.0;
  const PassLoad plain{8, 8, 8000, 8000, 8}, verify{32, 8, 8000, 32'000, 32}, prompt{1024, 1, 0, 1'000'000, 1};
  const auto more = [&](const PassLoad& load) {
    return Roofline(setup).target_floor(load).bytes - Roofline(without).target_floor(load).bytes;
  };
  const double state = 2.0 * 24 * (128.0 * 64 * 128 + 10240.0 * 3);
  CHECK(more(plain) == Approx(16 * state));
  CHECK(more(verify) == Approx(40 * state));
  CHECK(more(prompt) == Approx(2 * state));
  CHECK(Roofline(setup).state_bytes() == state);
}
