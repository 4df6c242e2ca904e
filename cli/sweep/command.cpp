// draftproof sweep: a grid of scenarios over threads, and over processes that mpirun has started; rows go to SQLite as
// they finish, and a later run computes the points that are missing.
#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/sweep/ranks.hpp"
#include "sim/serving/grid.hpp"

namespace draftproof {
namespace {

struct SweepArguments {
  std::string grid;
  std::string out;
  std::optional<int> threads;
  std::optional<std::int64_t> points;
  bool json = false;
};

// Computes points on so many threads until there are none. The first error of a thread is thrown at the end.
void compute(const Grid& grid, Points& points, int threads, const std::function<void()>& on_error) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      while (const std::optional<std::size_t> point = points.next()) points.deliver(*point, grid.run(*point));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      on_error();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
}

// Points that were there, and in all.
struct Swept {
  std::size_t there = 0;
  std::size_t computed = 0;
};

Swept sweep_with_file(const SweepArguments& arguments, const Grid& grid, Ranks& ranks, int threads) {
  RowStore store(arguments.out, grid.identity(), "point", grid.columns());
  const std::vector<std::int64_t> groups = store.groups();
  const std::set<std::int64_t> there(groups.begin(), groups.end());
  if (!there.empty() && (*there.begin() < 0 || *there.rbegin() >= static_cast<std::int64_t>(grid.size())))
    throw input_error(arguments.out, "it has rows of point " +
                                         std::to_string(*there.begin() < 0 ? *there.begin() : *there.rbegin()) +
                                         "; expected points from 0 to " + std::to_string(grid.size() - 1));
  std::deque<std::size_t> missing;
  for (std::size_t point = 0; point < grid.size(); ++point)
    if (!there.contains(static_cast<std::int64_t>(point))) missing.push_back(point);
  if (arguments.points && missing.size() > static_cast<std::size_t>(*arguments.points))
    missing.resize(static_cast<std::size_t>(*arguments.points));
  const Swept swept{there.size(), missing.size()};
  Progress progress("sweep", missing.size(), "points");
  OwnPoints points(std::move(missing), store, [&] { progress.advance(); });
  std::exception_ptr error;
  std::jthread own([&] {
    try {
      compute(grid, points, threads, [&] { points.give_up(); });
    } catch (...) {
      error = std::current_exception();
    }
  });
  ranks.serve(points);
  own.join();
  if (error) std::rethrow_exception(error);
  return swept;
}

void run(const SweepArguments& arguments, ProgramContext& context) {
  Ranks ranks;
  const auto begin = std::chrono::steady_clock::now();
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = arguments.threads.value_or(std::max(1, cores / ranks.size_on_this_machine()));
  Swept swept;
  std::size_t size = 0;
  try {
    const Grid grid(arguments.grid);
    size = grid.size();
    require_no_overwriting({{"the grid", arguments.grid}}, {{"--out", arguments.out}});
    if (ranks.rank() != 0) {
      const std::unique_ptr<Points> points = ranks.points_of_rank_0();
      compute(grid, *points, threads, [] {});
      return;
    }
    swept = sweep_with_file(arguments, grid, ranks, threads);
  } catch (const Error& error) {
    // The other ranks wait for this one. All find the same fault in the grid: one says it.
    if (ranks.size() > 1) {
      std::cerr << "draftproof: error: " << printable_line(error.what()) << std::endl;
      ranks.end_all(static_cast<int>(error.kind() == ErrorKind::internal ? ExitCode::internal : ExitCode::misuse));
    }
    throw;
  }
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document.update({{"grid", arguments.grid},
                     {"out", arguments.out},
                     {"points", size},
                     {"points_there", swept.there},
                     {"points_computed", swept.computed},
                     {"ranks", ranks.size()},
                     {"threads", threads},
                     {"wall_s", finite("wall_s", wall_s)}});
    print_json(document);
  } else {
    std::cout << swept.computed << " points computed, " << swept.there << " were there, of " << size << "; rows in "
              << printable_line(arguments.out) << '\n';
  }
}

}  // namespace

void add_sweep(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<SweepArguments>();
  options.required_text("grid", arguments->grid, "Grid of scenarios (docs/simulator.md)", "GRID.toml");
  options.required_text("--out", arguments->out,
                        "SQLite file: rows are added as they finish, and those of an earlier run kept", "FILE");
  options.integer("--threads", arguments->threads, kThreadRange,
                  "Threads of each process; all cores if left out, shared by the processes of a machine");
  options.integer("--points", arguments->points, {1, 1'000'000}, "Stop after so many points; a later run goes on");
  options.json(arguments->json);
  options.footer(
      "Over machines: mpirun -n N ./draftproof sweep ...; ./draftproof build --with-mpi installs what it needs.");
  options.examples({"experiments/scenarios/chat_load.toml --out sweep.sqlite",
                    "experiments/scenarios/chat_load.toml --out sweep.sqlite --points 10"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
