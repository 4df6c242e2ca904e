// The distribution lab by the mouse: what is asserted is the snapshot, not the picture.
#include "viz/panels/distribution_lab.hpp"

#include <catch2/catch.hpp>

#include "exactness/statistics/distribution_check.hpp"
#include "tests/viz/driver.hpp"

using namespace draftproof;
using draftproof::testing::Driver;

namespace {

struct LabDriver {
  LabDriver(int width_px = 1600, int height_px = 1000, float scale = 1)
      : driver(panels(), options(scale), width_px, height_px) {}

  static std::vector<std::unique_ptr<Panel>> panels() {
    std::vector<std::unique_ptr<Panel>> all;
    all.push_back(std::make_unique<DistributionLabPanel>());
    return all;
  }
  static DashboardOptions options(float scale) {
    DashboardOptions options;
    options.only_panel = "distribution_lab";
    options.ui.scale = scale;
    return options;
  }
  DistributionLabPanel& panel() { return driver.panel<DistributionLabPanel>("distribution_lab"); }
  const DistributionLabSnapshot& snapshot() { return *panel().shown(); }
  static std::string name(const char* control) { return std::string("distribution_lab/") + control; }

  Driver driver;
};

}  // namespace

TEST_CASE("the lab opens with a sampler that is consistent") {
  LabDriver lab;
  CHECK(lab.snapshot().verdict == LabVerdict::consistent);
  CHECK(lab.snapshot().looks.back().test.p_value >= kDistributionAlpha);
}

TEST_CASE("a bug that is chosen is found biased, and without it the lab is consistent again") {
  LabDriver lab;
  lab.driver.choose(LabDriver::name("bug"), "B03");
  CHECK(lab.snapshot().settings.bug == "B03");
  CHECK(lab.snapshot().verdict == LabVerdict::biased);
  CHECK(lab.snapshot().looks.back().test.p_value < kDistributionAlpha);
  CHECK(lab.snapshot().sentence.find("biased") == 0);
  lab.driver.choose(LabDriver::name("bug"), "none");
  CHECK(lab.snapshot().verdict == LabVerdict::consistent);
}

TEST_CASE("a verifier that is chosen samples, and a slider of its drafts changes what is accepted") {
  LabDriver lab;
  lab.driver.choose(LabDriver::name("verifier"), "block");
  const double one_draft = lab.snapshot().mean_accepted.value();
  lab.driver.drag_slider(LabDriver::name("draft tokens K"), 0.99f);
  CHECK(lab.snapshot().verifier == "block");
  CHECK(lab.snapshot().settings.draft_tokens == 4);
  CHECK(lab.snapshot().mean_accepted.value() > one_draft);
  CHECK(lab.snapshot().verdict == LabVerdict::consistent);
}

TEST_CASE("sliders of the pipeline change p and q as the pipeline does") {
  LabDriver lab;
  const double before = lab.snapshot().p.front();
  lab.driver.type_into_slider(LabDriver::name("temperature"), "0.5");
  CHECK(lab.snapshot().settings.temperature == 0.5f);
  CHECK(lab.snapshot().p.front() > before);
  lab.driver.type_into_slider(LabDriver::name("top-k"), "3");
  CHECK(std::count(lab.snapshot().p.begin(), lab.snapshot().p.end(), 0.0) == 5);
  CHECK(std::count(lab.snapshot().q.begin(), lab.snapshot().q.end(), 0.0) == 5);
  CHECK(lab.snapshot().verdict == LabVerdict::consistent);
  lab.driver.type_into_slider(LabDriver::name("CFG scale"), "2");
  CHECK(lab.snapshot().settings.guidance_scale == 2.0f);
  lab.driver.click(LabDriver::name("reset"));
  CHECK(lab.snapshot().settings == DistributionLabSettings{});
}

TEST_CASE("a bar that is dragged up takes its probability from the others") {
  LabDriver lab;
  const std::vector<double> before = lab.snapshot().p;
  const ControlRect top = lab.driver.rect(LabDriver::name("p 3"));
  lab.driver.drag(top.center(), {top.center().x, top.center().y - 120});
  const std::vector<double>& after = lab.snapshot().p;
  CHECK(after[3] > before[3] + 0.1);
  CHECK(after[0] / after[1] == Approx(before[0] / before[1]).epsilon(1e-5));
  CHECK(lab.snapshot().q == rows_of(DistributionLabSettings{}).q);
  CHECK(lab.snapshot().verdict == LabVerdict::consistent);
  // As logits: down to the floor is a masked token.
  lab.driver.choose(LabDriver::name("drag"), "logits");
  const ControlRect q = lab.driver.rect(LabDriver::name("q 1"));
  lab.driver.drag(q.center(), {q.center().x, q.center().y + 2000});
  CHECK(lab.snapshot().q[1] == 0.0);
}

TEST_CASE("the lab draws without complaint with few tokens, one sample, in a narrow window and at 200 %") {
  for (const auto& [width, height, scale] :
       std::vector<std::tuple<int, int, float>>{{1600, 1000, 1.0f}, {500, 700, 1.0f}, {1600, 1000, 2.0f}}) {
    LabDriver lab(width, height, scale);
    DistributionLabSettings settings;
    settings.target = {1.0, 0.0};
    settings.draft = {0.0, 1.0};
    settings.samples = 1;
    lab.panel().set(settings);
    lab.driver.frames(3);
    CHECK(lab.snapshot().looks.size() == 1);
    settings.target.assign(kLabVocabMax, 1.0);
    settings.draft = settings.target;
    settings.guidance_scale = 1.5f;
    lab.panel().set(settings);
    lab.driver.frames(3);
    CHECK(lab.snapshot().p.size() == kLabVocabMax);
    lab.driver.click(LabDriver::name("play"));
    lab.driver.frames(3);
  }
}
