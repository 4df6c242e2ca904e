"""vLLM's server on loopback, on a CPU: `serve.py MODEL none|ngram [BLOCKS]`. Prints its URL; ends at a signal.

BLOCKS: serves MODEL's first blocks alone: other text, the same server, several times faster."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))

import hf_folder  # noqa: E402

NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3, "prompt_lookup_min": 1}


def main(model: str, drafts: str, blocks: int) -> None:
    os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    port = hf_folder.free_port()
    speculation = ["--speculative-config", json.dumps(NGRAM)] if drafts == "ngram" else []
    hf_folder.serve([sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model",
                     hf_folder.written(model, blocks), "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32",
                     "--max-model-len", "1024", "--max-num-seqs", "8", "--enforce-eager", "--generation-config",
                     "vllm", *speculation], port, "/health")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 30)
