// The acceptance length of drafts of any form, with how far it may be off: from an operator's figures, from an
// acceptance model, or from what such drafters typically have.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/extrapolation.hpp"
#include "sim/cost/drafter.hpp"
#include "sim/cost/step_ratio.hpp"
#include "sim/import/acceptance_data.hpp"

namespace draftproof {

struct LengthEstimate {
  double length = 1.0;  // tokens of a step that has a draft
  double spread = 0.0;  // standard deviation of its logarithm
};

class AcceptanceEstimate {
 public:
  // Figures of a server. Errors (usage): they have no rates and do not say how many tokens a draft had; `drafts` says
  // it then.
  static AcceptanceEstimate of_data(const AcceptanceData& data, std::optional<std::int32_t> drafts);
  // A model (acceptance_choice.hpp), taken for exact.
  static AcceptanceEstimate of_model(std::shared_ptr<const AcceptanceModel> model, const std::string& text);
  // Medians of published rates of such drafters, as far as its training goes; far less certain.
  static AcceptanceEstimate typical_of(const DrafterShape& drafter);

  // Scales the accepted drafts of a step by `factor`, up to all of them. Lengths only.
  void set_factor(double factor) { factor_ = factor; }

  // Accepted length of a chain or tree with this context.
  LengthEstimate length(const DraftSize& form, std::int32_t context) const;
  // s_1 .. s_depth of chains of `depth` drafts with this context.
  std::vector<double> survival(std::int32_t depth, std::int32_t context) const;
  // Positions whose rates are given, rather than extrapolated. Nothing: a model says them all.
  std::optional<std::int32_t> positions_known() const {
    if (model_) return std::nullopt;
    return static_cast<std::int32_t>(survival_.size());
  }
  // Does a chain of this form reach behind what is given?
  bool extrapolates(const DraftSize& form) const;
  // Does the file say between which bounds its rates lie, and no more?
  bool rates_are_bounds() const { return bounds_; }
  // Can it say anything of trees?
  bool knows_trees() const { return trees_; }
  double draft_share() const { return draft_share_; }  // of the steps, that have a draft
  const std::string& description() const { return description_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  AcceptanceEstimate() = default;
  void set_known_rates(std::vector<double> survival);
  ExtrapolatedSurvival chain_survival(std::int32_t depth) const;
  LengthEstimate known_length(const DraftSize& form, std::int32_t context) const;

  std::string description_;
  std::vector<std::string> notes_;
  double draft_share_ = 1.0;
  bool trees_ = true;
  bool bounds_ = false;
  double spread_ = 0.0;  // of all lengths
  double factor_ = 1.0;
  std::shared_ptr<const AcceptanceModel> model_;  // where set, the lengths are its
  std::vector<double> survival_;                  // else: of the positions that are known, with their standard errors
  std::vector<double> errors_;
  std::optional<double> single_length_;  // else: the length of one form alone
  double single_length_error_ = 0.0;
  DraftSize single_form_;
  DraftTraining training_;  // of typical_of(): drafts beyond it are worse
};

}  // namespace draftproof
