"""llama.cpp's server on loopback: `serve.py MODEL none|ngram|draft [BLOCKS]`. Prints its URL; ends at a signal.

The draft model is MODEL with half of its blocks. BLOCKS: serves MODEL's first blocks alone: other text, the same
server, several times faster. One thread: two of ggml wait for each other actively, 30 times slower beside other
load."""

import signal
import sys
import tempfile
from pathlib import Path

import gguf
import xllamacpp


def shortened(model: str, out: Path, blocks: int) -> str:
    """Writes `model` with its first `blocks` blocks, all of them where it has no more. Returns the path."""
    reader = gguf.GGUFReader(model)
    blocks = min(blocks, reader.fields["llama.block_count"].contents())
    writer = gguf.GGUFWriter(str(out), "llama")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(name, field.contents())
        else:
            writer.add_key_value(name, blocks if name == "llama.block_count" else field.contents(), field.types[0])
    for tensor in reader.tensors:
        part = tensor.name.split(".")
        if part[0] != "blk" or int(part[1]) < blocks:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return str(out)


def main(model: str, drafts: str, blocks: int) -> None:
    kinds = xllamacpp.common_speculative_type
    params = xllamacpp.CommonParams()
    params.n_ctx, params.n_parallel, params.warmup = 8192, 4, False
    params.endpoint_metrics = params.endpoint_props = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        params.model.path = shortened(model, Path(folder) / "model.gguf", blocks)
        if drafts == "ngram":
            params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
            params.speculative.ngram_simple.size_n, params.speculative.ngram_simple.size_m = 2, 4
        elif drafts == "draft":
            params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
            params.speculative.draft.mparams.path = shortened(model, Path(folder) / "draft.gguf", max(1, blocks // 2))
            params.speculative.draft.cpuparams.n_threads = params.speculative.draft.cpuparams_batch.n_threads = 1
        server = xllamacpp.Server(params)
        print(server.listening_address, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 30)
