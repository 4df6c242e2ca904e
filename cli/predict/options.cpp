#include "cli/predict/options.hpp"

namespace draftproof {

void add_predict_options(Options& options, PredictArguments& arguments) {
  PredictionRequest& a = arguments.request;
  constexpr NumberRange kFactorRange{0.01, 100.0};
  options.required_text("--model", a.model, "Target: a preset's name, a TOML preset, a config.json or its folder",
                        "MODEL");
  options.required_text("--gpu", a.gpu, "GPU: a preset's name or a TOML preset", "GPU");
  options.required_text("--drafter", a.drafter, "EAGLE-3, Medusa, MTP, n-gram, ... or a draft model", "DRAFTER");
  options.text("--engine", a.engine, "Engine: a preset's name or a profile written by calibrate", "ENGINE");
  options.integer("--tp", a.tp, {1, 1024}, "GPUs that share every layer; as many as the weights need, if not given");
  options.text("--precision", a.precision, "Weights and KV, as fp8, awq-int4, \"bf16, KV fp8\"; the model's own");
  options.text("--draft-precision", a.draft_precision, "The drafter's; 16 bits");
  options.file("--metrics", a.metrics,
               "What the server says of acceptance: vLLM's or SGLang's log, Prometheus text, a CSV of rates, recorded "
               "acceptances, the JSON of demo or generate");
  options.text("--metrics-name", a.metrics_name, "Of several in that file: a model_name, or a drafter", "NAME");
  options.integer("--metrics-drafts", a.metrics_drafts, {1, 64},
                  "Tokens of a draft there, if the file does not say it");
  options.choice("--metrics-rates", a.metrics_rates, {"as said", "conditional", "unconditional"},
                 "What the rates of a table there are, if it does not say it");
  options.text("--acceptance", a.acceptance, "Instead: an acceptance model, as constant:0.8 (docs/predict.md)",
               "MODEL");
  options.integers("--batch", a.batches, {1, 1 << 20}, "Requests at a time");
  options.integer("--context", a.context, {1, 1 << 24}, "Tokens in the cache of a request, on average");
  options.integer("--drafts-max", a.drafts_max, {1, 64}, "Longest chain, and deepest tree");
  options.integers("--tree-nodes", a.trees, {2, 256}, "Sizes of trees");
  options.flag("--no-trees", arguments.no_trees, "Chains alone, for engines that verify no trees");
  options.flag("--guidance", a.guidance, "Classifier-free guidance: two streams for each request");
  options.names("--calibrate-with", a.calibrate_with,
                "Measured steps of this machine, as a,b,...: MS, MS@BATCH or MS@BATCH:K, times in ms (K: with so many "
                "drafts), or a log of vLLM's with its throughput");
  options.number("--acceptance-factor", a.acceptance_factor, kFactorRange,
                 "What if so many times as many drafts of a step were accepted, up to all of them?");
  options.number("--draft-cost-factor", a.draft_cost_factor, kFactorRange,
                 "What if drafting took so many times as long?");
  options.names("--compare-drafters", a.compared_drafters,
                "Besides, the best of these drafters, as a,b,...: each with the acceptance that is typical of it");
  options.flag("--compare-guidance", a.compare_guidance,
               "Besides, the best with guidance, or with --guidance the best without");
  options.file("--measured", a.measured,
               "Speedups to set beside it: a CSV of measured rows, the JSON of validate, or an experiment's TOML of "
               "speedups by batch size");
  options.text("--out", arguments.out, "Folder for the JSON document and the figure", "DIR");
  options.used_only({"--metrics-name", "--metrics-drafts", "--metrics-rates"}, "without --metrics",
                    [&a] { return !a.metrics.empty(); });
  options.used_only({"--tree-nodes"}, "with --no-trees", [&arguments] { return !arguments.no_trees; });
  options.json(arguments.json);
}

}  // namespace draftproof
