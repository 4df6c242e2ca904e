// Panel "Tree explorer": a draft tree with its probabilities, its mask, its verification step by step, and other trees
// of the same cost.
#pragma once

#include <cstdint>

#include "studies/tree/tree_explorer.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

// How far a walk has been shown.
struct WalkPlayback {
  std::int64_t step = 0;  // decisions that have been taken, 0 .. the walk's length
  bool playing = false;
  double waited_s = 0.0;  // since the step before

  // A frame later: while it plays, one step after the other, up to the end.
  void advance(double wall_s, std::int64_t length);
};

class TreeExplorerPanel final : public SnapshotPanel<TreeExplorerSettings, TreeExplorerSnapshot> {
 public:
  PanelInfo info() const override {
    return {"tree_explorer", "Tree explorer",
            "What does a draft tree look like, how is it verified, and is it better than a chain of the same cost?",
            40};
  }
  const WalkPlayback& playback() const { return playback_; }

 private:
  void draw_body(Controls& controls, TreeExplorerSettings& settings, const TreeExplorerSnapshot* snapshot) override;
  void draw_controls(Controls& controls, TreeExplorerSettings& settings);
  void draw_playback(Controls& controls, const TreeExplorerSnapshot& snapshot);
  void draw_walk(Controls& controls, const TreeExplorerSnapshot& snapshot) const;

  WalkPlayback playback_;
  const TreeExplorerSnapshot* seen_ = nullptr;  // whose walk is played back; compared, never followed
};

}  // namespace draftproof
