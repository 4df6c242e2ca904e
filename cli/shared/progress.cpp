#include "cli/shared/progress.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <utility>

#include "cli/shared/terminal.hpp"

namespace draftproof {
namespace {

constexpr std::chrono::milliseconds kBarInterval{100};
constexpr std::chrono::milliseconds kLineInterval{30'000};
constexpr int kLineColumns = 120;
constexpr int kBarColumns = 24;

// Three significant digits with k, M or G: rates are read at a glance, not to the last digit.
std::string short_rate(double value) {
  static constexpr std::array<const char*, 4> kSuffixes = {"", "k", "M", "G"};
  std::size_t thousands = 0;
  while (value >= 999.5 && thousands + 1 < kSuffixes.size()) {
    value /= 1000.0;
    ++thousands;
  }
  std::array<char, 48> text{};
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f%s", decimals, value, kSuffixes.at(thousands));
  return text.data();
}

std::string short_duration(double seconds) {
  constexpr double kLongest = 359999.0;  // 99:59:59
  const int whole = static_cast<int>(std::lround(std::min(seconds, kLongest)));
  std::array<char, 48> text{};
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%d:%02d", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return text.data();
}

}  // namespace

std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total, const std::string& unit,
                          double elapsed_s, int columns) {
  std::string line = label;
  const double rate_per_s = elapsed_s > 0.0 ? static_cast<double>(done) / elapsed_s : 0.0;
  if (total > 0) {
    done = std::min(done, total);
    const double share = static_cast<double>(done) / static_cast<double>(total);
    const int filled = static_cast<int>(share * kBarColumns);
    const int percent = static_cast<int>(share * 100.0);
    line += " [" + std::string(static_cast<std::size_t>(filled), '#') +
            std::string(static_cast<std::size_t>(kBarColumns - filled), '.') + "] " + std::to_string(percent) + " %";
  } else {
    line += " " + std::to_string(done) + " " + unit;
  }
  if (rate_per_s > 0.0) {
    line += ", " + short_rate(rate_per_s) + " " + unit + "/s";
    if (total > 0) line += ", " + short_duration(static_cast<double>(total - done) / rate_per_s) + " left";
  }
  return line.substr(0, static_cast<std::size_t>(std::max(columns, 1)));
}

Progress::Progress(std::string label, std::uint64_t total, std::string unit, const std::string& kept)
    : Progress(std::move(label), total, std::move(unit), std::cerr, is_terminal(2),
               is_terminal(2) ? kBarInterval : kLineInterval) {
  if (!kept.empty())
    kept_.emplace(SignalNote{(is_bar_ ? "\r\033[K" : "") + std::string("draftproof: interrupted; ") + kept + "\n"});
}

Progress::Progress(std::string label, std::uint64_t total, std::string unit, std::ostream& out, bool is_bar,
                   std::chrono::milliseconds interval)
    : label_(std::move(label)),
      total_(total),
      unit_(std::move(unit)),
      out_(out),
      is_bar_(is_bar),
      interval_(interval),
      start_(Clock::now()),
      next_draw_((start_ + interval).time_since_epoch().count()) {}

Progress::~Progress() {
  if (is_bar_) out_ << "\r\033[K" << std::flush;
}

void Progress::advance(std::uint64_t count) {
  done_ += count;
  const auto now = Clock::now();
  if (now.time_since_epoch().count() < next_draw_) return;
  // One thread draws; the others go on working.
  const std::unique_lock<std::mutex> lock(drawing_, std::try_to_lock);
  if (lock.owns_lock()) draw(now);
}

void Progress::say(const std::string& line) {
  const std::lock_guard lock(drawing_);
  out_ << (is_bar_ ? "\r\033[K" : "") << line << std::endl;
}

void Progress::draw(Clock::time_point now) {
  next_draw_ = (now + interval_).time_since_epoch().count();
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  // The last column stays empty, so that no terminal wraps the line.
  const int columns = is_bar_ ? terminal_columns(2) - 1 : kLineColumns;
  out_ << (is_bar_ ? "\r" : "") << progress_line(label_, done_, total_, unit_, elapsed_s, columns)
       << (is_bar_ ? "\033[K" : "\n") << std::flush;
}

}  // namespace draftproof
