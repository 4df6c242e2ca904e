// Planted faults of memory: bounds, guard words, alignment, words that nobody has written.
#include "tests/gpu/simt/fault_of.hpp"
#include "tests/support/test.hpp"

namespace {

const std::vector<float> kEight(8, 1.0f);

}  // namespace

TEST_CASE("A write or read outside of a shared array is found") {
  const auto past = [](std::uint32_t index, bool write) {
    return [index, write] {
      DRAFTPROOF_SHARED(float, row, 32);
      row[threadIdx.x] = 0.0f;
      __syncthreads();
      if (threadIdx.x != 3) return;
      if (write) {
        row[index] = 1.0f;
      } else {
        const float value = row[index];
        row[3] = value;
      }
    };
  };
  const LaunchDescription description{.kernel = "past", .grid = {2}, .block = {32}};
  CHECK_THAT(
      fault_of(description, past(32, true)),
      Contains("thread (3, 0, 0)") && Contains("shared array row: element 32 is written, but it has elements 0 to 31"));
  CHECK_THAT(fault_of(description, past(0xffffffff, false)), Contains("element 4294967295 is read"));
}

TEST_CASE("A write or read outside of a buffer is found") {
  const auto in = Buffer<float>::input("in", kEight);
  const auto out = Buffer<float>::output("out", 8);
  const auto copy = [](Global<const float> from, Global<float> to, int shift, int count) {
    const int i = static_cast<int>(threadIdx.x) + shift;
    if (i < count) to[i] = from[i];
  };
  const LaunchDescription description{.kernel = "copy", .block = {8}};
  CHECK_THAT(fault_of(description, copy, in.read_only(), out.global(), -1, 8),
             Contains("thread (0, 0, 0)") && Contains("buffer in: element -1 is read, but it has elements 0 to 7"));
  CHECK_THAT(fault_of(description, copy, in.read_only() + 2, out.global(), 0, 8),
             Contains("buffer in: element ") && Contains("is read, but it has elements 0 to 7"));
  const auto fill = [](Global<float> to) { *(to + threadIdx.x + 1) = 0.0f; };
  CHECK_THAT(fault_of(description, fill, out.global()),
             Contains("thread (7, 0, 0)") && Contains("buffer out: element 8 is written"));
  const auto null = [](Global<float> to) {
    if (to == nullptr) to[0] = 1.0f;
  };
  CHECK_THAT(fault_of(description, null, Global<float>()), Contains("a null pointer is dereferenced"));
}

TEST_CASE("A view of dynamic shared memory ends where the launch says") {
  const auto view = [](std::uint32_t count) {
    return [count] {
      DRAFTPROOF_DYNAMIC_SHARED(std::uint64_t, sums, 8, count);
      sums[threadIdx.x] = 1;
    };
  };
  const LaunchDescription description{.kernel = "view", .block = {5}, .dynamic_shared_bytes = 40};
  launch({.kernel = "view", .block = {4}, .dynamic_shared_bytes = 40}, view(4));
  CHECK_THAT(fault_of(description, view(5)),
             Contains("dynamic shared memory: sums ends at byte 48, but the launch gave 40"));
  CHECK_THAT(fault_of(description, view(4)), Contains("element 4 is written, but it has elements 0 to 3"));
}

TEST_CASE("Guard words catch what no type watches") {
  const auto out = Buffer<std::uint16_t>::in_out("out", std::vector<std::uint16_t>(5, 1));
  const LaunchDescription description{.kernel = "raw", .block = {1}};
  const auto raw = [&](int index) {
    return error_of(ErrorKind::internal, [&] {
      launch(
          description, [&](Global<std::uint16_t>) { out.unchecked()[index] = 9; }, out.global());
    });
  };
  CHECK_THAT(raw(6), Contains("buffer out: a guard word is damaged 2 bytes behind its end, found after kernel raw"));
  CHECK_THAT(raw(-1), Contains("2 bytes before its begin"));
  CHECK_THAT(error_of(ErrorKind::internal, [&] { static_cast<void>(out.values()); }), Contains("copied to the host"));
}

TEST_CASE("Shared memory that nobody has written since the block began is not read") {
  const auto out = Buffer<float>::output("out", 64);
  // The first thread of each block leaves its value in the array, so that only the first block would find poison.
  const auto stale = [](Global<float> to) {
    DRAFTPROOF_SHARED(float, row, 2);
    if (threadIdx.x == 0) {
      if (blockIdx.x == 1) to[0] = row[1];
      row[1] = 4.0f;
    }
  };
  CHECK_THAT(fault_of({.kernel = "stale", .grid = {2}, .block = {4}}, stale, out.global()),
             Contains("block (1, 0, 0), thread (0, 0, 0)") &&
                 Contains("shared array row: element 1 is read, but nobody has written it since the block began"));
  const auto counted = [] {
    DRAFTPROOF_DYNAMIC_SHARED(std::uint32_t, count, 4, 1);
    atomicAdd(count, 1);
  };
  CHECK_THAT(fault_of({.kernel = "counted", .block = {4}, .dynamic_shared_bytes = 8}, counted),
             Contains("dynamic shared memory: byte 4 is read, but nobody has written it since the block began"));
}

TEST_CASE("Poison is read neither by a kernel nor by the host") {
  const auto out = Buffer<float>::output("out", 6);
  const LaunchDescription description{.kernel = "half", .block = {6}};
  const auto half = [](Global<float> to) {
    if (threadIdx.x % 2 == 0) to[threadIdx.x] = 1.0f;
  };
  launch(description, half, out.global());
  CHECK_THAT(error_of(ErrorKind::internal, [&] { static_cast<void>(out.values()); }),
             Contains("buffer out: element 1 was never written"));
  CHECK(out.values_or_poison()[4] == 1.0f);
  CHECK(out.values_or_poison()[5] != out.values_or_poison()[5]);  // NaN
  const auto add = [](Global<float> to) { to[threadIdx.x] += 1.0f; };
  CHECK_THAT(fault_of({.kernel = "add", .block = {6}}, add, out.global()),
             Contains("buffer out: element ") && Contains(" is read, but nobody has written it"));
}

TEST_CASE("Wide loads must be aligned and inside") {
  const auto in = Buffer<float>::input("in", kEight);
  const auto wide = [](Global<const float> from, std::uint32_t quad) {
    const float4 four = view_as<const float4>(from)[quad];
    static_cast<void>(four);
  };
  const LaunchDescription description{.kernel = "wide", .block = {1}};
  launch(description, wide, in.read_only() + 4, 0u);
  CHECK_THAT(fault_of(description, wide, in.read_only() + 1, 0u), Contains("buffer in") && Contains("not aligned"));
  CHECK_THAT(fault_of(description, wide, in.read_only(), 2u),
             Contains("element 2 is read, but it has elements 0 to 1"));
}

TEST_CASE("An input is not lent to a kernel that writes and memory is not used outside of kernels") {
  const auto in = Buffer<float>::input("in", kEight);
  CHECK_THAT(error_of(ErrorKind::internal, [&] { in.global(); }), Contains("buffer in: is an input"));
  const auto out = Buffer<float>::output("out", 1);
  CHECK_THAT(error_of(ErrorKind::internal, [&] { out.global()[0] = 1.0f; }), Contains("outside of a kernel"));
}

TEST_CASE("Static shared arrays keep to the limit of CUDA") {
  const auto large = [] {
    DRAFTPROOF_SHARED(std::uint64_t, first, 6000);
    DRAFTPROOF_SHARED(std::uint64_t, second, 200);
    first[threadIdx.x] = 1;
    second[threadIdx.x] = 1;
  };
  CHECK_THAT(fault_of({.kernel = "large", .block = {1}}, large), Contains("shared array second") && Contains("49152"));
}
