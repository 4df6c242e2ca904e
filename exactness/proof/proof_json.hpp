// A case and a claim of `draftproof prove --json`, written and read back (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "exactness/proof/claims.hpp"
#include "exactness/proof/prove.hpp"

namespace draftproof {

nlohmann::ordered_json json_of(const ProofResult& result);
nlohmann::ordered_json json_of(const ClaimResult& result);

// Input errors naming `where`: a missing key, a value of another type, a fraction or a kind that is none.
ProofResult proof_of(const nlohmann::ordered_json& json, const std::string& where);
ClaimResult claim_of(const nlohmann::ordered_json& json, const std::string& where);

}  // namespace draftproof
