#include <memory>

#include "base/parallel.hpp"
#include "cli/bench/cases.hpp"
#include "exactness/soak/chain_trials.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kTasks = 64;

struct SoakInputs {
  ChainModel model{8, 4, ModelKind::dense, 0};
  ChainTables tables{model};
  std::vector<std::vector<std::uint64_t>> counts;  // of each thread
};

}  // namespace

std::vector<BenchCase> soak_cases(const std::vector<int>& threads, const BenchSizes& sizes) {
  const auto trials_of_task = static_cast<std::uint64_t>(sizes.chain_trials / kTasks);
  std::vector<BenchCase> cases;
  for (const int count : threads) {
    BenchCase out;
    out.name = "chain_trials";
    out.threads = count;
    if (count == 2) out.goal = BenchGoal{"ns_per_element", true, 50.0};  // 20 million a second
    out.prepare = [count, trials_of_task] {
      const auto inputs = std::make_shared<SoakInputs>();
      inputs->counts.assign(static_cast<std::size_t>(count), std::vector<std::uint64_t>(inputs->model.cell_count(), 0));
      BenchWork work;
      work.elements = kTasks * trials_of_task;
      work.body = [inputs, count, trials_of_task] {
        parallel_for(kTasks, count, [&](std::int64_t task, int thread) {
          chain_trials()(inputs->tables, 0,
                         static_cast<std::uint32_t>(static_cast<std::uint64_t>(task) * trials_of_task), trials_of_task,
                         inputs->counts[static_cast<std::size_t>(thread)]);
        });
      };
      return work;
    };
    cases.push_back(out);
  }
  return cases;
}

}  // namespace draftproof
