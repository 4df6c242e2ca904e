#include "gpu/regress/case.hpp"

#include <sanitizer/asan_interface.h>

#include <algorithm>

#include "base/error.hpp"

namespace draftproof::regress {
namespace {

constexpr std::size_t kGuardBytes = 256;  // a multiple of every alignment
constexpr std::byte kGuard{0x6b};

// Fill of an executor's outputs before a call; the reference's differs, so that two unwritten arrays differ.
std::byte unwritten(std::int32_t executor) {
  return executor == DRAFTPROOF_REFERENCE ? std::byte{0xa5} : std::byte{0x5a};
}

}  // namespace

CaseRun::~CaseRun() {
  for (const Array& array : arrays_) {
    allow_guards(array, true);
    memory_.release(array.begin);
  }
}

// With the address sanitizer, a read of a guard on the host is an error.
void CaseRun::allow_guards([[maybe_unused]] const Array& array, [[maybe_unused]] bool allowed) const {
  if (settings_.executor == DRAFTPROOF_CUDA) return;
  for ([[maybe_unused]] const std::byte* const guard : {array.begin, array.begin + kGuardBytes + array.bytes}) {
    if (allowed) {  // NOLINT(bugprone-branch-clone): nothing without the sanitizer
      ASAN_UNPOISON_MEMORY_REGION(guard, kGuardBytes);
    } else {
      ASAN_POISON_MEMORY_REGION(guard, kGuardBytes);
    }
  }
}

void* CaseRun::add(const std::string& name, std::size_t element_bytes, std::size_t count, const void* values,
                   bool is_output, ElementKind kind) {
  const std::size_t bytes = element_bytes * count;
  std::vector<std::byte> image(bytes + 2 * kGuardBytes, kGuard);
  std::byte* const inside = image.data() + kGuardBytes;
  if (values != nullptr) {
    std::copy_n(static_cast<const std::byte*>(values), bytes, inside);
  } else {
    std::fill_n(inside, bytes, unwritten(settings_.executor));
  }
  auto* const begin = static_cast<std::byte*>(memory_.allocate(image.size()));
  arrays_.push_back({name, element_bytes, bytes, is_output, kind, begin});
  memory_.copy_in(begin, image.data(), image.size());
  allow_guards(arrays_.back(), false);
  return begin + kGuardBytes;
}

draftproof_rows CaseRun::rows(std::span<const float> values, std::int64_t row_stride, std::int32_t dtype) {
  draftproof_rows out{nullptr, row_stride, dtype};
  if (dtype == DRAFTPROOF_F32) {
    out.data = input(std::vector<float>(values.begin(), values.end()));
    return out;
  }
  std::vector<std::uint16_t> half(values.size());
  std::transform(values.begin(), values.end(), half.begin(),
                 [&](float x) { return dtype == DRAFTPROOF_F16 ? f32_to_f16(x) : f32_to_bf16(x); });
  out.data = input(half);
  return out;
}

void* CaseRun::workspace(std::int64_t bytes) {
  return add("workspace", 1, static_cast<std::size_t>(bytes), nullptr, false, ElementKind::bits);
}

std::vector<Output> CaseRun::outputs() {
  std::vector<Output> found;
  for (const Array& array : arrays_) {
    std::vector<std::byte> image(array.bytes + 2 * kGuardBytes);
    allow_guards(array, true);
    memory_.copy_out(image.data(), array.begin, image.size());
    allow_guards(array, false);
    const auto intact = [&](auto begin) {
      return std::all_of(begin, begin + kGuardBytes, [](std::byte b) { return b == kGuard; });
    };
    if (!intact(image.begin()) || !intact(image.end() - kGuardBytes))
      throw Error(ErrorKind::internal, array.name, "the guard words around this array were overwritten");
    if (!array.is_output) continue;
    found.push_back(
        {array.name, array.element_bytes, {image.begin() + kGuardBytes, image.end() - kGuardBytes}, array.kind});
  }
  return found;
}

}  // namespace draftproof::regress
