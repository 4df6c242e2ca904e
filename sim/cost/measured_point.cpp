#include "sim/cost/measured_point.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <regex>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

constexpr double kContextUnknown = 1024.0;  // tokens, where a row does not say: a chat's
// A measured speedup may pass the acceptance length by its noise; more is an inconsistency of what was reported.
constexpr double kNgramShare = 0.5;  // of steps with a draft, where a row does not say: 0.27 to 0.72 in recordings
constexpr double kStepRatioLeast = 0.96;
constexpr double kStepRatioMost = 30.0;

bool contains(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

std::string key_of(const MeasuredRow& row, std::initializer_list<const char*> columns) {
  std::string key;
  for (const char* column : columns) key += row.text(column) + "|";
  return key;
}

// The acceptance length with the bonus token.
double acceptance_length_of(const MeasuredRow& row, MeasuredPoint& point) {
  if (const auto tau = row.number("tau", 0.0, 1e4)) {
    const std::string kind = row.lower("tau_kind");
    if (contains(kind, {"excl", "without bonus", "no bonus", "w/o bonus", "not counting the bonus"})) return *tau + 1.0;
    if (contains(kind, {"derived"})) point.assumptions.emplace_back("acceptance length derived, not measured");
    if (contains(kind, {"only steps with", "steps that had a draft"}))
      point.assumptions.emplace_back("acceptance length of steps with a draft only");
    return *tau;
  }
  const auto alpha = row.number("alpha", 0.0, 1.0);
  const auto drafts = row.number("K", 1, 1e4);
  if (!alpha || !drafts) throw RowRefused{"no acceptance length", "tau is empty, and so is alpha or K"};
  point.assumptions.emplace_back("acceptance length derived, not measured");
  if (!contains(row.lower("alpha_kind"), {"i.i.d", "iid"})) return 1.0 + *alpha * *drafts;  // accepted / drafted
  double length = 1.0;
  double survival = 1.0;
  for (long i = 0; i < std::lround(*drafts); ++i) length += survival *= *alpha;
  return length;
}

double speedup_of(const MeasuredRow& row) {
  if (const auto speedup = row.number("speedup", 1e-3, 1e4)) return *speedup;
  const auto before = row.number("baseline_tok_s", 1e-9, 1e9);
  const auto after = row.number("spec_tok_s", 1e-9, 1e9);
  if (before && after) return *after / *before;
  throw RowRefused{"no speedup", "speedup is empty, and so is spec_tok_s or baseline_tok_s"};
}

// "4x A100", "A100 x4", "H100*8", "TP8" in the name of the hardware; 0 where there is none.
double count_in(const std::string& cell) {
  const std::string hardware = cell.substr(0, 200);  // std::regex recurses by the length
  static const std::regex before("^\\s*([0-9]{1,4})\\s*(x|\\*|\xC3\x97)\\s*[a-z]", std::regex::icase);
  static const std::regex after("(?:(?:^|[\\s0-9)])(?:x|\\*|\xC3\x97)|\\btp\\s*=?)\\s*([0-9]{1,3})(?![0-9a-z.])",
                                std::regex::icase);
  std::smatch found;
  if (std::regex_search(hardware, found, before)) return std::strtod(found[1].str().c_str(), nullptr);
  const std::size_t bus = hardware.find("PCI");  // "PCIe 4.0 x16" is no count
  const std::string text = hardware.substr(0, bus);
  if (std::regex_search(text, found, after)) return std::strtod(found[1].str().c_str(), nullptr);
  return 0.0;
}

// The target's precision: what is stated, the model's name, else what its authors published it in.
Precision precision_of_row(const MeasuredRow& row, const ModelShape& model) {
  const std::string stated = row.lower("target_precision");
  if (contains(stated, {"weights"})) return precision_of(stated);
  const bool left_open = stated.empty() || contains(stated, {"default", "not stated"});
  const std::string text = stated + " " + row.text("target_model");
  return left_open ? precision_of(text, model) : precision_of(text);
}

void read_draft(const MeasuredRow& row, const DrafterShape& drafter, bool counts_root, MeasuredPoint& point) {
  const auto drafts = row.number("K", 1, 1e4);
  auto nodes = row.number("tree_nodes", 1, 1e5);
  const auto depth = row.number("tree_depth", 1, 1e4);
  const auto top_k = row.number("tree_topk", 1, 1e4);
  const std::string method = row.lower("draft_method");
  double levels = 0.0;
  // A budget of nodes may stand under K, too.
  const bool tree_budget =
      drafts && !nodes &&
      ((depth && *depth < *drafts) || (drafter.default_nodes > drafter.default_depth && *drafts > 16.0));
  if (tree_budget) nodes = drafts;
  if (drafts && !tree_budget && (!nodes || *nodes <= *drafts + 1.0)) {
    nodes = levels = *drafts;
  } else if (nodes) {
    const bool chain = (top_k && *top_k == 1.0) || contains(method, {"chain "}) || method.ends_with("chain");
    const double usual = drafter.default_depth > 0 ? drafter.default_depth : *nodes;
    levels = depth ? *depth : drafts && !tree_budget ? *drafts : chain ? *nodes : std::min(usual, *nodes);
    levels = std::min(levels, *nodes);
    if (counts_root && *nodes > levels) *nodes -= 1.0;  // SGLang's num_draft_tokens
  } else {
    if (drafter.default_nodes <= 0) throw RowRefused{"no length of the draft", "K and tree_nodes are empty"};
    nodes = drafter.default_nodes;
    levels = depth ? std::min(*depth, *nodes) : drafter.default_depth;
    point.assumptions.emplace_back("draft not stated: the drafter's default");
  }
  if ((depth || drafts) && point.acceptance_length > 1.05 * (levels + 1.0))
    throw RowRefused{"acceptance length above the depth of the draft", row.text("tau")};
  if (*nodes != std::round(*nodes) || levels != std::round(levels))
    point.assumptions.emplace_back("draft rounded to whole tokens");
  const bool branches = (top_k && *top_k > 1.0) || *nodes > levels || contains(method, {"tree"});
  if (contains(method, {"adaptive", "dynamic k", "dynamic length"})) {
    // A budget is stated; about half of it is verified, in four fifths of the passes (Talon's own rows).
    point.assumptions.emplace_back("adaptive: the budget is stated, not what was verified");
    nodes = std::max(1.0, 0.5 * *nodes);
    levels = std::min(std::max(1.0, 0.8 * levels), *nodes);
  }
  point.form = {static_cast<std::int32_t>(std::lround(*nodes)), static_cast<std::int32_t>(std::lround(levels)),
                branches};
  point.draft = point.form.is_tree()
                    ? "tree of " + std::to_string(point.form.nodes) + " in " + std::to_string(point.form.depth)
                    : "K=" + std::to_string(point.form.nodes);
}

std::vector<double> possible_tps(const MeasuredRow& row, const RooflineSetup& setup, bool one_gpu) {
  auto gpus = row.number("tp", 1, 4096);
  if (!gpus) gpus = row.number("gpu_count", 1, 4096);
  if (!gpus && count_in(row.text("hardware")) >= 1.0) gpus = count_in(row.text("hardware"));
  if (gpus && *gpus != std::round(*gpus))
    throw RowRefused{"number of GPUs is not whole", row.text("tp") + " " + row.text("gpu_count")};
  if (gpus) return {*gpus};
  const double least = one_gpu ? 1.0 : least_tp(setup);
  if (least == 1.0 || least >= 8.0) return {least};
  std::vector<double> all;
  double tp = least;
  while (tp <= 8.0) {
    all.push_back(tp);
    tp *= 2.0;
  }
  return all;
}

MeasuredPoint point_of(const MeasuredRow& row) {
  MeasuredPoint point;
  point.line = row.line();
  if (!row.text("duplicate_of").empty()) throw RowRefused{"duplicate of another row", row.text("duplicate_of")};
  point.id = row.text("id");
  point.source = printable_line(row.text("source_id").empty() ? row.text("source_ref") : row.text("source_id"));
  if (point.source.empty()) point.source = "unnamed";
  point.hardware = row.text("hardware");
  point.engine = row.text("engine");
  point.model = row.text("target_model");
  point.method = row.text("draft_method");
  point.acceptance_length = acceptance_length_of(row, point);
  point.speedup = speedup_of(row);
  if (point.acceptance_length < 1.0) throw RowRefused{"acceptance length below 1", row.text("tau")};
  point.step_ratio = point.acceptance_length / point.speedup;
  if (point.step_ratio < kStepRatioLeast)
    throw RowRefused{"speedup above the acceptance length", row.text("speedup") + " of " + row.text("tau")};
  if (point.step_ratio > kStepRatioMost) throw RowRefused{"implausible step ratio", std::to_string(point.step_ratio)};

  RooflineSetup setup;
  const auto gpu = match_gpu(point.hardware);
  if (!gpu) throw RowRefused{point.hardware.empty() ? "no hardware" : "unknown hardware", in_quotes(point.hardware)};
  setup.gpu = *gpu;
  auto model = match_model(point.model);
  if (!model) model = guess_model(point.model);
  if (!model)
    throw RowRefused{point.model.empty() ? "no target model" : "unknown target model", in_quotes(point.model)};
  if (!model->assumption.empty()) point.assumptions.push_back(model->assumption);
  setup.model = *model;
  setup.precision = precision_of_row(row, setup.model);
  auto engine = match_engine(point.engine);
  if (!engine) {
    engine = match_engine("other engines");
    point.assumptions.emplace_back("engine unknown");
  } else if (engine->generic) {
    point.assumptions.emplace_back("engine without constants of its own");
  }
  setup.engine = *engine;
  const std::string method = point.method.substr(0, point.method.find(" ("));
  auto drafter = match_drafter(method, row.text("draft_model"), setup.model);
  if (!drafter) drafter = match_drafter(point.method, row.text("draft_model"), setup.model);
  if (!drafter)
    throw RowRefused{"unknown draft method or draft model", in_quotes(point.method + " / " + row.text("draft_model"))};
  setup.drafter = drafter;
  setup.draft_precision = drafter->kind == DraftingKind::model ? precision_of(row.text("draft_model")) : Precision{};
  const std::string where = row.lower("hardware") + " " + row.lower("engine");
  setup.offloaded = contains(where, {"offload"});
  if (setup.offloaded) point.assumptions.emplace_back("weights in the host's memory");
  if (setup.precision.kv_bytes < 2.0 && !setup.gpu.has_fp8 && !setup.engine.eager)
    point.assumptions.emplace_back("cache of 8 bits on a GPU without such units");
  point.kind = drafter->kind;
  point.moe = setup.model.is_moe();
  point.eager = setup.engine.eager;

  for (const double tp : possible_tps(row, setup, setup.offloaded)) {
    point.setups.push_back(setup);
    point.setups.back().tp = tp;
  }
  point.multi_gpu = point.setups.size() > 1 || point.setups.front().tp > 1.0;
  read_draft(row, *drafter, setup.engine.name == "SGLang", point);

  const auto batch = row.number("batch", 1e-3, 1e6);
  if (!batch) point.assumptions.emplace_back("batch not stated: 1");
  double requests = std::max(1.0, batch.value_or(1.0));
  if (batch && requests != *batch) point.assumptions.emplace_back("batch below 1: 1");
  if (contains(row.lower("batch_kind"), {"per rank", "per gpu"})) requests *= point.setups.front().tp;
  if (requests != std::round(requests)) point.assumptions.emplace_back("batch rounded to whole requests");
  point.batch.batch = std::lround(requests);
  const auto input = row.number("input_len", 0, 1e8);
  const auto output = row.number("output_len", 0, 1e8);
  point.batch.context = std::lround(input ? std::max(1.0, *input + output.value_or(0.0) / 2.0) : kContextUnknown);

  if (contains(row.lower("batch_kind"), {"closed", "concurrency"}) && input && output)
    point.lengths = {std::lround(*input), std::lround(*output)};
  point.closed_loop = contains(row.lower("batch_kind"), {"closed"}) && !(input && output);
  if (point.kind == DraftingKind::ngram && !contains(row.lower("tau_kind"), {"only steps with", "steps that had"})) {
    point.draft_share = kNgramShare;
    point.assumptions.emplace_back("share of steps with a draft not stated: half");
  }

  const auto tpot = row.number("baseline_tpot_ms", 1e-6, 1e9);
  const auto tokens = row.number("baseline_tok_s", 1e-9, 1e9);
  point.baseline_ms = tpot ? *tpot : tokens ? 1e3 * requests / *tokens : 0.0;

  const double parameters = drafter->kind == DraftingKind::ngram ? 0.0 : drafter->shape.active_parameters();
  const auto ratio = row.number("cost_ratio_c", 0, 100);
  const double passes = drafter->one_pass() ? 1.0 : point.form.depth;
  point.textbook_ratio = 1.0 + passes * ratio.value_or(parameters / setup.model.active_parameters());

  point.machine =
      point.source + "|" + key_of(row, {"hardware", "gpu_count", "tp", "engine", "target_model", "target_precision"});
  const std::string draft_key = key_of(row, {"K", "tree_nodes", "tree_depth", "tree_topk"});
  const std::string load =
      key_of(row, {"draft_method", "draft_model", "batch", "batch_kind", "input_len", "output_len"});
  point.configuration = point.machine + load + draft_key;
  point.choice =
      point.machine +
      key_of(row, {"draft_model", "batch", "batch_kind", "input_len", "output_len", "dataset", "temperature"}) +
      drafter->name;
  return point;
}

}  // namespace

std::optional<double> lenient_number(const std::string& cell) {
  std::string_view rest(cell);
  if (rest.starts_with('~') || rest.starts_with('+')) rest.remove_prefix(1);
  for (const std::string_view suffix : {"\xC3\x97", "x", "X"})  // the sign of multiplication, and what stands for it
    if (rest.ends_with(suffix)) rest.remove_suffix(suffix.size());
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  std::string text = rest.starts_with('.') ? "0" : "";
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != ',') {
      text += rest[i];
      continue;
    }
    // A comma groups thousands, or it is none of a number.
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789", i + 1), rest.size()) - i - 1;
    if (i == 0 || digits != 3) return std::nullopt;
  }
  return read_number(text);
}

std::string MeasuredRow::text(const char* column) const {
  const int index = table_.column(column);
  if (index < 0 || static_cast<std::size_t>(index) >= row_.fields.size()) return "";
  return row_.fields[static_cast<std::size_t>(index)];
}

std::string MeasuredRow::lower(const char* column) const {
  return lower_case(text(column));
}

std::optional<double> MeasuredRow::number(const char* column, double least, double most) const {
  const std::string cell = text(column);
  if (cell.empty() || cell == "-" || lower(column) == "n/a" || lower(column) == "na" || lower(column) == "none")
    return std::nullopt;
  const auto value = lenient_number(cell);
  if (!value) throw RowRefused{std::string(column) + " is not a number", in_quotes(cell)};
  if (!(*value >= least && *value <= most)) throw RowRefused{std::string(column) + " is out of range", in_quotes(cell)};
  return value;
}

MeasuredData measured_data_of(const CsvTable& table, const std::string& file) {
  for (const char* column : {"hardware", "target_model", "draft_method"})
    if (table.column(column) < 0)
      throw input_error(printable_line(file),
                        "it has no column " + std::string(column) + "; expected those of docs/json.md, validate");
  if (table.column("tau") < 0 && table.column("alpha") < 0)
    throw input_error(printable_line(file), "it has neither a column tau nor alpha; expected an acceptance length");
  if (table.column("speedup") < 0 && table.column("spec_tok_s") < 0)
    throw input_error(printable_line(file), "it has neither a column speedup nor spec_tok_s; expected a speedup");
  MeasuredData data;
  for (const CsvRow& fields : table.rows) {
    const MeasuredRow row(table, fields);
    try {
      if (fields.fields.size() != table.columns.size())
        throw RowRefused{
            "another number of fields than the header",
            std::to_string(fields.fields.size()) + " fields, " + std::to_string(table.columns.size()) + " columns"};
      data.points.push_back(point_of(row));
    } catch (const RowRefused& refused) {
      data.excluded.push_back({row.line(), refused.reason, refused.detail});
    }
  }
  return data;
}

MeasuredData read_measured_data(const std::string& path) {
  return measured_data_of(read_csv(path), path);
}

}  // namespace draftproof
