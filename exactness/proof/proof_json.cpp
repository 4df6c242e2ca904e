#include "exactness/proof/proof_json.hpp"

#include <array>
#include <cmath>

#include "base/json_values.hpp"
#include "base/split.hpp"
#include "exactness/json_fields.hpp"
#include "exactness/proof/distribution_text.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const DenseMasses<Rational>& masses) {
  return json_list(masses, [](const Rational& x) { return text_of(x); });
}

Json json_of(const Counterexample& found) {
  Json json{{"models", std::string(name_of(found.kind))},
            {"models_seed", found.seed},
            {"prefix", found.prefix()},
            {"p", json_of(found.p)},
            {"q", json_of(found.q)}};
  if (found.failure) {
    json["failure"] = found.failure->message;
    json["in_floats"] = found.failure->in_floats;
    json["draft"] = found.failure->draft.tokens;
    json["draft_parents"] = found.failure->draft.parents;
  } else {
    json["token"] = found.difference.token;
    json["probability_emitted"] = text_of(found.difference.emitted);
    json["probability_expected"] = text_of(found.difference.expected);
  }
  return json;
}

Rational fraction_of(const std::string& text, const std::string& where) {
  try {
    return Rational(text);
  } catch (const std::exception&) {
    throw input_error(where, "has the fraction '" + text + "'; expected one as 3/5");
  }
}

DenseMasses<Rational> masses_of(const Json& object, const char* key, const std::string& where) {
  DenseMasses<Rational> masses;
  for (const std::string& text : json_field<std::vector<std::string>>(object, key, where))
    masses.push_back(fraction_of(text, where));
  return masses;
}

Rational number_of(const Json& object, const char* key, const std::string& where) {
  const auto number = json_field<double>(object, key, where);
  if (!std::isfinite(number)) throw input_error(where, std::string(key) + " is not finite");
  return Rational(number);
}

template <class Kind, std::size_t Count>
Kind kind_of(const std::array<Kind, Count>& kinds, const Json& object, const char* key, const std::string& where) {
  const auto name = json_field<std::string>(object, key, where);
  for (const Kind kind : kinds)
    if (name_of(kind) == name) return kind;
  throw input_error(where, std::string(key) + " is '" + name + "'; expected one of " +
                               joined(kinds, ", ", [](Kind kind) { return name_of(kind); }));
}

Counterexample counterexample_of(const Json& json, const std::string& where) {
  Counterexample found;
  found.kind = kind_of(kModelKinds, json, "models", where);
  found.seed = json_field<std::uint64_t>(json, "models_seed", where);
  found.p = masses_of(json, "p", where);
  found.q = masses_of(json, "q", where);
  auto prefix = json_field<TokenString>(json, "prefix", where);
  if (json.contains("failure")) {
    found.failure = {json_field<std::string>(json, "failure", where), std::move(prefix),
                     DraftTree(json_field<TokenString>(json, "draft", where),
                               json_field<std::vector<std::int32_t>>(json, "draft_parents", where)),
                     json_field<bool>(json, "in_floats", where)};
    if (found.failure->draft.tokens.size() != found.failure->draft.parents.size())
      throw input_error(where, "draft and draft_parents have different lengths; expected a parent for each token");
    return found;
  }
  found.difference.prefix = std::move(prefix);
  found.difference.token = json_field<Token>(json, "token", where);
  found.difference.emitted = fraction_of(json_field<std::string>(json, "probability_emitted", where), where);
  found.difference.expected = fraction_of(json_field<std::string>(json, "probability_expected", where), where);
  return found;
}

}  // namespace

Json json_of(const ProofResult& result) {
  return {{"verifier", result.name},
          {"lossless", result.lossless},
          {"receives_drawn_q", result.receives_drawn_q},
          {"exact", result.exact},
          {"as_claimed", result.as_claimed()},
          {"instances", result.instances},
          {"vocab", result.vocab_size},
          {"draft", result.draft_len},
          {"outcomes_enumerated", result.paths},
          {"acceptance_oracles", result.oracles},
          {"acceptance_equal", result.acceptance_holds},
          {"mean_accepted", static_cast<double>(result.mean_accepted)},
          {"total_variation_max", static_cast<double>(result.total_variation_max)},
          {"float_distance_max",
           result.float_distance_max ? Json(static_cast<double>(*result.float_distance_max)) : Json()},
          {"counterexample", result.counterexample ? json_of(*result.counterexample) : Json()},
          {"source", result.source},
          {"ms", result.milliseconds}};
}

Json json_of(const ClaimResult& result) {
  return {{"kind", name_of(result.kind)},
          {"claim", result.text},
          {"holds", !result.refutation},
          {"instances", result.instances},
          {"refutation", or_null(result.refutation)}};
}

ProofResult proof_of(const Json& json, const std::string& where) {
  ProofResult result;
  result.name = json_field<std::string>(json, "verifier", where);
  const std::string place = where + ", verifier " + result.name;
  result.lossless = json_field<bool>(json, "lossless", place);
  result.receives_drawn_q = json_field<bool>(json, "receives_drawn_q", place);
  result.exact = json_field<bool>(json, "exact", place);
  result.instances = json_field<std::int32_t>(json, "instances", place);
  result.vocab_size = json_field<std::int32_t>(json, "vocab", place);
  result.draft_len = json_field<std::int32_t>(json, "draft", place);
  result.paths = json_field<std::int64_t>(json, "outcomes_enumerated", place);
  result.oracles = json_field<std::int32_t>(json, "acceptance_oracles", place);
  result.acceptance_holds = json_field<bool>(json, "acceptance_equal", place);
  result.mean_accepted = number_of(json, "mean_accepted", place);
  result.total_variation_max = number_of(json, "total_variation_max", place);
  if (json_field_or_null<double>(json, "float_distance_max", place))
    result.float_distance_max = number_of(json, "float_distance_max", place);
  if (const auto found = json_field_or_null<Json>(json, "counterexample", place))
    result.counterexample = counterexample_of(*found, place + ", counterexample");
  result.source = json_field<std::string>(json, "source", place);
  result.milliseconds = json_field<double>(json, "ms", place);
  return result;
}

ClaimResult claim_of(const Json& json, const std::string& where) {
  constexpr std::array kKinds{ClaimKind::equivalence, ClaimKind::ordering, ClaimKind::golden_number};
  ClaimResult result;
  result.text = json_field<std::string>(json, "claim", where);
  const std::string place = where + ", claim '" + result.text + "'";
  result.kind = kind_of(kKinds, json, "kind", place);
  result.instances = json_field<std::int32_t>(json, "instances", place);
  result.refutation = json_field_or_null<std::string>(json, "refutation", place);
  return result;
}

}  // namespace draftproof
