#include "sim/acceptance/acceptance_choice.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/named_values.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "reference/step/draft_plan.hpp"
#include "sim/acceptance/beta_mixture.hpp"
#include "sim/acceptance/block_decay.hpp"
#include "sim/acceptance/confidences.hpp"
#include "sim/acceptance/context_decay.hpp"
#include "sim/acceptance/position_rates.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/regime_chain.hpp"
#include "sim/acceptance/replay.hpp"
#include "sim/acceptance/verifier_rates.hpp"
#include "sim/cost/drafter.hpp"

namespace draftproof {
namespace {

using ModelPointer = std::shared_ptr<const AcceptanceModel>;

std::vector<double> rates_of(std::string_view text, const std::string& where) {
  const std::vector<double> rates = read_numbers(text, where, "rate", {0.0, 1.0});
  if (rates.size() > kAcceptanceDepthMax)
    throw usage_error(where, "has more than " + std::to_string(kAcceptanceDepthMax) + " rates; expected at most that");
  return rates;
}

ModelPointer make_constant(std::string_view text, std::uint64_t seed, const std::string& where) {
  const std::vector<double> rates = rates_of(text, where);
  if (rates.size() != 1)
    throw usage_error(where, "constant has " + std::to_string(rates.size()) +
                                 " rates; expected one (several are positions: or unconditional:)");
  return std::make_shared<PositionRates>(rates, seed, where);
}

ModelPointer make_positions(std::string_view text, std::uint64_t seed, const std::string& where) {
  return std::make_shared<PositionRates>(rates_of(text, where), seed, where);
}

ModelPointer make_unconditional(std::string_view text, std::uint64_t seed, const std::string& where) {
  const std::vector<double> survival = rates_of(text, where);
  for (std::size_t i = 1; i < survival.size(); ++i)
    if (survival[i] > survival[i - 1])
      throw usage_error(where, "unconditional rate " + std::to_string(i + 1) +
                                   " is above the one before it; expected "
                                   "rates that never rise (conditional ones are positions:)");
  return std::make_shared<PositionRates>(conditional_of(survival, where), seed, where);
}

ModelPointer make_ranks(std::string_view text, std::uint64_t seed, const std::string& where) {
  return PositionRates::of_ranks(rates_of(text, where), seed, where);
}

ModelPointer make_beta(std::string_view text, std::uint64_t seed, const std::string& where) {
  double mean = 0.7;
  double spread = 0.15;
  double decay = 1.0;
  NamedValues("acceptance model beta", where)
      .number("mean", {0, 1}, mean)
      .number("spread", {0, 0.5}, spread)
      .number("decay", {0.01, 1}, decay)
      .read(text);
  const BetaShape shape = beta_of(mean, spread, where);
  const double total = shape.alpha + shape.beta;
  if (std::min(shape.alpha, shape.beta) < BetaMixture::kShapeLeast || total > BetaMixture::kShapeTotalMost) {
    const auto spread_of = [&](double of_total) { return std::sqrt(mean * (1.0 - mean) / (of_total + 1.0)); };
    throw usage_error(where,
                      "the spread is " + number("%.9g", spread) + "; with a mean of " + number("%g", mean) +
                          " expected a standard deviation in [" +
                          number("%.2g", 1.01 * spread_of(BetaMixture::kShapeTotalMost)) + ", " +
                          number("%.3g", 0.99 * spread_of(BetaMixture::kShapeLeast / std::min(mean, 1.0 - mean))) +
                          "], or constant:" + number("%g", mean) + " for none");
  }
  return std::make_shared<BetaMixture>(shape, decay, seed);
}

ModelPointer make_markov(std::string_view text, std::uint64_t seed, const std::string& where) {
  double good = 0.9;
  double bad = 0.4;
  double to_bad = 0.05;
  double to_good = 0.1;
  NamedValues("acceptance model markov", where)
      .number("good", {0, 1}, good)
      .number("bad", {0, 1}, bad)
      .number("to_bad", {0, 1}, to_bad)
      .number("to_good", {0, 1}, to_good)
      .read(text);
  return std::make_shared<RegimeChain>(two_state_regimes(good, bad, to_bad, to_good), seed);
}

ModelPointer make_entropy(std::string_view text, std::uint64_t seed, const std::string& where) {
  double mean = 1.0;
  double gamma = 0.2;
  double memory = 0.5;
  NamedValues("acceptance model entropy", where)
      .number("mean", {0, 20}, mean)
      .number("gamma", {0, 10}, gamma)
      .number("memory", {0, 1}, memory)
      .read(text);
  return std::make_shared<RegimeChain>(entropy_regimes(mean, gamma, memory), seed);
}

ModelPointer make_replay(std::string_view text, std::uint64_t, const std::string& where) {
  std::string drafter;
  std::string file(text);
  if (text.starts_with("drafter=") || text.starts_with("file=")) {
    file.clear();
    NamedValues("acceptance model replay", where)
        .add("drafter", [&](std::string_view name) { drafter = name; })
        .rest("file", [&](std::string_view path) { file = path; })
        .read(text);
  }
  if (file.empty())
    throw usage_error(where, "replay has no file; expected replay:FILE or replay:drafter=NAME,file=FILE");
  return std::make_shared<Replay>(read_recording(file, drafter));
}

ModelPointer make_verifier(std::string_view text, std::uint64_t seed, const std::string& where) {
  VerifierRatesOptions options;
  NamedValues("acceptance model verifier", where)
      .whole("vocab", {2, 1 << 16}, options.pairs.vocab_size)
      .number("zipf", {0, 10}, options.pairs.zipf)
      .number("noise", {0, 10}, options.pairs.noise)
      .whole("drafts", {0, 16}, options.drafts_max)
      .add("tree", [&](std::string_view tree) { options.tree = parse_tree(tree, where); })
      .whole("samples", {100, 1'000'000}, options.samples)
      .rest("by", [&](std::string_view verifier) { options.verifier = parse_verifier(verifier, where); })
      .read(text);
  return std::make_shared<VerifierRates>(options, seed, where);
}

// The rates with all odds times one factor, so that their acceptance length is `length`.
std::vector<double> with_length(std::vector<double> rates, double length, const std::string& where) {
  const auto most = static_cast<double>(rates.size()) + 1.0;
  if (!(length > 1.0 && length < most))
    throw usage_error(where, "length is " + number("%g", length) + "; expected a number in (1, " + number("%g", most) +
                                 "), the tokens of a step with " + std::to_string(rates.size()) + " drafts");
  const auto raised = [&](double log_factor) {
    std::vector<double> other = rates;
    for (double& a : other) a = a / (a + (1.0 - a) * std::exp(-log_factor));
    return other;
  };
  double low = -40.0;
  double high = 40.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (acceptance_length_of(survival_of(raised(middle))) < length ? low : high) = middle;
  }
  return raised(0.5 * (low + high));
}

ModelPointer make_published(std::string_view text, std::uint64_t seed, const std::string& where) {
  std::string drafter(text);
  std::string domain = "chat";
  double length = 0.0;
  if (text.find('=') != std::string_view::npos) {
    drafter.clear();
    NamedValues("acceptance model published", where)
        .add("drafter", [&](std::string_view name) { drafter = name; })
        .add("domain", [&](std::string_view name) { domain = name; })
        .number("length", {1, kAcceptanceDepthMax}, length)
        .read(text);
  }
  const DraftTraining& training = find_draft_training(drafter, where);
  if (training.published.empty())
    throw usage_error(where, "the acceptance by slot of " + in_quotes(drafter) + " is not published; expected one of " +
                                 published_drafters());
  const auto slots = std::ranges::find(training.published, domain, &SlotRates::domain);
  if (slots == training.published.end()) {
    std::string names;
    for (const SlotRates& known : training.published) names.append(names.empty() ? "" : ", ").append(known.domain);
    throw usage_error(where, "domain is " + in_quotes(domain) + "; expected one of " + names);
  }
  const std::vector<double> rates = length == 0.0 ? slots->conditional : with_length(slots->conditional, length, where);
  ModelPointer model = std::make_shared<PositionRates>(rates, seed, where);
  if (training.beyond == 1.0) return model;
  return std::make_shared<BlockDecay>(std::move(model), training.drafts, training.beyond);
}

struct Kind {
  std::string_view name;
  bool needs_text;
  ModelPointer (*make)(std::string_view text, std::uint64_t seed, const std::string& where);
};
constexpr Kind kKinds[] = {
    {"constant", true, make_constant},
    {"positions", true, make_positions},
    {"unconditional", true, make_unconditional},
    {"ranks", true, make_ranks},
    {"beta", false, make_beta},
    {"markov", false, make_markov},
    {"entropy", false, make_entropy},
    {"replay", true, make_replay},
    {"verifier", false, make_verifier},
    {"published", true, make_published},
};

ModelPointer with_block(ModelPointer model, std::string_view text, std::uint64_t, const std::string& where) {
  std::int32_t trained = 7;
  double factor = 0.965;
  NamedValues("acceptance model block", where)
      .whole("trained", {1, kAcceptanceDepthMax}, trained)
      .number("factor", {0, 1}, factor)
      .read(text);
  return std::make_shared<BlockDecay>(std::move(model), trained, factor);
}

ModelPointer with_confidences(ModelPointer model, std::string_view text, std::uint64_t seed, const std::string& where) {
  if (std::dynamic_pointer_cast<const ContextDecay>(model))
    throw usage_error(where, "has +confidence behind +context; expected it before, since confidences fall with them");
  if (model->gives_confidences()) throw usage_error(where, "has +confidence twice; expected it once");
  double explained = 0.3;
  double error = 0.0;
  NamedValues("acceptance model confidence", where)
      .number("explained", {0, 1}, explained)
      .number("error", {-10, 10}, error)
      .read(text);
  return std::make_shared<Confidences>(std::move(model), explained, error, seed);
}

ModelPointer with_context(ModelPointer model, std::string_view text, std::uint64_t, const std::string& where) {
  std::int32_t trained = 2048;
  std::int32_t half = 4096;
  constexpr std::int32_t kTokensMax = 1 << 28;
  NamedValues("acceptance model context", where)
      .whole("trained", {0, kTokensMax}, trained)
      .whole("half", {1, kTokensMax}, half)
      .read(text);
  return std::make_shared<ContextDecay>(std::move(model), trained, half);
}

// A modifier that may follow a model.
struct Modifier {
  std::string_view name;
  ModelPointer (*make)(ModelPointer model, std::string_view text, std::uint64_t seed, const std::string& where);
};
constexpr Modifier kModifiers[] = {
    {"+block", with_block}, {"+confidence", with_confidences}, {"+context", with_context}};

}  // namespace

ModelPointer make_acceptance(std::string_view text, std::uint64_t seed, const std::string& where) {
  for (std::size_t at = text.rfind('+'); at != std::string_view::npos && at > 0; at = text.rfind('+', at - 1)) {
    const std::string_view last = text.substr(at, text.find(':', at) - at);
    const auto modifier = std::ranges::find(kModifiers, last, &Modifier::name);
    if (modifier == std::end(kModifiers)) continue;
    const std::string_view behind = text.substr(std::min(at + last.size() + 1, text.size()));
    return modifier->make(make_acceptance(text.substr(0, at), seed, where), behind, seed, where);
  }
  const std::string_view name = text.substr(0, text.find(':'));
  const std::string_view rest = name.size() == text.size() ? "" : text.substr(name.size() + 1);
  const auto kind = std::ranges::find(kKinds, name, &Kind::name);
  if (kind == std::end(kKinds)) {
    std::vector<std::string> known;
    for (const Kind& k : kKinds) known.emplace_back(k.name);
    throw usage_error(where, "the acceptance model is " + in_quotes(name) + "; expected one of " + joined(known, ", ") +
                                 did_you_mean(name, known));
  }
  if (kind->needs_text && rest.empty())
    throw usage_error(where, "acceptance model " + std::string(name) + " has no parameters; expected " +
                                 std::string(name) +
                                 (name == "replay"      ? ":FILE"
                                  : name == "published" ? ":DRAFTER"
                                                        : ":RATE"));
  return kind->make(rest, seed, where);
}

}  // namespace draftproof
