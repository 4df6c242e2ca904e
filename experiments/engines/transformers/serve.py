"""transformers' server on loopback: `serve.py MODEL none|sampling [BLOCKS]`. Prints its URL; ends at a signal.

sampling: the model's generation_config says do_sample, as most published models' does. BLOCKS: as of vllm_cpu."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))

import hf_folder  # noqa: E402


def main(model: str, kind: str, blocks: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    port = hf_folder.free_port()
    folder = hf_folder.written(model, blocks, samples=kind == "sampling")
    program = os.path.join(os.path.dirname(sys.executable), "transformers")
    hf_folder.serve([sys.executable, program, "serve", folder, "--host", "127.0.0.1", "--port", str(port), "--device",
                     "cpu"], port, "/health")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 30)
