#include "exactness/bugs/run_bugs.hpp"

#include "tests/support/test.hpp"

namespace {

const BugReport& report() {
  static const BugReport all = run_bugs({}, 2);
  return all;
}

}  // namespace

// One case, so that the bugs are hunted once.
TEST_CASE("Every shipped fault is caught without a false alarm on correct code") {
  SECTION("every detector that hunts a fault catches it") {
    for (const BugResult& result : report().bugs) {
      for (const HuntResult& hunt : result.hunts) {
        INFO(result.bug.id << " by " << static_cast<char>(hunt.detector));
        CHECK(hunt.faulty.caught);
        CHECK(hunt.faulty.cases > 0);
        CHECK_FALSE(hunt.faulty.unit.empty());
        CHECK_FALSE(hunt.faulty.evidence.empty());
      }
      CHECK(result.killer() != nullptr);
    }
    CHECK(report().killed() == std::ssize(report().bugs));
  }
  SECTION("no detector accuses the same code without the fault") {
    for (const BugResult& result : report().bugs) {
      for (const HuntResult& hunt : result.hunts) {
        INFO(result.bug.id << " by " << static_cast<char>(hunt.detector) << ": " << hunt.sound.evidence);
        CHECK_FALSE(hunt.sound.caught);
        CHECK(hunt.sound.cases > 0);  // silent, and not for want of looking
      }
    }
  }
  SECTION("what only looks like a fault is not accused") {
    CHECK(report().controls.size() == 10);
    for (const ControlResult& result : report().controls) {
      INFO(result.control.id);
      CHECK(result.passes());
      CHECK_FALSE(result.hunts.empty());
    }
    CHECK(report().as_claimed());
  }
  SECTION("every line of the collection of bugs is a bug or a control or waits with a reason") {
    std::set<std::string> ids;
    const auto add = [&](const std::string& joined) {  // "B31/32"
      std::istringstream parts(joined);
      for (std::string part; std::getline(parts, part, '/');) {
        ids.insert((part[0] == 'B' || part[0] == 'C' ? "" : "B") + part);
      }
    };
    for (const BugResult& result : report().bugs) add(result.bug.id);
    for (const ControlResult& result : report().controls) add(result.control.id);
    for (const char* id :
         {"B01", "B03", "B04", "B05", "B06", "B07", "B08", "B09", "B10",  "B11",  "B12",  "B14",  "B15", "B16",
          "B17", "B18", "B19", "B20", "B21", "B22", "B23", "B25", "B26",  "B27",  "B28",  "B30",  "B31", "B32",
          "B33", "B34", "B36", "B37", "B38", "B39", "B40", "B43", "B45",  "B46",  "B47",  "B48",  "B49", "B50",
          "B51", "B52", "B54", "B56", "B58", "B60", "B61", "B62", "B63",  "B64",  "B66",  "B67",  "B68", "B69",
          "B71", "B73", "B74", "B75", "B76", "B77", "B78", "B79", "B80",  "B83",  "B86",  "B87",  "B88", "B91",
          "B92", "B93", "B94", "B95", "B96", "B97", "B98", "B99", "B100", "B101", "B102", "B103", "B104"}) {
      INFO(id);
      CHECK(ids.count(id) == 1);
    }
    for (const WaitingBug& waiting : report().waiting) CHECK_FALSE(waiting.waits_for.empty());
  }
}

TEST_CASE("A survivor and an accused twin are distinguished from a killed bug") {
  BugResult result;
  result.hunts = {{Detector::enumeration, {}, {}, 0.0}};
  CHECK(result.killer() == nullptr);
  CHECK(result.twin_passes());
  result.hunts.push_back({Detector::key_audit, {true, 3, "blocks", "seen"}, {true, 3, "blocks", "seen"}, 0.0});
  CHECK(result.killer()->detector == Detector::key_audit);
  CHECK_FALSE(result.twin_passes());
  BugReport survivors;
  survivors.bugs.emplace_back();
  CHECK_FALSE(survivors.as_claimed());
}

TEST_CASE("Chosen bugs run alone and an unknown one is an error that lists all") {
  const BugReport one = run_bugs({"B15", "C01"}, 1);
  CHECK(one.bugs.size() == 1);
  CHECK(one.controls.size() == 1);
  CHECK(one.waiting.empty());
  CHECK_THROWS_WITH(run_bugs({"B999"}, 1), Contains("'B999' is not a bug or control") && Contains("B01"));
}
