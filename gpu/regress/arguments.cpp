#include "gpu/regress/arguments.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace draftproof::regress {
namespace {

// Names an argument, its possible values and which of them it has.
class Describer {
 public:
  Describer(std::string call, const draftproof_settings& settings) {
    out_.call = std::move(call);
    add("settings.block_threads", {"0", "128", "256", "512"}, std::to_string(settings.block_threads));
  }

  void add(const std::string& name, std::vector<std::string> values, const std::string& value) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found == values.end()) throw Error(ErrorKind::internal, name, "its kinds of values lack " + value);
    out_.values.push_back(static_cast<std::size_t>(found - values.begin()));
    out_.arguments.push_back({name, std::move(values)});
  }
  void given(const std::string& name, bool is_given) { add(name, {"absent", "given"}, is_given ? "given" : "absent"); }

  template <class T>
  void list(const std::string& name, const T* values, std::int64_t count, T off, bool is_looked_at) {
    given(name,
          is_looked_at && values != nullptr && std::any_of(values, values + count, [&](T x) { return x != off; }));
  }

  void rows(const std::string& name, const draftproof_rows& rows, std::int64_t vocab_size) {
    add(name + ".row_stride", {"exact", "padded", "odd"}, stride(rows.row_stride, vocab_size));
    add(name + ".dtype", {"f32", "f16", "bf16"}, dtype(rows.dtype));
  }
  void optional_rows(const std::string& name, const draftproof_rows& rows, std::int64_t vocab_size, bool is_looked_at) {
    const bool is_given = is_looked_at && rows.data != nullptr;
    add(name + ".row_stride", {"absent", "exact", "padded", "odd"},
        is_given ? stride(rows.row_stride, vocab_size) : "absent");
    add(name + ".dtype", {"absent", "f32", "f16", "bf16"}, is_given ? dtype(rows.dtype) : "absent");
  }

  void vocabulary(std::int64_t vocab_size) {
    add("vocab_size", {"part of a tile", "whole words", "tiles and a rest", "whole tiles"},
        vocab_size % 4096 == 0 ? "whole tiles"
        : vocab_size > 4096    ? "tiles and a rest"
        : vocab_size % 32 == 0 ? "whole words"
                               : "part of a tile");
  }
  void several(const std::string& name, std::int64_t count) {
    add(name, {"several", "one", "none"}, count > 1 ? "several" : count == 1 ? "one" : "none");
  }

  void parameters(const draftproof_parameters& p, std::int64_t requests, bool is_looked_at) {
    const auto add_list = [&](const char* name, const auto* values, auto off) {
      list(std::string("parameters.") + name, values, requests, off, is_looked_at);
    };
    filters("parameters.", p, requests, is_looked_at);
    add_list("repetition_penalty", p.repetition_penalty, 1.0f);
    add_list("frequency_penalty", p.frequency_penalty, 0.0f);
    add_list("presence_penalty", p.presence_penalty, 0.0f);
    add_list("guidance_scale", p.guidance_scale, 1.0f);
    add_list("nan_policy", p.nan_policy, std::uint8_t{0});
  }
  void filters(const std::string& prefix, const draftproof_parameters& p, std::int64_t requests, bool is_looked_at) {
    list(prefix + "temperature", p.temperature, requests, 1.0f, is_looked_at);
    list(prefix + "top_k", p.top_k, requests, 0, is_looked_at);
    list(prefix + "top_p", p.top_p, requests, 1.0f, is_looked_at);
    list(prefix + "min_p", p.min_p, requests, 0.0f, is_looked_at);
    list(prefix + "filter_order", p.filter_order, requests, std::uint8_t{0}, is_looked_at);
    list(prefix + "ties", p.ties, requests, std::uint8_t{0}, is_looked_at);
  }

  void constraints(const draftproof_constraints& c, std::int64_t requests, std::int64_t vocab_size, bool is_verifier,
                   bool is_looked_at) {
    const std::int64_t words = (vocab_size + 31) / 32;
    add("constraints.allowed_mask_stride", {"absent", "exact", "wider"},
        !is_looked_at || c.allowed_mask == nullptr ? "absent"
        : c.allowed_mask_stride == words           ? "exact"
                                                   : "wider");
    // A list of lists asks for something where one of them has an element.
    const auto lists = [&](const char* name, const std::int64_t* offsets) {
      given(std::string("constraints.") + name,
            is_looked_at && offsets != nullptr &&
                std::any_of(offsets, offsets + requests + 1, [](auto o) { return o != 0; }));
    };
    lists("allowed_ids", c.allowed_offsets);
    lists("history_tokens", c.history_offsets);
    list("constraints.prompt_len", c.prompt_len, requests, std::int64_t{0}, is_looked_at);
    if (!is_verifier) given("constraints.row_draft_tokens", is_looked_at && c.row_draft_tokens != nullptr);
    lists("bad_word_tokens", c.bad_word_sequences);
    list("constraints.min_tokens", c.min_tokens, requests, std::int64_t{0}, is_looked_at);
    lists("stop_ids", c.stop_offsets);
    lists("bias_tokens", c.bias_offsets);
  }

  // Rows of logits with what the pipeline does to them.
  template <class Arguments>
  void pipeline(const Arguments& a) {
    several("rows", a.rows);
    const bool runs = a.rows > 0;
    add("requests", {"a row each", "fewer", "more"},
        a.requests == a.rows  ? "a row each"
        : a.requests < a.rows ? "fewer"
                              : "more");
    vocabulary(a.vocab_size);
    given("row_request", a.row_request != nullptr);
    rows("logits", a.logits, a.vocab_size);
    optional_rows("unconditional", a.unconditional, a.vocab_size, runs);
    parameters(a.parameters, a.requests, runs);
    constraints(a.constraints, a.requests, a.vocab_size, false, runs);
  }

  CallArguments done() { return std::move(out_); }

 private:
  // A row may begin at any multiple of 16 bytes, or at any element.
  static std::string stride(std::int64_t row_stride, std::int64_t width) {
    return row_stride == width ? "exact" : row_stride % 8 == 0 ? "padded" : "odd";
  }
  static std::string dtype(std::int32_t dtype) {
    return dtype == DRAFTPROOF_F32 ? "f32" : dtype == DRAFTPROOF_F16 ? "f16" : "bf16";
  }

  CallArguments out_;
};

const std::string& text(std::int32_t index, const std::vector<std::string>& of) {
  return of.at(static_cast<std::size_t>(index));
}

const std::vector<std::string> kKinds = {"one_hot", "probabilities", "logits"};

std::string longest(std::int64_t draft_len_max, std::int64_t requests, const std::int64_t* cu) {
  std::int64_t length = 0;
  for (std::int64_t b = 0; b < requests; ++b) length = std::max(length, cu[b + 1] - cu[b]);
  return draft_len_max > length ? "longer" : "reached";
}

}  // namespace

const std::string& CallArguments::value(const std::string& argument) const {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument) return arguments[i].values[values[i]];
  throw Error(ErrorKind::internal, argument, call + " has no such argument");
}

CallArguments described(const draftproof_mass_pass_arguments& a, const draftproof_settings& settings) {
  Describer out("mass_pass", settings);
  out.several("rows", a.rows);
  out.vocabulary(a.vocab_size);
  out.rows("logits", a.logits, a.vocab_size);
  out.list("temperature", a.temperature, a.rows, 1.0f, true);
  return out.done();
}

CallArguments described(const draftproof_guidance_arguments& a, const draftproof_settings& settings) {
  Describer out("guidance", settings);
  out.several("rows", a.rows);
  out.vocabulary(a.vocab_size);
  out.rows("conditional", a.conditional, a.vocab_size);
  out.rows("unconditional", a.unconditional, a.vocab_size);
  out.add("out_stride", {"exact", "wider"}, a.out_stride == a.vocab_size ? "exact" : "wider");
  return out.done();
}

CallArguments described(const draftproof_sample_arguments& a, const draftproof_settings& settings) {
  Describer out("sample", settings);
  out.pipeline(a);
  out.list("row_in_step", a.row_in_step, a.rows, 0u, true);
  out.add("sampler", {"inverse", "race"}, a.sampler == DRAFTPROOF_RACE ? "race" : "inverse");
  out.add("purpose", {"target sample", "draft sample"},
          a.purpose == DRAFTPROOF_DRAFT_SAMPLE ? "draft sample" : "target sample");
  out.given("logprobs", a.logprobs != nullptr);
  out.given("kept_mass", a.kept_mass != nullptr);
  out.given("kept_count", a.kept_count != nullptr);
  out.add("probabilities_stride", {"absent", "exact", "wider"},
          a.probabilities == nullptr               ? "absent"
          : a.probabilities_stride == a.vocab_size ? "exact"
                                                   : "wider");
  return out.done();
}

CallArguments described(const draftproof_logprobs_arguments& a, const draftproof_settings& settings) {
  Describer out("logprobs", settings);
  out.pipeline(a);
  out.add("n", {"some", "0", "1024"}, a.n == 0 ? "0" : a.n == 1024 ? "1024" : "some");
  return out.done();
}

CallArguments described(const draftproof_verify_arguments& a, const draftproof_settings& settings,
                        const std::string& call) {
  const bool is_tree = call == "verify_tree";
  Describer out(call, settings);
  out.several("requests", a.requests);
  out.add("draft_len_max", {"reached", "longer"}, longest(a.draft_len_max, a.requests, a.cu_num_draft_tokens));
  out.vocabulary(a.vocab_size);
  if (is_tree) out.add("tree_rule", {"target_only", "rrsw"}, a.tree_rule == DRAFTPROOF_RRSW ? "rrsw" : "target_only");
  out.add("target_kind", {"logits", "probabilities"}, text(a.target_kind, kKinds));
  out.rows("target", a.target, a.vocab_size);
  const bool is_processed = a.target_kind == DRAFTPROOF_LOGITS && a.requests > 0;
  out.optional_rows("unconditional", a.unconditional, a.vocab_size, is_processed);
  out.parameters(a.parameters, a.requests, is_processed);
  out.constraints(a.constraints, a.requests, a.vocab_size, true, is_processed);

  const bool reads_proposal = a.draft_tokens_total > 0 && (!is_tree || a.tree_rule == DRAFTPROOF_RRSW);
  const std::string kind = reads_proposal ? text(a.proposal_kind, kKinds) : "one_hot";
  out.add("proposal_kind", kKinds, kind);
  out.optional_rows("proposal", a.proposal, a.vocab_size, kind != "one_hot");
  out.filters("draft_parameters.", a.draft_parameters, a.requests, kind == "logits");
  out.given("logprobs", a.logprobs != nullptr);
  if (is_tree) out.given("path", a.path != nullptr);
  return out.done();
}

CallArguments described(const draftproof_tree_mask_arguments& a, const draftproof_settings& settings) {
  Describer out("tree_mask", settings);
  out.several("requests", a.requests);
  out.add("draft_len_max", {"reached", "longer"}, longest(a.draft_len_max, a.requests, a.cu_num_draft_tokens));
  out.add("words_per_row", {"exact", "wider"}, a.words_per_row == (a.draft_len_max + 32) / 32 ? "exact" : "wider");
  return out.done();
}

CallArguments described(const draftproof_kv_commit_arguments& a, const draftproof_settings& settings) {
  Describer out("kv_commit", settings);
  out.several("requests", a.requests);
  out.add("draft_len_max", {"reached", "longer"}, longest(a.draft_len_max, a.requests, a.cu_num_draft_tokens));
  out.given("path", a.path != nullptr);
  out.add("num_slots", {"all in use", "more"},
          a.num_slots == a.draft_tokens_total + a.requests ? "all in use" : "more");
  out.add("cache", {"aligned", "at an odd address"},
          reinterpret_cast<std::uintptr_t>(a.cache) % 16 == 0 ? "aligned" : "at an odd address");
  out.add("layers", {"several", "one"}, a.layers > 1 ? "several" : "one");
  out.add("slot_bytes", {"16s", "4s", "odd"}, a.slot_bytes % 16 == 0 ? "16s" : a.slot_bytes % 4 == 0 ? "4s" : "odd");
  out.add("slot_stride_bytes", {"exact", "padded"}, a.slot_stride_bytes == a.slot_bytes ? "exact" : "padded");
  const std::int64_t layer = a.num_slots * a.slot_stride_bytes;
  out.add("layer_stride_bytes", {"exact", "padded", "inside a slot"},
          a.layer_stride_bytes == layer  ? "exact"
          : a.layer_stride_bytes > layer ? "padded"
                                         : "inside a slot");
  return out.done();
}

const std::vector<ArgumentValues>& arguments_of(const std::string& call) {
  // A call of nothing has all of them.
  static const std::map<std::string, std::vector<ArgumentValues>> all = [] {
    const draftproof_settings settings{};
    std::map<std::string, std::vector<ArgumentValues>> arguments;
    const auto add = [&](const CallArguments& of) { arguments[of.call] = of.arguments; };
    add(described(draftproof_mass_pass_arguments{}, settings));
    add(described(draftproof_guidance_arguments{}, settings));
    add(described(draftproof_sample_arguments{}, settings));
    add(described(draftproof_logprobs_arguments{}, settings));
    for (const char* verifier : {"verify_chain", "verify_block", "verify_tree"}) {
      draftproof_verify_arguments verify{};
      verify.target_kind = DRAFTPROOF_LOGITS;
      add(described(verify, settings, verifier));
    }
    add(described(draftproof_tree_mask_arguments{}, settings));
    add(described(draftproof_kv_commit_arguments{}, settings));
    return arguments;
  }();
  return all.at(call);
}

std::vector<std::string> call_names() {
  return {"mass_pass",    "guidance",    "sample",    "logprobs", "verify_chain",
          "verify_block", "verify_tree", "tree_mask", "kv_commit"};
}

namespace {

bool is_one(const std::string& value, const std::vector<std::string>& of) {
  return std::find(of.begin(), of.end(), value) != of.end();
}

// What `value` of `argument` demands of another argument.
bool allows(const std::string& argument, const std::string& value, const std::string& other,
            const std::string& other_value) {
  const bool is_on = !is_one(value, {"absent", "none"});
  const auto begins = [&](const char* prefix) { return argument.rfind(prefix, 0) == 0; };
  // A call of no rows or requests looks at nothing.
  if ((argument == "rows" || argument == "requests") && value == "none") return false;
  const std::string prefix = argument.substr(0, argument.find('.'));
  // A matrix is there with both its stride and its type.
  if ((argument == "unconditional.dtype" || argument == "proposal.dtype") && other == prefix + ".row_stride")
    return is_on == (other_value != "absent");
  if (argument == "parameters.guidance_scale" && other == "unconditional.row_stride")
    return !is_on || other_value != "absent";
  if (argument == "parameters.guidance_scale" && other == "unconditional.dtype")
    return !is_on || other_value != "absent";
  if (argument == "constraints.prompt_len" && other == "constraints.history_tokens")
    return !is_on || other_value == "given";
  // More rows than requests, or requests without a row, need the array that says whose a row is; so do one row and
  // fewer.
  if (argument == "requests" && value == "fewer")
    return !(other == "row_request" && other_value == "absent") && !(other == "rows" && other_value == "one");
  if (other == "target_kind" && other_value == "probabilities" &&
      (begins("parameters.") || begins("constraints.") || begins("unconditional.")))
    return !is_on;
  if (other == "proposal_kind" && begins("draft_parameters.")) return !is_on || other_value == "logits";
  if (other == "proposal_kind" && begins("proposal.")) return is_on == (other_value != "one_hot");
  if (argument == "tree_rule" && other == "proposal_kind") return (value == "rrsw") == (other_value != "one_hot");
  if (argument == "tree_rule" && other.rfind("proposal.", 0) == 0)
    return (value == "rrsw") == (other_value != "absent");
  if (argument == "tree_rule" && other.rfind("draft_parameters.", 0) == 0)
    return value == "rrsw" || other_value == "absent";
  if (begins("draft_parameters.") && other.rfind("proposal.", 0) == 0) return !is_on || other_value != "absent";
  // Layers that lie inside a slot leave a gap there, and are several.
  if (argument == "layer_stride_bytes" && value == "inside a slot")
    return !(other == "slot_stride_bytes" && other_value == "exact") && !(other == "layers" && other_value == "one");
  return true;
}

}  // namespace

bool can_meet(const std::string& argument, const std::string& value, const std::string& other,
              const std::string& other_value) {
  return allows(argument, value, other, other_value) && allows(other, other_value, argument, value);
}

}  // namespace draftproof::regress
