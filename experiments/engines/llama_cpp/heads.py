"""What llama.cpp drafts with an EAGLE-3 head of this project, recorded for `draftproof audit --drafter head:HEAD`.

    ./draftproof generate --model TARGET --drafter head:HEAD --verifier chain -k 3 --policy fixed:3 --record-drafts OURS
    --prompts FILE build/engines/llama_cpp/bin/python experiments/engines/llama_cpp/heads.py TARGET HEAD OURS THEIRS
    ./draftproof audit THEIRS --model TARGET --drafter head:HEAD

TARGET, HEAD: GGUF files. OURS: a recorded run, whose prompts and numbers of tokens are taken. THEIRS: what llama.cpp
drafts and accepts for them at temperature 0, out of its own log. Prints how long it accepts, and whether its tokens are
those that it decodes without the head.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

DRAFTS, VERBOSE = 3, 5  # drafts of a step; the level at which drafts are logged


def with_vocabulary(head: str, target: str, out: Path) -> None:
    """The head as llama.cpp's converter writes it today: `target_layers`, and the target's tokenizer."""
    writer, reader = gguf.GGUFWriter(str(out), "eagle3"), gguf.GGUFReader(head)
    fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")
              and name != "general.architecture"}
    fields.update((name, field) for name, field in gguf.GGUFReader(target).fields.items()
                  if name.startswith("tokenizer."))
    fields.setdefault("eagle3.target_layers", fields["eagle3.extract_layers"])
    for name, field in fields.items():
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(name, field.contents())
        else:
            writer.add_key_value(name, field.contents(), field.types[0])
    for tensor in reader.tensors:
        data = np.array(tensor.data)
        writer.add_tensor(tensor.name, data, raw_dtype=None if data.dtype in (np.float32, np.int64)
                          else tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(target: str, head: str, requests: str) -> None:
    """In a process of its own, whose standard error is the engine's log. head: '' for none."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.warmup, params.cache_ram_mib, params.verbosity = (target,
            4096, 1, False, 0, VERBOSE)
    if head:
        params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3]
        params.speculative.draft.mparams.path, params.speculative.draft.n_max, params.speculative.draft.p_min = (head,
                DRAFTS, 0.0)
    server = xllamacpp.Server(params)
    for line in Path(requests).read_text(encoding="utf-8").splitlines():
        request = json.loads(line)
        server.handle_completions({"prompt": request["prompt_tokens"], "n_predict": len(request["output_tokens"]),
                                   "temperature": 0.0, "cache_prompt": False})


def recorded(log: str, requests: list[dict]) -> list[dict]:
    """The steps of each request in the engine's log, in which each is a task of one slot."""
    tasks: dict[int, tuple[list[int], list[dict]]] = {}
    drafts: list[int] = []
    for line in log.splitlines():
        if found := re.search(r"draft candidate +0, pos +(\d+): +(\d+) ", line):
            drafts = [*(drafts if int(found[1]) else []), int(found[2])]
        elif found := re.search(r"task (\d+) \| (.*)", line):
            output, steps = tasks.setdefault(int(found[1]), ([], []))
            if of := re.match(r"generate_draft: id=\d+, #tokens=(\d+), #draft=(\d+)", found[2]):
                steps.append({"position": int(of[1]) + 1, "drafts": drafts[:int(of[2])], "accepted": 0})
            elif of := re.match(r"accepted (\d+)/\d+ draft tokens", found[2]):
                steps[-1]["accepted"] = int(of[1])
            elif of := re.search(r"next token: +(\d+) ", found[2]):
                output.append(int(of[1]))
    runs = [(output, steps) for _, (output, steps) in sorted(tasks.items()) if output]
    assert len(runs) == len(requests), f"the log has {len(runs)} requests; expected {len(requests)}"
    return [{"prompt_tokens": request["prompt_tokens"], "output_tokens": output, "temperature": 0.0, "steps": steps}
            for request, (output, steps) in zip(requests, runs)]


def main() -> int:
    if sys.argv[1] == "--serve":
        serve(*sys.argv[2:])
        return 0
    target, head, ours, theirs = sys.argv[1:]
    requests = [json.loads(line) for line in Path(ours).read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "head.gguf"
        with_vocabulary(head, target, made)
        logs = [subprocess.run([sys.executable, __file__, "--serve", target, path, ours], stderr=subprocess.PIPE,
                               check=True, text=True, errors="replace").stderr for path in (str(made), "")]
    runs, plain = recorded(logs[0], requests), recorded(logs[1], requests)
    Path(theirs).write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    same = sum(run["output_tokens"] == alone["output_tokens"] for run, alone in zip(runs, plain))
    print(f"{same} of {len(runs)} outputs are those without the head")
    for name, each in (("llama.cpp", runs), ("ours", requests)):
        steps = [step for run in each for step in run["steps"] if len(step["drafts"]) == DRAFTS]
        print(f"{name}: {len(steps)} steps of {DRAFTS} drafts, acceptance length "
              f"{1 + np.mean([step['accepted'] for step in steps]):.3f}")
    return 0 if same == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
