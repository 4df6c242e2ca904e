// The curves as JSON, as rows and as a figure.
#include <sstream>

#include "base/json_values.hpp"
#include "base/printable.hpp"
#include "studies/acceptance/acceptance_decay.hpp"
#include "studies/figures/figure.hpp"
#include "studies/palette.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

void put(Json& object, const std::string& name, const std::vector<DecayValue>& values) {
  object[name] = json_list(values, &DecayValue::value);
  object[name + "_low"] = json_list(values, [](const DecayValue& value) { return or_null(value.low); });
  object[name + "_high"] = json_list(values, [](const DecayValue& value) { return or_null(value.high); });
}

Json curve_json(const DecayCurve& curve) {
  Json json;
  json["name"] = curve.name;
  json["source"] = curve.source;
  json["error"] = curve.error ? Json(curve.error->what()) : Json(nullptr);
  if (curve.error) return json;
  json["format"] = curve.format;
  json["positions_known"] = curve.positions_known;
  json["drafts"] = or_null(curve.drafts);
  json["draft_share"] = curve.draft_share;
  json["acceptance_length"] = or_null(curve.acceptance_length);
  json["acceptance_length_standard_error"] = or_null(curve.acceptance_length_error);
  put(json, "conditional", curve.conditional);
  put(json, "unconditional", curve.unconditional);
  json["survival_product"] = curve.survival_product;
  put(json, "tokens_per_step", curve.tokens_per_step);
  put(json, "speedup", curve.speedup);
  json["running_k"] = or_null(curve.running_k);
  json["best_k"] = curve.best_k;
  json["best_k_low"] = or_null(curve.best_k_low);
  json["best_k_high"] = or_null(curve.best_k_high);
  json["best_speedup"] = curve.best_speedup;
  json["pays_below"] = curve.pays_below;
  json["best_k_by_cost"] = curve.best_k_by_cost;
  json["notes"] = curve.notes;
  return json;
}

TableCell cell(const std::optional<double>& value) {
  return value ? TableCell(*value) : TableCell(std::string());
}

}  // namespace

Json to_json(const AcceptanceDecaySnapshot& snapshot) {
  Json json;
  json["draft_cost"] = snapshot.settings.draft_cost;
  json["drafts_max"] = snapshot.settings.drafts_max;
  json["interval_level"] = kDecayLevel;
  json["costs"] = snapshot.costs;
  json["sources"] = json_list(snapshot.curves, curve_json);
  return json;
}

Table to_table(const AcceptanceDecaySnapshot& snapshot) {
  Table table{{"source", "position", "conditional", "conditional_low", "conditional_high", "unconditional",
               "unconditional_low", "unconditional_high", "tokens_per_step", "speedup"},
              {}};
  for (const DecayCurve& curve : snapshot.curves)
    for (std::size_t i = 0; i < curve.unconditional.size(); ++i) {
      const DecayValue& a = curve.conditional[i];
      const DecayValue& s = curve.unconditional[i];
      table.rows.push_back({curve.name, static_cast<std::int64_t>(i + 1), a.value, cell(a.low), cell(a.high), s.value,
                            cell(s.low), cell(s.high), curve.tokens_per_step[i + 1].value, curve.speedup[i + 1].value});
    }
  return table;
}

std::string to_figure(const AcceptanceDecaySnapshot& snapshot) {
  // Columns: K, unconditional rate, speedup; and of what was counted: K, rate with its interval.
  std::ostringstream script;
  std::ostringstream survival;
  std::ostringstream speedup;
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < snapshot.curves.size(); ++i) {
    const DecayCurve& curve = snapshot.curves[i];
    if (curve.error) continue;
    script << "$source" << i << " << EOD\n0 1 1\n";
    std::ostringstream intervals;
    for (std::size_t k = 1; k < curve.tokens_per_step.size(); ++k) {
      const DecayValue& s = curve.unconditional[k - 1];
      script << k << ' ' << s.value << ' ' << curve.speedup[k].value << '\n';
      if (s.low && s.high) intervals << k << ' ' << s.value << ' ' << *s.low << ' ' << *s.high << '\n';
    }
    script << "EOD\n";
    const std::string line =
        std::string(" lw 2 lc rgb '") + palette::kSeries[drawn % palette::kSeries.size()].hex + "'";
    survival << (drawn == 0 ? "" : ", ") << "$source" << i << " using 1:2 with linespoints pt 7 ps 0.6" << line
             << " title " << gnuplot_quoted(printable_line(curve.name));
    if (!intervals.str().empty()) {
      script << "$intervals" << i << " << EOD\n" << intervals.str() << "EOD\n";
      survival << ", $intervals" << i << " using 1:2:3:4 with yerrorbars pt 7 ps 0.6" << line << " notitle";
    }
    speedup << (drawn == 0 ? "" : ", ") << "$source" << i << " using 1:3 with linespoints pt 7 ps 0.6" << line
            << " notitle";
    ++drawn;
  }
  if (drawn == 0) return "";
  const std::int32_t drafts_max = snapshot.settings.drafts_max;
  script << "set multiplot layout 1,2\nset grid ytics lc rgb '#dddddd'\nset xtics " << (drafts_max > 16 ? 4 : 1)
         << "\nset xrange [-0.3:" << drafts_max << ".3]\n"
         << "set xlabel 'draft position i'\nset ylabel 'P(drafts 1..i accepted)'\nset yrange [0:1.05]\n"
         << "set key top right\nplot " << survival.str() << "\n"
         << "set xlabel 'drafts K'\nset ylabel 'speedup, draft cost " << snapshot.settings.draft_cost
         << " of a target step'\nset yrange [*:*]\nplot " << speedup.str() << ", 1 with lines lc rgb '"
         << palette::kGrey.hex << "' dt 2 notitle\nunset multiplot\n";
  return script.str();
}

}  // namespace draftproof
