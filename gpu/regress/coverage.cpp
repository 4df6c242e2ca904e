#include "gpu/regress/coverage.hpp"

#include <memory>
#include <set>
#include <tuple>

#include "gpu/device_memory.hpp"

namespace draftproof::regress {
namespace {

using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;  // argument, value, argument, value

struct Seen {
  std::int64_t cases = 0;
  std::set<Pair> pairs;
  std::set<std::pair<std::size_t, std::size_t>> values;
};

void add(const CallArguments& call, Seen& seen) {
  ++seen.cases;
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    seen.values.insert({i, call.values[i]});
    for (std::size_t j = i + 1; j < call.values.size(); ++j) seen.pairs.insert({i, call.values[i], j, call.values[j]});
  }
}

CallCoverage coverage_of(const std::string& call, const Seen& seen) {
  const std::vector<ArgumentValues>& arguments = arguments_of(call);
  CallCoverage out;
  out.call = call;
  out.cases = seen.cases;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& [name, values] = arguments[i];
    bool is_beyond = false;
    for (std::size_t v = 1; v < values.size(); ++v) is_beyond = is_beyond || seen.values.contains({i, v});
    ++out.arguments;
    if (is_beyond) ++out.beyond_default;
    if (!is_beyond) out.missing.push_back(name + " is never anything but " + values[0]);
    for (std::size_t j = i + 1; j < arguments.size(); ++j) {
      for (std::size_t v = 0; v < values.size(); ++v) {
        for (std::size_t w = 0; w < arguments[j].values.size(); ++w) {
          const std::string& other = arguments[j].name;
          if (!can_meet(name, values[v], other, arguments[j].values[w])) continue;
          ++out.pairs;
          if (seen.pairs.contains({i, v, j, w})) {
            ++out.pairs_met;
          } else {
            out.missing.push_back(name + " " + values[v] + " never meets " + other + " " + arguments[j].values[w]);
          }
        }
      }
    }
  }
  return out;
}

}  // namespace

std::vector<CallArguments> arguments_of(const RegressCase& one) {
  std::vector<CallArguments> described;
  const std::unique_ptr<device::DeviceMemory> memory = device::memory_of(DRAFTPROOF_REFERENCE);
  draftproof_settings settings{};
  settings.executor = DRAFTPROOF_REFERENCE;
  CaseRun run(*memory, settings);
  run.describe_into(&described);
  one.run(run);
  // The same inputs in every launch configuration: the first argument.
  std::vector<CallArguments> all;
  for (const CallArguments& call : described) {
    const std::vector<std::string>& threads = call.arguments[0].values;
    for (const int block_threads : one.block_threads) {
      all.push_back(call);
      for (std::size_t v = 0; v < threads.size(); ++v)
        if (threads[v] == std::to_string(block_threads)) all.back().values[0] = v;
    }
  }
  return all;
}

std::vector<CallCoverage> coverage_of(const std::vector<RegressCase>& cases) {
  std::map<std::string, Seen> seen;
  for (const RegressCase& one : cases)
    for (const CallArguments& call : arguments_of(one)) add(call, seen[call.call]);
  std::vector<CallCoverage> coverage;
  for (const std::string& call : call_names())
    if (seen.contains(call)) coverage.push_back(coverage_of(call, seen[call]));
  return coverage;
}

}  // namespace draftproof::regress
