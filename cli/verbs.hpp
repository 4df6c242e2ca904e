// The verbs of the command line. Verb `name` lives in cli/<name>/, where command.cpp defines add_<name>()
// (cli/shared/command.hpp). Verbs that need the same libraries are one program, verbs/<program> beside draftproof,
// which starts it; cli/CMakeLists.txt says which.
#pragma once

namespace draftproof {

struct Verb {
  const char* name;
  const char* program;
  const char* purpose;  // one line of the help
};

// In the order of the help.
inline constexpr Verb kVerbs[] = {
    {"acceptance", "studies",
     "Show how acceptance falls along a draft, for several drafters, and the best K at a draft cost"},
    {"audit", "exactness", "Test what another sampler drew against the distribution it should have drawn from"},
    {"bench", "studies", "Measure the reference, or the kernels, against this machine's bandwidth"},
    {"calibrate", "sim", "Fit the constants of engines to measured speedups, with their uncertainty"},
    {"dash", "viz", "A window: speculation live, distributions, trees, predictions, serving, proofs"},
    {"demo", "engine", "Speculative decoding of real text, with a verdict on its distribution"},
    {"experiments", "studies", "What people quote of speculation, and what the simulator says of each claim"},
    {"generate", "engine", "Text from a language model, plain or with speculation, one request or many"},
    {"lab", "studies",
     "One verification step over a p and a q given by hand: sampled, tested, or with a bug that shipped"},
    {"machine", "engine", "Describe this machine: processor, memory, vector instructions"},
    {"model", "engine", "Say what a model file is: architecture, tensors, tokenizer, chat template"},
    {"bugs", "exactness", "Catch the bugs that shipped, without a false alarm on correct code"},
    {"predict", "sim", "Say when speculation pays: K, tree and batch sizes for a model, a GPU and a drafter"},
    {"prove", "exactness", "Prove the distribution of every verifier by enumeration over exact fractions"},
    {"regress", "gpu", "Compare every kernel with the reference, bit for bit"},
    {"sim", "sim", "Serve a workload in simulated time: one policy of speculation against another"},
    {"soak", "exactness", "Verify a billion chains and test what comes out against its exact distribution"},
    {"speculate", "engine", "Measure what speculation is worth: drafters, drafts and kinds of work on a real model"},
    {"sweep", "sim", "Run a grid of scenarios over cores and machines; rows go to SQLite as they finish"},
    {"tree", "studies", "Build a draft tree and verify it step by step, with every number that is compared"},
    {"validate", "sim", "Predict measured speedups from other laboratories' only, and say by how much it errs"},
    {"verifiers", "engine", "List the verifiers: the draft that each takes, its guarantee, its source"},
    {"verify", "engine", "Replay a trace file: what an engine's verification step emits"},
};

}  // namespace draftproof
