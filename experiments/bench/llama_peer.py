"""Times llama.cpp on the model file that `draftproof bench` measures, by one of its Python packages.

Prints one JSON document: the fastest of the repeats of each measurement, by the program's names. Decoding is that of
one request at temperature 1 without filters, sampling included; its first token belongs to the prompt and is not timed.
"""

import argparse
import importlib.metadata
import json
import os
import time

DECODED = 32  # tokens timed


def prompt_of(length):
    return [100 + i * 37 % 40000 for i in range(length)]


def with_xllamacpp(args, threads):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.n_ctx = 2 * args.prompt
    params.n_batch = params.n_ubatch = args.prompt
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = -1
    server = xllamacpp.Server(params)

    def timings(prompt_len, tokens):
        request = {"prompt": prompt_of(prompt_len), "n_predict": tokens, "ignore_eos": True, "cache_prompt": False,
                   "temperature": 1.0, "samplers": ["temperature"], "seed": 1}
        return server.handle_completions(request)["timings"]

    timings(8, 1)
    for _ in range(args.repeat):
        yield timings(args.prompt, 1)["prompt_ms"], timings(8, DECODED + 1)["predicted_ms"]


def with_llama_cpp(args, threads):
    import llama_cpp

    llama = llama_cpp.Llama(args.model, n_ctx=2 * args.prompt, n_batch=args.prompt, n_ubatch=args.prompt,
                            n_threads=threads, n_threads_batch=threads, n_gpu_layers=0, verbose=False)

    def prefill(length):
        llama.reset()
        begin = time.perf_counter()
        llama.eval(prompt_of(length))
        return (time.perf_counter() - begin) * 1e3

    def decode():
        prefill(8)
        token = llama.sample(top_k=0, top_p=1.0, min_p=0.0, temp=1.0, repeat_penalty=1.0)
        begin = time.perf_counter()
        for _ in range(DECODED):
            llama.eval([token])
            token = llama.sample(top_k=0, top_p=1.0, min_p=0.0, temp=1.0, repeat_penalty=1.0)
        return (time.perf_counter() - begin) * 1e3

    prefill(8)
    for _ in range(args.repeat):
        yield prefill(args.prompt), decode()


PACKAGES = {"xllamacpp": with_xllamacpp, "llama-cpp-python": with_llama_cpp}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, required=True)
    parser.add_argument("--repeat", type=int, required=True)
    parser.add_argument("--threads", type=int, nargs="+", required=True)
    args = parser.parse_args()

    # The library may write to standard output, which is for the document alone.
    document_file = os.dup(1)
    os.dup2(2, 1)
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    package = next(iter(versions))
    results = []
    for threads in args.threads:
        prefill_ms, decode_ms = map(min, zip(*PACKAGES[package](args, threads)))
        results.append({"name": f"shipped_prefill_{args.prompt}", "threads": threads, "ms": prefill_ms})
        results.append({"name": f"shipped_decode_{DECODED}", "threads": threads, "ms": decode_ms})
    with os.fdopen(document_file, "w") as out:
        json.dump({"version": f"{package} {versions[package]}", "results": results}, out, indent=1)


if __name__ == "__main__":
    main()
