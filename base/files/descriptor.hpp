// An open file of the system, closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace draftproof {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  int value() const { return value_; }
  bool is_open() const { return value_ >= 0; }

 private:
  int value_ = -1;
};

}  // namespace draftproof
