#include "base/json_values.hpp"
#include "sim/predict/prediction_request.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

void set_form(Json& json, const DraftSize& form) {
  json["k"] = form.is_tree() ? Json(nullptr) : Json(form.depth);
  json["tree"] = form.is_tree() ? Json{{"nodes", form.nodes}, {"depth", form.depth}} : Json(nullptr);
}

Json pass_json(const PassTime& pass) {
  return {{"ms", pass.ms},
          {"floor_ms", pass.floor.ns() * 1e-6},
          {"intensity", pass.floor.intensity()},
          {"memory_bound", pass.floor.memory_bound()}};
}

Json row_json(const PredictionRow& row) {
  Json json;
  json["batch"] = row.batch;
  set_form(json, row.form);
  json["speedup"] = row.speedup;
  json["low"] = row.low;
  json["high"] = row.high;
  json["loss_probability"] = row.band().loss_probability();
  json["extrapolated"] = row.extrapolated;
  json["step_ratio"] = row.step_ratio;
  json["tokens_per_step"] = row.tokens_per_step;
  json["tokens_per_second"] = row.tokens_per_second;
  json["verify_pass"] = pass_json(row.verify);
  return json;
}

Json compared_json(const ComparedPrediction& compared) {
  Json json;
  json["drafter"] = compared.drafter;
  json["guidance"] = compared.guidance;
  json["acceptance"] = compared.acceptance;
  json["best"] = json_list(compared.prediction.batches,
                           [](const BatchPrediction& batch) { return row_json(batch.rows[batch.best]); });
  json["break_even_batch"] = or_null(compared.prediction.break_even);
  json["batch_max"] = compared.prediction.looked_up_to;
  return json;
}

Json points_json(const SpeedupPoints& points) {
  const auto point_json = [](const SpeedupPoint& point) -> Json {
    return {{"source", point.source},   {"drafter", point.drafter}, {"draft", point.draft}, {"batch", point.batch},
            {"speedup", point.speedup}, {"low", point.low},         {"high", point.high}};
  };
  return {{"path", points.path}, {"others", points.others}, {"points", json_list(points.points, point_json)}};
}

Json limits_json(const DraftLimits& limits) {
  Json json;
  set_form(json, limits.form);
  json["memory_bound_up_to"] = limits.memory_bound_up_to;
  json["break_even_batch"] = or_null(limits.break_even);
  return json;
}

}  // namespace

nlohmann::ordered_json prediction_json(const PredictionReport& report) {
  const RooflineSetup& s = report.setup;
  const Prediction& prediction = report.prediction;
  Json json;
  json["model"] = s.model.name;
  json["gpu"] = s.gpu.name;
  json["tp"] = s.tp;
  json["dp"] = s.dp;
  json["pp"] = s.pp;
  json["expert_parallel"] = s.expert_parallel;
  json["precision"] = name_of(s.precision);
  json["engine"] = s.engine.name;
  json["drafter"] = s.drafter->name;
  json["context"] = report.options.context;
  json["prompt"] = report.options.lengths.prompt > 0 ? Json(report.options.lengths.prompt) : Json(nullptr);
  json["output"] = report.options.lengths.output > 0 ? Json(report.options.lengths.output) : Json(nullptr);
  json["running_k"] = or_null(report.options.running_drafts);
  json["prefills_of_log"] = report.prefills_of_log;
  json["guidance"] = report.options.guidance;
  json["acceptance"] = report.acceptance;
  json["acceptance_factor"] = report.acceptance_factor;
  json["draft_cost_factor"] = s.draft_cost_factor;
  json["notes"] = report.notes;
  json["read"] = report.seen ? seen_json(*report.seen) : Json(nullptr);
  Json measured = Json::array();
  std::size_t used = 0;
  for (const CheckedStep& step : report.steps) {
    const bool refused = !step.refusal.empty();
    measured.push_back({{"ms", step.step.ms},
                        {"batch", step.step.batch.batch},
                        {"k", step.step.form.depth},
                        {"prefill_share", step.prefill_share},
                        {"measured_over_preset", step.over_preset},
                        {"measured_over_calibrated", refused ? Json(nullptr) : Json(report.over_calibrated[used])},
                        {"refused", refused ? Json(step.refusal) : Json(nullptr)}});
    if (!refused) ++used;
  }
  json["calibration"] = measured;
  Json rows = Json::array();
  Json best = Json::array();
  for (const BatchPrediction& batch : prediction.batches) {
    for (const PredictionRow& row : batch.rows) rows.push_back(row_json(row));
    Json entry = row_json(batch.rows[batch.best]);
    entry["pays"] = batch.pays();
    entry["fits"] = batch.fits;
    entry["notes"] = batch.notes;
    entry["plain_ms"] = batch.plain_ms;
    entry["plain_tokens_per_second"] = batch.plain_tokens_per_second;
    entry["prefill_share"] = batch.prefill_share;
    entry["plain_pass"] = pass_json(batch.plain_pass);
    entry["best_k"] = row_json(batch.rows[batch.best_chain]);
    entry["best_tree"] = batch.best_tree ? row_json(batch.rows[*batch.best_tree]) : Json(nullptr);
    best.push_back(entry);
  }
  json["rows"] = rows;
  json["best"] = best;
  json["plain_best"] = json_list(prediction.plain_best, [](const LoadInterval& off) -> Json {
    return {{"from", off.from}, {"to", off.to}};
  });
  json["loss_possible_from"] = or_null(prediction.loss_possible_from);
  json["break_even_batch"] = or_null(prediction.break_even);
  json["break_even_low"] = or_null(prediction.break_even_low);
  json["break_even_high"] = or_null(prediction.break_even_high);
  json["batch_max"] = prediction.looked_up_to;
  json["batch_of_memory"] = prediction.batch_of_memory;
  json["ridge_intensity"] = prediction.ridge_intensity;
  json["drafts"] = json_list(prediction.drafts, limits_json);
  json["compared"] = json_list(report.compared, compared_json);
  json["measured"] = report.points ? points_json(*report.points) : Json(nullptr);
  json["load_advice"] = prediction.load_advice;
  json["advice"] = prediction.advice;
  return json;
}

}  // namespace draftproof
