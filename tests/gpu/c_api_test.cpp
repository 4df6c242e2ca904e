// draftproof.h as engines in other languages use it: a C program and Python's ctypes, and what the C functions do with
// invalid arguments.
#include "gpu/draftproof.h"
#include "tests/support/test.hpp"

namespace {

std::string last_message() {
  return draftproof_error_message();
}

TEST_CASE("a C program gets the same bits from the reference and the kernels", "[c_api]") {
  const ProgramResult result = run_command({std::string(kCExamples) + "/draftproof_c_verify_chain"});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.find("reference and kernels are equal") != std::string::npos);
  CHECK(result.out.find("request 1: ") != std::string::npos);
}

TEST_CASE("a C program draws over three devices what it draws of whole rows", "[c_api][shards]") {
  const ProgramResult result = run_command({std::string(kCExamples) + "/draftproof_c_shards"});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(result.out.find("devices and whole rows are equal") != std::string::npos);
}

TEST_CASE("Python's ctypes gets the same bits from the reference and the kernels", "[c_api]") {
  if (kSanitized) {
    WARN("SKIPPED: Python cannot load a library that needs the address sanitizer");
    return;
  }
  if (run_command({"sh", "-c", "command -v python3"}).exit_code != 0) {
    WARN("SKIPPED: python3 is not installed");
    return;
  }
  const std::string script = DRAFTPROOF_SOURCE_DIR "/tests/gpu/c_api/check_ctypes.py";
  const ProgramResult result = run_command({"python3", script, kSharedLibrary});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("verify_tree: 5 outputs are equal") != std::string::npos);
}

TEST_CASE("the C functions return codes and messages where C++ throws", "[c_api]") {
  draftproof_tree_mask_arguments mask{};
  draftproof_settings settings{};
  CHECK(draftproof_tree_mask(&mask, &settings) == DRAFTPROOF_SUCCESS);  // no requests: nothing to do
  mask.requests = -1;
  CHECK(draftproof_tree_mask(&mask, &settings) == DRAFTPROOF_USAGE);
  CHECK(last_message() == "tree_mask, requests: it is -1; expected 0 to 2147483647");
  CHECK(draftproof_tree_mask(nullptr, &settings) == DRAFTPROOF_USAGE);
  CHECK(last_message() == "arguments: it is NULL; expected a struct");
  CHECK(draftproof_tree_mask(&mask, nullptr) == DRAFTPROOF_USAGE);
  CHECK(last_message() == "settings: it is NULL; expected a struct");
  settings.executor = 3;
  CHECK(draftproof_tree_mask(&mask, &settings) == DRAFTPROOF_USAGE);
  CHECK(last_message() == "settings, executor: it is 3; expected 0 to 2");
  CHECK(draftproof_sample_workspace_bytes(nullptr) == -1);
  draftproof_sample_arguments sample{};
  CHECK(draftproof_sample_workspace_bytes(&sample) == -1);
  CHECK(last_message() == "sample, vocab_size: it is 0; expected 1 to 524288");
}

TEST_CASE("an executor that cannot run here is unavailable, and says why", "[c_api]") {
  CHECK(draftproof_executor_available(DRAFTPROOF_REFERENCE) == DRAFTPROOF_SUCCESS);
  CHECK(draftproof_executor_available(DRAFTPROOF_SIMT) == DRAFTPROOF_SUCCESS);
  CHECK(draftproof_executor_available(-1) == DRAFTPROOF_USAGE);
  if (draftproof_executor_available(DRAFTPROOF_CUDA) == DRAFTPROOF_SUCCESS) return;
  CHECK(draftproof_executor_available(DRAFTPROOF_CUDA) == DRAFTPROOF_UNAVAILABLE);
  CHECK(last_message().find("executor cuda: ") == 0);
  const draftproof_tree_mask_arguments nothing{};
  draftproof_settings settings{};
  settings.executor = DRAFTPROOF_CUDA;
  CHECK(draftproof_tree_mask(&nothing, &settings) == DRAFTPROOF_UNAVAILABLE);
}

TEST_CASE("every row status has a text of its own", "[c_api]") {
  for (std::int32_t a = DRAFTPROOF_ROW_OK; a <= DRAFTPROOF_ROW_BAD_PARAMETER; ++a) {
    for (std::int32_t b = a + 1; b <= DRAFTPROOF_ROW_BAD_PARAMETER + 1; ++b)
      CHECK(std::string(draftproof_row_status_text(a)) != draftproof_row_status_text(b));
  }
  CHECK(draftproof_row_status_text(-7) != nullptr);
}

TEST_CASE("bindings can ask for the sizes of structs", "[c_api]") {
  CHECK(draftproof_abi_version() == DRAFTPROOF_ABI_VERSION);
  CHECK(draftproof_struct_bytes("draftproof_settings") == sizeof(draftproof_settings));
  CHECK(draftproof_struct_bytes("draftproof_verify_arguments") == sizeof(draftproof_verify_arguments));
  CHECK(draftproof_struct_bytes("draftproof_nothing") == -1);
  CHECK(draftproof_struct_bytes(nullptr) == -1);
}

}  // namespace
