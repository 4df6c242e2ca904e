#include "cli/audit/drafts.hpp"

#include <iomanip>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "engine/heads/draft_head.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kAccountingShown = 5;

void print_agreement(std::ostream& out, const std::string& name, const DraftAgreement& of) {
  if (of.drafts() == 0) return;
  out << std::left << std::setw(22) << name << std::right << std::setw(9) << of.drafts() << std::setw(9) << of.exact
      << std::setw(11) << of.near_ties << std::setw(11) << of.different << '\n';
}

std::string bin_name(const DraftAudit& audit, std::size_t bin) {
  const auto begin = static_cast<std::int64_t>(bin) * audit.bin_len;
  return "position " + std::to_string(begin) + " to " + std::to_string(begin + audit.bin_len - 1);
}

void print_faults(std::ostream& out, const DraftAudit& audit) {
  if (audit.faults.empty()) return;
  out << "\nfaults planted in " << audit.replayed_requests << " of the requests (" << audit.replayed_drafts
      << " drafts, " << audit.replayed_different << " different; numbers: docs/heads.md)\n"
      << " no.  different  explained  introduced  fault\n";
  for (const FaultLook& fault : audit.faults) {
    out << std::right << std::setw(4) << fault.number;
    if (fault.not_tried.empty())
      out << std::setw(11) << fault.different << std::setw(11) << fault.explained << std::setw(12) << fault.introduced
          << "  " << fault.name << '\n';
    else
      out << "          -          -           -  " << fault.name << (fault.name.empty() ? "" : ": ") << fault.not_tried
          << '\n';
  }
}

Json agreement_json(const DraftAgreement& of) {
  return {{"drafts", of.drafts()}, {"exact", of.exact}, {"near_ties", of.near_ties}, {"different", of.different}};
}

}  // namespace

DraftAuditRun run_draft_audit(const std::string& path, const DraftAuditArguments& arguments, int threads) {
  DrafterChoice choice = parse_drafter(arguments.drafter, "--drafter");
  if (choice.kind != DrafterKind::head || choice.first != DrafterKind::none)
    throw usage_error("--drafter",
                      "is " + arguments.drafter + "; expected head:PATH, the head that the run drafted with");
  if (arguments.model.empty())
    throw usage_error("--model", "is not given; expected the target that " + arguments.drafter + " was trained for");
  const TextModelOptions options{arguments.activations == "f32", threads};
  const TextModel model = open_text_model(arguments.model, model_path(arguments.model), options, "--model");
  const std::shared_ptr<DraftHead> head = open_head(choice, model, options, "--drafter");
  const std::vector<DraftedRequest> requests = read_recorded_run(path, model.model->vocab_size());
  DraftAuditRun run{path, model.name, model.arithmetic, choice.text, std::string(name_of(head->description().family)),
                    {},   0.0};
  const Stopwatch watch;
  Progress progress("comparing", requests.size(), "requests");
  DraftAuditOptions audit_options;
  audit_options.tolerance = arguments.tolerance;
  audit_options.on_request = [&](std::size_t) { progress.advance(); };
  run.audit = audit_drafts(requests, head->shared_weights(), *model.transformer, audit_options);
  run.audit_ms = watch.elapsed_ms();
  return run;
}

void print_draft_audit(std::ostream& out, const DraftAuditRun& run, const Palette& palette) {
  const DraftAudit& audit = run.audit;
  out << printable_line(run.path) << ": " << audit.requests << " requests, " << audit.steps << " steps with drafts; "
      << run.family << " " << printable_line(run.drafter) << " on " << printable_line(run.model) << " ("
      << run.arithmetic << ")\n\n";
  out << std::left << std::setw(22) << ""
      << "   drafts    exact  near ties  different\n";
  print_agreement(out, "all", audit.all);
  for (std::size_t i = 0; i < audit.by_depth.size(); ++i)
    print_agreement(out, "depth " + std::to_string(i + 1), audit.by_depth[i]);
  for (std::size_t i = 0; i < audit.by_position.size(); ++i)
    print_agreement(out, bin_name(audit, i), audit.by_position[i]);
  out << "\nlargest margin: " << number("%.4g", audit.largest_margin) << number(" (tolerance %.4g)", audit.tolerance)
      << '\n';
  if (audit.probabilities > 0)
    out << "recorded probabilities: " << audit.probabilities << ", the largest difference "
        << number("%.4g", audit.largest_prob_difference)
        << number(", of logarithms %.4g\n", audit.largest_log_prob_difference);
  if (audit.recorded_length)
    out << "acceptance length: " << number("%.3f recorded, ", *audit.recorded_length)
        << number("%.3f with what the head proposes\n", *audit.head_length);
  for (std::size_t i = 0; i < std::min(kAccountingShown, audit.accounting.size()); ++i)
    out << "accounts: " << printable_line(audit.accounting[i].text) << '\n';
  if (audit.accounting.size() > kAccountingShown)
    out << "accounts: ... and " << audit.accounting.size() - kAccountingShown << " more requests\n";
  if (audit.first) out << "first difference: " << printable_line(audit.first->text()) << '\n';
  print_faults(out, audit);
  const Colour colour = audit.verdict == DraftVerdict::consistent  ? Colour::green
                        : audit.verdict == DraftVerdict::different ? Colour::red
                                                                   : Colour::yellow;
  out << "\nverdict: " << palette.paint(colour, printable_line(audit.sentence)) << '\n' << std::flush;
}

Json draft_audit_json(const DraftAuditRun& run, const std::vector<std::string>& command_line) {
  const DraftAudit& audit = run.audit;
  Json document = json_document(command_line);
  document["input"] = {{"path", run.path}, {"kind", "drafts"}};
  document["model"] = run.model;
  document["arithmetic"] = run.arithmetic;
  document["drafter"] = run.drafter;
  document["family"] = run.family;
  document["verdict"] = name_of(audit.verdict);
  document["sentence"] = audit.sentence;
  document["tolerance"] = audit.tolerance;
  document["requests"] = audit.requests;
  document["steps"] = audit.steps;
  document["agreement"] = agreement_json(audit.all);
  document["by_depth"] = json_list(audit.by_depth, agreement_json);
  document["by_position"] = Json::array();
  for (std::size_t i = 0; i < audit.by_position.size(); ++i) {
    Json bin = agreement_json(audit.by_position[i]);
    bin["begin"] = static_cast<std::int64_t>(i) * audit.bin_len;
    bin["end"] = static_cast<std::int64_t>(i + 1) * audit.bin_len;
    document["by_position"].push_back(std::move(bin));
  }
  document["first"] = nullptr;
  if (const auto& first = audit.first)
    document["first"] = {{"where", first->where},
                         {"step", first->step},
                         {"position", first->position},
                         {"depth", first->depth},
                         {"drafted", first->drafted},
                         {"expected", or_null(first->expected)},
                         {"margin", or_null(first->margin)},
                         {"log_prob_difference", or_null(first->log_prob_difference)}};
  document["accounting"] = json_list(audit.accounting, [](const AccountingFault& fault) { return Json(fault.text); });
  document["largest_margin"] = audit.largest_margin;
  document["probabilities"] = audit.probabilities;
  document["largest_prob_difference"] = audit.largest_prob_difference;
  document["largest_log_prob_difference"] = audit.largest_log_prob_difference;
  document["recorded_acceptance_length"] = or_null(audit.recorded_length);
  document["head_acceptance_length"] = or_null(audit.head_length);
  document["replayed"] = {{"requests", audit.replayed_requests},
                          {"drafts", audit.replayed_drafts},
                          {"different", audit.replayed_different}};
  document["faults"] = json_list(audit.faults, [](const FaultLook& fault) -> Json {
    const bool tried = fault.not_tried.empty();
    return {{"number", fault.number},
            {"name", text_or_null(fault.name)},
            {"not_tried", text_or_null(fault.not_tried)},
            {"different", tried ? Json(fault.different) : Json()},
            {"explained", tried ? Json(fault.explained) : Json()},
            {"introduced", tried ? Json(fault.introduced) : Json()},
            {"distance", tried ? Json(fault.distance) : Json()}};
  });
  document["explanations"] = json_list(audit.explanations(), [](const FaultLook* fault) -> Json {
    return {{"number", fault->number}, {"name", fault->name}};
  });
  document["audit_ms"] = run.audit_ms;
  return document;
}

}  // namespace draftproof
