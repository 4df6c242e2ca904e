// Arrays from Python as views: nothing is copied, and the module keeps what they refer to alive.
//
// The Python half of the module brings every array into the dtype that is asked for here, with messages that name the
// argument; these functions hold the same again, so that no array can make the library read outside of it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "reference/step/request.hpp"

namespace draftproof::python {

namespace nb = nanobind;

// Arguments of one call, read by name; views stay valid as long as the object lives.
class Arguments {
 public:
  explicit Arguments(nb::dict values) : values_(std::move(values)) {}

  bool has(const char* name) const { return values_.contains(name) && !values_[name].is_none(); }

  // A contiguous array [n] of elements of type T; empty where it is absent. Error (usage): another dtype or form.
  template <class T>
  std::span<const T> vector(const char* name) {
    if (!has(name)) return {};
    using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    Array array;
    if (!nb::try_cast<Array>(values_[name], array, false))
      throw usage_error(name, "has another dtype or form; expected a contiguous array of one dimension, here " +
                                  std::to_string(8 * sizeof(T)) + " bits an element");
    if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) != 0)
      throw usage_error(name, "is not aligned; expected whole elements of memory");
    const std::span<const T> view(array.data(), array.size());
    kept_.push_back(nb::cast(array));
    return view;
  }
  template <class T>
  std::span<const T> vector(const char* name, std::size_t size) {
    const std::span<const T> view = vector<T>(name);
    if (has(name) && view.size() != size)
      throw usage_error(name, "has " + std::to_string(view.size()) + " elements; expected " + std::to_string(size));
    return view;
  }

  // Rows [n, V] of f32, f16 or bf16 (with `f64` of doubles too), each contiguous, one after the other at any distance,
  // also 0. Error (usage): anything else.
  RowMatrix rows(const char* name);

  std::string text(const char* name, const std::string& standard) const {
    return scalar<std::string>(name, standard, "text");
  }
  std::int64_t integer(const char* name, std::int64_t standard) const {
    return scalar<std::int64_t>(name, standard, "a whole number of 64 bits");
  }
  double number(const char* name, double standard) const { return scalar<double>(name, standard, "a number"); }
  bool flag(const char* name, bool standard) const { return scalar<bool>(name, standard, "True or False"); }
  int threads() const { return static_cast<int>(std::clamp<std::int64_t>(integer("threads", 1), 1, 1024)); }

 private:
  template <class T>
  T scalar(const char* name, const T& standard, const char* expected) const {
    T value{};
    if (!has(name)) return standard;
    if (!nb::try_cast<T>(values_[name], value))
      throw usage_error(name, "is " + type_of(values_[name]) + "; expected " + expected);
    return value;
  }
  static std::string type_of(nb::handle value) { return nb::cast<std::string>(value.type().attr("__name__")); }

  nb::dict values_;
  std::vector<nb::object> kept_;
};

// A numpy array that takes the vector's memory.
template <class T>
nb::object array_of(std::vector<T> values, std::vector<std::size_t> shape) {
  auto* const held = new std::vector<T>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), shape.size(), shape.data(), owner));
}
template <class T>
nb::object array_of(std::vector<T> values) {
  const std::size_t size = values.size();
  return array_of(std::move(values), {size});
}

}  // namespace draftproof::python
