// Interface of a panel to the dashboard, and what all of them share: a worker that computes, settings that controls
// edit.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "studies/figures/table.hpp"
#include "studies/lessons.hpp"
#include "studies/opened_result.hpp"
#include "studies/worker.hpp"
#include "viz/panels/controls.hpp"
#include "viz/panels/lesson_choice.hpp"

namespace draftproof {

struct PanelInfo {
  const char* name;          // of --panel, as "distribution_lab"
  const char* title;         // of its tab
  const char* question;      // that it answers, in one sentence
  float least_width_em = 0;  // below it says that it needs a wider screen
};

class Panel {
 public:
  Panel() = default;
  virtual ~Panel() = default;
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;

  virtual PanelInfo info() const = 0;
  // The controls and what was computed, into the current window. Computes nothing: that is for worker threads.
  virtual void draw(Controls& controls) = 0;

  virtual WorkerState state() const = 0;
  virtual void cancel() = 0;
  // Waits for what the controls ask for, so that snapshot() is a function of the settings. For tests, screenshots and
  // replays, never for a window.
  virtual void settle() = 0;

  // The subcommand that prints what is shown: its arguments, beginning with "draftproof".
  virtual std::vector<std::string> command() const = 0;
  // Exports of what is shown now; null, no rows and no script before the first snapshot.
  virtual nlohmann::ordered_json snapshot() const = 0;
  virtual Table table() const = 0;
  virtual std::string figure_script() const = 0;  // for gnuplot

  // Settings that each show one thing: their names, and the panel with those of one. False where it has no such lesson.
  virtual std::vector<std::string> lesson_names() const = 0;
  virtual bool begin_lesson(const std::string& name) = 0;

  // Shows a result that the program wrote, or a file of somebody's. False for what is not this panel's; Error naming
  // the file for what is, and broken: then the panel stays as it was.
  virtual bool open(const OpenedResult&) { return false; }
};

// A panel whose snapshot is a function of its settings. For both types, studies/<panel>.hpp has compute(), to_json(),
// to_table(), to_figure() and command_arguments(); studies/lessons.hpp has lessons() of the settings.
template <class Settings, class Snapshot>
class SnapshotPanel : public Panel {
 public:
  explicit SnapshotPanel(Settings initial = {})
      : settings_(std::move(initial)),
        worker_([](const Settings& settings, Job& job, const typename Worker<Settings, Snapshot>::Publish& publish) {
          compute(settings, job, publish);
        }) {}

  void draw(Controls& controls) final {
    take_latest();
    draw_lesson(controls);
    draw_body(controls, settings_, shown_.get());
    ask_if_changed();
  }

  std::vector<std::string> lesson_names() const final {
    std::vector<std::string> names;
    for (const auto& lesson : lessons(settings_)) names.push_back(lesson.name);
    return names;
  }
  bool begin_lesson(const std::string& name) final {
    for (const auto& lesson : lessons(settings_)) {
      if (lesson.name != name) continue;
      settings_ = lesson.settings;
      return true;
    }
    return false;
  }

  WorkerState state() const final { return worker_.state(); }
  void cancel() final { worker_.cancel(); }
  void settle() final {
    ask_if_changed();
    worker_.settle();
    take_latest();
  }

  std::vector<std::string> command() const final { return command_arguments(shown_ ? shown_->settings : settings_); }
  nlohmann::ordered_json snapshot() const final { return shown_ ? to_json(*shown_) : nlohmann::ordered_json(); }
  Table table() const final { return shown_ ? to_table(*shown_) : Table{}; }
  std::string figure_script() const final { return shown_ ? to_figure(*shown_) : std::string(); }

  // For what draws, and for tests. Null before the first.
  const Snapshot* shown() const { return shown_.get(); }
  const Settings& settings() const { return settings_; }
  // As the controls would; the next frame asks for a snapshot.
  void set(Settings settings) { settings_ = std::move(settings); }
  // A snapshot that was not computed here, as of a file, whose settings the controls take over.
  void show(Snapshot snapshot) {
    settings_ = snapshot.settings;
    requested_ = std::make_unique<Settings>(settings_);
    worker_.show(std::move(snapshot));
    take_latest();
  }

 protected:
  // `snapshot` is null until there is one.
  virtual void draw_body(Controls& controls, Settings& settings, const Snapshot* snapshot) = 0;

 private:
  void draw_lesson(Controls& controls) {
    std::string current = kOwnSettings;
    for (const auto& lesson : lessons(settings_)) {
      if (!(lesson.settings == settings_)) continue;
      current = lesson.name;
      watch_ = lesson.watch;
      break;
    }
    if (const auto chosen = draw_lesson_choice(controls, lesson_names(), current, watch_)) begin_lesson(*chosen);
  }
  void take_latest() { shown_ = worker_.latest(); }
  void ask_if_changed() {
    if (requested_ && *requested_ == settings_) return;
    requested_ = std::make_unique<Settings>(settings_);
    worker_.request(settings_);
  }

  Settings settings_;
  std::string watch_;  // of the lesson that was shown last
  std::unique_ptr<Settings> requested_;
  std::shared_ptr<const Snapshot> shown_;
  Worker<Settings, Snapshot> worker_;
};

}  // namespace draftproof
