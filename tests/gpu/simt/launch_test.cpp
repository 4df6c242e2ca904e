#include "tests/gpu/simt/fault_of.hpp"
#include "tests/support/test.hpp"

namespace {

std::string refusal_of(const LaunchDescription& description) {
  return error_of(ErrorKind::internal, [&] { launch(description, [] {}); });
}

}  // namespace

TEST_CASE("A launch that a GPU would refuse is refused") {
  CHECK_THAT(refusal_of({.kernel = "k", .block = {0}}), Contains("launch of kernel k: a block has 1 to 1024 threads"));
  CHECK_THAT(refusal_of({.kernel = "k", .block = {1025}}), Contains("not 1025 x 1 x 1"));
  CHECK_THAT(refusal_of({.kernel = "k", .block = {33, 32}}), Contains("not 33 x 32 x 1"));
  CHECK_THAT(refusal_of({.kernel = "k", .block = {1, 1, 65}}), Contains("z at most 64"));
  CHECK_THAT(refusal_of({.kernel = "k", .grid = {0}}), Contains("a grid has at least one block"));
  CHECK_THAT(refusal_of({.kernel = "k", .grid = {1, 65536}}), Contains("not 1 x 65536 x 1"));
  CHECK_THAT(refusal_of({.kernel = "k", .grid = {65536, 65535, 2}}), Contains("2^32"));
  CHECK_THAT(refusal_of({.kernel = "k", .dynamic_shared_bytes = 227 * 1024 + 1}), Contains("at most 232448 bytes"));
  CHECK_THAT(refusal_of({.kernel = "k", .os_threads = 0}), Contains("at least one OS thread"));
  launch({.kernel = "k", .block = {32, 32}, .dynamic_shared_bytes = 227 * 1024}, [] {});
}

TEST_CASE("Faults carry the block the thread and the seed that show them again") {
  const auto out = Buffer<std::uint32_t>::output("out", 10);
  const LaunchDescription description{
      .kernel = "one", .grid = {3, 4}, .block = {5, 2}, .seed = 123456789012, .os_threads = 2};
  const auto one = [](Global<std::uint32_t> to) {
    if (blockIdx.x == 2 && blockIdx.y == 1 && threadIdx.x == 4 && threadIdx.y == 1) to[10] = 1;
  };
  for (int again = 0; again < 3; ++again) {
    CHECK(error_of(ErrorKind::internal, [&] { launch(description, one, out.global()); }) ==
          "kernel one, block (2, 1, 0), thread (4, 1, 0), seed 123456789012: buffer out: element 10 is written, but it "
          "has "
          "elements 0 to 9");
  }
}
