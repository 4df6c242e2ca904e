// The memory of one call on a GPU: the caller's device pointers as they are, and sections of its workspace.
#pragma once

#include <cstdint>

#include "gpu/checked_size.hpp"

namespace draftproof::cuda {

class OperationMemory {
 public:
  OperationMemory(void* workspace) : workspace_(static_cast<unsigned char*>(workspace)) {}
  static OperationMemory measuring() { return OperationMemory(nullptr); }

  std::int64_t workspace_bytes() const { return layout_.bytes(); }

  template <class T>
  const T* input(const char*, const T* data, std::int64_t) {
    return data;
  }
  template <class T>
  T* output(const char*, T* data, std::int64_t) {
    return data;
  }
  template <class T>
  T* output_rows(const char*, T* data, std::int64_t, std::int64_t, std::int64_t) {
    return data;
  }
  template <class T>
  T* in_out(const char*, T* data, std::int64_t) {
    return data;
  }
  template <class T>
  T* scratch(const char*, CheckedSize count) {
    const std::int64_t begin = layout_.add(count * static_cast<std::int64_t>(sizeof(T)));
    return workspace_ == nullptr ? nullptr : reinterpret_cast<T*>(workspace_ + begin);
  }

  void check_outputs() const {}

 private:
  unsigned char* workspace_;
  WorkspaceLayout layout_;
};

}  // namespace draftproof::cuda
