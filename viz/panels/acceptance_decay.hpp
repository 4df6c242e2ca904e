// Panel "Acceptance decay": how acceptance falls along a draft, for several drafters, and how many drafts pay.
#pragma once

#include <string>

#include "studies/acceptance/acceptance_decay.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

class AcceptanceDecayPanel final : public SnapshotPanel<AcceptanceDecaySettings, AcceptanceDecaySnapshot> {
 public:
  PanelInfo info() const override {
    return {"acceptance_decay", "Acceptance decay",
            "How does acceptance fall along a draft, and how many drafts pay at a given draft cost?"};
  }
  // Logs and metrics of servers, tables of rates, and results of demo and generate become one more source.
  bool open(const OpenedResult& result) override;

 private:
  void draw_body(Controls& controls, AcceptanceDecaySettings& settings,
                 const AcceptanceDecaySnapshot* snapshot) override;
  void draw_controls(Controls& controls, AcceptanceDecaySettings& settings, const AcceptanceDecaySnapshot* snapshot);
  void draw_sources(Controls& controls, AcceptanceDecaySettings& settings, const AcceptanceDecaySnapshot* snapshot);
  void draw_rates(Controls& controls, const AcceptanceDecaySnapshot& snapshot, ImVec2 size) const;
  void draw_speedup(Controls& controls, const AcceptanceDecaySnapshot& snapshot, ImVec2 size) const;
  void draw_best(Controls& controls, const AcceptanceDecaySnapshot& snapshot, ImVec2 size) const;

  bool conditional_ = false;  // rates given those before, instead of the survival
  bool tokens_ = false;       // tokens of a step, instead of the speedup
  std::string added_;         // text of the field that adds a source
};

}  // namespace draftproof
