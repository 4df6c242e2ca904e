// The device faults: kernels with one fault each (gpu/faults/*.fault), of which the regression must find every one.
#include "tests/support/built_faults.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<std::string> fault_ids() {
  std::vector<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator(DRAFTPROOF_SOURCE_DIR "/gpu/faults"))
    if (entry.path().extension() == ".fault") ids.push_back(entry.path().stem().string());
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

TEST_CASE("the regression kills every device fault") {
  if (!faults_are_built()) return;
  for (const std::string& id : fault_ids()) {
    const ProgramResult run = run_command({draftproof::regress::faults_folder() + "/" + id + ".run"});
    INFO(id << ": " << run.out << run.err);
    CHECK(run.exit_code == 0);
    CHECK_FALSE(run.out.empty());
  }
}

namespace {

// The source and all that it includes from gpu/, by their paths in the repository.
void add_includes(const std::string& source, std::set<std::string>& found) {
  if (!found.insert(source).second) return;
  std::istringstream lines(read_whole_file(std::string(DRAFTPROOF_SOURCE_DIR "/") + source));
  const std::string begin = "#include \"gpu/";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(begin)) add_includes(line.substr(10, line.size() - 11), found);
}
// The value of a line `key: value` of a fault.
std::string value_of(const std::string& fault, const std::string& key) {
  const std::size_t begin = fault.find("\n" + key + ": ");
  REQUIRE(begin != std::string::npos);
  const std::size_t value = begin + key.size() + 3;
  return fault.substr(value, fault.find('\n', value) - value);
}

}  // namespace

TEST_CASE("a fault compiles every operation that includes its faulty source, so that no function has two bodies") {
  for (const std::string& id : fault_ids()) {
    const std::string fault = read_whole_file(DRAFTPROOF_SOURCE_DIR "/gpu/faults/" + id + ".fault");
    const std::string operations = " " + value_of(fault, "operations") + " ";
    const std::string cases = value_of(fault, "cases");
    // Operations that its program runs in the namespace of faults: the call of its cases, and what that launches.
    std::set<std::string> runs = {cases.substr(0, cases.find('/'))};
    std::set<std::string> of_call;
    add_includes("gpu/operations/" + *runs.begin() + ".hpp", of_call);
    of_call.erase("gpu/operations/launch_distribution.hpp");  // declares both
    for (const std::string& file : of_call) {
      const std::string text = read_whole_file(std::string(DRAFTPROOF_SOURCE_DIR "/") + file);
      if (text.find("launch_pipeline(") != std::string::npos) runs.insert({"pipeline", "distribution"});
      if (text.find("launch_unfiltered_distribution(") != std::string::npos) runs.insert("distribution");
    }
    for (const std::string& operation : runs) {
      std::set<std::string> includes;
      add_includes("gpu/operations/" + operation + ".hpp", includes);
      INFO(id << " and operation " << operation);
      if (includes.count(value_of(fault, "file")) == 1)
        CHECK(operations.find(" " + operation + " ") != std::string::npos);
    }
  }
}

TEST_CASE("every kernel bug of the catalogue has a device fault, whose first line says which it is") {
  const std::vector<std::string> ids = fault_ids();
  for (const char* bug : {"B06", "B08", "B12", "B14", "B43", "B54", "B56", "B58", "B60", "B61"}) {
    INFO(bug);
    CHECK(std::any_of(ids.begin(), ids.end(), [&](const std::string& id) { return id.rfind(bug, 0) == 0; }));
  }
  for (const std::string& id : ids) {
    INFO(id);
    const std::string fault = read_whole_file(DRAFTPROOF_SOURCE_DIR "/gpu/faults/" + id + ".fault");
    const std::string line = fault.substr(0, fault.find('\n'));
    const std::string bug = id.substr(0, id.find('-'));
    CHECK((line.starts_with(bug + ", ") || line.starts_with(bug + ": ")));
    CHECK(line.ends_with("."));
  }
}
