// Somebody else's kernels, in a shared library (draftproof_kernels.h) or functions of Python (python_kernels.hpp), and
// calls of them on memory of the kind that they take, each array between guard words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/draftproof_kernels.h"
#include "gpu/regress/library_inputs.hpp"

namespace draftproof::regress {

// The calls of draftproof_kernels.h, in its order.
inline constexpr const char* kLibraryCalls[] = {"filter",      "sample",   "verify_chain", "verify_block",
                                                "verify_tree", "guidance", "tree_mask"};

// A file to load; with a command, what that process answers, under this name.
struct KernelSource {
  std::string name;
  std::vector<std::string> command = {};
};

struct LibraryDescription {
  std::string name;
  bool on_device = false;
  std::int32_t numbers = DRAFTPROOF_KERNELS_OWN;
  std::vector<std::string> calls;         // those that it exports
  std::vector<std::string> without = {};  // parameters that it says it does not take
};

// The call says that it does not take these inputs.
struct UnsupportedInputs {};

// A call failed and left its process as it was.
struct SoundFailure : Error {
  SoundFailure(const std::string& where, const std::string& what) : Error(ErrorKind::internal, where, what) {}
};

struct DraftOutputs {
  std::vector<Token> tokens;               // [requests, draft_len_max + 1]
  std::vector<std::int32_t> num_accepted;  // [requests]
  std::vector<std::int32_t> path;          // [requests, draft_len_max] of trees
};

class KernelLibrary {
 public:
  // Loads or starts it. Errors (input) naming it: it cannot be loaded, describes nothing or what there is not, is of
  // another version, exports no call.
  explicit KernelLibrary(const KernelSource& source);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  const LibraryDescription& description() const { return description_; }

  // One call each. Errors (usage): it takes device memory and there is no GPU; (internal): the call failed, wrote to
  // its inputs, to the padding of its outputs or beyond an array. UnsupportedInputs.
  std::vector<float> filter(const RowInputs& in) const;                                 // [rows, row_stride]
  std::vector<Token> sample(const RowInputs& in, std::vector<double>& uniforms) const;  // [rows], both
  // `call`: verify_chain, verify_block or verify_tree.
  DraftOutputs verify(const std::string& call, const DraftInputs& in,
                      std::vector<double>& coins,                    // [drafts]; of trees [rows]
                      std::vector<double>& draws) const;             // [requests]
  std::vector<float> guidance(const GuidanceInputs& in) const;       // [rows, row_stride]
  std::vector<std::uint32_t> tree_mask(const TreeInputs& in) const;  // [parents + requests, words_per_row]

 private:
  void load(const std::string& file);
  template <class Call>
  void run(class LibraryRun& run, Call& call, const char* name, std::int64_t rows, std::int64_t vocab_size,
           int (*function)(const Call*)) const;

  std::unique_ptr<class PythonKernels> python_;  // else a library
  void* handle_ = nullptr;
  LibraryDescription description_;
  std::int64_t (*workspace_bytes_)(const char*, std::int64_t, std::int64_t) = nullptr;
  int (*filter_)(const draftproof_kernels_filter_call*) = nullptr;
  int (*sample_)(const draftproof_kernels_sample_call*) = nullptr;
  int (*verify_chain_)(const draftproof_kernels_verify_chain_call*) = nullptr;
  int (*verify_block_)(const draftproof_kernels_verify_block_call*) = nullptr;
  int (*verify_tree_)(const draftproof_kernels_verify_tree_call*) = nullptr;
  int (*guidance_)(const draftproof_kernels_guidance_call*) = nullptr;
  int (*tree_mask_)(const draftproof_kernels_tree_mask_call*) = nullptr;
  device::DeviceMemory& memory() const;
  mutable std::unique_ptr<device::DeviceMemory> memory_;  // made at the first call: there may be no GPU
};

}  // namespace draftproof::regress
