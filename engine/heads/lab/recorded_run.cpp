#include "engine/heads/lab/recorded_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_lines.hpp"

namespace draftproof {
namespace {

using nlohmann::json;

constexpr const char* kExample =
    R"({"prompt_tokens": [1, 2], "output_tokens": [3, 4, 5], "steps": [{"position": 3, "drafts": [4], "accepted": 1}]})";
constexpr std::int64_t kIntegerMax = std::int64_t{1} << 31;

// Reads one line.
class LineReader {
 public:
  LineReader(std::string where, const json& line, std::int64_t vocab_size)
      : where_(std::move(where)), line_(line), vocab_size_(vocab_size) {}

  DraftedRequest read() {
    require_names(line_, "",
                  {"prompt_tokens", "output_tokens", "temperature", "draft_temperature", "prefill_chunks",
                   "cached_tokens", "steps"});
    DraftedRequest request;
    request.where = where_;
    request.tokens = tokens(required(line_, "", "prompt_tokens"), "prompt_tokens");
    request.prompt_len = std::ssize(request.tokens);
    if (request.prompt_len == 0) throw fail("prompt_tokens", "is empty; expected the prompt as the target reads it");
    const std::vector<Token> output = tokens(required(line_, "", "output_tokens"), "output_tokens");
    request.tokens.insert(request.tokens.end(), output.begin(), output.end());
    request.temperature = temperature("temperature");
    request.draft_temperature = temperature("draft_temperature");
    if (const json* const cached = find(line_, "cached_tokens"))
      request.cached_tokens = integer(*cached, "cached_tokens", 0, request.prompt_len - 1);
    if (const json* const chunks = find(line_, "prefill_chunks")) {
      std::int64_t sum = request.cached_tokens.value_or(0);
      for (std::size_t i = 0; i < array(*chunks, "prefill_chunks").size(); ++i) {
        request.prefill_chunks.push_back(integer((*chunks)[i], at("prefill_chunks", i), 1, kIntegerMax));
        sum += request.prefill_chunks.back();
      }
      if (sum != request.prompt_len)
        throw fail("prefill_chunks", "with cached_tokens adds up to " + std::to_string(sum) + "; expected " +
                                         std::to_string(request.prompt_len) + ", the tokens of the prompt");
    }
    const json& steps = required(line_, "", "steps");
    for (std::size_t i = 0; i < array(steps, "steps").size(); ++i)
      request.steps.push_back(step(steps[i], at("steps", i), request.draft_temperature > 0.0));
    return request;
  }

 private:
  Error fail(const std::string& field, const std::string& what) const {
    return input_error(where_, field + " " + what);
  }
  static std::string at(const std::string& field, std::size_t i) { return field + "[" + std::to_string(i) + "]"; }
  static std::string text_of(const json& value) {
    const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return text.size() <= 40 ? text : text.substr(0, 37) + "...";
  }

  void require_names(const json& object, const std::string& prefix, const std::vector<std::string>& names) const {
    for (const auto& [name, value] : object.items())
      if (std::ranges::find(names, name) == names.end()) {
        std::string all;
        for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
        throw fail(prefix + text_of(json(name)), "is no field of a recorded run; expected " + all);
      }
  }
  static const json* find(const json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  const json& required(const json& object, const std::string& prefix, const char* name) const {
    const json* const value = find(object, name);
    if (value == nullptr) throw fail(prefix + name, std::string("is missing; expected one, as in ") + kExample);
    return *value;
  }
  const json& array(const json& value, const std::string& field) const {
    if (!value.is_array()) throw fail(field, "is " + text_of(value) + "; expected a list");
    return value;
  }
  std::int64_t integer(const json& value, const std::string& field, std::int64_t least, std::int64_t most) const {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) &&
                      value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
    if (!fits)
      throw fail(field, "is " + text_of(value) + "; expected a whole number in [" + std::to_string(least) + ", " +
                            std::to_string(most) + "]");
    return value.get<std::int64_t>();
  }
  double number(const json& value, const std::string& field, double least, double most,
                const std::string& expected) const {
    if (!value.is_number() || !(value.get<double>() >= least) || !(value.get<double>() <= most))
      throw fail(field, "is " + text_of(value) + "; expected " + expected);
    return value.get<double>();
  }
  double temperature(const char* name) const {
    const json* const value = find(line_, name);
    if (value == nullptr) return 0.0;
    const double number_read = number(*value, name, 0.0, std::numeric_limits<float>::max(), "0 or a number from 1e-6");
    if (number_read != 0.0 && number_read < 1e-6)
      throw fail(name, "is " + text_of(*value) + "; expected 0 or a number from 1e-6");
    return number_read;
  }
  std::vector<Token> tokens(const json& value, const std::string& field) const {
    std::vector<Token> list;
    for (std::size_t i = 0; i < array(value, field).size(); ++i)
      list.push_back(static_cast<Token>(integer(value[i], at(field, i), 0, vocab_size_ - 1)));
    return list;
  }

  DraftedStep step(const json& value, const std::string& field, bool is_drawn) const {
    if (!value.is_object()) throw fail(field, "is " + text_of(value) + "; expected an object");
    const std::string prefix = field + ".";
    require_names(value, prefix, {"position", "drafts", "parents", "accepted", "draft_probs", "draft_logprobs"});
    DraftedStep step;
    step.position = integer(required(value, prefix, "position"), prefix + "position", 1, kIntegerMax);
    DraftTree tree = DraftTree::chain(tokens(required(value, prefix, "drafts"), prefix + "drafts"));
    const std::size_t count = tree.tokens.size();
    if (count > kDraftNodesMax)
      throw fail(prefix + "drafts",
                 "has " + std::to_string(count) + " tokens; expected at most " + std::to_string(kDraftNodesMax));
    const auto require_length = [&](const json& list, const char* name) {
      if (array(list, prefix + name).size() != count)
        throw fail(prefix + name, "has " + std::to_string(list.size()) + " entries; expected " + std::to_string(count) +
                                      ", one for each draft");
    };
    if (const json* const parents = find(value, "parents")) {
      require_length(*parents, "parents");
      for (std::size_t i = 0; i < count; ++i)
        tree.parents[i] = static_cast<std::int32_t>(
            integer((*parents)[i], at(prefix + "parents", i), kRootNode, static_cast<std::int64_t>(i) - 1));
    }
    step.num_accepted = integer(required(value, prefix, "accepted"), prefix + "accepted", 0, tree.depth_max());
    const json* const probs = find(value, "draft_probs");
    const json* const log_probs = find(value, "draft_logprobs");
    if (probs != nullptr && log_probs != nullptr)
      throw fail(prefix + "draft_probs", "stands beside draft_logprobs; expected one of them");
    if (const json* const list = probs != nullptr ? probs : log_probs) {
      const char* const name = probs != nullptr ? "draft_probs" : "draft_logprobs";
      require_length(*list, name);
      // A rounding above 1 is none.
      for (std::size_t i = 0; i < count; ++i)
        step.log_probs.push_back(
            probs != nullptr
                ? std::log(number((*list)[i], at(prefix + name, i), 0.0, 1.01, "a probability in [0, 1]"))
                : number((*list)[i], at(prefix + name, i), -1e30, 0.01, "the logarithm of a probability, at most 0"));
    } else if (is_drawn && count > 0) {
      throw fail(prefix + "draft_logprobs",
                 "is missing; expected one for each draft, since drafts drawn at a draft_temperature above 0 can be "
                 "compared by their probabilities alone");
    }
    sort(tree, step);
    return step;
  }

  // Breadth first, siblings in their order and behind one another.
  static void sort(const DraftTree& tree, DraftedStep& step) {
    std::vector<double> log_probs;
    std::vector<std::int32_t> order;                                       // nodes of `tree`
    std::vector<std::vector<std::int32_t>> below(tree.tokens.size() + 1);  // of node i at i + 1
    for (std::int32_t i = 0; i < tree.size(); ++i)
      below[DraftTree::row_after(tree.parents[static_cast<std::size_t>(i)])].push_back(i);
    const auto add = [&](std::int32_t node, std::int32_t parent) {
      for (const std::int32_t child : below[DraftTree::row_after(node)]) {
        step.drafts.add(tree.tokens[static_cast<std::size_t>(child)], parent);
        order.push_back(child);
      }
    };
    add(kRootNode, kRootNode);
    for (std::size_t i = 0; i < order.size(); ++i) add(order[i], static_cast<std::int32_t>(i));
    if (step.log_probs.empty()) return;
    for (const std::int32_t node : order) log_probs.push_back(step.log_probs[static_cast<std::size_t>(node)]);
    step.log_probs = std::move(log_probs);
  }

  std::string where_;
  const json& line_;
  std::int64_t vocab_size_;
};

}  // namespace

std::vector<DraftedRequest> read_recorded_run(const std::string& path, std::int64_t vocab_size) {
  constexpr std::uint64_t kFileMax = std::uint64_t{1} << 30;
  const InputFile file(path, kFileMax);
  std::vector<DraftedRequest> requests;
  for_each_json_line(path, file.text(), kExample, [&](const json& line, const std::string& where) {
    requests.push_back(LineReader(where, line, vocab_size).read());
  });
  if (requests.empty())
    throw input_error(path, std::string("has no request; expected a line for each, as ") + kExample);
  return requests;
}

std::string recorded_line(const DraftedRequest& request) {
  nlohmann::ordered_json line;
  const auto prompt_end = request.tokens.begin() + request.prompt_len;
  line["prompt_tokens"] = std::vector<Token>(request.tokens.begin(), prompt_end);
  line["output_tokens"] = std::vector<Token>(prompt_end, request.tokens.end());
  line["temperature"] = request.temperature;
  line["draft_temperature"] = request.draft_temperature;
  if (request.cached_tokens) line["cached_tokens"] = *request.cached_tokens;
  if (!request.prefill_chunks.empty()) line["prefill_chunks"] = request.prefill_chunks;
  line["steps"] = nlohmann::ordered_json::array();
  for (const DraftedStep& step : request.steps) {
    nlohmann::ordered_json json{{"position", step.position}, {"drafts", step.drafts.tokens}};
    if (!step.drafts.is_chain()) json["parents"] = step.drafts.parents;
    json["accepted"] = step.num_accepted;
    if (!step.log_probs.empty()) json["draft_logprobs"] = step.log_probs;
    line["steps"].push_back(std::move(json));
  }
  return line.dump() + "\n";
}

void DraftRecorder::add(const HeadRow& row) {
  if (head_ != nullptr) recordings_[row.request].rows[row.path].assign(row.logits.begin(), row.logits.end());
}

void DraftRecorder::keep(std::uint64_t request, const DraftTree& verified) {
  const auto found = recordings_.find(request);
  if (found != recordings_.end() && found->second.pending) found->second.pending->drafts = verified;
}

void DraftRecorder::propose_all(std::span<DraftJob> jobs, DraftCache* cache) {
  for (const DraftJob& job : jobs) recordings_[job.context.request].rows.clear();
  drafter_.propose_all(jobs, cache);
  for (const DraftJob& job : jobs) {
    Recording& recording = recordings_[job.context.request];
    recording.pending = {std::ssize(job.context.stream), job.out->tree};
    if (job.out->proposal_kind == ProposalKind::logits)
      recording.request.draft_temperature = static_cast<double>(job.out->draft_parameters.temperature);
  }
}

std::vector<double> DraftRecorder::log_probs_of(const Recording& recording, const DraftTree& drafts) const {
  const double temperature = recording.request.draft_temperature > 0.0 ? recording.request.draft_temperature : 1.0;
  std::vector<double> log_probs;
  for (std::int32_t node = 0; head_ != nullptr && node < drafts.size(); ++node) {
    const auto row = recording.rows.find(drafts.path(drafts.parents[static_cast<std::size_t>(node)]));
    if (row == recording.rows.end()) return {};
    const std::vector<float>& logits = row->second;
    const auto largest = static_cast<double>(std::ranges::max(logits));
    double all = 0.0;
    double drafted = 0.0;
    for (std::size_t column = 0; column < logits.size(); ++column) {
      const double mass = std::exp((static_cast<double>(logits[column]) - largest) / temperature);
      all += mass;
      if (head_->token_of(static_cast<std::int64_t>(column)) == drafts.tokens[static_cast<std::size_t>(node)])
        drafted += mass;
    }
    if (!(drafted > 0.0)) return {};
    log_probs.push_back(std::log(drafted / all));
  }
  return log_probs;
}

void DraftRecorder::observe(std::span<const ComputedTokens> computed, std::span<const float> features,
                            DraftCache* cache) {
  for (const ComputedTokens& of : computed) {
    if (of.stream_index != 0 || of.rows.empty()) continue;
    Recording& recording = recordings_[of.request];
    DraftedRequest& request = recording.request;
    const std::int64_t end = of.first + std::ssize(of.rows);
    const std::int64_t position = of.samples && recording.pending ? recording.pending->position : end;
    if (request.steps.empty()) {  // a part of the prompt; after a preemption from the beginning
      std::int64_t known = request.cached_tokens.value_or(-1);
      for (const std::int64_t chunk : request.prefill_chunks) known += chunk;
      if (known != of.first) {
        request.cached_tokens = of.first;
        request.prefill_chunks.clear();
      }
      request.prefill_chunks.push_back(position - of.first);
    }
    if (!of.samples) continue;
    DraftedStep& step = request.steps.emplace_back();
    step.position = position;
    if (recording.pending) step.drafts = std::move(recording.pending->drafts);
    step.num_accepted = end - position;
    step.log_probs = log_probs_of(recording, step.drafts);
    recording.pending.reset();
    request.tokens.assign(of.stream.begin(), of.stream.end());
  }
  drafter_.observe(computed, features, cache);
}

DraftedRequest DraftRecorder::take(std::uint64_t request, std::size_t output_len, double temperature) {
  const auto found = recordings_.find(request);
  if (found == recordings_.end()) throw usage_error("record", "request " + std::to_string(request) + " was not run");
  DraftedRequest taken = std::move(found->second.request);
  recordings_.erase(found);
  taken.prompt_len = std::ssize(taken.tokens) - static_cast<std::int64_t>(output_len);
  taken.temperature = temperature;
  return taken;
}

}  // namespace draftproof
