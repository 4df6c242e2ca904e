#include "sim/cost/validation.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <set>

namespace draftproof {
namespace {

// Linear between order statistics.
double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

// Gain of a draft where a prediction takes the best of `options`: 1 - measured speedup / best one.
struct Option {
  double measured = 0.0;  // mean over rows of the same draft
  double predicted = 0.0;
  double textbook = 0.0;
  double rows = 0.0;
};

void add_regret(const std::vector<const PredictedPoint*>& points, GroupFigures& figures) {
  std::map<std::string, std::map<std::string, Option>> choices;
  for (const PredictedPoint* predicted : points) {
    const MeasuredPoint& point = *predicted->point;
    Option& option = choices[point.choice][point.configuration];
    option.measured += point.speedup;
    option.predicted += predicted->speedup();
    option.textbook += point.acceptance_length / point.textbook_ratio;
    option.rows += 1.0;
  }
  std::vector<double> regrets;
  std::vector<double> textbook_regrets;
  for (auto& [choice, options] : choices) {
    if (options.size() < 2) continue;
    double best = 0.0;
    const Option* by_model = &options.begin()->second;
    const Option* by_textbook = by_model;
    for (const auto& [configuration, option] : options) {
      best = std::max(best, option.measured / option.rows);
      if (option.predicted / option.rows > by_model->predicted / by_model->rows) by_model = &option;
      if (option.textbook / option.rows > by_textbook->textbook / by_textbook->rows) by_textbook = &option;
    }
    regrets.push_back(1.0 - by_model->measured / by_model->rows / best);
    textbook_regrets.push_back(1.0 - by_textbook->measured / by_textbook->rows / best);
  }
  figures.choices = regrets.size();
  figures.regret = mean(regrets);
  figures.textbook_regret = mean(textbook_regrets);
}

CalibratedFigures calibrated_figures(const std::vector<PredictedPoint>& points, bool complete_only) {
  std::map<std::string, std::map<std::string, std::vector<const PredictedPoint*>>> machines;
  for (const PredictedPoint& predicted : points)
    if (!complete_only || predicted.point->complete())
      machines[predicted.point->machine][predicted.point->configuration].push_back(&predicted);
  std::vector<double> errors;
  for (const auto& [machine, configurations] : machines)
    for (const auto& [calibrating, rows] : configurations) {
      std::vector<double> measured;
      for (const PredictedPoint* row : rows) measured.push_back(std::log(row->point->step_ratio));
      for (const auto& [configuration, others] : configurations) {
        if (configuration == calibrating) continue;
        for (const PredictedPoint* other : others) {
          const double log_ratio = calibrated_log_ratio(other->log_ratio, mean(measured), rows.front()->log_ratio);
          errors.push_back(std::abs(std::exp(log_ratio) / other->point->step_ratio - 1.0));
        }
      }
    }
  return {errors.size(), quantile(errors, 0.5), quantile(errors, 0.9)};
}

// The mean square of the configurations of one source.
struct SourceSquare {
  double mean = 0.0;
  double weight = 0.0;  // observations that it is worth
};

// The root of the weighted mean of squares, in which a source counts for at most twice the result: one laboratory
// with a setup that the model does not know would else widen the bands of all.
double robust_total(const std::vector<SourceSquare>& squares, const FitRecord::Scatter& prior) {
  double total = prior.total;
  for (int round = 0; round < 50; ++round) {
    double sum = prior.degrees * prior.total * prior.total;
    double weights = prior.degrees;
    for (const SourceSquare& square : squares) {
      sum += square.weight * std::min(square.mean, 4.0 * total * total);
      weights += square.weight;
    }
    total = std::sqrt(sum / weights);
  }
  return total;
}

const char* const kClassNames[kScatterClasses] = {"dense", "dense_eager", "dense_other", "moe", "closed_loop"};

// The constants with which a source is predicted.
struct SourceConstants {
  FitState state;
  bool from_shipped = false;
};

SourceConstants shipped_without(const std::string& source, const FitRecord& shipped) {
  SourceConstants used{shipped.state, true};
  const auto without = shipped.without.find(source);
  if (without != shipped.without.end()) used.state.offset = without->second;
  return used;
}

SourceConstants constants_without(const std::string& source, const MeasuredData& data, const FitRecord& shipped) {
  const std::set<std::string> seen(shipped.sources.begin(), shipped.sources.end());
  std::vector<const MeasuredPoint*> unseen, others;
  std::set<std::string> other_sources;
  for (const MeasuredPoint& point : data.points) {
    if (point.source == source) continue;
    others.push_back(&point);
    other_sources.insert(point.source);
    if (!seen.count(point.source)) unseen.push_back(&point);
  }
  FitState prior = shipped.state;
  const auto without = shipped.without.find(source);
  if (seen.count(source)) {
    // A file that holds as many sources as the shipped constants have seen tells all by itself.
    if (without == shipped.without.end() || other_sources.size() + 1 >= seen.size())
      return {others.empty() ? fit_prior() : fit_engines(others, fit_prior()).state, false};
    prior.offset = without->second;
  }
  return {unseen.empty() ? prior : fit_engines(unseen, prior).state, true};
}

}  // namespace

double PredictedPoint::step_ratio() const {
  return std::exp(log_ratio);
}
double PredictedPoint::speedup() const {
  return point->acceptance_length / step_ratio();
}
double PredictedPoint::error() const {
  return step_ratio() / point->step_ratio - 1.0;
}
double PredictedPoint::speedup_error() const {
  return speedup() / point->speedup - 1.0;
}
double PredictedPoint::textbook_error() const {
  return point->textbook_ratio / point->step_ratio - 1.0;
}
bool PredictedPoint::in_band() const {
  return std::abs(std::log(point->step_ratio) - log_ratio) <= half_width;
}

GroupFigures figures_of(const std::vector<const PredictedPoint*>& points) {
  GroupFigures figures;
  std::vector<double> errors, absolute, speedups, textbook;
  struct Covered {
    double rows = 0.0, covered = 0.0;
  };
  std::map<std::string, Covered> sources;
  double covered = 0.0;
  for (const PredictedPoint* predicted : points) {
    errors.push_back(predicted->error());
    absolute.push_back(std::abs(predicted->error()));
    speedups.push_back(std::abs(predicted->speedup_error()));
    textbook.push_back(std::abs(predicted->textbook_error()));
    Covered& source = sources[predicted->point->source];
    source.rows += 1.0;
    source.covered += predicted->in_band() ? 1.0 : 0.0;
    covered += predicted->in_band() ? 1.0 : 0.0;
    const SpeedupBand band = predicted->band();
    SwitchDecisions& d = figures.decisions;
    if (predicted->point->speedup < 1.0) {
      ++d.losses;
      d.losses_found += band.may_lose() ? 1 : 0;
      d.losses_off += band.pays() ? 0 : 1;
    } else {
      ++d.gains;
      d.gains_kept += band.may_lose() ? 0 : 1;
      d.gains_on += band.pays() ? 1 : 0;
    }
  }
  figures.rows = points.size();
  figures.sources = sources.size();
  figures.step_ratio_median = quantile(absolute, 0.5);
  figures.step_ratio_p90 = quantile(absolute, 0.9);
  figures.bias = quantile(errors, 0.5);
  figures.speedup_median = quantile(speedups, 0.5);
  figures.speedup_p90 = quantile(speedups, 0.9);
  figures.textbook_median = quantile(textbook, 0.5);
  figures.band80_coverage = points.empty() ? 0.0 : covered / static_cast<double>(points.size());
  for (const auto& [name, source] : sources)
    figures.band80_by_source += source.covered / source.rows / static_cast<double>(sources.size());
  add_regret(points, figures);
  return figures;
}

std::size_t scatter_class(const MeasuredPoint& point) {
  return point.closed_loop ? kClosedLoopClass : scatter_class(point.moe, !point.complete(), point.eager);
}

std::array<FitRecord::Scatter, kScatterClasses> scatter_of(
    const std::vector<PredictedPoint>& residuals, const std::set<std::string>& chosen_with,
    const std::array<FitRecord::Scatter, kScatterClasses>& prior) {
  constexpr double kWorthOfChosen = 0.5;
  std::array<FitRecord::Scatter, kScatterClasses> scatter = prior;
  for (std::size_t kind = 0; kind < scatter.size(); ++kind) {
    // Means over the rows of each configuration of each source.
    std::map<std::string, std::map<std::string, std::vector<double>>> sources;
    for (const PredictedPoint& residual : residuals)
      if (scatter_class(*residual.point) == kind)
        sources[residual.point->source][residual.point->configuration].push_back(std::log(residual.point->step_ratio) -
                                                                                 residual.log_ratio);
    std::vector<SourceSquare> source_squares;
    double within = prior[kind].degrees * prior[kind].configuration * prior[kind].configuration;
    double within_degrees = prior[kind].degrees;
    for (const auto& [source, configurations] : sources) {
      std::vector<double> errors;
      for (const auto& [configuration, rows] : configurations) errors.push_back(mean(rows));
      double sum = 0.0;
      double around = 0.0;
      for (const double error : errors) {
        sum += error * error;
        around += (error - mean(errors)) * (error - mean(errors));
      }
      const double count = static_cast<double>(errors.size());
      source_squares.push_back({sum / count, chosen_with.count(source) ? kWorthOfChosen : 1.0});
      if (errors.size() < 2) continue;
      within += around / (count - 1.0);  // a source is one observation of this, too
      within_degrees += 1.0;
    }
    FitRecord::Scatter& result = scatter[kind];
    result.degrees = prior[kind].degrees;
    for (const SourceSquare& square : source_squares) result.degrees += square.weight;
    result.total = robust_total(source_squares, prior[kind]);
    result.configuration = std::min(result.total, std::sqrt(within / within_degrees));
    result.source = std::sqrt(std::max(0.0, result.total * result.total - result.configuration * result.configuration));
  }
  return scatter;
}

double band_half_width(const FitRecord::Scatter& scatter, double noise, double share) {
  const boost::math::students_t student(scatter.degrees);
  return boost::math::quantile(student, 0.5 + share / 2.0) * std::hypot(scatter.total, noise);
}

double calibrated_log_ratio(double log_ratio, double measured_log_ratio, double predicted_log_ratio) {
  const double predicted_extra = std::expm1(predicted_log_ratio);
  const double measured_extra = std::expm1(measured_log_ratio);
  // Steps that cost next to nothing more say nothing of a scale: shift them.
  if (predicted_extra < 0.02 || measured_extra < 0.01) return log_ratio + measured_log_ratio - predicted_log_ratio;
  return std::log1p(std::expm1(log_ratio) * measured_extra / predicted_extra);
}

Validation validate(const MeasuredData& data, const FitRecord& shipped, Constants constants) {
  Validation result;
  result.points.resize(data.points.size());
  std::set<std::string> sources;
  for (const MeasuredPoint& point : data.points) sources.insert(point.source);
  std::map<std::string, bool> from_shipped;
  for (const std::string& source : sources) {
    const SourceConstants used = constants == Constants::as_shipped ? shipped_without(source, shipped)
                                                                    : constants_without(source, data, shipped);
    const StepRatioModel model(engines_with(used.state));
    result.record.without[source] = used.state.offset;
    from_shipped[source] = used.from_shipped;
    for (std::size_t i = 0; i < data.points.size(); ++i) {
      if (data.points[i].source != source) continue;
      result.points[i].point = &data.points[i];
      result.points[i].log_ratio = model.log_ratio(data.points[i]);
      result.points[i].from_shipped = used.from_shipped;
    }
  }

  // Bands of a source from the residuals of the others.
  const FitRecord before;  // what is assumed of the scatter without any data
  const std::set<std::string> seen(shipped.sources.begin(), shipped.sources.end());
  for (const std::string& source : sources) {
    std::vector<PredictedPoint> others;
    for (const PredictedPoint& predicted : result.points)
      if (predicted.point->source != source && !(from_shipped[source] && seen.count(predicted.point->source)))
        others.push_back(predicted);
    const auto scatter = constants == Constants::as_shipped
                             ? shipped.scatter
                             : scatter_of(others, seen, from_shipped[source] ? shipped.scatter : before.scatter);
    for (PredictedPoint& predicted : result.points)
      if (predicted.point->source == source)
        predicted.half_width = band_half_width(scatter[scatter_class(*predicted.point)], shipped.noise, 0.8);
  }

  const auto group = [&](const std::string& name, auto belongs) {
    std::vector<const PredictedPoint*> members;
    for (const PredictedPoint& predicted : result.points)
      if (belongs(*predicted.point)) members.push_back(&predicted);
    result.groups.emplace_back(name, figures_of(members));
  };
  group("complete", [](const MeasuredPoint& p) { return p.complete(); });
  group("dense_multi_gpu", [](const MeasuredPoint& p) { return !p.moe && p.multi_gpu; });
  for (std::size_t kind = 0; kind < kScatterClasses; ++kind)
    group(kClassNames[kind], [kind](const MeasuredPoint& p) { return scatter_class(p) == kind; });
  for (const DraftingKind kind : {DraftingKind::head, DraftingKind::parallel, DraftingKind::model, DraftingKind::ngram})
    group(name_of(kind), [kind](const MeasuredPoint& p) { return p.kind == kind; });
  std::set<std::string> names;
  for (const auto& [name, figures] : result.groups) names.insert(name);
  for (const std::string& source : sources)
    group(names.count(source) ? "source " + source : source,
          [&](const MeasuredPoint& p) { return p.source == source; });

  std::vector<const PredictedPoint*> all;
  for (const PredictedPoint& predicted : result.points) all.push_back(&predicted);
  result.overall = figures_of(all);
  std::stable_sort(all.begin(), all.end(), [](const PredictedPoint* a, const PredictedPoint* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  all.resize(std::min<std::size_t>(all.size(), 10));
  result.worst = std::move(all);
  result.calibrated_complete = calibrated_figures(result.points, true);
  result.calibrated_all = calibrated_figures(result.points, false);
  result.record.state = shipped.state;
  result.record.sources.assign(sources.begin(), sources.end());
  result.record.noise = shipped.noise;
  result.record.scatter = scatter_of(result.points, seen, before.scatter);
  return result;
}

}  // namespace draftproof
