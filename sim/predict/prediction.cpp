#include "sim/predict/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/words.hpp"
#include "sim/cost/validation.hpp"

namespace draftproof {
namespace {

constexpr double kNormal90 = 1.2815515655446004;  // 80 % of a normal distribution lie within so many deviations

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out.setf(std::ios::fixed);
  out.precision(digits);
  out << value;
  return out.str();
}

// The drafts to compare, with the acceptance of each, which does not depend on the batch.
struct Candidate {
  DraftSize form;
  LengthEstimate length;
};

class Predictor {
 public:
  Predictor(const MachineCalibration& machine, const AcceptanceEstimate& acceptance, const StepRatioScatter& scatter,
            const PredictOptions& options)
      : machine_(machine),
        acceptance_(acceptance),
        scatter_(scatter),
        options_(options),
        cost_(machine.setup()),
        kind_(machine.setup().drafter->kind) {
    const auto context = static_cast<std::int32_t>(options.context);
    std::int32_t deepest = options.drafts_max;
    // Bounds say too little of the positions behind them.
    if (acceptance.rates_are_bounds())
      deepest = std::min(deepest, std::max(1, acceptance.positions_known().value_or(1)));
    const DraftCount& count = machine.setup().drafter->count;
    if (count.drafts > 0 && !count.repeats) deepest = std::min(deepest, count.drafts);
    for (std::int32_t k = 1; k <= deepest; ++k) add({k, k}, context);
    if (!acceptance.knows_trees() || kind_ == DraftingKind::ngram || options.ahead.is_on()) return;
    for (const std::int32_t nodes : options.tree_nodes)
      for (std::int32_t depth = 2; depth <= std::min(deepest, nodes - 1); ++depth) add({nodes, depth}, context);
  }

  // Prediction for one batch size; of the trees of a size the one with the best depth.
  BatchPrediction of_batch(std::int64_t batch) const {
    const BatchLoad load{batch, options_.context, options_.guidance};
    BatchPrediction prediction;
    prediction.batch = batch;
    prediction.fits = batch <= batch_of_memory();
    const double plain = plain_step_ns(cost_, load);
    prediction.plain_ms = plain * 1e-6;
    prediction.prefill_share = prefill_share(cost_, load, options_.lengths);
    prediction.plain_tokens_per_second = (1.0 - prediction.prefill_share) * static_cast<double>(batch) / (plain * 1e-9);
    prediction.plain_pass = time_of(plain_pass(load));
    std::vector<PredictionRow>& rows = prediction.rows;
    for (const Candidate& candidate : candidates_) {
      PredictionRow row = row_of(load, candidate, plain);
      set_band(load, row, candidate.length.spread);
      add_prefill(prediction, row);
      if (candidate.form.is_tree() && !rows.empty() && rows.back().form.is_tree() &&
          rows.back().form.nodes == candidate.form.nodes) {
        if (is_better(row, rows.back())) rows.back() = row;
      } else {
        rows.push_back(row);
      }
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool taken = options_.engine_takes_trees || !rows[i].form.is_tree();
      if (taken && is_better(rows[i], rows[prediction.best])) prediction.best = i;
      if (rows[i].form.is_tree()) {
        if (!prediction.best_tree || is_better(rows[i], rows[*prediction.best_tree])) prediction.best_tree = i;
      } else if (is_better(rows[i], rows[prediction.best_chain])) {
        prediction.best_chain = i;
      }
    }
    add_notes(load, prediction);
    return prediction;
  }

  std::int64_t batch_of_memory() const {
    const double held =
        requests_held(machine_.setup(), static_cast<double>(options_.context), options_.guidance ? 2.0 : 1.0);
    return std::isfinite(held) ? static_cast<std::int64_t>(held) : options_.batch_max;
  }

  // More rows only add operations: the ladder is cut once.
  std::int64_t memory_bound_up_to(const DraftSize& form, const std::vector<std::int64_t>& ladder) const {
    const auto bound = [&](std::int64_t batch) {
      return cost_
          .target_floor(verify_pass({batch, options_.context, options_.guidance}, form, acceptance_.draft_share()))
          .memory_bound();
    };
    const auto end = std::ranges::partition_point(ladder, bound);
    return end == ladder.begin() ? 0 : end[-1];
  }
  double ridge_intensity() const { return cost_.ridge_intensity(); }

 private:
  void add(const DraftSize& form, std::int32_t context) {
    candidates_.push_back({form, acceptance_.length(form, context)});
  }

  PredictionRow row_of(const BatchLoad& load, const Candidate& candidate, double plain) const {
    PredictionRow row;
    row.batch = load.batch;
    row.form = candidate.form;
    double share = acceptance_.draft_share();
    double step = 0.0;
    if (const DraftingAhead& ahead = options_.ahead; ahead.is_on()) {
      const double ready = ready_probability(
          ahead, acceptance_.survival(candidate.form.depth, static_cast<std::int32_t>(options_.context)));
      step = ahead_step_ns(cost_, load, candidate.form, kind_, ahead, ready);
      if (!ahead.backup) share = ready;
    } else {
      step = speculative_step_ns(cost_, load, candidate.form, kind_, share);
    }
    row.tokens_per_step = 1.0 + share * (candidate.length.length - 1.0);
    row.step_ratio = step / plain;
    row.speedup = row.tokens_per_step / row.step_ratio;
    row.tokens_per_second = static_cast<double>(load.batch) * row.tokens_per_step / (step * 1e-9);
    row.verify = time_of(verify_pass(load, candidate.form, share));
    row.extrapolated = acceptance_.extrapolates(candidate.form);
    return row;
  }

  PassTime time_of(const PassLoad& pass) const { return {cost_.target_ns(pass) * 1e-6, cost_.target_floor(pass)}; }

  // Errors of cost and acceptance are independent. What a measured machine leaves of the cost's is what its
  // measurements do not say.
  void set_band(const BatchLoad& load, PredictionRow& row, double length_spread) const {
    const double left = machine_.variance_left(load, row.form, acceptance_.draft_share());
    FitRecord::Scatter scatter = scatter_.scatter;
    // A configuration's own error shrinks less than the machine's: other drafts and batches are other configurations.
    scatter.total = std::sqrt(left * scatter.source * scatter.source +
                              (0.25 + 0.75 * left) * scatter.configuration * scatter.configuration);
    const double cost = band_half_width(scatter, scatter_.noise, 0.8);
    const double half = std::hypot(cost, kNormal90 * length_spread);
    const SpeedupBand band{row.speedup, half};
    row.low = band.low();
    row.high = band.high();
  }

  static void add_prefill(const BatchPrediction& prediction, PredictionRow& row) {
    const double share = prediction.prefill_share;
    if (share <= 0.0) return;
    for (double* speedup : {&row.speedup, &row.low, &row.high}) *speedup = with_prefill(*speedup, share);
    row.tokens_per_second = prediction.plain_tokens_per_second * row.speedup;
  }

  void add_notes(const BatchLoad& load, BatchPrediction& prediction) const {
    const RooflineSetup& setup = machine_.setup();
    const PassLoad plain = plain_pass(load);
    const DraftSize& form = prediction.rows[prediction.best].form;
    const PassLoad verify = verify_pass(load, form, acceptance_.draft_share());
    const auto of_group = [&](const PassLoad& pass) {
      const double groups = cost_.groups_of(static_cast<double>(pass.streams));
      return std::pair(static_cast<double>(pass.rows) / groups, static_cast<double>(pass.streams) / groups);
    };
    if (!setup.engine.graph_rows.empty()) {
      const std::int64_t last = setup.engine.graph_rows.back();
      const auto is_past = [&](const char* what, const PassLoad& pass) {
        const auto [rows, streams] = of_group(pass);
        const double captured_by = setup.engine.captured_by(rows, streams);
        if (captured_by <= static_cast<double>(last)) return false;
        prediction.notes.push_back(std::string(what) + " has " + fixed(captured_by, 0) +
                                   (setup.engine.graphs_by_request ? " requests" : " rows") +
                                   ", and captured graphs end at " + std::to_string(last));
        return true;
      };
      if (!is_past("a plain step", plain)) is_past(("verification of " + name_of(form)).c_str(), verify);
    }
    if (setup.model.is_moe()) {
      const auto touched = [&](const PassLoad& pass) {
        const auto [rows, streams] = of_group(pass);
        const double together =
            setup.expert_parallel ? std::min(setup.dp, std::max(1.0, static_cast<double>(pass.streams))) : 1.0;
        return cost_.experts_touched(rows * together, streams * together);
      };
      // Not worth a word where both read nearly the same.
      if (touched(verify) > 1.25 * touched(plain))
        prediction.notes.push_back("verification of " + name_of(form) + " reads " + fixed(touched(verify), 0) + " of " +
                                   fixed(setup.model.experts, 0) + " experts of a layer, a plain step " +
                                   fixed(touched(plain), 0));
    }
  }

  static bool is_better(const PredictionRow& row, const PredictionRow& other) {
    return row.band().expected_time() < other.band().expected_time();
  }

  const MachineCalibration& machine_;
  const AcceptanceEstimate& acceptance_;
  StepRatioScatter scatter_;
  const PredictOptions& options_;
  Roofline cost_;
  DraftingKind kind_;
  std::vector<Candidate> candidates_;
};

// Batch sizes, denser where they are small: eight to a factor of two.
std::vector<std::int64_t> batch_ladder(std::int64_t most) {
  std::vector<std::int64_t> ladder;
  for (std::int64_t batch = 1; batch < most; batch += std::max<std::int64_t>(1, batch / 8)) ladder.push_back(batch);
  ladder.push_back(most);
  return ladder;
}

// "300 to 512", "from 900 requests at a time on".
std::string text_of(const LoadInterval& interval, const Prediction& prediction) {
  if (interval.to == prediction.looked_up_to) return "from " + counted_noun(interval.from, "request") + " at a time on";
  if (interval.from == interval.to) return "at " + std::to_string(interval.from);
  return "at " + std::to_string(interval.from) + " to " + std::to_string(interval.to);
}

std::string load_advice_of(const Prediction& prediction, std::int64_t context) {
  if (prediction.batch_of_memory < 1)
    return "The memory does not hold one request of " + std::to_string(context) +
           " tokens beside the weights; expected more GPUs (--tp), fewer bits (--precision), or a shorter --context.";
  std::ostringstream out;
  // Loads beyond the memory may be asked for, but no server has them.
  const std::int64_t most = std::min(prediction.looked_up_to, prediction.batch_of_memory);
  std::vector<LoadInterval> off = prediction.plain_best;
  std::erase_if(off, [&](const LoadInterval& interval) { return interval.from > most; });
  if (off.empty()) {
    out << "It pays at every load "
        << (most == prediction.batch_of_memory ? "that fits (" + counted_noun(most, "request") + ")"
                                               : "up to " + counted_noun(most, "request") + ", as far as was looked");
  } else {
    out << "Turn speculation off ";
    for (std::size_t i = 0; i < off.size(); ++i)
      out << (i == 0 ? "" : i + 1 == off.size() ? " and " : ", ") << text_of(off[i], prediction);
  }
  out << ".";
  const auto& loss = prediction.loss_possible_from;
  if (!loss || *loss > most || (!off.empty() && off.front().from <= *loss)) return out.str();
  out << (*loss == 1 ? std::string(" The 80 % band includes a loss at every load")
                     : " From " + std::to_string(*loss) + " on the 80 % band includes a loss")
      << ": measure before you rely on it.";
  return out.str();
}

std::string times(const PredictionRow& row) {
  return fixed(row.speedup, 2) + " times as fast as plain decoding (80 % band " + fixed(row.low, 2) + " to " +
         fixed(row.high, 2) + ")";
}

std::string extrapolation_of(const PredictionRow& row) {
  return row.extrapolated ? ", by extrapolation" : "";
}

// Advice for one load: the best draft, or the server's own K where that is nearly as good.
struct DraftAdvice {
  std::string text, behind;  // what is said of other loads stands between the two
  DraftSize form;
};

DraftAdvice draft_advice(const BatchPrediction& batch, const std::string& drafter,
                         std::optional<std::int32_t> running_drafts) {
  const PredictionRow& best = batch.rows[batch.best];
  const std::string at = " at batch " + std::to_string(batch.batch);
  const auto is_running = [&](const PredictionRow& row) {
    return !row.form.is_tree() && row.form.depth == running_drafts;
  };
  const auto running = std::ranges::find_if(batch.rows, is_running);
  if (running == batch.rows.end())
    return {"Use " + drafter + " with " + name_of(best.form) + at + ": " + times(best) + extrapolation_of(best), "",
            best.form};
  const double gain = best.speedup / running->speedup - 1.0;
  const std::string percent = fixed(100.0 * gain, 1) + " %";
  const std::string name = name_of(running->form);
  if (is_running(best)) return {"You run " + name + ": keep it" + at + ", " + times(best), "", best.form};
  if (gain < kGainWorthAChange && running->band().pays())
    return {"You run " + name + ": keep it" + at + ", " + times(*running),
            "; " + name_of(best.form) + " brings " + percent + at + extrapolation_of(best), running->form};
  return {"You run " + name + "; use " + name_of(best.form) + at + ": " + times(best) + ", " + percent + " more than " +
              name + extrapolation_of(best),
          "", best.form};
}

std::string advice_of(const Prediction& prediction, const BatchPrediction& at_memory, const std::string& drafter,
                      const PredictOptions& options) {
  const std::int64_t held = prediction.batch_of_memory;
  if (held < 1) return prediction.load_advice;
  std::ostringstream out;
  std::vector<const BatchPrediction*> fitting;
  std::string too_large;
  for (const BatchPrediction& batch : prediction.batches) {
    if (batch.fits)
      fitting.push_back(&batch);
    else
      too_large += (too_large.empty() ? "Batch " : ", ") + std::to_string(batch.batch);
  }
  if (!too_large.empty())
    too_large += " does not fit: the memory holds " + counted_noun(held, "request") + " of " +
                 counted_noun(options.context, "token") + ".";
  if (fitting.empty()) {
    out << too_large << " ";
    too_large.clear();
    fitting.push_back(&at_memory);
  }
  const auto paying = std::ranges::find_if(fitting, [](const BatchPrediction* batch) { return batch->pays(); });
  if (paying == fitting.end()) {
    const BatchPrediction& first = *fitting.front();
    const PredictionRow& best = first.rows[first.best];
    out << (options.running_drafts ? "Turn" : "Leave") << " speculation off: with " << drafter << " the best, "
        << name_of(best.form) << ", is " << fixed(best.speedup, 2) << " times as fast as plain decoding at batch "
        << first.batch << " (80 % band " << fixed(best.low, 2) << " to " << fixed(best.high, 2) << ").";
  } else {
    const DraftAdvice first = draft_advice(**paying, drafter, options.running_drafts);
    DraftSize last = first.form;
    out << first.text;
    for (const BatchPrediction* batch : fitting) {
      const PredictionRow& row = batch->rows[batch->best];
      if (row.batch <= (*paying)->batch || !batch->pays()) continue;
      out << ", " << (row.form == last ? "" : name_of(row.form) + " ") << "at batch " << row.batch << ": "
          << fixed(row.speedup, 2);
      last = row.form;
    }
    out << first.behind << ". " << prediction.load_advice;
  }
  if (!too_large.empty()) out << " " << too_large;
  return out.str();
}

}  // namespace

StepRatioScatter scatter_of(const RooflineSetup& setup, const FitRecord& record) {
  const bool other = setup.gpus() > 1.0 || !setup.model.assumption.empty() || setup.engine.generic;
  return {record.scatter[scatter_class(setup.model.is_moe(), other, setup.engine.eager)], record.noise};
}

Prediction predict(const MachineCalibration& machine, const AcceptanceEstimate& acceptance,
                   const StepRatioScatter& scatter, const PredictOptions& options) {
  const Predictor predictor(machine, acceptance, scatter, options);
  Prediction prediction;
  for (const std::int64_t batch : options.batches) prediction.batches.push_back(predictor.of_batch(batch));
  prediction.batch_of_memory = predictor.batch_of_memory();
  const std::int64_t largest_asked = std::ranges::max(options.batches);
  prediction.looked_up_to =
      std::max({largest_asked, std::min(options.batch_max, prediction.batch_of_memory), std::int64_t{1}});
  std::vector<std::int64_t> ladder = batch_ladder(prediction.looked_up_to);
  ladder.insert(ladder.end(), options.batches.begin(), options.batches.end());  // what is said of them holds there
  std::ranges::sort(ladder);
  ladder.erase(std::ranges::unique(ladder).begin(), ladder.end());
  std::vector<BatchPrediction> at;
  for (const std::int64_t batch : ladder) at.push_back(predictor.of_batch(batch));
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (!prediction.loss_possible_from && (!at[i].pays() || at[i].rows[at[i].best].band().may_lose()))
      prediction.loss_possible_from = at[i].batch;
    if (at[i].pays()) continue;
    if (i == 0 || at[i - 1].pays()) prediction.plain_best.push_back({at[i].batch, at[i].batch});
    prediction.plain_best.back().to = at[i].batch;
  }
  // From above: the last size at which one of the rows that count pays ends the search.
  const auto break_even = [&](const auto& pays) -> std::optional<std::int64_t> {
    std::optional<std::int64_t> off;
    for (auto batch = at.rbegin(); batch != at.rend() && std::ranges::none_of(batch->rows, pays); ++batch)
      off = batch->batch;
    return off;
  };
  const auto taken = [&](const PredictionRow& row) { return options.engine_takes_trees || !row.form.is_tree(); };
  prediction.break_even = break_even([&](const PredictionRow& row) { return taken(row) && row.band().pays(); });
  prediction.break_even_low = break_even([&](const PredictionRow& row) { return taken(row) && row.low > 1.0; });
  prediction.break_even_high = break_even([&](const PredictionRow& row) { return taken(row) && row.high > 1.0; });
  prediction.ridge_intensity = predictor.ridge_intensity();
  for (const PredictionRow& row : prediction.batches.front().rows) {
    const auto same_pays = [&](const PredictionRow& other) {
      return other.form.is_tree() == row.form.is_tree() && other.form.nodes == row.form.nodes && other.band().pays();
    };
    prediction.drafts.push_back({row.form, predictor.memory_bound_up_to(row.form, ladder), break_even(same_pays)});
  }
  prediction.load_advice = load_advice_of(prediction, options.context);
  const BatchPrediction at_memory = predictor.of_batch(std::max<std::int64_t>(prediction.batch_of_memory, 1));
  prediction.advice = advice_of(prediction, at_memory, machine.setup().drafter->name, options);
  if (acceptance.rates_are_bounds())
    prediction.advice +=
        " The acceptance rates are bounds, since drafts were of several lengths: the band is wider for it, and "
        "longer drafts are not looked at.";
  return prediction;
}

}  // namespace draftproof
