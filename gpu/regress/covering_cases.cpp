#include "gpu/regress/covering_cases.hpp"

namespace draftproof::regress {

std::vector<RegressCase> covering_cases(const std::string& call, CoveringRun run) {
  const std::vector<ArgumentValues>& arguments = arguments_of(call);
  const auto meets = [&](std::size_t i, std::size_t v, std::size_t j, std::size_t w) {
    return can_meet(arguments[i].name, arguments[i].values[v], arguments[j].name, arguments[j].values[w]);
  };
  std::vector<RegressCase> cases;
  for (const std::vector<std::size_t>& values : covering_array(arguments, meets)) {
    const Assignment given(arguments, values);
    const std::uint64_t number = cases.size();
    std::string name = call + "/covering_" + (number < 10 ? "0" : "") + std::to_string(number);
    if (given.knows("vocab_size")) name += "/V" + std::to_string(given.vocab_size());
    cases.push_back({std::move(name), [=](CaseRun& r) { run(r, given, number); }, {given.block_threads()}});
  }
  return cases;
}

}  // namespace draftproof::regress
