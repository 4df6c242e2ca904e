"""A model of llama.cpp whose logits are rows that are given: after token i comes row i of a table.

One layer of zeros lets the embedding of the last token through, which is a unit vector; the output matrix holds the
rows. So the engine's own decoding hands our rows to its own samplers.
"""

import ctypes
import tempfile
from pathlib import Path

import gguf
import numpy as np

pointer, i32, i8 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int8
MASKED = np.float32(-1e30)  # in the matrix, where -inf times 0 is no number
WIDTH = 32


class Opaque(ctypes.Structure):
    """Parameters by value, of which the engine gives and takes as many bytes as they have."""

    _fields_ = [("words", ctypes.c_uint32 * 128)]


#: Of llama_context_params of this version: 512 tokens, and 4 threads twice, are its defaults there.
N_CTX, N_THREADS = 0, 7


class Batch(ctypes.Structure):
    """llama_batch of llama.h."""

    _fields_ = [("n_tokens", i32), ("token", ctypes.POINTER(i32)), ("embd", pointer), ("pos", ctypes.POINTER(i32)),
                ("n_seq_id", ctypes.POINTER(i32)), ("seq_id", ctypes.POINTER(ctypes.POINTER(i32))),
                ("logits", ctypes.POINTER(i8))]


def declare(library):
    for name, result, *arguments in (
            ("llama_model_default_params", Opaque), ("llama_context_default_params", Opaque),
            ("llama_model_load_from_file", pointer, ctypes.c_char_p, Opaque),
            ("llama_init_from_model", pointer, pointer, Opaque),
            ("llama_model_free", None, pointer), ("llama_free", None, pointer),
            ("llama_batch_init", Batch, i32, i32, i32),
            ("llama_decode", i32, pointer, Batch), ("llama_get_memory", pointer, pointer),
            ("llama_memory_clear", None, pointer, ctypes.c_bool), ("llama_log_set", None, pointer, pointer)):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(ctypes.cast(quiet, pointer), None)


@ctypes.CFUNCTYPE(None, i32, ctypes.c_char_p, pointer)
def quiet(level, text, data):
    pass


def write(path, table):
    """table: float32 [R, V], the rows."""
    size, vocab_size = table.shape
    width = WIDTH * -(-size // WIDTH)
    tokens = max(size, vocab_size)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-12)
    writer.add_vocab_size(tokens)
    writer.add_tokenizer_model("no_vocab")
    embedding, output = np.zeros((tokens, width), np.float32), np.full((tokens, width), MASKED, np.float32)
    embedding[np.arange(size), np.arange(size)] = 1.0
    output[:vocab_size, :size] = np.where(np.isfinite(table), table, MASKED).T
    zeros = np.zeros((width, width), np.float32)
    ones = np.ones(width, np.float32)
    for name, value in (
            ("token_embd", embedding), ("output", output), ("output_norm", ones / np.float32(np.sqrt(width))),
            ("blk.0.attn_norm", ones),
            ("blk.0.ffn_norm", ones), *((f"blk.0.attn_{part}", zeros) for part in ("q", "k", "v", "output")),
            ("blk.0.ffn_gate", zeros[:WIDTH]), ("blk.0.ffn_up", zeros[:WIDTH]),
            ("blk.0.ffn_down", np.ascontiguousarray(zeros[:, :WIDTH]))):
        writer.add_tensor(f"{name}.weight", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class TableModel:
    """Rows of one vocabulary, as they come; a model is made again when there are new ones."""

    def __init__(self, library):
        self.library, self.rows, self.model, self.context = library, {}, None, None

    def decode(self, rows):
        """rows [n, V] -> of each the place in the context's logits that holds it."""
        before = len(self.rows)
        each = [self.rows.setdefault(row.tobytes(), len(self.rows)) for row in rows]
        ids, index = np.unique(each, return_inverse=True)
        if len(self.rows) != before:
            self._load(np.stack([np.frombuffer(row, np.float32) for row in self.rows]))
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)
        batch = self.library.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, 1
            batch.seq_id[i][0] = 0
        assert self.library.llama_decode(self.context, batch) == 0
        return index.reshape(-1)

    def _load(self, table):
        if self.model is not None:
            self.library.llama_free(self.context)
            self.library.llama_model_free(self.model)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.gguf"
            write(path, table)
            self.model = self.library.llama_model_load_from_file(str(path).encode(),
                    self.library.llama_model_default_params())
            given = self.library.llama_context_default_params()
            given.words[N_CTX], given.words[N_THREADS], given.words[N_THREADS + 1] = 4096, 1, 1
            self.context = self.library.llama_init_from_model(self.model, given)
