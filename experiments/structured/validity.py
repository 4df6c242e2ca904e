"""Is every output a document of its schema? Outputs of `draftproof generate` over the schemas of schemas.jsonl, judged
by the Python package jsonschema, which shares nothing with the grammar's library.

    ./draftproof fetch smollm2; python3 -m venv out/env; out/env/bin/pip install jsonschema
    out/env/bin/python experiments/structured/validity.py build/release/draftproof --model smollm2 --outputs 50
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

here = Path(__file__).parent


def twice(text):
    """Does a name stand twice in an object? The grammar of a schema with names of its own choosing cannot exclude
    it."""
    found = []
    json.loads(text, object_pairs_hook=lambda pairs: found.append(len(dict(pairs)) < len(pairs)))
    return any(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--outputs", type=int, default=50, help="of each schema")
    parser.add_argument("--max-tokens", type=int, default=150)
    parser.add_argument("--temperature", type=float, default=1.0)
    options, others = parser.parse_known_args()  # others are options of generate
    schemas = [json.loads(line) for line in (here / "schemas.jsonl").read_text(encoding="utf-8").splitlines()]
    chat = not options.model.startswith("ngram")
    with tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.jsonl"
        with prompts.open("w", encoding="utf-8") as out:
            for entry in schemas:
                for seed in range(options.outputs):
                    line = {"prompt": f"Give an example of \"{entry['name']}\" as JSON.", "chat": chat, "seed": seed,
                            "max_tokens": options.max_tokens, "temperature": options.temperature,
                            "json_schema": entry["schema"]}
                    out.write(json.dumps(line) + "\n")
        done = subprocess.run([options.program, "generate", "--model", options.model, "--prompts", prompts, "--json",
                               *others], capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout[-2000:])
    document = json.loads(done.stdout)
    counts = collections.Counter()
    tokens = 0
    for number, request in enumerate(document["requests"]):
        entry = schemas[number // options.outputs]
        tokens += len(request["tokens"])
        if request["finish_reason"] == "length":
            counts["cut, and said so" if not request["grammar"]["complete"] else "whole at the limit"] += 1
            if not request["grammar"]["complete"]:
                continue
        try:
            value = json.loads(request["text"])
            jsonschema.validate(value, entry["schema"], cls=jsonschema.Draft202012Validator)
            counts["valid"] += 1
            counts["of them with a name twice"] += twice(request["text"])
        except (ValueError, jsonschema.ValidationError) as error:
            counts["invalid"] += 1
            print(f"{entry['name']}: {request['text']!r}: {str(error).splitlines()[0]}")
    print(dict(counts), f"of {len(document['requests'])} outputs with {tokens} tokens; masks took "
          f"{100 * document['mask_share']:.2f} % of the time, the target {100 * document['target_share']:.2f} %; "
          f"tokens per step {document['tokens_per_step']}")
    sys.exit(1 if counts["invalid"] else 0)


if __name__ == "__main__":
    main()
