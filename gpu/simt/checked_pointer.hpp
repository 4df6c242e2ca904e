// Global<T> and Shared<T> on the host: a pointer that knows its bounds, whose elements are proxies that tell
// the executor of every access. `p[i]`, `*p`, `p + n`, `&p[i]` and `p == nullptr` are written as for a T*.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gpu/simt/region.hpp"

namespace draftproof::simt {

template <class T>
class Element;

template <class T>
class CheckedPointer {
 public:
  using Value = std::remove_const_t<T>;
  static_assert(std::is_trivially_copyable_v<Value>);

  CheckedPointer() = default;
  CheckedPointer(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as for a T*
  // The elements that lie in the bytes [begin, begin + count * sizeof(T)) of the region.
  CheckedPointer(Region* region, std::uint64_t begin, std::int64_t count)
      : region_(region), begin_(begin), count_(count) {}

  operator CheckedPointer<const T>() const  // NOLINT(google-explicit-constructor): as for a T*
      requires(!std::is_const_v<T>) {
    return CheckedPointer<const T>(region_, begin_, count_) + index_;
  }

  template <std::integral I>
  CheckedPointer operator+(I n) const {
    CheckedPointer moved = *this;
    // Two's complement, as addresses are computed: an index that wraps is found when it is used.
    moved.index_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(index_) + static_cast<std::uint64_t>(n));
    return moved;
  }
  template <std::integral I>
  Element<T> operator[](I n) const {
    return Element<T>(*this + n);
  }
  Element<T> operator*() const { return Element<T>(*this); }
  bool operator==(std::nullptr_t) const { return region_ == nullptr; }

  Value load() const {
    Value value;
    const std::uint64_t at = offset(false);
    if (region_->cells.empty()) {
      std::memcpy(&value, region_->data + at, sizeof(T));
    } else {
      const CheckedAccess access(*region_, at, sizeof(T), Access::read, nullptr);
      std::memcpy(&value, region_->data + at, sizeof(T));
    }
    return value;
  }

  void store(const Value& value) const requires(!std::is_const_v<T>) {
    const std::uint64_t at = offset(true);
    const CheckedAccess access(*region_, at, sizeof(T), Access::write, reinterpret_cast<const std::byte*>(&value));
    std::memcpy(region_->data + at, &value, sizeof(T));
  }

  // Replaces the value by change(value) as one atomic operation; returns what was there.
  template <class Change>
  Value update(Change change) const requires(!std::is_const_v<T>) {
    const std::uint64_t at = offset(true);
    const CheckedAccess access(*region_, at, sizeof(T), Access::atomic, nullptr);
    Value before;
    std::memcpy(&before, region_->data + at, sizeof(T));
    const Value after = change(before);
    std::memcpy(region_->data + at, &after, sizeof(T));
    return before;
  }

  // The same bytes from here on as elements of another type, as by reinterpret_cast; alignment is checked when used.
  template <class U>
  CheckedPointer<U> as() const {
    static_assert(std::is_const_v<U> || !std::is_const_v<T>, "a read-only buffer stays read-only");
    if (region_ == nullptr) return nullptr;
    const std::int64_t here = index_ * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t bytes = count_ * static_cast<std::int64_t>(sizeof(T)) - here;
    return {region_, begin_ + static_cast<std::uint64_t>(here), bytes / static_cast<std::int64_t>(sizeof(U))};
  }

  Region* region() const { return region_; }

 private:
  std::uint64_t offset(bool is_write) const {
    if (region_ == nullptr) null_pointer();
    if (static_cast<std::uint64_t>(index_) >= static_cast<std::uint64_t>(count_)) {
      out_of_bounds(*region_, index_, count_, is_write);
    }
    const std::uint64_t at = begin_ + static_cast<std::uint64_t>(index_) * sizeof(T);
    if (at % alignof(T) != 0) misaligned(*region_, alignof(T));
    return at;
  }

  Region* region_ = nullptr;
  std::uint64_t begin_ = 0;  // bytes
  std::int64_t count_ = 0;   // elements
  std::int64_t index_ = 0;   // elements; may lie outside as long as it is not used
};

// Proxy for p[i]: reads when it is converted, writes when it is assigned.
template <class T>
class Element {
 public:
  using Value = std::remove_const_t<T>;

  explicit Element(const CheckedPointer<T>& at) : at_(at) {}
  Element(const Element&) = default;

  operator Value() const { return at_.load(); }  // NOLINT(google-explicit-constructor): as for a T&
  CheckedPointer<T> operator&() const { return at_; }
  const Element& operator=(const Value& value) const {
    at_.store(value);
    return *this;
  }
  const Element& operator=(const Element& other) const { return *this = static_cast<Value>(other); }
  const Element& operator+=(const Value& value) const { return *this = static_cast<Value>(at_.load() + value); }
  const Element& operator-=(const Value& value) const { return *this = static_cast<Value>(at_.load() - value); }
  const Element& operator|=(const Value& value) const { return *this = static_cast<Value>(at_.load() | value); }
  const Element& operator&=(const Value& value) const { return *this = static_cast<Value>(at_.load() & value); }

 private:
  CheckedPointer<T> at_;
};

}  // namespace draftproof::simt
