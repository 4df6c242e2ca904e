// Whether steps draft at all, by what steps took on this machine: tokens per second of those that drafted against those
// that did not, for batches of similar size. Used where tokens do not depend on drafts (temperature 0, coupled
// verification), since times are no two runs' the same.
//
// Per class of batch size (1, 2, 3 to 4, 5 to 8, ...): a few steps of each kind, then the better one, with a few steps
// of the other after 32 steps, then 64, and so on up to 512. Sums fade, so that the last 64 steps or so count.
#pragma once

#include <array>
#include <cstdint>

namespace draftproof {

class SpeculationSwitch {
 public:
  // For the next step, of so many requests that decode.
  bool drafts(std::int64_t batch);
  // A step that decodes alone: what it emitted and took. drafted: as drafts() said before it.
  void observe(std::int64_t batch, bool drafted, std::int64_t tokens, std::int64_t ns);

 private:
  struct Steps {
    double tokens = 0.0;
    double ns = 0.0;
    std::int64_t count = 0;
    double per_ns() const { return tokens / ns; }
  };
  struct Class {
    std::array<Steps, 2> steps;    // plain, drafting
    bool drafting = true;          // the kind that is taken
    std::int64_t taken = 0;        // steps of it since the last look at the other
    std::int64_t look_after = 32;  // so many
    std::int64_t looking = 0;      // steps of the other that are still to come
  };
  static constexpr std::size_t kClasses = 24;
  Class& class_of(std::int64_t batch);

  std::array<Class, kClasses> classes_;
};

}  // namespace draftproof
