"""MLX LM's server on loopback, on a CPU: `serve.py MODEL none|draft [BLOCKS]`. Prints its URL; ends at a signal.

The draft model is MODEL with half of its blocks. BLOCKS: as of vllm_cpu."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))

import hf_folder  # noqa: E402


def main(model: str, drafts: str, blocks: int) -> None:
    # where that folder is missing, its list of models is an empty answer
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_CACHE": os.path.dirname(model)}
    port = hf_folder.free_port()
    more = ["--draft-model", hf_folder.written(model, max(1, blocks // 2))] if drafts == "draft" else []
    hf_folder.serve([sys.executable, "-m", "mlx_lm", "server", "--model", hf_folder.written(model, blocks), "--host",
                     "127.0.0.1", "--port", str(port), *more], port, "/v1/models")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 30)
