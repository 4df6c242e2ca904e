#include "engine/draft/front_drafter.hpp"

namespace draftproof {

void FrontDrafter::propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) {
  if (propose_first({context, plan, &chance, &out})) return;
  out = {};
  if (other_) other_->propose(context, plan, chance, out);
}

void FrontDrafter::propose_all(std::span<DraftJob> jobs, DraftCache* cache) {
  std::vector<DraftJob> others;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (propose_first(jobs[i])) continue;
    *jobs[i].out = {};
    others.push_back(jobs[i]);
    indices.push_back(i);
  }
  if (other_ == nullptr || others.empty()) return;
  other_->propose_all(others, cache);
  for (std::size_t i = 0; i < others.size(); ++i) jobs[indices[i]].failure = others[i].failure;
}

bool SuffixFrontDrafter::propose_first(const DraftJob& job) {
  Draft& out = *job.out;
  out = {};
  suffix_.propose(job.context, job.plan, *job.chance, out);
  if (has_confidences())
    for (const NodeEvidence& node : out.evidence) out.confidences.push_back(node.frequency);
  if (!looks_up()) out.evidence.clear();
  return !out.tree.tokens.empty();
}

void SuffixFrontDrafter::finish(const DraftContext& context) {
  suffix_.finish(context);
  FrontDrafter::finish(context);
}

}  // namespace draftproof
