// Runs blocks of one launch, one after the other, on one OS thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "gpu/launch_description.hpp"
#include "gpu/simt/fibre.hpp"
#include "gpu/simt/schedule.hpp"
#include "gpu/simt/shared_memory.hpp"
#include "gpu/simt/this_block.hpp"
#include "gpu/simt/thread_names.hpp"
#include "gpu/simt/warp.hpp"

namespace draftproof::simt {

class BlockRunner final : public ThisBlock {
 public:
  // first_ticket: of block 0 of the launch; each block has its own, unique in the process.
  BlockRunner(const LaunchDescription& description, const std::function<void()>& kernel, std::uint64_t first_ticket);

  // Throws the first fault of any thread.
  void run(std::uint32_t block);

  void barrier(const std::source_location& place) override;
  std::uint64_t collective(Collective kind, std::uint32_t mask, std::uint64_t value, std::uint32_t source,
                           const std::source_location& place) override;
  Region& static_shared(const void* tag, const char* name, std::uint64_t bytes, std::uint32_t element_bytes,
                        std::uint32_t alignment) override;
  Region& dynamic_shared(std::uint32_t alignment) override { return shared_.dynamic(alignment); }
  std::string thread_name(std::uint32_t thread) const override;
  bool block_name(std::uint64_t ticket, std::string& name) const override;
  std::string where(std::uint32_t thread) const override;

 private:
  enum class State : std::uint8_t { ready, at_barrier, in_collective, finished };
  struct Thread {
    CudaIndex index{};
    State state = State::ready;
    std::source_location barrier;  // the last one it waited at
    std::optional<Fibre> fibre;
  };
  struct Cancelled {};  // thrown into fibres that wait when another thread has failed

  void start(std::uint32_t block);
  void thread_body(std::uint32_t thread);
  void switch_to(std::uint32_t thread);
  void suspend();
  void run_until_all_wait();
  void release_barrier();
  void cancel_the_rest();
  std::exception_ptr why_nobody_can_go_on() const;
  std::string whereabouts(std::uint32_t thread) const;
  std::exception_ptr fault_of(std::uint32_t thread, const std::string& what) const;

  const LaunchDescription& description_;
  const std::function<void()>& kernel_;
  std::uint64_t first_ticket_;
  std::uint32_t thread_count_;
  SharedMemory shared_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;

  std::uint32_t block_ = 0;
  std::uint64_t epoch_ = 0;
  std::optional<Schedule> schedule_;
  std::vector<std::uint32_t> ready_;
  std::uint32_t at_barrier_ = 0;
  std::uint32_t first_at_barrier_ = 0;
  std::uint32_t finished_ = 0;
  std::exception_ptr error_;
};

}  // namespace draftproof::simt
