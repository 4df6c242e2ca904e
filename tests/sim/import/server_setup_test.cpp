// Start-up lines as vLLM and SGLang print them.
#include "sim/import/server_setup.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace draftproof {
namespace {

std::string vllm_line(const std::string& speculation, const std::string& rest) {
  return "(EngineCore_DP0 pid=42) INFO 11-20 09:00:12 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: "
         "model='meta-llama/Llama-3.1-8B-Instruct', speculative_config=" +
         speculation + ", tokenizer='meta-llama/Llama-3.1-8B-Instruct', dtype=torch.bfloat16, " + rest + "\n";
}

}  // namespace

TEST_CASE("vLLM's first line says model, version, GPUs, precision and draft") {
  const ServerSetup setup = read_server_setup(
      vllm_line("SpeculativeConfig(method='eagle3', model='yuhuili/EAGLE3-LLaMA3.1-Instruct-8B', num_spec_tokens=3)",
                "tensor_parallel_size=2, quantization=fp8, kv_cache_dtype=fp8_e4m3"),
      "log");
  CHECK(setup.found());
  CHECK(setup.engine == "vLLM 0.11.0");
  CHECK(setup.model == "meta-llama/Llama-3.1-8B-Instruct");
  CHECK(setup.precision == "fp8, KV fp8");
  CHECK(setup.tp == 2);
  CHECK(setup.drafter == "EAGLE-3");
  CHECK(setup.drafts == 3);
  const ServerSetup plain =
      read_server_setup(vllm_line("None", "tensor_parallel_size=1, quantization=None, kv_cache_dtype=auto"), "log");
  CHECK(plain.precision.empty());
  CHECK(plain.tp == 1);
  CHECK(plain.dp == 1);
  CHECK_FALSE(plain.expert_parallel);
  const ServerSetup groups = read_server_setup(
      "INFO non-default args: {'model': 'm', 'enable_expert_parallel': True, 'data_parallel_size': 4}\n" +
          vllm_line("None",
                    "tensor_parallel_size=2, pipeline_parallel_size=3, data_parallel_size=4, quantization=None, "
                    "kv_cache_dtype=auto"),
      "log");
  CHECK(groups.tp == 2);
  CHECK(groups.pp == 3);
  CHECK(groups.dp == 4);
  CHECK(groups.expert_parallel);
  CHECK(plain.drafter.empty());
  CHECK_FALSE(plain.drafts);
  const ServerSetup model = read_server_setup(
      vllm_line("SpeculativeConfig(method='draft_model', model='/models/Llama-3.2-1B', num_spec_tokens=5)",
                "tensor_parallel_size=1, quantization=awq_marlin, kv_cache_dtype=auto"),
      "log");
  CHECK(model.drafter == "Llama-3.2-1B");
  CHECK(model.precision == "w4a16");
}

TEST_CASE("SGLang's arguments say the same, and the last start of a log holds") {
  const std::string sglang =
      "[2026-11-20 09:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tokenizer_path='Qwen/Qwen3-8B', "
      "dtype='auto', quantization=None, kv_cache_dtype='auto', tp_size=4, speculative_algorithm='EAGLE3', "
      "speculative_draft_model_path='AngelSlim/Qwen3-8B_eagle3', speculative_num_steps=5, speculative_eagle_topk=1, "
      "speculative_num_draft_tokens=6)\n";
  const ServerSetup setup =
      read_server_setup(vllm_line("None", "tensor_parallel_size=1, quantization=None") + sglang, "log");
  CHECK(setup.engine == "SGLang");
  CHECK(setup.model == "Qwen/Qwen3-8B");
  CHECK(setup.tp == 4);
  CHECK(setup.drafter == "EAGLE-3");
  CHECK(setup.drafts == 5);
  CHECK_FALSE(read_server_setup("SpecDecoding metrics: Mean acceptance length: 2.31\n", "log").found());
}

TEST_CASE("a number of GPUs that is none is refused with its line") {
  CHECK_THROWS_WITH(read_server_setup("\n" + vllm_line("None", "tensor_parallel_size=many, quantization=None"), "log"),
                    "log, line 2: tensor_parallel_size is 'many'; expected a number from 1 to 1024");
}

}  // namespace draftproof
