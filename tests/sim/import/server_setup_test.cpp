// Start-up lines as vLLM and SGLang print them.
#include "sim/import/server_setup.hpp"

#include "tests/support/test.hpp"

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
  CHECK(plain.precision == "bf16");
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

TEST_CASE("arguments as a dictionary, with others of the same names within") {
  const ServerSetup setup = read_server_setup(
      "[2026-09-24 01:50:02] server_args={'model_path': 'meta-llama/Llama-3.1-8B-Instruct', "
      "'model_loader_extra_config': "
      "{'tp_size': 99}, 'preferred_sampling_params': '{\"tp_size\": 7}', 'tp_size': 2, 'quantization': 'fp8', "
      "'kv_cache_dtype': 'fp8_e4m3', 'speculative_algorithm': 'EAGLE3', 'speculative_draft_model_path': None, "
      "'speculative_num_steps': 3, 'speculative_eagle_topk': 1, 'speculative_num_draft_tokens': 4, 'mamba_ssm_dtype': "
      "None}\n",
      "log");
  CHECK(setup.tp == 2);
  CHECK(setup.precision == "fp8, KV fp8");
  CHECK(setup.drafter == "EAGLE-3");
  CHECK(setup.drafts == 3);
  // Weights that the checkpoint says to be quantised: the target's, then the draft's.
  const std::string start =
      "server_args=ServerArgs(model_path='/models/DeepSeek-V4', quantization=None, kv_cache_dtype='fp8_e4m3', "
      "tp_size=3, "
      "speculative_algorithm='DSPARK', speculative_num_steps=1, speculative_num_draft_tokens=6)\n";
  CHECK(read_server_setup(start, "log").precision == "KV fp8");
  const ServerSetup loaded =
      read_server_setup(start +
                            "[x TP0] Load weight end. elapsed=541.76 s, type=DeepseekV4ForCausalLM, quant=fp8, avail "
                            "mem=17.47 GB.\n[x TP0] Load weight end. type=Draft, quant=awq, avail mem=14.74 GB.\n",
                        "log");
  CHECK(loaded.precision == "fp8, KV fp8");
  CHECK(loaded.drafter == "DSpark");
  CHECK(loaded.drafts == 5);
}

TEST_CASE("groups of attention share the GPUs, other groups have their own") {
  const auto groups = [](const std::string& attention) {
    return read_server_setup(
        "server_args=ServerArgs(model_path='m', tp_size=8, dp_size=4, ep_size=1" + attention + ")\n", "log");
  };
  CHECK(groups(", enable_dp_attention=True").tp == 2);
  CHECK(groups(", enable_dp_attention=True").dp == 4);
  CHECK(groups(", enable_dp_attention=True").expert_parallel);
  CHECK(groups(", enable_dp_attention=False").tp == 8);
  CHECK_FALSE(groups(", enable_dp_attention=False").expert_parallel);
}

TEST_CASE("the method of quantisation says the precision, the model's name does not") {
  const auto setup_of = [](const std::string& quantisation) {
    return read_server_setup(vllm_line("None", "tensor_parallel_size=1, " + quantisation), "log");
  };
  CHECK(setup_of("quantization=modelopt_fp4, quantization_config=None, kv_cache_dtype=fp8_e4m3").precision ==
        "nvfp4, KV fp8");
  CHECK(setup_of("quantization=mxfp4, kv_cache_dtype=auto").precision == "mxfp4");
  CHECK(setup_of("quantization=gptq_marlin, kv_cache_dtype=bfloat16").precision == "w4a16");
  CHECK(setup_of("kv_cache_dtype=fp8").precision == "KV fp8");  // of the weights it says nothing
  const std::string named = vllm_line("None", "tensor_parallel_size=1, quantization=None, kv_cache_dtype=auto");
  CHECK(read_server_setup(
            named.substr(0, named.find("3.1-8B")) + "FP8-AWQ-3.1-8B" + named.substr(named.find("3.1-8B") + 6), "log")
            .precision == "bf16");
  CHECK(setup_of("quantization=compressed-tensors, kv_cache_dtype=fp8").precision == "KV fp8");
  for (const auto& [said, error] :
       {std::pair("quantization=compressed-tensors", "leaves the bits of weights to the model's config.json"),
        {"quantization=ascend", "leaves the bits"},
        {"quantization=int5_wonder", "'int5_wonder'; expected one of fp8, "},
        {"quantization=fp8, kv_cache_dtype=turbo_k3", "kv_cache_dtype is 'turbo_k3'; expected auto"}}) {
    const ServerSetup setup = setup_of(said);
    CHECK(setup.precision.empty());
    REQUIRE(setup.precision_error);
    CHECK_THAT(setup.precision_error->what(), Contains(error) && Catch::StartsWith("log, line 1: "));
  }
}

TEST_CASE("what people asked for holds where the engine's own configuration is not in the log") {
  const ServerSetup setup = read_server_setup(
      "(APIServer pid=1) INFO 09-24 02:18:51 [api_utils.py:286] non-default args: {'model_tag': '/models/x', "
      "'tensor_parallel_size': 4, 'quantization': 'awq', 'kv_cache_dtype': 'fp8_e5m2', 'hf_overrides': {'model': 'y'}, "
      "'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 3}}\n",
      "log");
  CHECK(setup.engine == "vLLM");
  CHECK(setup.model == "x");
  CHECK(setup.tp == 4);
  CHECK(setup.precision == "w4a16, KV fp8");
  CHECK(setup.drafter == "MTP");
  CHECK(setup.drafts == 3);
  // Wrapped at the width of a terminal.
  const std::string line = vllm_line("SpeculativeConfig(method='mtp', model='d', num_spec_tokens=2)",
                                     "tensor_parallel_size=2, quantization=fp8, kv_cache_dtype=auto");
  std::string wrapped;
  for (std::size_t at = 0; at < line.size(); at += 80) wrapped += line.substr(at, 80) + "\n";
  const ServerSetup terminal = read_server_setup(wrapped + "INFO nothing\n", "log");
  CHECK(terminal.model == "meta-llama/Llama-3.1-8B-Instruct");
  CHECK(terminal.tp == 2);
  CHECK(terminal.drafts == 2);
  CHECK(terminal.precision == "fp8");
}

TEST_CASE("a number of GPUs that is none is refused with its line") {
  CHECK_THROWS_WITH(read_server_setup("\n" + vllm_line("None", "tensor_parallel_size=many, quantization=None"), "log"),
                    "log, line 2: tensor_parallel_size is 'many'; expected a number from 1 to 1024");
}
