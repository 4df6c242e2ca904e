// prove, bugs, soak and parity as scripts meet them.
#include "base/archives/safetensors.hpp"
#include "exactness/proof/prove.hpp"
#include "tests/support/test.hpp"

namespace {

using json = nlohmann::ordered_json;

}  // namespace

TEST_CASE("prove tells of one verifier in JSON") {
  const json document = json_of({"prove", "--verifier", "block", "--instances", "2"});
  REQUIRE(document.at("proofs").size() == 4);  // and with drafts of heads
  CHECK(document.at("proofs").at(1).at("verifier") == "block_d2t");
  const json& proof = document.at("proofs").at(0);
  CHECK(proof.at("verifier") == "block");
  CHECK(proof.at("exact") == true);
  CHECK(proof.at("instances") == 2);
  CHECK(proof.at("counterexample").is_null());
  CHECK(proof.at("acceptance_oracles") == 2);
  CHECK(proof.at("float_distance_max") < 1e-14);
  CHECK(document.at("claims").empty());
  CHECK(document.at("as_claimed") == true);
}

TEST_CASE("prove takes the names of the registry, which may have several cases") {
  const json document = json_of({"prove", "--verifier", "rrsw", "--instances", "1", "-k", "1"});
  REQUIRE(document.at("proofs").size() == 4);
  CHECK(document.at("proofs").at(0).at("verifier") == "tree_rrsw");
  CHECK(document.at("proofs").at(1).at("verifier") == "tree_rrsw_merged");
  CHECK(document.at("proofs").at(2).at("verifier") == "tree_rrsw_d2t");
  CHECK(document.at("proofs").at(3).at("verifier") == "tree_rrsw_grammar");
}

TEST_CASE("prove refutes a lossy rule with a counterexample") {
  const json document = json_of({"prove", "--verifier", "typical_acceptance", "--instances", "1", "-k", "1"});
  const json& proof = document.at("proofs").at(0);
  CHECK(proof.at("exact") == false);
  const json& found = proof.at("counterexample");
  CHECK(found.at("probability_emitted") != found.at("probability_expected"));
  CHECK(found.at("p").size() == 3);
}

TEST_CASE("prove says why it fails where too small a model does not refute a lossy rule") {
  const ProgramResult result =
      run_draftproof({"prove", "--verifier", "top_k_resample", "--vocab", "2", "-k", "1", "--instances", "1"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("a lossy rule that these models do not refute; try a larger --vocab") != std::string::npos);
}

TEST_CASE("prove tells what the top-k resample costs as a function of k") {
  const json document = json_of({"prove", "--verifier", "top_k_resample", "--instances", "1"});
  CHECK(document.at("top_k_resample").size() == 33);  // three rows at k = 1, 2, 4, ..., 1024
  for (const json& row : document.at("top_k_resample"))
    if (row.at("k") == 1024) CHECK(row.at("tv_argmax_drafts") == 0.0);
  const ProgramResult text = run_draftproof({"prove", "--verifier", "top_k_resample", "--instances", "1"});
  CHECK(text.out.find("drafts at T = 2") != std::string::npos);
}

TEST_CASE("prove checks equivalences and orderings and golden numbers with all verifiers") {
  const json document = json_of({"prove", "-k", "1", "--instances", "2"});
  CHECK(document.at("proofs").size() == draftproof::proof_cases().size());
  CHECK(document.at("claims").size() > 50);
  for (const json& claim : document.at("claims")) {
    INFO(claim.dump());
    CHECK(claim.at("holds") == true);
    CHECK(claim.at("refutation").is_null());
  }
}

TEST_CASE("prove compares verifiers at equal drafts instead of proving, and takes no option of proofs then") {
  const json document = json_of({"prove", "--equal-drafts"});
  CHECK_FALSE(document.contains("proofs"));
  double block = 0.0, chain = 0.0;
  for (const json& row : document.at("equal_drafts")) {
    CHECK((row.at("distance") == 0.0) == (row.at("lossless") == true));
    if (row.at("budget") == 4 && row.at("verifier") == "block") block = row.at("tokens");
    if (row.at("budget") == 4 && row.at("verifier") == "chain") chain = row.at("tokens");
  }
  CHECK(block > chain);
  CHECK(chain == Approx(1 + 0.85 + 0.7225 + 0.614125 + 0.52200625));
  const ProgramResult refused = run_draftproof({"prove", "--equal-drafts", "-k", "2"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("has no use with --equal-drafts") != std::string::npos);
}

TEST_CASE("parity answers by its exit code, and names the first row of a fault") {
  const TemporaryFolder folder;
  const auto written = [&](const char* name, std::size_t rows, float error, std::size_t broken) {
    std::vector<float> logits;
    for (std::size_t i = 0; i < rows * 32; ++i) {
      const auto x = static_cast<float>(i * 2654435761U % 1009U) / 128.0F;  // 0 to 8, in no order
      logits.push_back(x + (i / 32 == broken ? 3.0F : error) * static_cast<float>(i * 40503U % 7U));
    }
    draftproof::SafetensorsWriter writer;
    writer.add("logits", draftproof::DType::f32, {rows, 32}, std::as_bytes(std::span(logits)));
    writer.write(folder.file(name));
    return folder.file(name);
  };
  const std::string plain = written("plain", 40, 0.0F, 99);
  const ProgramResult rounded =
      run_draftproof({"parity", plain, written("rounded", 40, 1e-3F, 99), "--precision", "bf16"});
  CHECK(rounded.exit_code == 0);
  CHECK(rounded.out.find("looks like rounding of bf16") != std::string::npos);
  const std::string broken = written("broken", 40, 1e-3F, 23);
  CHECK(run_draftproof({"parity", plain, broken, "--precision", "bf16"}).exit_code == 1);
  const json found = json_of({"parity", plain, broken, "--precision", "bf16", "--temperature", "0,1"}, 1);
  CHECK(found.at("findings").at(0).at("fault") == "row");
  CHECK(found.at("findings").at(0).at("first").at("position") == 23);
  CHECK(found.at("temperatures").size() == 2);
  CHECK(run_draftproof({"parity", written("few", 4, 0.0F, 99), written("few2", 4, 1e-3F, 99), "--precision", "bf16"})
            .exit_code == 4);
  CHECK(run_draftproof({"parity", plain, folder.file("none")}).exit_code == 2);
}

// Runs the checker, which uses nothing of this project, on a certificate; `change` plants a fault in it first.
ProgramResult checked_certificate(const std::string& path, const std::function<void(json&)>& change = {}) {
  std::ifstream in(path);
  json certificate = json::parse(in);
  const std::string changed = path + ".changed";
  json& proofs = certificate.at("proofs");
  const auto of_chain =
      std::find_if(proofs.begin(), proofs.end(), [](const json& proof) { return proof.at("verifier") == "chain"; });
  if (change) change((of_chain == proofs.end() ? proofs.at(0) : *of_chain).at("instances").at(0));
  write_whole_file(changed, certificate.dump());
  return run_command({"python3", DRAFTPROOF_SOURCE_DIR "/exactness/proof/check_certificate.py", changed});
}

TEST_CASE("a certificate is checked without this project, and one with a fault in it is rejected") {
  const TemporaryFolder folder;
  const std::string path = folder.file("chain.json");
  const json document = json_of(
      {"prove", "--verifier", "chain_markov", "--vocab", "2", "-k", "2", "--instances", "7", "--certificate", path});
  CHECK(document.at("files").at("certificate") == path);
  if (run_command({"python3", "--version"}).exit_code != 0) {
    WARN("SKIPPED: python3 is not installed");
    return;
  }
  CHECK(checked_certificate(path).exit_code == 0);
  for (const char* verifier : {"block", "traversal"}) {  // the sixth pair of models has disjoint supports
    json_of({"prove", "--verifier", verifier, "--vocab", "2", "-k", "2", "--instances", "7", "--certificate", path});
    CHECK(checked_certificate(path).exit_code == 0);
  }
  json_of({"prove", "--verifier", "chain", "--vocab", "2", "-k", "2", "--instances", "7", "--certificate", path});
  const ProgramResult sound = checked_certificate(path);
  INFO(sound.err);
  CHECK(sound.exit_code == 0);
  CHECK_THAT(sound.out, Contains("chain: lossless, as stated, on 7 pairs of models"));
  const auto rejected = [&](const char* word, const std::function<void(json&)>& change) {
    const ProgramResult result = checked_certificate(path, change);
    INFO(result.out);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains("invalid: ") && Contains(word));
  };
  rejected("sum to", [](json& instance) { instance.at("outcomes").erase(0); });
  rejected("two shares", [](json& instance) { instance.at("outcomes").at(0).at("decisions").at(0).at(4) = "1/7"; });
  rejected("add up", [](json& instance) { instance.at("emitted").at(0).at("probability") = "1/7"; });
  rejected("no distribution", [](json& instance) { instance.at("rows").at(0).at("p").at(0) = "9/7"; });
  rejected("the rule gives", [](json& instance) {
    std::swap(instance.at("rows").at(0).at("q").at(0), instance.at("rows").at(0).at("q").at(1));
  });
  rejected("first difference", [](json& instance) {
    instance.at("difference") = {{"string", {0}}, {"emitted", "1/2"}, {"expected", "1/3"}};
  });
}

TEST_CASE("a certificate whose decisions are another verifier's is rejected, though its distribution is right") {
  if (run_command({"python3", "--version"}).exit_code != 0) {
    WARN("SKIPPED: python3 is not installed");
    return;
  }
  const TemporaryFolder folder;
  const std::string path = folder.file("certificate.json");
  const std::string changed = folder.file("changed.json");
  const std::string checker = DRAFTPROOF_SOURCE_DIR "/exactness/proof/check_certificate.py";
  for (const auto& [made_by, called] : {std::pair("chain", "block"),
                                        {"block", "chain"},
                                        {"sampler_match", "chain"},
                                        {"tree_naive", "tree_rrs"},
                                        {"tree_rrs", "tree_k_seq_rho_k"},
                                        {"tree_rrsw", "tree_target_only"},
                                        {"tree_target_only", "tree_rrsw"},
                                        {"tree_greedy_draft", "tree_rrsw"},
                                        {"traversal", "traversal_merged"}}) {
    INFO(made_by << " called " << called);
    json_of({"prove", "--verifier", made_by, "--vocab", "2", "-k", "2", "--steps", "1", "--instances", "2",
             "--certificate", path});
    const ProgramResult sound = run_command({"python3", checker, path});
    CHECK(sound.exit_code == 0);
    CHECK_THAT(sound.out, Contains("every decision by the paper's rule"));
    std::ifstream in(path);
    json certificate = json::parse(in);
    for (json& proof : certificate.at("proofs"))
      if (proof.at("verifier") == made_by) proof.at("verifier") = called;
    write_whole_file(changed, certificate.dump());
    const ProgramResult result = run_command({"python3", checker, changed});
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains("the rule gives") || Contains("is missing"));
  }
}

TEST_CASE("a certificate that would be far too large is refused by its first outcomes, and none is written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("certificate.json");
  const ProgramResult result = run_draftproof(
      {"prove", "--verifier", "block", "--long", "--vocab", "6", "-k", "6", "--instances", "1", "--certificate", path});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("--certificate: would hold about 1") && Contains("--instances"));
  CHECK(folder.file_names().empty());
}

TEST_CASE("the certificate and the LaTeX table of a refuted rule hold its counterexample") {
  const TemporaryFolder folder;
  const std::string path = folder.file("lossy.json");
  const std::string table = folder.file("lossy.tex");
  json_of({"prove", "--verifier", "typical_acceptance", "-k", "1", "--instances", "1", "--certificate", path,
           "--counterexamples", table});
  std::ifstream in(path);
  const json certificate = json::parse(in);
  const json& difference = certificate.at("proofs").at(0).at("instances").at(0).at("difference");
  CHECK(difference == json{{"string", {0}}, {"emitted", "1/3"}, {"expected", "4/13"}});
  std::ifstream tex(table);
  const std::string text{std::istreambuf_iterator<char>(tex), {}};
  CHECK_THAT(text, Contains("typical\\_acceptance") &&
                       Contains("$p$ & $\\frac{4}{13}$ & $\\frac{4}{13}$ & $\\frac{5}{13}$") &&
                       Contains("with probability $\\frac{1}{3}$; the target has $\\frac{4}{13}$"));
  if (run_command({"python3", "--version"}).exit_code != 0) return;
  CHECK(checked_certificate(path).exit_code == 0);
  // Claimed to be exact, it is rejected.
  CHECK(checked_certificate(path, [](json& instance) { instance.at("difference") = nullptr; }).exit_code == 1);
}

TEST_CASE("prove writes no two results to one file") {
  const TemporaryFolder folder;
  check_refused({"prove", "--certificate", folder.file("c"), "--counterexamples", folder.file("c")},
                {"--counterexamples"});
}

TEST_CASE("bugs counts what was killed and shows the evidence of those that are asked for") {
  const json document = json_of({"bugs", "--only", "B01,C01"});
  CHECK(document.at("killed") == 1);
  CHECK(document.at("total") == 1);
  CHECK(document.at("controls_passed") == 1);
  CHECK(document.at("controls_total") == 1);
  const json& row = document.at("rows").at(0);
  CHECK(row.at("id") == "B01");
  CHECK(row.at("detector") == "K");
  CHECK(row.at("hunts").size() == 2);
  const ProgramResult text = run_draftproof({"bugs", "--only", "B01"});
  CHECK(text.out.find("36/65") != std::string::npos);  // the distribution that a noise vector used twice has
}

TEST_CASE("soak tells its verdict and its rate") {
  // The level is that of one decision of the suite (statistics/battery.hpp).
  const json document = json_of({"soak", "--trials", "200000", "--alpha", "5e-9"});
  CHECK(document.at("verdict") == "consistent");
  CHECK(document.at("trials") == 200000);
  CHECK(document.at("trials_per_s") > 0.0);
  CHECK(document.at("tests").size() == 3);
  check_refused({"soak", "--models", "odd"}, {"--models is 'odd'; expected"});
}

TEST_CASE("the proofs of a prove that is interrupted are in its file, and JSON that is not there is said") {
  const ProgramResult asked =
      run_command({"timeout", "-s", "INT", "1", DRAFTPROOF_PROGRAM, "prove", "--long", "--threads", "1", "--json"});
  CHECK(asked.out.empty());
  CHECK(asked.err == "draftproof: interrupted; no JSON was written\n");
  const TemporaryFolder folder;
  const std::string script =
      "\"$0\" prove --threads 1 --instances 5 > \"$1\" & prove=$!\n"
      "for i in $(seq 300); do [ $(grep -c ' ms$' \"$1\") -gt 0 ] && break; sleep 0.1; done\n"
      "kill $prove && echo interrupted; wait $prove; [ $(grep -c ' ms$' \"$1\") -gt 0 ] && echo proofs\n";
  CHECK(run_command({"sh", "-c", script, DRAFTPROOF_PROGRAM, folder.file("proofs")}).out == "interrupted\nproofs\n");
}
