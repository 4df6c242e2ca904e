// Panel "Speculate": a model writes, with and without speculation, on one time axis.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/speculate/speculate.hpp"
#include "viz/panels/panel.hpp"
#include "viz/panels/playback.hpp"
#include "viz/panels/token_text.hpp"

namespace draftproof {

class SpeculatePanel final : public SnapshotPanel<SpeculateSettings, SpeculateSnapshot> {
 public:
  // Opens with the first lesson on this model.
  explicit SpeculatePanel(const std::string& model = standard_model());

  PanelInfo info() const override;
  // A result of draftproof demo is run again.
  bool open(const OpenedResult& result) override;

  // State of the last frame.
  const Playback& playback() const { return playback_; }
  const SpeculateView& view() const { return view_; }
  const std::string& note() const { return note_; }

 private:
  void draw_body(Controls& controls, SpeculateSettings& settings, const SpeculateSnapshot* snapshot) override;
  void draw_settings(Controls& controls, SpeculateSettings& settings);
  void draw_more_settings(Controls& controls, SpeculateSettings& settings);
  void draw_playback(Controls& controls, const SpeculateSnapshot* snapshot);
  void draw_large_numbers(const SpeculateSnapshot& snapshot) const;
  void draw_counters(const SpeculateSnapshot& snapshot) const;
  void draw_text(Controls& controls, const char* name, TokenText& text, const SpeculateLane& lane, std::size_t steps,
                 ImVec2 size);
  std::size_t number_of_step(const SpeculateSnapshot& snapshot) const;
  void draw_step(Controls& controls, const SpeculateSnapshot& snapshot, ImVec2 size) const;
  void draw_acceptance(Controls& controls, const SpeculateSnapshot& snapshot, ImVec2 size) const;
  void take_step(const SpeculateSnapshot& snapshot, int direction);
  void check_demo(const SpeculateSnapshot& snapshot);

  Playback playback_;
  std::string pace_;
  SpeculateView view_;
  SpeculateSettings shown_settings_;
  std::int64_t fitted_ns_ = 0;  // what the time axis was fitted to
  bool shows_more_ = false;
  bool is_low_ = false;  // too low a window for texts, draft and acceptance at once
  bool shows_plain_text_ = false;
  bool shows_acceptance_ = false;
  std::optional<DemoSettings> demo_;  // that was opened, until it is known whether it gives its text
  std::string note_;
  TokenText plain_text_;
  TokenText speculation_text_;
};

}  // namespace draftproof
