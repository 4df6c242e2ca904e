// Kernels that are functions of a Python process (python_kernels.py): it gets the arrays of a call through a pipe, and
// sends back those that it wrote.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace draftproof::regress {

// An array of a call, in this process.
struct KernelArray {
  std::string name;
  std::string type;  // NumPy's: "f4", "u8"
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool is_output = false;
};

class PythonKernels {
 public:
  // Starts `command`, which runs python_kernels.py. Errors (input) naming `name`: it cannot be started, or says what is
  // wrong with the functions.
  PythonKernels(const std::string& name, const std::vector<std::string>& command);
  ~PythonKernels();
  PythonKernels(const PythonKernels&) = delete;
  PythonKernels& operator=(const PythonKernels&) = delete;

  // Its own description: "name", "numbers", "calls", "without" (parameters that no function takes).
  const nlohmann::json& description() const { return description_; }

  // True: the function takes the inputs, and the outputs have what it returned. Errors: SoundFailure of what the
  // function raises, returns or changes; (internal): the process ended.
  bool call(const std::string& name, std::int64_t vocab_size, const std::vector<KernelArray>& arrays);

 private:
  void send(const void* data, std::size_t bytes);
  void receive(void* data, std::size_t bytes);
  nlohmann::json receive_line();
  [[noreturn]] void lost();

  std::string name_;
  pid_t pid_ = 0;
  int to_ = -1, from_ = -1;
  nlohmann::json description_;
};

}  // namespace draftproof::regress
