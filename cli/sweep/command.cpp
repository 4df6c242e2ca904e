// draftproof sweep: a grid of scenarios over threads, and over processes that mpirun has started; rows go to SQLite as
// they finish, and a later run computes the points that are missing.
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <exception>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/ranks.hpp"
#include "sim/serving/grid.hpp"

namespace draftproof {
namespace {

struct SweepArguments {
  std::string grid;
  std::string out;
  std::optional<int> threads;
  std::optional<std::int64_t> points;
  Artefacts artefacts;
  bool json = false;
};

TableCell table_cell(const Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return *integer;
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return std::string();
}

// All columns of the rows that are there.
Table table_of(const Grid& grid, const std::vector<Row>& rows) {
  Table table;
  table.columns = grid.columns();
  for (const Row& row : rows) std::ranges::transform(row, std::back_inserter(table.rows.emplace_back()), table_cell);
  return table;
}

// Policy, keys and the figures that one reads first, a row a line.
void print_rows(std::ostream& out, const Table& table) {
  constexpr std::array<std::string_view, 5> kShown{"throughput", "goodput", "ttft_ms_p50", "tpot_ms_p50", "speedup"};
  const auto first_figure = std::ranges::find(table.columns, std::string(name_of(static_cast<Figure>(0))));
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (static_cast<std::ptrdiff_t>(c) < first_figure - table.columns.begin() ||
        std::ranges::find(kShown, table.columns[c]) != kShown.end())
      shown.push_back(c);
  std::vector<std::vector<std::string>> lines{{}};
  for (const std::size_t c : shown) lines[0].push_back(table.columns[c]);
  for (const std::vector<TableCell>& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const std::size_t c : shown) {
      const auto* text = std::get_if<std::string>(&row[c]);
      const auto* real = std::get_if<double>(&row[c]);
      line.push_back(text   ? printable_line(*text)
                     : real ? number("%.4g", *real)
                            : std::to_string(std::get<std::int64_t>(row[c])));
    }
  }
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      std::size_t width = 0;
      for (const std::vector<std::string>& other : lines) width = std::max(width, other[c].size());
      out << (c == 0 ? "" : "  ") << std::string(width - line[c].size(), ' ') << line[c];
    }
    out << '\n';
  }
}

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
  Table rows;  // all that the file has
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
  Swept swept{there.size(), missing.size(), {}};
  Progress progress(
      "sweep", missing.size(), "points",
      "finished points are in " + printable_line(arguments.out) + "; the same command goes on with the others");
  OwnPoints points(std::move(missing), [&](std::size_t point, const std::vector<Row>& rows) {
    store.add(static_cast<std::int64_t>(point), rows);
    progress.advance();
  });
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
  swept.rows = table_of(grid, store.rows());
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
    require_artefacts(arguments.artefacts, {{"the grid", arguments.grid}, {"--out", arguments.out}});
    if (ranks.rank() != 0) {
      const std::unique_ptr<Points> points = ranks.points_of_rank_0();
      compute(grid, *points, threads, [] {});
      return;
    }
    swept = sweep_with_file(arguments, grid, ranks, threads);
  } catch (const Error& error) {
    ranks.end_all(error);
    throw;
  }
  write_table_of(arguments.artefacts, "Policies over the grid " + arguments.grid, context, [&] { return swept.rows; });
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
    print_rows(std::cout, swept.rows);
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
  add_table(options, arguments->artefacts);
  options.json(arguments->json);
  options.footer(
      "Over machines: mpirun -n N ./draftproof sweep ...; ./draftproof build --with-mpi installs what it needs.");
  options.examples({"experiments/scenarios/chat_load.toml --out sweep.sqlite",
                    "experiments/scenarios/chat_load.toml --out sweep.sqlite --points 10",
                    "experiments/scenarios/chat_load.toml --out sweep.sqlite --table sweep.csv"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
