// A lesson of a panel: settings that show one thing, and what to watch for.
#pragma once

#include <string>

namespace draftproof {

template <class Settings>
struct Lesson {
  std::string name;   // of `dash --lesson`, unique among all panels
  std::string watch;  // one sentence
  Settings settings;
};

}  // namespace draftproof
