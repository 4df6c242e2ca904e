// The verbs of the command line. Verb `name` lives in cli/<name>/, where command.cpp defines add_<name>()
// (cli/shared/command.hpp). Verbs that need the same libraries are one program, verbs/<program> beside draftproof,
// which starts it; cli/CMakeLists.txt says which.
#pragma once

namespace draftproof {

struct Verb {
  const char* name;
  const char* program;
  const char* group;      // heading of the help under which it stands
  const char* purpose;    // one line of the help
  const char* next = "";  // of one that takes long: said at its end, where people look on
};

// In the order of the help: by group.
inline constexpr Verb kVerbs[] = {
    {"start", "engine", "Where to begin", "A few questions, then the one command for what you have"},
    {"prove", "exactness", "Is it exact?",
     "Prove the distribution of every verifier by enumeration over exact fractions",
     "prove --certificate FILE writes a proof that others can check; docs/exactness.md proves a rule of your own, in "
     "Python"},
    {"soak", "exactness", "Is it exact?",
     "Verify a billion chains and test what comes out against its exact distribution",
     "draftproof bugs shows what such tests catch"},
    {"bugs", "exactness", "Is it exact?", "Catch the bugs that shipped, without a false alarm on correct code",
     "draftproof lab --bug ID draws with one of them"},
    {"audit", "audit", "Is it exact?",
     "Test what another sampler drew against its distribution, or another engine's drafts against its head",
     "docs/conclusions.md says what may be concluded"},
    {"verify", "engine", "Is it exact?", "Replay a trace file: what an engine's verification step emits"},
    {"parity", "exactness", "Is it exact?",
     "Logits of the same rows from two paths of an engine: rounding, or a fault with its place"},
    {"lab", "studies", "Is it exact?",
     "One verification step over a p and a q given by hand: sampled, tested, or with a bug that shipped"},
    {"regress", "gpu", "Is the kernel the reference?", "Compare every kernel with the reference, bit for bit",
     "draftproof regress --skeleton cpu DIR begins a library of your own kernels (docs/your_kernel.md)"},
    {"shards", "sim", "Is the kernel the reference?",
     "Draw rows whose vocabulary lies on several devices, and compare with whole rows"},
    {"bench", "studies", "Is the kernel the reference?",
     "Measure the reference, or the kernels, against this machine's bandwidth"},
    {"demo", "engine", "Run a model", "Speculative decoding of real text, with a verdict on its distribution",
     "draftproof generate --prompt TEXT answers your own; draftproof dash shows speculation live"},
    {"generate", "sim", "Run a model", "Text from a language model, plain or with speculation, one request or many"},
    {"speculate", "sim", "Run a model",
     "Measure what speculation is worth: drafters, drafts and kinds of work on a real model",
     "draftproof predict says whether it would pay on a server's GPU"},
    {"features", "sim", "Run a model", "Write a model's own answers with its hidden features, to train draft heads on"},
    {"model", "engine", "Run a model", "Say what a model file is: architecture, tensors, tokenizer, chat template"},
    {"predict", "sim", "Does it pay?",
     "Say when speculation pays: K, tree and batch sizes for a model, a GPU and a drafter",
     "draftproof sim chat serves requests in simulated time: TTFT, TPOT, goodput"},
    {"acceptance", "studies", "Does it pay?",
     "Show how acceptance falls along a draft, for several drafters, and the best K at a draft cost"},
    {"sim", "sim", "Does it pay?", "Serve a workload in simulated time: one policy of speculation against another",
     "--load 4,8,16 shows the policies by load, --out DIR keeps every request and step"},
    {"sweep", "sim", "Does it pay?",
     "Run a grid of scenarios over cores and machines; rows go to SQLite as they finish",
     "--table FILE.csv writes the rows; the same command goes on with points that are missing"},
    {"validate", "sim", "Does it pay?",
     "Predict measured speedups from other laboratories' only, and say by how much it errs"},
    {"calibrate", "sim", "Does it pay?", "Fit the constants of engines to measured speedups, with their uncertainty"},
    {"experiments", "studies", "Does it pay?", "Judge published claims about speculation by the simulator"},
    {"study", "studies", "Does it pay?",
     "Run the commands that a file names; write tables, figures, comparisons and a report for a paper",
     "open report.html in its folder; REPRODUCE.md there says how to do it again"},
    {"dash", "viz", "See and explain",
     "A window: speculation live, distributions, trees, predictions, serving, proofs"},
    {"tree", "studies", "See and explain",
     "Build a draft tree and verify it step by step, with every number that is compared"},
    {"lesson", "studies", "See and explain",
     "A course in eight lessons: a page each, and exercises whose answers it checks"},
    {"machine", "engine", "Inspect", "Describe this machine: processor, memory, vector instructions"},
    {"verifiers", "engine", "Inspect", "List the verifiers: the draft that each takes, its guarantee, its source"},
    {"read", "sim", "Inspect", "Say what a file is, what of it is used, and what is not"},
    {"presets", "sim", "Inspect", "List the presets of the simulator: GPUs, models, engines, drafters"},
};

// Runs the verb that arguments[1] names and returns its exit code (cli/shared/program.cpp).
int run_verb(int argument_count, char** arguments);

}  // namespace draftproof
