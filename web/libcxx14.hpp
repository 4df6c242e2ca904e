// Included before every source of the page: what the C++20 library of Debian's Emscripten (3.1.6, libc++ 14) lacks, as
// far as our sources use it. An algorithm of std::ranges takes a range, not an iterator and a sentinel, but where both
// are used below.
#pragma once
#ifdef __cplusplus

#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

template <class Order>
constexpr bool is_neq(Order order) noexcept {
  return order != 0;
}

// A page has one thread: what another would do is done where it is started.
class jthread {
 public:
  jthread() = default;
  template <class Function, class... Arguments>
  explicit jthread(Function&& function, Arguments&&... arguments) {
    std::invoke(std::forward<Function>(function), std::forward<Arguments>(arguments)...);
  }
  void join() {}
  bool joinable() const { return false; }
};

template <class Value>
class atomic_ref {
 public:
  explicit atomic_ref(Value& value) : value_(value) {}
  void store(Value value, memory_order = memory_order_seq_cst) const { value_ = value; }
  Value load(memory_order = memory_order_seq_cst) const { return value_; }

 private:
  Value& value_;
};

// strtod reads "inf", hexadecimal digits and white space too; from_chars does not.
template <class Float>
requires is_floating_point_v<Float>
inline from_chars_result from_chars(const char* first, const char* last, Float& value,
                                    chars_format = chars_format::general) {
  const string text(first, last);
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '-' || text[0] == '.'))
    return {first, errc::invalid_argument};
  char* end = nullptr;
  Float read;
  if constexpr (sizeof(Float) == 4)
    read = strtof(text.c_str(), &end);
  else
    read = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  if (isinf(read)) return {first + (end - text.c_str()), errc::result_out_of_range};
  value = read;
  return {first + (end - text.c_str()), errc{}};
}

// The fewest digits that read back as the same number; fixed where that is not longer than scientific.
template <class Float>
requires is_floating_point_v<Float>
inline to_chars_result to_chars(char* first, char* last, Float value) {
  string out;
  if (isnan(value)) {
    out = signbit(value) ? "-nan" : "nan";
  } else if (isinf(value)) {
    out = value < 0 ? "-inf" : "inf";
  } else {
    char text[400];
    for (int precision = 0; precision < 17; ++precision) {
      snprintf(text, sizeof text, "%.*e", precision, static_cast<double>(value));
      Float read;
      if constexpr (sizeof(Float) == 4)
        read = strtof(text, nullptr);
      else
        read = strtod(text, nullptr);
      if (read == value) break;
    }
    const string scientific = text;
    const auto letter = scientific.find('e');
    const int exponent = atoi(scientific.c_str() + letter + 1);
    string digits;
    for (const char c : scientific.substr(0, letter))
      if (c >= '0' && c <= '9') digits += c;
    const int count = static_cast<int>(digits.size());
    string fixed = signbit(value) ? "-" : "";
    if (exponent < 0) {
      fixed += "0." + string(static_cast<size_t>(-exponent - 1), '0') + digits;
    } else if (count <= exponent + 1) {
      snprintf(text, sizeof text, "%.0f", fabs(static_cast<double>(value)));
      fixed += text;
    } else {
      const auto whole = static_cast<size_t>(exponent + 1);
      fixed += digits.substr(0, whole) + "." + digits.substr(whole);
    }
    out = fixed.size() <= scientific.size() ? fixed : scientific;
  }
  if (static_cast<ptrdiff_t>(out.size()) > last - first) return {last, errc::value_too_large};
  memcpy(first, out.data(), out.size());
  return {first + out.size(), errc{}};
}

namespace ranges {

template <class Range>
concept any_range = requires(Range& range) {
  std::begin(range);
  std::end(range);
};
template <class Iterator>
concept any_iterator = !any_range<Iterator> && requires(Iterator iterator) {
  *iterator;
  ++iterator;
};
struct less_than {
  template <class A, class B>
  constexpr bool operator()(A&& a, B&& b) const {
    return a < b;
  }
};
struct equal_to_any {
  template <class A, class B>
  constexpr bool operator()(A&& a, B&& b) const {
    return a == b;
  }
};
// `compare` of what `of` makes of both.
template <class Compare, class Of>
struct compare_by {
  Compare compare;
  Of of;
  template <class A, class B>
  bool operator()(A&& a, B&& b) {
    return std::invoke(compare, std::invoke(of, a), std::invoke(of, b));
  }
};
template <class In, class Out>
struct copied {
  In in;
  Out out;
};
template <class Iterator>
struct rest {
  Iterator first, last;
  constexpr Iterator begin() const { return first; }
  constexpr Iterator end() const { return last; }
};
template <class First, class Second>
struct mismatched {
  First in1;
  Second in2;
};

// clang-format off
template <any_iterator I, class S, class T, class Of = identity> requires requires(I i, S end) { i != end; }
constexpr I find(I i, S end, const T& value, Of of = {}) { for (; i != end; ++i) if (std::invoke(of, *i) == value) break; return i; }
template <any_range R, class T, class Of = identity>
constexpr auto find(R&& range, const T& value, Of of = {}) { return ranges::find(std::begin(range), std::end(range), value, of); }
template <any_iterator I, class S, class Is, class Of = identity> requires requires(I i, S end) { i != end; }
constexpr I find_if(I i, S end, Is is, Of of = {}) { for (; i != end; ++i) if (std::invoke(is, std::invoke(of, *i))) break; return i; }
template <any_range R, class Is, class Of = identity>
constexpr auto find_if(R&& range, Is is, Of of = {}) { return ranges::find_if(std::begin(range), std::end(range), is, of); }
template <any_range R, class Is, class Of = identity>
constexpr bool any_of(R&& range, Is is, Of of = {}) { return ranges::find_if(range, is, of) != std::end(range); }
template <any_range R, class Is, class Of = identity>
constexpr bool none_of(R&& range, Is is, Of of = {}) { return ranges::find_if(range, is, of) == std::end(range); }
template <any_range R, class Is, class Of = identity>
constexpr bool all_of(R&& range, Is is, Of of = {}) { for (auto&& x : range) if (!std::invoke(is, std::invoke(of, x))) return false; return true; }
template <any_range R, class T, class Of = identity>
constexpr auto count(R&& range, const T& value, Of of = {}) { ptrdiff_t n = 0; for (auto&& x : range) n += std::invoke(of, x) == value; return n; }
template <any_range R, class Is, class Of = identity>
constexpr auto count_if(R&& range, Is is, Of of = {}) { ptrdiff_t n = 0; for (auto&& x : range) n += static_cast<bool>(std::invoke(is, std::invoke(of, x))); return n; }
template <any_range R, class C = less_than, class Of = identity>
constexpr void sort(R&& range, C compare = {}, Of of = {}) { std::sort(std::begin(range), std::end(range), compare_by<C, Of>{compare, of}); }
template <any_iterator I, class S, class C = less_than, class Of = identity> requires requires(I i, S end) { i != end; }
constexpr void sort(I begin, S end, C compare = {}, Of of = {}) { std::sort(begin, end, compare_by<C, Of>{compare, of}); }
template <any_range R, class C = less_than, class Of = identity>
constexpr void stable_sort(R&& range, C compare = {}, Of of = {}) { std::stable_sort(std::begin(range), std::end(range), compare_by<C, Of>{compare, of}); }
template <any_range R, class I, class C = less_than, class Of = identity>
constexpr void nth_element(R&& range, I nth, C compare = {}, Of of = {}) { std::nth_element(std::begin(range), nth, std::end(range), compare_by<C, Of>{compare, of}); }
template <any_range R, class C = less_than, class Of = identity>
constexpr auto max_element(R&& range, C compare = {}, Of of = {}) { return std::max_element(std::begin(range), std::end(range), compare_by<C, Of>{compare, of}); }
template <any_range R, class C = less_than, class Of = identity>
constexpr auto min_element(R&& range, C compare = {}, Of of = {}) { return std::min_element(std::begin(range), std::end(range), compare_by<C, Of>{compare, of}); }
template <any_range R, class C = less_than, class Of = identity>
constexpr auto max(R&& range, C compare = {}, Of of = {}) { return *ranges::max_element(range, compare, of); }
template <any_range R, class C = less_than, class Of = identity>
constexpr auto min(R&& range, C compare = {}, Of of = {}) { return *ranges::min_element(range, compare, of); }
template <any_range R, class T, class C = less_than, class Of = identity>
constexpr auto lower_bound(R&& range, const T& value, C compare = {}, Of of = {}) {
  return std::lower_bound(std::begin(range), std::end(range), value, [&](auto&& a, const T& b) { return std::invoke(compare, std::invoke(of, a), b); });
}
template <any_range R, class T, class C = less_than, class Of = identity>
constexpr auto upper_bound(R&& range, const T& value, C compare = {}, Of of = {}) {
  return std::upper_bound(std::begin(range), std::end(range), value, [&](const T& a, auto&& b) { return std::invoke(compare, a, std::invoke(of, b)); });
}
template <any_range R, class T, class C = less_than, class Of = identity>
constexpr bool binary_search(R&& range, const T& value, C compare = {}, Of of = {}) {
  const auto at = ranges::lower_bound(range, value, compare, of);
  return at != std::end(range) && !std::invoke(compare, value, std::invoke(of, *at));
}
template <any_range R, class Is, class Of = identity>
constexpr auto partition_point(R&& range, Is is, Of of = {}) {
  return std::partition_point(std::begin(range), std::end(range), [&](auto&& x) { return std::invoke(is, std::invoke(of, x)); });
}
template <any_range R, class E = equal_to_any>
constexpr auto adjacent_find(R&& range, E equal = {}) { return std::adjacent_find(std::begin(range), std::end(range), equal); }
template <any_range R, class O>
constexpr auto copy(R&& range, O out) { for (auto&& x : range) { *out = x; ++out; } return copied<decltype(std::end(range)), O>{std::end(range), out}; }
template <any_range R, class O, class F>
constexpr auto transform(R&& range, O out, F f) { for (auto&& x : range) { *out = std::invoke(f, x); ++out; } return copied<decltype(std::end(range)), O>{std::end(range), out}; }
template <any_range R, class S>
constexpr auto mismatch(R&& a, S&& b) { auto [x, y] = std::mismatch(std::begin(a), std::end(a), std::begin(b), std::end(b)); return mismatched<decltype(x), decltype(y)>{x, y}; }
template <any_range R, class S>
constexpr bool equal(R&& a, S&& b) { return std::equal(std::begin(a), std::end(a), std::begin(b), std::end(b)); }
template <any_range R, class T>
constexpr auto fill(R&& range, const T& value) { std::fill(std::begin(range), std::end(range), value); return std::end(range); }
template <any_range R, class I, class C = less_than, class Of = identity>
constexpr void partial_sort(R&& range, I middle, C compare = {}, Of of = {}) { std::partial_sort(std::begin(range), middle, std::end(range), compare_by<C, Of>{compare, of}); }
template <any_range R>
constexpr auto unique(R&& range) { return rest<decltype(std::begin(range))>{std::unique(std::begin(range), std::end(range)), std::end(range)}; }
template <any_range R>
constexpr void reverse(R&& range) { std::reverse(std::begin(range), std::end(range)); }
template <any_range R, class T, class U>
constexpr void replace(R&& range, const T& a, const U& b) { std::replace(std::begin(range), std::end(range), a, b); }
// clang-format on

}  // namespace ranges

// Whole numbers, for loops.
namespace views {
template <class Number>
auto iota(Number begin, Number end) {
  struct Iterator {
    Number value;
    Number operator*() const { return value; }
    Iterator& operator++() {
      ++value;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return value != other.value; }
  };
  struct Numbers {
    Number from, until;
    Iterator begin() const { return {from}; }
    Iterator end() const { return {until}; }
  };
  return Numbers{begin, end};
}
}  // namespace views

}  // namespace std

// A signal handler that no page calls reads a folder with it.
#ifndef __syscall_getdents64
#define __syscall_getdents64 0
#endif
extern "C" inline long syscall(long, ...) {
  errno = ENOSYS;
  return -1;
}
#endif
