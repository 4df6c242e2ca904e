// B88: of a drawn tree the nodes of the highest q are verified, as if all that was drawn were there.
#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "exactness/proof/head_steps.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {
namespace {

constexpr EnumerationHunt kTwoLevels{.draft_len = 2};
constexpr std::size_t kNodesKept = 3;

// E: two children of every node, drawn without replacement and judged by RRSw; all of them, or the best.
Finding find_reranked(bool faulty) {
  const auto draw = [faulty](const auto& distribution, std::int32_t depth, auto& chance) {
    const DraftTree tree = proof_steps::without_replacement(2)(distribution, depth, chance);
    return faulty ? proof_steps::reranked(tree, distribution, kNodesKept) : tree;
  };
  return find_wrong_distribution(kTwoLevels, proof_steps::tree_step(draw, proof_steps::top_down(proof_steps::rrsw)));
}

// E: EAGLE-2's rerank over children that are drawn, judged by RRS; or over the most probable ones, which no chance
// chose, judged without a q.
Finding find_drawn_candidates(bool faulty) {
  if (!faulty) {
    const auto judge = proof_steps::top_down(proof_steps::target_only);
    return find_wrong_distribution(kTwoLevels, proof_steps::tree_step(proof_steps::eagle2_tree(2, kNodesKept), judge));
  }
  const auto draw = [](const auto& distribution, std::int32_t depth, auto& chance) {
    const std::vector<std::int32_t> branching(static_cast<std::size_t>(depth), 2);
    return proof_steps::reranked(draw_iid_children(distribution, branching_shape(branching), chance), distribution,
                                 kNodesKept);
  };
  return find_wrong_distribution(kTwoLevels, proof_steps::tree_step(draw, proof_steps::top_down(proof_steps::rrs)));
}

// Draws two tokens and judges the one of the higher q as a single draw.
LargeSampler better_of_two(const FixedRowsPointer& rows) {
  return {rows->target.masses(), [rows](std::uint64_t draw) {
            const std::uint64_t seed = derive_seed(0, draw);
            const PhiloxSource source;
            const auto drawn = [&](std::uint32_t row) {
              return rows->proposal.draw(source.block(seed, {0, row, 0, Purpose::draft_sample}));
            };
            const Token first = drawn(0);
            const Token second = drawn(1);
            const Token kept = rows->proposal.mass(second) > rows->proposal.mass(first) ? second : first;
            const RandomBlock coin = source.block(seed, {0, 0, 0, Purpose::accept});
            if (sound_coin(rows->target.mass(kept), rows->proposal.mass(kept), coin)) return kept;
            return rows->residual.draw(source.block(seed, {0, 0, 0, Purpose::residual}));
          }};
}

}  // namespace

std::vector<Bug> reranked_tree_bugs() {
  return {{.id = "B88",
           .source = "by analysis: EAGLE-2's rerank, over nodes that are drawn",
           .fault = "of a drawn tree the nodes of the highest q are kept, and judged by the q that all were drawn from",
           .hunts = {{Detector::enumeration, find_reranked}, {Detector::enumeration, find_drawn_candidates}},
           .rows_sampler = better_of_two}};
}

}  // namespace draftproof
