#include "cli/model/head_report.hpp"

#include <algorithm>
#include <iomanip>
#include <ostream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/model/tensor_sizes.hpp"
#include "engine/heads/head_files.hpp"

namespace draftproof {
namespace {

// Layers counted from 1, the last norm as one more; none where only the family's rule is known.
std::vector<std::int32_t> known_layers(const HeadTensors& head, std::int64_t num_layers) {
  const HeadDescription& d = head.description;
  if (num_layers == 0 && d.feature_layers.empty()) return {};
  if (num_layers != 0) return feature_layers_of(d, num_layers, head.path);
  return d.feature_layers;
}

// The rule by which a head whose files do not say reads its target of L layers.
std::string rule_of(const HeadDescription& head) {
  if (joins_pairs(head.family)) return "behind layers 2, L / 2 and L - 3 of L, counted from 1";
  if (head.family == HeadFamily::dflash) return "behind layers spread evenly from 2 to L - 2, counted from 1";
  return "the last norm";
}

std::string joined(const std::vector<std::int32_t>& numbers, std::int32_t minus) {
  std::string text;
  for (const std::int32_t number : numbers)
    text.append(text.empty() ? "" : ", ").append(std::to_string(number - minus));
  return text;
}

std::int64_t draft_vocab_of(const HeadDescription& head) {
  return head.shape.vocab_size;
}

double share_of(const HeadDescription& head) {
  return static_cast<double>(draft_vocab_of(head)) / static_cast<double>(head.target_vocab_size);
}

std::string percent(double share) {
  return number("%.1f", 100.0 * share) + " %";
}

bool reads_last_norm(const std::vector<std::int32_t>& layers, std::int64_t num_layers) {
  return layers.size() == 1 && (layers.front() == kLastNorm || layers.front() == num_layers + 1);
}

}  // namespace

DraftCoverage coverage_of(const HeadDescription& head, std::span<const Token> tokens) {
  DraftCoverage coverage{std::ssize(tokens), 0};
  for (const Token token : tokens)
    if (head.draft_tokens.empty() || std::binary_search(head.draft_tokens.begin(), head.draft_tokens.end(), token))
      ++coverage.drafted;
  return coverage;
}

void require_target(const HeadTensors& head, const ModelFiles& target) {
  const HeadDescription& d = head.description;
  const ModelDescription& t = target.weights.description;
  const auto require_equal = [&](const char* what, std::int64_t of_head, std::int64_t of_target) {
    if (of_head != 0 && of_head != of_target)
      throw input_error(head.path, std::string("is a head for targets with ") + what + " " + std::to_string(of_head) +
                                       ", and " + target.path + " has " + std::to_string(of_target) +
                                       "; expected the target that it was trained on");
  };
  require_equal("width", d.target_width, t.width);
  require_equal("vocabulary size", d.target_vocab_size, t.vocab_size);
  require_equal("number of layers", d.target_layers, t.num_layers);
}

Json json_of_head(const HeadTensors& head, std::int64_t num_layers, const std::optional<DraftCoverage>& coverage) {
  const HeadDescription& d = head.description;
  const ModelDescription& s = d.shape;
  const TensorSizes sizes = sizes_of(tensors_of(head));
  const std::vector<std::int32_t> layers = known_layers(head, num_layers);
  const bool is_norm = reads_last_norm(layers, num_layers) || (layers.empty() && !fuses_features(d.family));
  const auto or_null = [](std::int64_t value) { return value == 0 ? Json(nullptr) : Json(value); };
  Json json;
  json["path"] = printable(head.path);
  json["family"] = std::string(name_of(d.family));
  json["format"] = d.format;
  json["layers"] = std::ssize(head.layers);
  json["width"] = s.width;
  json["feed_forward"] = or_null(s.feed_forward);
  json["heads"] = or_null(s.num_heads);
  json["kv_heads"] = or_null(s.num_kv_heads);
  json["head_size"] = or_null(s.head_size);
  json["context_len_max"] = or_null(s.context_len_max);
  json["rope_base"] = head.layers.empty() ? Json(nullptr) : Json(s.rope_base);
  json["rope_pairing"] = head.layers.empty() ? Json(nullptr) : Json(name_of_pairing(s.rope_pairing));
  json["rope_scaled"] = is_scaled(s);
  json["target_width"] = d.target_width;
  json["target_vocab_size"] = or_null(d.target_vocab_size);
  json["target_layers"] = or_null(d.target_layers);
  json["reads_last_norm"] = is_norm;
  json["feature_layers"] = nullptr;   // behind layers counted from 1
  json["feature_outputs"] = nullptr;  // the same as outputs counted from 0
  if (!layers.empty() && !is_norm) {
    json["feature_layers"] = layers;
    json["feature_outputs"] = Json::array();
    for (const std::int32_t layer : layers) json["feature_outputs"].push_back(layer - 1);
  }
  json["draft_vocab_size"] = draft_vocab_of(d);
  json["draft_vocab_share"] = d.target_vocab_size == 0 ? Json(nullptr) : Json(share_of(d));
  json["text_coverage"] = nullptr;
  if (coverage)
    json["text_coverage"] = {{"tokens", coverage->tokens},
                             {"drafted", coverage->drafted},
                             {"share", coverage->tokens == 0 ? Json(nullptr)
                                                             : Json(static_cast<double>(coverage->drafted) /
                                                                    static_cast<double>(coverage->tokens))}};
  json["own_embedding"] = head.embedding.is_there();
  json["own_head"] = head.head.is_there() || (!head.medusa.empty() && head.medusa.front().head.is_there());
  json["norm_before_residual"] = d.norm_before_residual;
  json["norm_output"] = d.norm_output;
  json["block_len"] = or_null(d.block_len);
  json["mask_token"] = d.block_len == 0 ? Json(nullptr) : Json(d.mask_token);
  json["from_anchor"] = d.from_anchor;
  json["trained_len"] = or_null(d.trained_len);
  json["lossy"] = d.is_lossy();
  json["verifier_accept_k"] = d.verifier_accept_k;
  json["accept_tolerance"] = d.accept_tolerance;
  json["parameters"] = sizes.parameters;
  json["weight_bytes"] = sizes.bytes;
  json["weights_per_pass"] = weights_per_pass(head);
  json["kinds"] = json_of(sizes);
  json["tensors"] = Json::array();
  for (const WeightTensor* const tensor : tensors_of(head))
    json["tensors"].push_back({{"name", printable(tensor->name)},
                               {"kind", std::string(info_of(tensor->kind).name)},
                               {"rows", tensor->rows},
                               {"columns", tensor->columns}});
  return json;
}

void print_head(const HeadTensors& head, std::int64_t num_layers, const std::optional<DraftCoverage>& coverage,
                std::ostream& out) {
  const HeadDescription& d = head.description;
  const ModelDescription& s = d.shape;
  const TensorSizes sizes = sizes_of(tensors_of(head));
  const std::vector<std::int32_t> layers = known_layers(head, num_layers);
  out << printable_line(head.path) << "\n  head           " << name_of(d.family) << " in the format " << d.format
      << "\n"
      << "  reads          ";
  if (layers.empty())
    out << rule_of(d);
  else if (reads_last_norm(layers, num_layers))
    out << "the last norm";
  else
    out << "behind layers " << joined(layers, 0) << " of the target, counted from 1: outputs " << joined(layers, 1)
        << ", counted from 0";
  out << "\n  target         width " << d.target_width;
  if (d.target_vocab_size != 0) out << ", " << d.target_vocab_size << " tokens";
  if (d.target_layers != 0) out << ", " << d.target_layers << " layers";
  if (head.layers.empty())
    out << "\n  layers         " << head.medusa.size() << " heads of " << head.medusa.front().blocks.size()
        << " blocks, width " << d.target_width;
  else
    out << "\n  layers         " << head.layers.size() << ", width " << s.width << ", feed-forward " << s.feed_forward
        << ", " << s.num_heads << " heads of " << s.head_size << " over " << s.num_kv_heads << " KV heads\n"
        << "  context        " << s.context_len_max << " tokens, RoPE base " << s.rope_base << ", pairs "
        << name_of_pairing(s.rope_pairing) << (is_scaled(s) ? ", scaled" : "");
  out << "\n  drafts         " << draft_vocab_of(d);
  if (d.target_vocab_size != 0) out << " of " << d.target_vocab_size << " tokens (" << percent(share_of(d)) << ")";
  if (coverage && coverage->tokens != 0)
    out << ", " << percent(static_cast<double>(coverage->drafted) / static_cast<double>(coverage->tokens)) << " of "
        << coverage->tokens << " in the text";
  if (d.block_len != 0)
    out << "; block of " << d.block_len << " with mask token " << d.mask_token
        << (d.from_anchor ? ", its first place drafts too" : "");
  if (d.trained_len != 0) out << "; trained for " << d.trained_len << " drafts";
  out << "\n  embedding      " << (head.embedding.is_there() ? "its own" : "the target's") << "; logits "
      << (head.head.is_there() || (!head.medusa.empty() && head.medusa.front().head.is_there()) ? "its own"
                                                                                                : "the target's")
      << "\n";
  if (d.is_lossy())
    out << "  LOSSY          the files ask to accept a draft among the target's best " << d.verifier_accept_k
        << ", within a distance of " << d.accept_tolerance << " in log-likelihood\n";
  out << "  parameters     " << millions(sizes.parameters) << " M in " << millions(sizes.bytes) << " MB, "
      << millions(weights_per_pass(head)) << " M weights a pass"
      << (drafts_in_parallel(d.family) ? ", of all its drafts\n" : ", of one draft\n");
  print_kinds(sizes, out);
}

}  // namespace draftproof
