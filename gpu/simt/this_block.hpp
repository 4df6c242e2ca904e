// The block that runs on this OS thread, as far as the names of CUDA and the memory checks need to see it. The fibres
// of a block never leave the OS thread on which the block began, so a thread_local variable is safe.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "base/error.hpp"
#include "gpu/simt/region.hpp"
#include "gpu/simt/shadow.hpp"

namespace draftproof::simt {

enum class Collective : std::uint8_t { shuffle, shuffle_xor, shuffle_down, shuffle_up, ballot, any, all, sync };

class ThisBlock {
 public:
  virtual ~ThisBlock() = default;

  virtual void barrier(const std::source_location& place) = 0;
  // Waits for all lanes of mask; returns the value that lane `source` brought (a ballot: one bit per lane whose value
  // is not 0).
  virtual std::uint64_t collective(Collective kind, std::uint32_t mask, std::uint64_t value, std::uint32_t source,
                                   const std::source_location& place) = 0;
  // The array that the declaration `tag` names: the same for all threads of a block.
  virtual Region& static_shared(const void* tag, const char* name, std::uint64_t bytes, std::uint32_t element_bytes,
                                std::uint32_t alignment) = 0;
  // alignment: of the elements of the view that is made of it.
  virtual Region& dynamic_shared(std::uint32_t alignment) = 0;

  virtual std::string thread_name(std::uint32_t thread) const = 0;
  // The block of this launch that has a ticket; false where the ticket is of an earlier launch.
  virtual bool block_name(std::uint64_t ticket, std::string& name) const = 0;
  // Kernel, block, the given thread and the seed: the first half of every error message.
  virtual std::string where(std::uint32_t thread) const = 0;

  // The running thread.
  const Accessor& accessor() const { return accessor_; }
  std::uint32_t lane() const { return accessor_.thread % kLanes; }

  // Throws Error(internal) that names the running thread.
  [[noreturn]] void fault(const std::string& what) const {
    throw Error(ErrorKind::internal, where(accessor_.thread), what);
  }

 protected:
  Accessor accessor_{};
};

// Null where no kernel runs.
inline constinit thread_local ThisBlock* running_block = nullptr;

[[noreturn]] void outside_of_kernels();

inline ThisBlock& this_block() {
  if (running_block == nullptr) outside_of_kernels();
  return *running_block;
}

}  // namespace draftproof::simt
