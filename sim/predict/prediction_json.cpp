#include "sim/predict/prediction_json.hpp"

#include <nlohmann/json.hpp>

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

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
  json["best"] = Json::array();
  for (const BatchPrediction& batch : compared.prediction.batches)
    json["best"].push_back(row_json(batch.rows[batch.best]));
  json["break_even_batch"] = or_null(compared.prediction.break_even);
  json["batch_max"] = compared.prediction.looked_up_to;
  return json;
}

Json points_json(const SpeedupPoints& points) {
  Json json{{"path", points.path}, {"others", points.others}, {"points", Json::array()}};
  for (const SpeedupPoint& point : points.points)
    json["points"].push_back({{"source", point.source},
                              {"drafter", point.drafter},
                              {"draft", point.draft},
                              {"batch", point.batch},
                              {"speedup", point.speedup},
                              {"low", point.low},
                              {"high", point.high}});
  return json;
}

Json limits_json(const DraftLimits& limits) {
  Json json;
  set_form(json, limits.form);
  json["memory_bound_up_to"] = limits.memory_bound_up_to;
  json["break_even_batch"] = or_null(limits.break_even);
  return json;
}

}  // namespace

std::string head_of(const PredictionReport& report) {
  const RooflineSetup& s = report.setup;
  const auto gpus = static_cast<std::int64_t>(s.tp);
  return s.model.name + " on " + (gpus > 1 ? std::to_string(gpus) + " x " : std::string()) + s.gpu.name + ", " +
         s.engine.name + ", drafter " + s.drafter->name;
}

nlohmann::ordered_json prediction_json(const PredictionReport& report) {
  const RooflineSetup& s = report.setup;
  const Prediction& prediction = report.prediction;
  Json json;
  json["model"] = s.model.name;
  json["gpu"] = s.gpu.name;
  json["tp"] = s.tp;
  json["engine"] = s.engine.name;
  json["drafter"] = s.drafter->name;
  json["context"] = report.options.context;
  json["guidance"] = report.options.guidance;
  json["acceptance"] = report.acceptance;
  json["acceptance_factor"] = report.acceptance_factor;
  json["draft_cost_factor"] = s.draft_cost_factor;
  json["notes"] = report.notes;
  Json measured = Json::array();
  for (std::size_t i = 0; i < report.measured_steps.size(); ++i) {
    const MeasuredStep& step = report.measured_steps[i];
    measured.push_back({{"ms", step.ms},
                        {"batch", step.batch.batch},
                        {"k", step.form.depth},
                        {"measured_over_preset", report.residuals_before[i]},
                        {"measured_over_calibrated", report.residuals_after[i]}});
  }
  json["calibration"] = measured;
  Json rows = Json::array();
  Json best = Json::array();
  for (const BatchPrediction& batch : prediction.batches) {
    for (const PredictionRow& row : batch.rows) rows.push_back(row_json(row));
    Json entry = row_json(batch.rows[batch.best]);
    entry["pays"] = batch.pays();
    entry["plain_ms"] = batch.plain_ms;
    entry["plain_tokens_per_second"] = batch.plain_tokens_per_second;
    entry["plain_pass"] = pass_json(batch.plain_pass);
    entry["best_k"] = row_json(batch.rows[batch.best_chain]);
    entry["best_tree"] = batch.best_tree ? row_json(batch.rows[*batch.best_tree]) : Json(nullptr);
    best.push_back(entry);
  }
  json["rows"] = rows;
  json["best"] = best;
  json["break_even_batch"] = or_null(prediction.break_even);
  json["break_even_low"] = or_null(prediction.break_even_low);
  json["break_even_high"] = or_null(prediction.break_even_high);
  json["batch_max"] = prediction.looked_up_to;
  json["batch_of_memory"] = prediction.batch_of_memory;
  json["ridge_intensity"] = prediction.ridge_intensity;
  json["drafts"] = Json::array();
  for (const DraftLimits& limits : prediction.drafts) json["drafts"].push_back(limits_json(limits));
  json["compared"] = Json::array();
  for (const ComparedPrediction& compared : report.compared) json["compared"].push_back(compared_json(compared));
  json["measured"] = report.points ? points_json(*report.points) : Json(nullptr);
  json["advice"] = prediction.advice;
  return json;
}

}  // namespace draftproof
