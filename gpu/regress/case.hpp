// A regression case: one call with fixed inputs, run once by the reference and then by an executor in several launch
// configurations. Whatever it declares as an output is compared bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/draftproof.h"

namespace draftproof::regress {

// How the elements of an array are read by people.
enum class ElementKind : std::uint8_t { bits, signed_integer, unsigned_integer, floating };

template <class T>
constexpr ElementKind element_kind() {
  if constexpr (std::is_floating_point_v<T>) return ElementKind::floating;
  if constexpr (std::is_integral_v<T>)
    return std::is_signed_v<T> ? ElementKind::signed_integer : ElementKind::unsigned_integer;
  return ElementKind::bits;
}

// An array that a call wrote, copied to the host.
struct Output {
  std::string name;
  std::size_t element_bytes;
  std::vector<std::byte> bytes;
  ElementKind kind = ElementKind::bits;
};

// A call of a case once it has been made: its inputs and its outputs.
using MadeCall = std::variant<const draftproof_mass_pass_arguments*, const draftproof_guidance_arguments*,
                              const draftproof_sample_arguments*, const draftproof_logprobs_arguments*,
                              const draftproof_verify_arguments*, const draftproof_tree_mask_arguments*>;
using CallObserver = std::function<void(const MadeCall&)>;

// The memory and the settings of one run of one case. Every array lies between guard words.
class CaseRun {
 public:
  CaseRun(device::DeviceMemory& memory, const draftproof_settings& settings, CallObserver observer = {})
      : memory_(memory), settings_(settings), observer_(std::move(observer)) {}
  ~CaseRun();
  CaseRun(const CaseRun&) = delete;
  CaseRun& operator=(const CaseRun&) = delete;

  const draftproof_settings& settings() const { return settings_; }

  // An array that the call only reads. An empty one is a pointer that must not be followed.
  template <class T>
  const T* input(const std::vector<T>& values) {
    return static_cast<const T*>(add("input", sizeof(T), values.size(), values.data(), false, element_kind<T>()));
  }
  // The same of an array that a call may lack: NULL where it is empty.
  template <class T>
  const T* optional(const std::vector<T>& values) {
    return values.empty() ? nullptr : input(values);
  }
  // Rows [rows, row_stride] of floats in another element type, each rounded to nearest.
  draftproof_rows rows(std::span<const float> values, std::int64_t row_stride, std::int32_t dtype);

  // Arrays that are compared. An output holds other bytes for every executor before the call, so that what nobody
  // writes differs.
  template <class T>
  T* output(const std::string& name, std::int64_t count) {
    return static_cast<T*>(add(name, sizeof(T), static_cast<std::size_t>(count), nullptr, true, element_kind<T>()));
  }
  template <class T>
  T* in_out(const std::string& name, const std::vector<T>& values) {
    return static_cast<T*>(add(name, sizeof(T), values.size(), values.data(), true, element_kind<T>()));
  }
  void* workspace(std::int64_t bytes);

  // Runs an operation with the workspace that it asks for.
  template <class Arguments>
  void call(Arguments& arguments, std::int64_t (*workspace_bytes)(const Arguments&),
            void (*operation)(const Arguments&, const draftproof_settings&)) {
    arguments.workspace_bytes = workspace_bytes(arguments);
    arguments.workspace = workspace(arguments.workspace_bytes);
    call(arguments, operation);
  }
  // One that needs none.
  template <class Arguments>
  void call(const Arguments& arguments, void (*operation)(const Arguments&, const draftproof_settings&)) {
    operation(arguments, settings_);
    if (observer_) observer_(&arguments);
  }

  // Copies of all outputs in the order in which they were declared. Error (internal) naming an array whose guard words
  // are damaged.
  std::vector<Output> outputs();

 private:
  struct Array {
    std::string name;
    std::size_t element_bytes;
    std::size_t bytes;
    bool is_output;
    ElementKind kind;
    std::byte* begin;  // of the allocation: guard, array, guard
  };

  void* add(const std::string& name, std::size_t element_bytes, std::size_t count, const void* values, bool is_output,
            ElementKind kind);
  void allow_guards(const Array& array, bool allowed) const;

  device::DeviceMemory& memory_;
  draftproof_settings settings_;
  CallObserver observer_;
  std::vector<Array> arrays_;
};

// The inputs of a case: made before, or when it is first run, so that who lists cases need not wait for them.
template <class Inputs>
class LateInputs {
 public:
  explicit LateInputs(std::function<Inputs()> make) : shared_(std::make_shared<Shared>()) {
    shared_->make = std::move(make);
  }
  explicit LateInputs(Inputs inputs) : shared_(std::make_shared<Shared>()) { shared_->inputs = std::move(inputs); }

  const Inputs& operator*() const {
    std::call_once(shared_->once, [&] {
      if (shared_->make) shared_->inputs = shared_->make();
    });
    return shared_->inputs;
  }

 private:
  struct Shared {
    std::once_flag once;
    std::function<Inputs()> make;
    Inputs inputs;
  };
  std::shared_ptr<Shared> shared_;
};

struct RegressCase {
  std::string name;  // operation/what is special/V.../B...: unique, without spaces
  std::function<void(CaseRun&)> run;
  std::vector<int> block_threads = {0};    // the launch configurations it is run in
  bool host_only = false;                  // takes memory that only a host can map
  std::optional<std::uint64_t> seed = {};  // a random call: of its arguments and of the executor's order
};

}  // namespace draftproof::regress
