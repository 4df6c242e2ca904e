"""Masks of `draftproof generate` against those of llguidance, a second grammar engine, at every row of every step.

    python3 -m venv out/env; out/env/bin/pip install llguidance==1.9.1 safetensors numpy gguf
    out/env/bin/python experiments/structured/llguidance_masks.py build/release/draftproof [--model FILE.gguf]

Ours hold at most 16 characters of white space between two parts, no tabs, and llguidance is told the same. Prints, by
schema, the rows, those with equal masks, and what else each engine allows; a row where ours allows what llguidance
refuses is shown.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import llguidance
import numpy as np
from safetensors.numpy import load_file

here = Path(__file__).parent
#: Regular expressions of tests/engine/grammar and docs, beside the schemas.
REGEXES = {"date": "[0-9]{4}-[0-9]{2}-[0-9]{2}", "optional": "a?b{2,3}(c|de)+", "words": "([a-z]+ ){1,3}[a-z]+",
           "class": "[^\"\\\\\\n]{0,8}x"}


class Bytes:
    """The vocabulary of n-gram models: bytes, and an end of its own."""

    eos_token_id, bos_token_id, special_token_ids = 256, None, [256]
    tokens = [bytes([i]) for i in range(256)] + [b"<end>"]

    def __call__(self, text):
        return list(text)


class Gguf(Bytes):
    """That of a GGUF file with byte-level tokens."""

    def __init__(self, path):
        import gguf

        fields = gguf.GGUFReader(path).fields
        texts = [bytes(fields["tokenizer.ggml.tokens"].parts[i]).decode() for i in fields["tokenizer.ggml.tokens"].data]
        kinds = [int(fields["tokenizer.ggml.token_type"].parts[i][0]) for i in fields["tokenizer.ggml.token_type"].data]
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [i for i in range(256) if i not in printable]
        byte_of = {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(others)}
        self.special_token_ids = [i for i, kind in enumerate(kinds) if kind != 1]
        self.tokens = [text.encode() if kind != 1 else bytes(byte_of[c] for c in text) for text,
                       kind in zip(texts, kinds)]
        self.eos_token_id = int(fields["tokenizer.ggml.eos_token_id"].parts[-1][0])

    def __call__(self, text):
        raise NotImplementedError


def grammar_of(entry):
    if "regex" in entry:
        return llguidance.LLMatcher.grammar_from_regex(entry["regex"])
    blanks = {"whitespace_pattern": "[ \\n\\r]{0,16}", "whitespace_flexible": True}
    return llguidance.LLMatcher.grammar_from_json_schema({**entry["schema"], "x-guidance": blanks})


def bits(words, size):
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")[:size].astype(bool)


def run(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def rows_of(trace, emitted, size):
    """(tokens before it, mask) of every row: behind the context, and behind each draft."""
    row = draft = 0
    before = []
    for draft_end, tokens in zip(trace["cu_num_draft_tokens"], emitted):
        for number in range(draft_end - draft + 1):
            yield before + [int(t) for t in trace["draft_tokens"][draft:draft + number]], bits(trace["bitmask"][row],
                    size)
            row += 1
        draft, before = draft_end, before + tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", default="ngram:3")
    parser.add_argument("--outputs", type=int, default=5, help="of each schema")
    parser.add_argument("--max-tokens", type=int, default=120)
    options = parser.parse_args()
    vocabulary = Bytes() if options.model.startswith("ngram") else Gguf(options.model)
    size = 256 if options.model.startswith("ngram") else len(vocabulary.tokens)
    tokenizer = llguidance.LLTokenizer(llguidance._tokenizer.TokenizerWrapper(vocabulary))
    entries = [json.loads(line) for line in (here / "schemas.jsonl").read_text(encoding="utf-8").splitlines()]
    entries += [{"name": f"regex {name}", "regex": regex} for name, regex in REGEXES.items()]
    total = collections.Counter()
    for entry in entries:
        grammar, counts, shown = grammar_of(entry), collections.Counter(), {}
        if error := llguidance.LLMatcher.validate_grammar(grammar, tokenizer):
            print(f"{entry['name']}: llguidance refuses it: {error.splitlines()[0]}")
            total["grammars refused by llguidance"] += 1
            continue
        for seed in range(options.outputs):
            with tempfile.TemporaryDirectory() as folder:
                form = ["--regex", entry["regex"]] if "regex" in entry else ["--json-schema", f"{folder}/schema.json"]
                Path(folder, "schema.json").write_text(json.dumps(entry.get("schema")))
                path = f"{folder}/trace.safetensors"
                run(options.program, "generate", "--model", options.model, "--prompt", "An example: ", *form, "--seed",
                    str(seed), "--temperature", "1",
                    "--drafter", "suffix", "--policy", "fixed:4", "-k", "4", "--max-tokens", str(options.max_tokens),
                    "--trace", path)
                emitted = run(options.program, "verify", path)["output_tokens"]
                trace = load_file(path)
            for before, ours in rows_of(trace, emitted, size):
                matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
                counts["rows"] += 1
                if not matcher.consume_tokens(before) or matcher.is_stopped():
                    if not matcher.is_stopped() or matcher.is_error():
                        counts["behind a token that llguidance refuses"] += 1
                    continue
                if matcher.is_accepting() and not matcher.compute_ff_tokens() and not np.delete(bits(np.frombuffer(
                        matcher.compute_bitmask(), np.uint8), len(vocabulary.tokens)), vocabulary.eos_token_id).any():
                    counts["behind the end"] += 1  # no row of a request: nothing is drawn there
                    continue
                theirs = bits(np.frombuffer(matcher.compute_bitmask(), np.uint8), size)
                for special in vocabulary.special_token_ids:
                    if special < size and special != vocabulary.eos_token_id:
                        ours[special] = theirs[special]
                more, less = np.flatnonzero(ours & ~theirs), np.flatnonzero(theirs & ~ours)
                counts["equal"] += not len(more) and not len(less)
                for name, found in (("ours allows more", more), ("llguidance allows more", less)):
                    counts[name] += len(found) > 0
                    if len(found):
                        text = b"".join(vocabulary.tokens[t] for t in before)
                        shown.setdefault((name, tuple(vocabulary.tokens[t] for t in found[:4]), len(found)), text)
        total += counts
        print(entry["name"], dict(counts))
        for (name, tokens, number), text in list(shown.items())[:4]:
            print(f"    {name} behind {text[-50:]!r}: {number} tokens, {b' | '.join(tokens)!r}")
    print("all", dict(total))


if __name__ == "__main__":
    main()
