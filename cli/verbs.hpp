// The verbs of the program. Verb `name` is built from cli/<name>/, where command.cpp defines add_command()
// (cli/shared/command.hpp), as a program of its own, verbs/<name> beside draftproof, which starts it.
#pragma once

namespace draftproof {

struct Verb {
  const char* name;
  const char* purpose;  // one line of the program's help
};

// In the order of the program's help.
inline constexpr Verb kVerbs[] = {
    {"acceptance", "Show how acceptance falls along a draft, for several drafters, and the best K at a draft cost"},
    {"audit", "Test what another sampler drew against the distribution it should have drawn from"},
    {"bench", "Measure the reference, or the kernels, against this machine's bandwidth"},
    {"calibrate", "Fit the constants of engines to measured speedups, with their uncertainty"},
    {"dash", "A window: speculation live, distributions, trees, predictions, serving, proofs"},
    {"demo", "Speculative decoding of real text, with a verdict on its distribution"},
    {"experiments", "What people quote of speculation, and what the simulator says of each claim"},
    {"generate", "Text from a language model, plain or with speculation, one request or many"},
    {"lab", "One verification step over a p and a q given by hand: sampled, tested, or with a bug that shipped"},
    {"machine", "Describe this machine: processor, memory, vector instructions"},
    {"model", "Say what a model file is: architecture, tensors, tokenizer, chat template"},
    {"mutants", "Catch the bugs that shipped, without a false alarm on correct code"},
    {"predict", "Say when speculation pays: K, tree and batch sizes for a model, a GPU and a drafter"},
    {"prove", "Prove the distribution of every verifier by enumeration over exact fractions"},
    {"regress", "Compare every kernel with the reference, bit for bit"},
    {"sim", "Serve a workload in simulated time: one policy of speculation against another"},
    {"soak", "Verify a billion chains and test what comes out against its exact distribution"},
    {"speculate", "Measure what speculation is worth: drafters, drafts and kinds of work on a real model"},
    {"sweep", "Run a grid of scenarios over cores and machines; rows go to SQLite as they finish"},
    {"tree", "Build a draft tree and verify it step by step, with every number that is compared"},
    {"validate", "Predict measured speedups from other laboratories' only, and say by how much it errs"},
    {"verifiers", "List the verifiers: the draft that each takes, its guarantee, its source"},
    {"verify", "Replay a trace file: what an engine's verification step emits"},
};

}  // namespace draftproof
