#include "studies/exactness/exactness.hpp"

#include "exactness/bugs/bugs_json.hpp"
#include "exactness/proof/proof_json.hpp"
#include "studies/figures/figure.hpp"
#include "tests/support/test.hpp"

using Json = nlohmann::ordered_json;

namespace {

ExactnessSettings small_proofs() {
  ExactnessSettings settings;
  settings.draft_len = 1;
  settings.instances = 2;
  return settings;
}

ExactnessSnapshot computed(const ExactnessSettings& settings, std::vector<ExactnessSnapshot>* all = nullptr) {
  Job job;
  ExactnessSnapshot last;
  compute(settings, job, [&](ExactnessSnapshot snapshot) {
    if (all != nullptr) all->push_back(snapshot);
    last = std::move(snapshot);
  });
  return last;
}

void erase_times(Json& json) {
  if (json.is_object()) json.erase("ms");
  if (json.is_structured())
    for (Json& element : json) erase_times(element);
}

// Checks that the snapshot's command prints what the snapshot shows. Returns the printed document, opened again.
ExactnessSnapshot opened_as_printed(const ExactnessSnapshot& snapshot, const std::string& verb,
                                    const std::string& file) {
  Json document = printed_by(command_arguments(snapshot.settings));
  const ExactnessSnapshot opened = exactness_of(document, verb, file);
  erase_times(document);
  const Json shown = to_json(snapshot);
  for (const auto& [key, value] : shown.items()) {
    CAPTURE(key);
    CHECK(document.at(key) == value);
  }
  CHECK(to_json(opened) == shown);
  return opened;
}

const ExactnessRow& row_of(const ExactnessSnapshot& snapshot, const std::string& name) {
  for (const ExactnessRow& row : snapshot.matrix.rows)
    if (row.name == name) return row;
  throw std::runtime_error("no row " + name);
}

}  // namespace

TEST_CASE("the matrix of verifiers holds what draftproof prove prints, and goes back and forth through its file") {
  std::vector<ExactnessSnapshot> all;
  const ExactnessSnapshot snapshot = computed(small_proofs(), &all);
  CHECK(snapshot.complete);
  CHECK(snapshot.proofs.size() == proof_cases().size());
  const ExactnessSnapshot opened = opened_as_printed(snapshot, "prove", "result.json");
  CHECK(opened.proofs.front().milliseconds >= 0.0);
  CHECK(opened.settings.file == "result.json");
  CHECK(opened.summary == snapshot.summary);
  // Snapshots grow: every case on one pair of models before any on all.
  REQUIRE(all.size() > 2 * proof_cases().size());
  CHECK(all.front().proofs.size() == 1);
  const ExactnessSnapshot& first_round = all[proof_cases().size() - 1];
  CHECK(first_round.proofs.size() == proof_cases().size());
  for (const ProofResult& result : first_round.proofs) CHECK(result.instances == 1);
  CHECK_FALSE(first_round.complete);
}

TEST_CASE("a field of the matrix says its sentence, and names the command that prints its row") {
  const ExactnessSnapshot snapshot = computed(small_proofs());
  const ExactnessRow& chain = row_of(snapshot, "chain");
  REQUIRE(chain.cells.size() == snapshot.matrix.columns.size());
  CHECK(chain.cells[1].state == CellState::good);
  CHECK(chain.cells[1].text == "exact");
  const ExactnessRow& lossy = row_of(snapshot, "typical_acceptance");
  CHECK(lossy.cells[1].state == CellState::expected_bad);
  CHECK(lossy.cells[1].text == "refuted");
  const Json one = printed_by(lossy.command);
  REQUIRE(one.at("proofs").size() == 1);
  const ProofResult proof = proof_of(one.at("proofs").at(0), "test");
  REQUIRE(proof.counterexample.has_value());
  CHECK(lossy.cells[1].sentence.find(proof.counterexample->sentence()) != std::string::npos);
  const std::string cases = std::to_string(proof_cases().size());
  CHECK(snapshot.summary.find(cases + " of " + cases + " cases as claimed") == 0);
  CHECK(row_of(snapshot, "equivalence 1").cells.front().text == "holds");
}

TEST_CASE("what is not as claimed is bad in the matrix, whichever way it fails") {
  ExactnessSnapshot snapshot;
  ProofResult failing;
  failing.name = "failing";
  failing.exact = false;
  failing.instances = 1;
  ProofResult unrefuted;
  unrefuted.name = "unrefuted";
  unrefuted.lossless = false;
  unrefuted.instances = 1;
  ProofResult miscounted;
  miscounted.name = "miscounted";
  miscounted.oracles = 2;
  miscounted.acceptance_holds = false;
  miscounted.float_distance_max = Rational(1) / 100;
  snapshot.proofs = {failing, unrefuted, miscounted};
  snapshot.claims = {{ClaimKind::ordering, "a <= b", 1, "b is less"}};
  fill_matrix(snapshot);
  CHECK(row_of(snapshot, "failing").cells[1].state == CellState::bad);
  CHECK(row_of(snapshot, "unrefuted").cells[1].state == CellState::bad);
  CHECK(row_of(snapshot, "miscounted").cells[2].state == CellState::bad);
  CHECK(row_of(snapshot, "miscounted").cells[3].state == CellState::bad);
  CHECK(row_of(snapshot, "ordering 1").cells[0].state == CellState::bad);
  CHECK(snapshot.summary.find("0 of 3") == 0);

  ExactnessSnapshot hunted;
  hunted.settings.view = ExactnessView::bugs;
  BugResult survivor;
  survivor.bug.id = "B99";
  survivor.hunts = {{Detector::enumeration, {false, 5, "outcomes", {}}, {false, 5, "outcomes", {}}, 0.0}};
  BugResult accused;
  accused.bug.id = "B98";
  accused.hunts = {{Detector::key_audit, {true, 3, "blocks", "seen"}, {true, 3, "blocks", "seen"}, 0.0}};
  hunted.bugs.bugs = {survivor, accused};
  fill_matrix(hunted);
  CHECK(row_of(hunted, "B99").cells[0].text == "survived");
  CHECK(row_of(hunted, "B99").cells[0].state == CellState::bad);
  CHECK(row_of(hunted, "B98").cells[0].text == "twin accused");
  CHECK(row_of(hunted, "B98").cells[1].text == "accuses");
}

TEST_CASE("the matrix of bugs holds what draftproof bugs prints, and goes back and forth through its file") {
  if (kSanitized) {
    WARN("SKIPPED: minutes under sanitizers, where the bugs have tests of their own");
    return;
  }
  ExactnessSettings settings;
  settings.view = ExactnessView::bugs;
  const ExactnessSnapshot snapshot = computed(settings);
  opened_as_printed(snapshot, "bugs", "bugs.json");
  CHECK(snapshot.summary == snapshot.bugs.sentence());
  const ExactnessRow& row = row_of(snapshot, "B38");
  CHECK(row.cells[0].text == "killed");
  CHECK(row.cells[2].text == "caught");  // by enumeration
  CHECK(row.cells[1].state == CellState::none);
  CHECK(row.cells[2].sentence.find("Caught after") == 0);
  CHECK(row.command == std::vector<std::string>{"draftproof", "bugs", "--only", "B38"});
  CHECK(row_of(snapshot, "C01").cells[0].text == "passes");
  CHECK(to_table(snapshot).rows.size() == snapshot.matrix.rows.size());
  CHECK(to_figure(snapshot).find("\"killed\"") != std::string::npos);
  if (!gnuplot_is_here()) return;
  const TemporaryFolder folder;
  write_figure(folder.file("bugs.png"), to_figure(snapshot), {1200, 1600});
  write_figure(folder.file("verifiers.png"), to_figure(computed(small_proofs())));
  write_figure(folder.file("empty.svg"), to_figure(ExactnessSnapshot{}));
  CHECK(folder.file_names().size() == 3);
}

TEST_CASE("a cancelled matrix ends, and settings out of range are refused") {
  Job job;
  job.cancel();
  int published = 0;
  CHECK_THROWS_AS(compute(small_proofs(), job, [&](ExactnessSnapshot) { ++published; }), Cancelled);
  CHECK(published == 0);
  ExactnessSettings settings = small_proofs();
  settings.vocab_size = 1;
  CHECK(error_of(ErrorKind::usage, [&] { computed(settings); }) == "--vocab: is 1; expected a whole number in [2, 6]");
}

TEST_CASE("a broken result is refused by its file and key") {
  const auto refusal = [](const char* verb, const char* text) {
    return error_of(ErrorKind::input, [&] { exactness_of(Json::parse(text), verb, "x.json"); });
  };
  CHECK(refusal("prove", "{}") == "x.json: has no key \"proofs\"; expected a result of this version");
  CHECK(refusal("prove", R"({"proofs": 3})") == "x.json: \"proofs\" is 3; expected another type");
  CHECK(refusal("prove", R"({"proofs": [{"verifier": "chain"}]})").find("x.json, verifier chain: has no key") == 0);
  CHECK(refusal("bugs", R"({"rows": [{"id": "B01", "source": "", "fault": "", "hunts": [{"detector": "?"}]}]})") ==
        "x.json, bug B01: has the detector '?'; expected one of KEXBVTRSDAIO");
  CHECK(refusal("bugs", R"({"rows": [[]]})").find("has no key \"id\"") != std::string::npos);
}
