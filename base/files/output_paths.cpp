#include "base/files/output_paths.hpp"

#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  // Two files that do not exist yet are compared by the names that they will have.
  std::error_code failure_a;
  std::error_code failure_b;
  const fs::path canonical_a = fs::weakly_canonical(a, failure_a);
  const fs::path canonical_b = fs::weakly_canonical(b, failure_b);
  return !failure_a && !failure_b && canonical_a == canonical_b;
}

}  // namespace

void require_no_overwriting(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (output.path.empty()) continue;
    const auto refuse_where_same = [&](const NamedFile& other, const char* role) {
      if (!other.path.empty() && is_same_file(output.path, other.path))
        throw usage_error(output.option, "'" + output.path + "' is " + role + " " + other.option +
                                             "; expected the name of another file");
    };
    for (const NamedFile& input : inputs) refuse_where_same(input, "the same file as the input");
    for (std::size_t j = 0; j < i; ++j) refuse_where_same(outputs[j], "the same file as the output");
  }
}

void require_writable(const std::vector<NamedFile>& outputs) {
  for (const NamedFile& output : outputs) {
    if (output.path.empty()) continue;
    const AtomicFile made_and_removed(output.path);
  }
}

}  // namespace draftproof
