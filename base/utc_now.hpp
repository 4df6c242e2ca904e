// The time of day, for records of runs.
#pragma once

#include <array>
#include <ctime>
#include <string>

namespace draftproof {

// "2026-11-29 06:07 UTC".
inline std::string utc_now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", gmtime_r(&seconds, &time));
  return text.data();
}

}  // namespace draftproof
