#include "gpu/regress/kernel_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "gpu/regress/case.hpp"
#include "gpu/regress/python_kernels.hpp"

namespace draftproof::regress {
namespace {

// Fills elements that the library must leave as they are.
constexpr float kUntouched = -7.0f;

}  // namespace

// The arrays of one call: inputs stay as they are, outputs come back.
class LibraryRun {
 public:
  LibraryRun(device::DeviceMemory& memory, bool on_device) : run_(memory, settings_of(on_device)) {}

  template <class T>
  const T* input(const std::string& name, const std::vector<T>& values) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
    inputs_[name].assign(bytes, bytes + values.size() * sizeof(T));
    return noted(name, run_.in_out(name, values), values.size(), false);
  }
  template <class T>
  T* output(const std::string& name, std::int64_t count) {
    return noted(name, run_.output<T>(name, count), static_cast<std::size_t>(count), true);
  }
  template <class T>
  T* in_out(const std::string& name, const std::vector<T>& values) {
    return noted(name, run_.in_out(name, values), values.size(), true);
  }
  const std::vector<KernelArray>& arrays() const { return arrays_; }
  void* workspace(std::int64_t bytes) { return run_.workspace(bytes); }

  // Reads all arrays back. Error (internal): damaged guard words, a changed input.
  void finish() {
    outputs_ = run_.outputs();
    for (const Output& output : outputs_) {
      const auto input = inputs_.find(output.name);
      if (input != inputs_.end() && input->second != output.bytes)
        throw Error(ErrorKind::internal, output.name, "the call wrote to this input");
    }
  }
  template <class T>
  std::vector<T> take(const std::string& name) const {
    const auto output = std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& o) { return o.name == name; });
    std::vector<T> values(output->bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), output->bytes.data(), output->bytes.size());
    return values;
  }
  // Rows of floats whose padding the call must have left alone.
  std::vector<float> take_rows(const std::string& name, std::int64_t vocab_size, std::int64_t row_stride) const {
    std::vector<float> values = take<float>(name);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (static_cast<std::int64_t>(i) % row_stride >= vocab_size && values[i] != kUntouched)
        throw Error(ErrorKind::internal, name,
                    "the call wrote column " + std::to_string(static_cast<std::int64_t>(i) % row_stride) + " of row " +
                        std::to_string(static_cast<std::int64_t>(i) / row_stride) + "; the row has " +
                        std::to_string(vocab_size) + " columns");
    return values;
  }

 private:
  template <class T>
  T* noted(const std::string& name, T* data, std::size_t count, bool is_output) {
    constexpr char kKind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
    arrays_.push_back(
        {name, kKind + std::to_string(sizeof(T)), reinterpret_cast<std::byte*>(data), count * sizeof(T), is_output});
    return data;
  }
  static draftproof_settings settings_of(bool on_device) {
    draftproof_settings settings{};
    settings.executor = on_device ? DRAFTPROOF_CUDA : DRAFTPROOF_REFERENCE;
    return settings;
  }

  CaseRun run_;
  std::vector<KernelArray> arrays_;
  std::map<std::string, std::vector<std::byte>> inputs_;
  std::vector<Output> outputs_;
};

namespace {

draftproof_kernels_rows rows_in(LibraryRun& run, const RowInputs& in) {
  return {in.rows(),
          in.vocab_size,
          in.row_stride,
          run.input("logits", in.logits),
          run.input("temperature", in.temperature),
          run.input("top_k", in.top_k),
          run.input("top_p", in.top_p),
          run.input("min_p", in.min_p)};
}

std::vector<float> untouched(std::size_t count) {
  return std::vector<float>(count, kUntouched);
}

}  // namespace

KernelLibrary::KernelLibrary(const KernelSource& source) {
  if (source.command.empty()) {
    load(source.name);
    return;
  }
  python_ = std::make_unique<PythonKernels>(source.name, source.command);
  const nlohmann::json& said = python_->description();
  said.at("name").get_to(description_.name);
  said.at("numbers").get_to(description_.numbers);
  said.at("calls").get_to(description_.calls);
  said.at("without").get_to(description_.without);
}

void KernelLibrary::load(const std::string& file) {
  // A name without a slash would be looked up in the folders of the system.
  handle_ = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* const why = dlerror();
    throw input_error(file, std::string("cannot be loaded: ") + printable_line(why == nullptr ? "" : why));
  }
  const auto find = [&](const std::string& name, auto& function) {
    void* const found = dlsym(handle_, ("draftproof_kernels_" + name).c_str());
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    return found != nullptr;
  };
  void (*describe)(draftproof_kernels_description*) = nullptr;
  if (!find("describe", describe))
    throw input_error(file, "exports no draftproof_kernels_describe; expected a library of gpu/draftproof_kernels.h");
  draftproof_kernels_description told{-1, -1, -1, nullptr};
  describe(&told);
  if (told.version != DRAFTPROOF_KERNELS_VERSION)
    throw input_error(file, "is of version " + std::to_string(told.version) + " of draftproof_kernels.h; expected " +
                                std::to_string(DRAFTPROOF_KERNELS_VERSION));
  if (told.memory != DRAFTPROOF_KERNELS_HOST && told.memory != DRAFTPROOF_KERNELS_DEVICE)
    throw input_error(file,
                      "describes its memory as " + std::to_string(told.memory) + "; expected 0 (host) or 1 (device)");
  if (told.numbers < DRAFTPROOF_KERNELS_OWN || told.numbers > DRAFTPROOF_KERNELS_ADDRESSED)
    throw input_error(file, "describes its random numbers as " + std::to_string(told.numbers) +
                                "; expected 0 (own), 1 (given), 2 (recorded) or 3 (addressed)");
  description_.name = told.name == nullptr ? "" : told.name;
  description_.on_device = told.memory == DRAFTPROOF_KERNELS_DEVICE;
  description_.numbers = told.numbers;
  find("workspace_bytes", workspace_bytes_);
  const bool exported[] = {find("filter", filter_),
                           find("sample", sample_),
                           find("verify_chain", verify_chain_),
                           find("verify_block", verify_block_),
                           find("verify_tree", verify_tree_),
                           find("guidance", guidance_),
                           find("tree_mask", tree_mask_)};
  for (std::size_t i = 0; i < std::size(exported); ++i)
    if (exported[i]) description_.calls.emplace_back(kLibraryCalls[i]);
  if (description_.calls.empty())
    throw input_error(file,
                      "exports none of the calls of gpu/draftproof_kernels.h; expected at least one of "
                      "draftproof_kernels_filter, _sample, _verify_chain, _verify_block, _verify_tree, _guidance and "
                      "_tree_mask");
}

// It stays loaded: what it has started may still run.
KernelLibrary::~KernelLibrary() = default;

device::DeviceMemory& KernelLibrary::memory() const {
  if (!memory_) memory_ = device::memory_of(description_.on_device ? DRAFTPROOF_CUDA : DRAFTPROOF_REFERENCE);
  return *memory_;
}

template <class Call>
void KernelLibrary::run(LibraryRun& run, Call& call, const char* name, std::int64_t rows, std::int64_t vocab_size,
                        int (*function)(const Call*)) const {
  if (workspace_bytes_ != nullptr) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const std::int64_t bytes = workspace_bytes_(name, rows, vocab_size);
    if (bytes < 0 || bytes > kMost)
      throw Error(ErrorKind::internal, name, "the library asks for a workspace of " + std::to_string(bytes) + " bytes");
    call.workspace_bytes = bytes;
    call.workspace = run.workspace(bytes);
  }
  const int result = !python_                                        ? function(&call)
                     : python_->call(name, vocab_size, run.arrays()) ? 0
                                                                     : DRAFTPROOF_KERNELS_UNSUPPORTED;
  if (result == DRAFTPROOF_KERNELS_UNSUPPORTED) throw UnsupportedInputs();
  if (result != 0) throw Error(ErrorKind::internal, name, "the call returned " + std::to_string(result));
  run.finish();
}

std::vector<float> KernelLibrary::filter(const RowInputs& in) const {
  LibraryRun arrays(memory(), description_.on_device);
  draftproof_kernels_filter_call call{};
  call.in = rows_in(arrays, in);
  call.filtered = arrays.in_out("filtered", untouched(in.logits.size()));
  run(arrays, call, "filter", in.rows(), in.vocab_size, filter_);
  return arrays.take_rows("filtered", in.vocab_size, in.row_stride);
}

std::vector<Token> KernelLibrary::sample(const RowInputs& in, std::vector<double>& uniforms) const {
  LibraryRun arrays(memory(), description_.on_device);
  draftproof_kernels_sample_call call{};
  call.in = rows_in(arrays, in);
  call.seeds = arrays.input("seeds", in.seeds);
  call.steps = arrays.input("steps", in.steps);
  call.uniforms = arrays.in_out("uniforms", uniforms);
  call.tokens = arrays.output<Token>("tokens", in.rows());
  run(arrays, call, "sample", in.rows(), in.vocab_size, sample_);
  uniforms = arrays.take<double>("uniforms");
  return arrays.take<Token>("tokens");
}

DraftOutputs KernelLibrary::verify(const std::string& name, const DraftInputs& in, std::vector<double>& coins,
                                   std::vector<double>& draws) const {
  LibraryRun arrays(memory(), description_.on_device);
  const auto filled = [&](auto call) {
    call.requests = in.requests();
    call.draft_tokens_total = in.drafts();
    call.draft_len_max = in.draft_len_max();
    call.vocab_size = in.vocab_size;
    call.row_stride = in.row_stride;
    call.draft_tokens = arrays.input("draft_tokens", in.draft_tokens);
    call.cu_num_draft_tokens = arrays.input("cu_num_draft_tokens", in.cu_num_draft_tokens);
    call.target_probs = arrays.input("target_probs", in.target_probs);
    if (in.has_proposals) call.draft_probs = arrays.input("draft_probs", in.draft_probs);
    call.seeds = arrays.input("seeds", in.seeds);
    call.steps = arrays.input("steps", in.steps);
    call.coins = arrays.in_out("coins", coins);
    call.draws = arrays.in_out("draws", draws);
    call.tokens = arrays.output<Token>("tokens", call.requests * (call.draft_len_max + 1));
    call.num_accepted = arrays.output<std::int32_t>("num_accepted", call.requests);
    return call;
  };
  DraftOutputs found;
  if (in.is_tree) {
    auto call = filled(draftproof_kernels_verify_tree_call{});
    call.rule = in.has_proposals ? DRAFTPROOF_KERNELS_RRSW : DRAFTPROOF_KERNELS_TARGET_ONLY;
    call.parents = arrays.input("parents", in.parents);
    call.path = arrays.output<std::int32_t>("path", call.requests * call.draft_len_max);
    run(arrays, call, "verify_tree", in.rows(), in.vocab_size, verify_tree_);
    found.path = arrays.take<std::int32_t>("path");
  } else {
    auto call = filled(draftproof_kernels_verify_chain_call{});
    run(arrays, call, name.c_str(), in.rows(), in.vocab_size, name == "verify_block" ? verify_block_ : verify_chain_);
  }
  coins = arrays.take<double>("coins");
  draws = arrays.take<double>("draws");
  found.tokens = arrays.take<Token>("tokens");
  found.num_accepted = arrays.take<std::int32_t>("num_accepted");
  return found;
}

std::vector<float> KernelLibrary::guidance(const GuidanceInputs& in) const {
  LibraryRun arrays(memory(), description_.on_device);
  draftproof_kernels_guidance_call call{};
  call.rows = in.rows();
  call.vocab_size = in.vocab_size;
  call.row_stride = in.row_stride;
  call.conditional = arrays.input("conditional", in.conditional);
  call.unconditional = arrays.input("unconditional", in.unconditional);
  call.scale = arrays.input("scale", in.scale);
  call.out = arrays.in_out("out", untouched(in.conditional.size()));
  run(arrays, call, "guidance", in.rows(), in.vocab_size, guidance_);
  return arrays.take_rows("out", in.vocab_size, in.row_stride);
}

std::vector<std::uint32_t> KernelLibrary::tree_mask(const TreeInputs& in) const {
  LibraryRun arrays(memory(), description_.on_device);
  draftproof_kernels_tree_mask_call call{};
  call.requests = in.requests();
  call.draft_tokens_total = static_cast<std::int64_t>(in.parents.size());
  call.draft_len_max = in.draft_len_max();
  call.cu_num_draft_tokens = arrays.input("cu_num_draft_tokens", in.cu_num_draft_tokens);
  call.parents = arrays.input("parents", in.parents);
  call.words_per_row = in.words_per_row;
  const std::int64_t rows = call.draft_tokens_total + call.requests;
  call.mask = arrays.output<std::uint32_t>("mask", rows * in.words_per_row);
  run(arrays, call, "tree_mask", rows, 0, tree_mask_);
  return arrays.take<std::uint32_t>("mask");
}

}  // namespace draftproof::regress
