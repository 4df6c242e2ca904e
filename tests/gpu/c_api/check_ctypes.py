#!/usr/bin/env python3
"""The C interface from Python's ctypes alone: check_ctypes.py <libdraftproof.so>

Mirrors the structs of draftproof.h, checks their sizes with the library, then verifies a chain and a tree, makes the
tree's mask and samples, by the reference and by the kernels on the CPU executor, and compares every bit. Exit code 0
where all agree.
"""
import ctypes as c
import sys

REFERENCE, SIMT = 0, 1
F32 = 0
ONE_HOT, PROBABILITIES, LOGITS = 0, 1, 2
TARGET_ONLY, RRSW = 0, 1
POINTER, I32, I64, U64 = c.c_void_p, c.c_int32, c.c_int64, c.c_uint64


def struct(name, *fields):
    """A struct of draftproof.h; a field is (name, type) or the names of several pointers in one string."""
    expanded = []
    for field in fields:
        if isinstance(field, str):
            expanded += [(pointer, POINTER) for pointer in field.split()]
        else:
            expanded.append(field)
    return type(name, (c.Structure,), {"_fields_": expanded})


Settings = struct("draftproof_settings", ("executor", I32), "stream", ("block_threads", I32), ("os_threads", I32),
                  ("seed", U64))
Rows = struct("draftproof_rows", "data", ("row_stride", I64), ("dtype", I32))
Parameters = struct("draftproof_parameters",
                    "temperature top_k top_p min_p filter_order ties top_p_rule repetition_penalty "
                    "frequency_penalty presence_penalty guidance_scale nan_policy")
Constraints = struct("draftproof_constraints", "allowed_mask", ("allowed_mask_stride", I64),
                     "allowed_ids", ("allowed_ids_count", I64), "allowed_offsets",
                     "history_tokens", ("history_tokens_count", I64), "history_offsets prompt_len",
                     ("history_len_max", I64),
                     "row_draft_tokens", ("row_draft_tokens_count", I64), "row_draft_begin row_draft_len",
                     "bad_word_tokens", ("bad_word_tokens_count", I64),
                     "bad_word_offsets", ("bad_word_sequences_count", I64), "bad_word_sequences",
                     "min_tokens", "stop_ids", ("stop_ids_count", I64), "stop_offsets",
                     "bias_tokens bias_values", ("bias_count", I64), "bias_offsets")
RowSums = struct("draftproof_row_sums", "row_exponent row_total status")
Randomness = struct("draftproof_randomness", "seed step")
Sample = struct("draftproof_sample_arguments", ("rows", I64), ("requests", I64), ("vocab_size", I64), "row_request",
                ("logits", Rows), ("unconditional", Rows), ("parameters", Parameters), ("constraints", Constraints),
                ("randomness", Randomness), "row_in_step", ("sampler", I32), ("purpose", I32),
                "tokens logprobs kept_mass kept_count probabilities", ("probabilities_stride", I64), "status workspace",
                ("workspace_bytes", I64))
Logprobs = struct("draftproof_logprobs_arguments", ("rows", I64), ("requests", I64), ("vocab_size", I64), "row_request",
                  ("logits", Rows), ("unconditional", Rows), ("parameters", Parameters), ("constraints", Constraints),
                  ("n", I32), "sampled ids", ("ids_count", I64), "ids_offsets", ("ids_max", I32),
                  "tokens logprobs ranks status workspace", ("workspace_bytes", I64))
Verify = struct("draftproof_verify_arguments", ("requests", I64), ("draft_tokens_total", I64), ("draft_len_max", I64),
                ("vocab_size", I64), "draft_tokens cu_num_draft_tokens parents", ("tree_rule", I32),
                ("target_kind", I32), ("target", Rows), ("unconditional", Rows), ("parameters", Parameters),
                ("constraints", Constraints), ("proposal_kind", I32), ("proposal", Rows),
                ("draft_parameters", Parameters), ("proposal_sums", RowSums), ("randomness", Randomness),
                "num_accepted tokens logprobs path status workspace", ("workspace_bytes", I64))
VerifyByName = struct("draftproof_verify_by_name_arguments", "verifier", ("sampler", I32), "position",
                      ("drafts", Verify))
TreeMask = struct("draftproof_tree_mask_arguments", ("requests", I64), ("draft_tokens_total", I64),
                  ("draft_len_max", I64), "cu_num_draft_tokens parents depths mask", ("words_per_row", I64), "status")


class Call:
    """One call's arrays: what is given to it lives as long as the object."""

    def __init__(self, library, executor):
        self.library = library
        self.settings = Settings(executor=executor, os_threads=1, seed=5)
        self.kept = []
        self.outputs = {}

    def array(self, kind, values):
        made = (kind * len(values))(*values)
        self.kept.append(made)
        return c.addressof(made)

    def rows(self, rows):
        return Rows(self.array(c.c_float, [x for row in rows for x in row]), len(rows[0]), F32)

    def output(self, name, kind, count):
        made = (kind * count)()
        self.outputs[name] = made
        return c.addressof(made)

    def run(self, name, arguments):
        if hasattr(arguments, "workspace"):
            measure = getattr(self.library, f"draftproof_{name}_workspace_bytes")
            measure.restype = I64
            needed = measure(c.byref(arguments))
            assert needed >= 0, self.library.draftproof_error_message()
            memory = (c.c_char * (needed + 256))()
            self.kept.append(memory)
            arguments.workspace = (c.addressof(memory) + 255) // 256 * 256
            arguments.workspace_bytes = needed
        code = getattr(self.library, f"draftproof_{name}")(c.byref(arguments), c.byref(self.settings))
        assert code == 0, (name, code, self.library.draftproof_error_message())
        return {key: bytes(value) for key, value in self.outputs.items()}


CU = [0, 4, 4, 7]
PARENTS = [-1, -1, 0, 0, -1, 0, 0]
DRAFTS = [1, 2, 0, 3, 4, 1, 1]
ROWS = len(DRAFTS) + 3
NODES_MAX = 4


def distribution(row):
    """Probabilities in eighths, another order for every row."""
    eighths = [3, 2, 1, 1, 1]
    return [eighths[(i + row) % 5] / 8 for i in range(5)]


def verify_arguments(call, is_tree):
    a = Verify(requests=3, draft_tokens_total=len(DRAFTS), draft_len_max=NODES_MAX, vocab_size=5,
               target_kind=PROBABILITIES, proposal_kind=PROBABILITIES)
    a.draft_tokens = call.array(I32, DRAFTS)
    a.cu_num_draft_tokens = call.array(I64, CU)
    a.target = call.rows([distribution(r) for r in range(ROWS)])
    a.proposal = call.rows([distribution(2 * r + 1) for r in range(ROWS)])
    a.randomness = Randomness(call.array(U64, [7, 2**40 + 3, 9]), call.array(c.c_uint32, [0, 1, 2]))
    a.num_accepted = call.output("num_accepted", I32, 3)
    a.tokens = call.output("tokens", I32, 3 * (NODES_MAX + 1))
    a.logprobs = call.output("logprobs", c.c_float, 3 * (NODES_MAX + 1))
    a.status = call.output("status", I32, 3)
    if is_tree:
        a.tree_rule = RRSW
        a.parents = call.array(I32, PARENTS)
        a.path = call.output("path", I32, 3 * NODES_MAX)
    return a


def verify(library, executor, is_tree):
    call = Call(library, executor)
    return call.run("verify_tree" if is_tree else "verify_chain", verify_arguments(call, is_tree))


def verify_by_name(library, verifier, is_tree):
    """As verify(), by the verifier's name."""
    call = Call(library, REFERENCE)
    a = verify_arguments(call, is_tree)
    by_name = VerifyByName(c.cast(c.c_char_p(verifier), POINTER), 0, None, a)
    return call.run("verify_by_name", by_name)


def tree_mask(library, executor):
    call = Call(library, executor)
    a = TreeMask(requests=3, draft_tokens_total=len(DRAFTS), draft_len_max=NODES_MAX, words_per_row=1)
    a.cu_num_draft_tokens = call.array(I64, CU)
    a.parents = call.array(I32, PARENTS)
    a.depths = call.output("depths", I32, ROWS)
    a.mask = call.output("mask", c.c_uint32, ROWS)
    a.status = call.output("status", I32, 3)
    return call.run("tree_mask", a)


def sample(library, executor):
    call = Call(library, executor)
    a = Sample(rows=4, requests=2, vocab_size=5, sampler=0, purpose=4, probabilities_stride=5)
    a.row_request = call.array(I32, [1, 0, 1, 0])
    a.row_in_step = call.array(c.c_uint32, [0, 0, 1, 1])
    a.logits = call.rows([[float(i * r % 7) for i in range(5)] for r in range(1, 5)])
    a.parameters.temperature = call.array(c.c_float, [0.0, 1.5])
    a.parameters.top_k = call.array(I32, [0, 3])
    a.randomness = Randomness(call.array(U64, [1, 2]), call.array(c.c_uint32, [0, 0]))
    a.tokens = call.output("tokens", I32, 4)
    a.logprobs = call.output("logprobs", c.c_float, 4)
    a.probabilities = call.output("probabilities", c.c_float, 20)
    a.status = call.output("status", I32, 4)
    return call.run("sample", a)


def top_p_rules(library, executor):
    """The readings of top-p on a row that tells three of them apart at 5/8, and on one that tells 0 from 1 at 1/2."""
    call = Call(library, executor)
    a = Sample(rows=8, requests=8, vocab_size=4, sampler=0, purpose=4, probabilities_stride=4)
    a.logits = call.rows([[0.0, -0.6931472, -0.6931472, float("-inf")]] * 4 + [[0.0] * 4] * 4)
    a.parameters.top_p = call.array(c.c_float, [0.625] * 4 + [0.5] * 4)
    a.parameters.top_p_rule = call.array(c.c_uint8, [0, 1, 2, 3] * 2)
    a.randomness = Randomness(call.array(U64, range(8)), call.array(c.c_uint32, [0] * 8))
    a.tokens = call.output("tokens", I32, 8)
    a.probabilities = call.output("probabilities", c.c_float, 32)
    a.status = call.output("status", I32, 8)
    found = call.run("sample", a)
    p = list(call.outputs["probabilities"])
    kept = [{i for i in range(4) if p[4 * row + i] > 0} for row in range(8)]
    assert kept == [{0, 1}, {0, 1}, {0}, {0, 2}, {0, 1}, {0, 1, 2}, {0, 1}, {2, 3}], kept
    return found


def logprobs(library, executor):
    """The likeliest token, the sampled one and the ids 3, 0 of request 0, none of request 1."""
    call = Call(library, executor)
    a = Logprobs(rows=2, requests=2, vocab_size=5, n=1, ids_count=2, ids_max=2)
    a.logits = call.rows([[0.0, 3.0, 1.0, 2.0, -1.0]] * 2)
    a.sampled = call.array(I32, [2, 4])
    a.ids = call.array(I32, [3, 0])
    a.ids_offsets = call.array(I64, [0, 2, 2])
    a.tokens = call.output("tokens", I32, 8)
    a.logprobs = call.output("logprobs", c.c_float, 8)
    a.ranks = call.output("ranks", I64, 8)
    a.status = call.output("status", I32, 2)
    found = call.run("logprobs", a)
    assert list(call.outputs["tokens"]) == [1, 2, 3, 0, 1, 4, -1, -1]
    assert list(call.outputs["ranks"]) == [1, 3, 2, 4, 1, 5, 0, 0]
    return found


def check_sizes(library):
    library.draftproof_struct_bytes.restype = I64
    for mirror in (Settings, Rows, Parameters, Constraints, Randomness, Sample, Logprobs, Verify, VerifyByName,
                   TreeMask):
        theirs = library.draftproof_struct_bytes(mirror.__name__.encode())
        assert theirs == c.sizeof(mirror), (mirror.__name__, theirs, c.sizeof(mirror))


def main():
    library = c.CDLL(sys.argv[1])
    library.draftproof_error_message.restype = c.c_char_p
    assert library.draftproof_abi_version() == 4
    check_sizes(library)
    calls = {
        "verify_chain": lambda executor: verify(library, executor, False),
        "verify_tree": lambda executor: verify(library, executor, True),
        "tree_mask": lambda executor: tree_mask(library, executor),
        "sample": lambda executor: sample(library, executor),
        "logprobs": lambda executor: logprobs(library, executor),
        "sample by top_p_rule": lambda executor: top_p_rules(library, executor),
    }
    for name, run in calls.items():
        reference, kernels = run(REFERENCE), run(SIMT)
        for output in reference:
            assert reference[output] == kernels[output], (name, output)
        assert not any(reference["status"]), (name, reference["status"])
        print(f"{name}: {len(reference)} outputs are equal")

    assert verify_by_name(library, b"chain", False) == verify(library, REFERENCE, False)
    assert verify_by_name(library, b"rrsw", True) == verify(library, REFERENCE, True)
    print("verify_by_name: verifiers by name do what the calls named after them do")

    invalid = TreeMask(requests=3, words_per_row=-1)
    assert library.draftproof_tree_mask(c.byref(invalid), c.byref(Settings(executor=REFERENCE))) == 1
    assert b"cu_num_draft_tokens" in library.draftproof_error_message()
    assert library.draftproof_tree_mask(c.byref(invalid), c.byref(Settings(executor=9))) == 1
    print("invalid calls are refused")


if __name__ == "__main__":
    main()
