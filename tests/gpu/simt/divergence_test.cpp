// Planted divergence: threads that wait for others who never come.
#include "tests/gpu/simt/fault_of.hpp"
#include "tests/support/test.hpp"

TEST_CASE("A thread that finishes while others wait in a barrier is named") {
  const auto early = [](std::uint32_t last) {
    if (threadIdx.x > last) return;
    __syncthreads();
  };
  CHECK_THAT(fault_of({.kernel = "early", .grid = {2}, .block = {48}}, early, 40u),
             Contains("divergent barrier: waits in __syncthreads at divergence_test.cpp:") &&
                 Contains("but thread (41, 0, 0) has finished"));
  launch({.kernel = "early", .grid = {2}, .block = {48}}, early, 47u);
}

TEST_CASE("Threads that wait in two different barriers are both named") {
  const auto split = [] {
    if (threadIdx.x % 2 == 0) {  // NOLINT(bugprone-branch-clone): two barriers in the text, that is the fault
      __syncthreads();
    } else {
      __syncthreads();
    }
  };
  const std::string message = fault_of({.kernel = "split", .block = {4}}, split);
  CHECK_THAT(message, Contains("divergent barrier: waits in __syncthreads at divergence_test.cpp:") &&
                          Contains(", but thread (") && Contains("waits in __syncthreads at divergence_test.cpp:"));
}

TEST_CASE("A shuffle whose mask names a lane that does not come is found") {
  const auto shuffle = [](std::uint32_t lanes) {
    if (threadIdx.x % 32 < lanes) static_cast<void>(__shfl_xor_sync(0xffffffff, threadIdx.x, 1));
  };
  const LaunchDescription description{.kernel = "shuffle", .block = {64}};
  launch(description, shuffle, 32u);
  CHECK_THAT(fault_of(description, shuffle, 30u), Contains("waits in __shfl_xor_sync at divergence_test.cpp:") &&
                                                      Contains("with mask 0xffffffff for lane 30") &&
                                                      Contains("but that thread has finished"));

  const auto beside_barrier = [] {
    if (threadIdx.x != 7) static_cast<void>(__ballot_sync(0xffffffff, true));
    __syncthreads();
  };
  CHECK_THAT(
      fault_of({.kernel = "beside_barrier", .block = {32}}, beside_barrier),
      Contains("waits in __ballot_sync at") && Contains("for lane 7, but that thread waits in __syncthreads at"));
}

TEST_CASE("Lanes that wait in different collectives do not meet") {
  const auto masks = [] { static_cast<void>(__any_sync(threadIdx.x < 16 ? 0xffffffff : 0xffff0000, true)); };
  CHECK_THAT(fault_of({.kernel = "masks", .block = {32}}, masks),
             Contains("for lane 16, but that thread has finished") ||
                 Contains("with mask 0xffffffff for lane 16, but that thread waits in __any_sync"));
  const auto kinds = [] {
    if (threadIdx.x < 16) {
      static_cast<void>(__any_sync(0xffffffff, true));
    } else {
      static_cast<void>(__all_sync(0xffffffff, true));
    }
  };
  CHECK_THAT(fault_of({.kernel = "kinds", .block = {32}}, kinds),
             Contains("waits in __any_sync at") && Contains("for lane 16, but that thread waits in __all_sync at"));
}

TEST_CASE("A lane takes no part in a mask that leaves it out and reads none that takes no part") {
  const LaunchDescription description{.kernel = "lanes", .block = {20}};
  const auto outside = [] { __syncwarp(0xffff); };
  CHECK_THAT(fault_of(description, outside),
             Contains("__syncwarp at") && Contains("with mask 0x0000ffff: the mask does not name the calling lane"));
  // The warp has twenty lanes: lane 4 would read lane 20, which on a GPU holds whatever a register held.
  const auto beyond = [] { static_cast<void>(__shfl_down_sync(0xffffffff, threadIdx.x, 16)); };
  CHECK_THAT(fault_of(description, beyond), Contains("__shfl_down_sync at") && Contains(" reads lane ") &&
                                                Contains("which takes no part: its value is undefined"));
}

TEST_CASE("An exception of one thread ends the launch and the other threads") {
  const auto throws = [](bool wait) {
    if (threadIdx.x == 3) throw std::out_of_range("three");
    if (wait) __syncthreads();
  };
  CHECK_THROWS_AS(launch({.kernel = "throws", .grid = {3}, .block = {64}}, throws, true), std::out_of_range);
  CHECK_THROWS_AS(launch({.kernel = "throws", .grid = {3}, .block = {64}}, throws, false), std::out_of_range);
}
