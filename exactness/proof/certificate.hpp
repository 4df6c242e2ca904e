// A proof as data that anybody can check without this project: the models' distributions, every outcome of one step
// with the decisions that lead to it, and the distribution of what is emitted. exactness/proof/check_certificate.py
// checks it with Python's fractions; docs/exactness.md says what that shows.
#pragma once

#include <nlohmann/json.hpp>

#include "exactness/proof/prove.hpp"

namespace draftproof {

// Outcomes and rows of a certificate at most: a file that can still be read whole.
inline constexpr std::int64_t kCertificateOutcomesMax = 200'000;

// One step from the empty prefix on each pair of models of the options; depths as prove() takes them. Usage error at
// --certificate: more outcomes or rows than kCertificateOutcomesMax.
nlohmann::ordered_json certificate_of(const ProofCase& proof_case, const ProofOptions& options);

// The counterexample of a refuted rule as a LaTeX table (booktabs): both distributions, and the string with its two
// fractions. Not for a rule that threw.
std::string counterexample_table(const ProofResult& result);

}  // namespace draftproof
