// prove: the distribution of every verifier, by enumeration over exact fractions.

#include "exactness/proof/prove.hpp"
#include "base/parallel.hpp"
#include "python/src/arrays.hpp"
#include "python/src/bindings.hpp"

namespace draftproof::python {
namespace {

nb::list prove_verifier(const nb::dict& values) {
  Arguments arguments(values);
  const std::string name = arguments.text("verifier", "all");
  ProofOptions options;
  const auto number = [&](const char* what, std::int32_t standard, std::int32_t most) {
    const std::int64_t value = arguments.integer(what, standard);
    if (value < 1 || value > most)
      throw usage_error(what, "is " + std::to_string(value) + "; expected 1 to " + std::to_string(most));
    return static_cast<std::int32_t>(value);
  };
  options.vocab_size = number("vocab_size", options.vocab_size, 6);
  options.draft_len = number("draft_len", options.draft_len, 6);
  options.steps = number("steps", options.steps, 3);
  options.instances = number("instances", options.instances, 100'000);
  options.seed = static_cast<std::uint64_t>(arguments.integer("seed", 0));
  const int threads = arguments.threads();
  std::vector<const ProofCase*> cases;
  for (const ProofCase& proof_case : proof_cases())
    if (name == "all" || name == proof_case.name || name == info_of(proof_case.verifier).name)
      cases.push_back(&proof_case);
  if (cases.empty()) throw usage_error("verifier", "is '" + name + "'; expected 'all' or one of " + verifier_names());
  std::vector<ProofResult> results;
  {
    const nb::gil_scoped_release release;
    for (const ProofCase* const proof_case : cases) results.push_back(prove(*proof_case, options, threads));
  }
  nb::list list;
  for (const ProofResult& result : results) {
    nb::dict entry;
    entry["name"] = result.name;
    entry["lossless"] = result.lossless;
    entry["exact"] = result.exact;
    entry["as_claimed"] = result.as_claimed();
    entry["instances"] = result.instances;
    entry["outcomes"] = result.paths;
    entry["mean_accepted"] = result.mean_accepted.convert_to<double>();
    entry["total_variation_max"] = result.total_variation_max.convert_to<double>();
    entry["counterexample"] = result.counterexample ? nb::cast(result.counterexample->sentence()) : nb::none();
    list.append(entry);
  }
  return list;
}

}  // namespace

void bind_prove(nb::module_& module) {
  module.def("prove", &prove_verifier, nb::arg("arguments"));
}

}  // namespace draftproof::python
