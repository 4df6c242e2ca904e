"""The shipped model as a folder that Hugging Face's library and vLLM load, and a server process on loopback."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path


def write(model: str, folder: str, blocks: int, samples: bool = False) -> None:
    """Writes the first `blocks` blocks of a GGUF file, all where it has no more, with its tokenizer, in float32.
    samples: what its generation_config says of do_sample."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    path = Path(model)
    named = {"gguf_file": path.name}
    whole = AutoModelForCausalLM.from_pretrained(str(path.parent), dtype=torch.float32,
                                                 quantization_config=GgufConfig(dequantize=True), **named)
    whole.model.layers = whole.model.layers[:blocks]
    whole.config.num_hidden_layers = len(whole.model.layers)
    if getattr(whole.config, "layer_types", None):
        whole.config.layer_types = whole.config.layer_types[:blocks]
    whole.generation_config.do_sample = samples
    whole.save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(path.parent), **named).save_pretrained(folder)


def written(model: str, blocks: int, samples: bool = False) -> str:
    """Returns the folder that `write` makes, in build/engines; it is made once."""
    folder = Path(model).parents[1] / "engines" / f"model-{blocks}{'-samples' * samples}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            write(model, f"{place}/model", blocks, samples)
            with contextlib.suppress(OSError):  # another process was faster
                os.rename(f"{place}/model", folder)
    return str(folder)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(command: list[str], port: int, health: str) -> None:
    """Runs a server with no network but loopback's, prints its URL once it answers at `health`, ends it at a signal."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    server = subprocess.Popen(command, env=environment, stdout=sys.stderr, start_new_session=True)
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    url, is_up = f"http://127.0.0.1:{port}", False
    try:
        while server.poll() is None:
            try:
                if not is_up and urllib.request.urlopen(url + health, timeout=5).status == 200:
                    is_up = True
                    print(url, flush=True)
            except (urllib.error.URLError, OSError):
                pass
            if signal.sigtimedwait(stop, 1.0):
                break
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
