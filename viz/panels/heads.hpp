// Panel "Heads": a drafting head measured on its target.
#pragma once

#include <optional>
#include <string>

#include "studies/heads/heads.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

class HeadsPanel final : public SnapshotPanel<HeadsSettings, HeadsSnapshot> {
 public:
  // Opens with the repository's head, where its target has been fetched.
  HeadsPanel();

  PanelInfo info() const override {
    return {
        "heads", "Heads",
        "How far does a drafting head's state drift, what is accepted at each slot, and does its confidence say so?",
        40};
  }
  // The file of a head.
  bool open(const OpenedResult& result) override;

 private:
  struct Choice {
    std::int64_t prompt, step;
  };

  void draw_body(Controls& controls, HeadsSettings& settings, const HeadsSnapshot* snapshot) override;
  static void draw_settings(Controls& controls, HeadsSettings& settings);
  static void draw_summary(const HeadsSnapshot& snapshot);
  static void draw_acceptance(Controls& controls, const HeadsSnapshot& snapshot, ImVec2 size);
  void plot_drift(const HeadsSnapshot& snapshot, ImVec2 plot) const;
  static void plot_reliability(const HeadsSnapshot& snapshot, const Reliability& shown, ImVec2 plot);
  void draw_drift(Controls& controls, const HeadsSnapshot& snapshot, ImVec2 size);
  void draw_reliability(Controls& controls, const HeadsSnapshot& snapshot, ImVec2 size);
  std::optional<Choice> draw_drafts(Controls& controls, const HeadsSnapshot& snapshot);
  void choose(const HeadsSnapshot& snapshot, HeadsSettings& settings, const Choice& choice);

  bool relative_l2_ = false;  // instead of the cosine
  std::int64_t slot_ = 0;     // of the reliability diagram; 0: all
  const HeadStep* scrolled_to_ = nullptr;
};

}  // namespace draftproof
