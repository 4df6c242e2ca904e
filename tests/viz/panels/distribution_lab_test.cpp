// The distribution lab by the mouse: what is asserted is the snapshot, not the picture.
#include "viz/panels/distribution_lab.hpp"

#include "exactness/statistics/distribution_check.hpp"
#include "tests/support/test.hpp"
#include "tests/viz/driver.hpp"

namespace {

struct LabDriver : PanelDriver<DistributionLabPanel> {
  explicit LabDriver(int width_px = 1600, int height_px = 1000, float scale = 1)
      : PanelDriver(std::make_unique<DistributionLabPanel>(), scale, width_px, height_px) {}
};

}  // namespace

TEST_CASE("the lab opens with a sampler that is consistent") {
  const LabDriver lab;
  CHECK(lab.shown().verdict == LabVerdict::consistent);
  CHECK(lab.shown().looks.back().test.p_value >= kDistributionAlpha);
}

TEST_CASE("a bug that is chosen is found biased, and without it the lab is consistent again") {
  const LabDriver lab;
  lab->choose("distribution_lab/bug", "B03");
  CHECK(lab.shown().settings.bug == "B03");
  CHECK(lab.shown().verdict == LabVerdict::biased);
  CHECK(lab.shown().looks.back().test.p_value < kDistributionAlpha);
  CHECK(lab.shown().sentence.find("biased") == 0);
  lab->choose("distribution_lab/bug", "none");
  CHECK(lab.shown().verdict == LabVerdict::consistent);
}

TEST_CASE("a verifier that is chosen samples, and a slider of its drafts changes what is accepted") {
  const LabDriver lab;
  lab->choose("distribution_lab/verifier", "block");
  const double one_draft = lab.shown().mean_accepted.value();
  lab->drag_slider("distribution_lab/draft tokens K", 0.99f);
  CHECK(lab.shown().verifier == "block");
  CHECK(lab.shown().settings.draft_tokens == 4);
  CHECK(lab.shown().mean_accepted.value() > one_draft);
  CHECK(lab.shown().verdict == LabVerdict::consistent);
}

TEST_CASE("sliders of the pipeline change p and q as the pipeline does") {
  const LabDriver lab;
  const double before = lab.shown().p.front();
  lab->type_into_slider("distribution_lab/temperature", "0.5");
  CHECK(lab.shown().settings.temperature == 0.5f);
  CHECK(lab.shown().p.front() > before);
  lab->type_into_slider("distribution_lab/top-k", "3");
  CHECK(std::count(lab.shown().p.begin(), lab.shown().p.end(), 0.0) == 5);
  CHECK(std::count(lab.shown().q.begin(), lab.shown().q.end(), 0.0) == 5);
  CHECK(lab.shown().verdict == LabVerdict::consistent);
  lab->type_into_slider("distribution_lab/CFG scale", "2");
  CHECK(lab.shown().settings.guidance_scale == 2.0f);
  lab->click("distribution_lab/reset");
  CHECK(lab.shown().settings == DistributionLabSettings{});
}

TEST_CASE("a bar that is dragged up takes its probability from the others") {
  const LabDriver lab;
  const std::vector<double> before = lab.shown().p;
  const ControlRect top = lab->rect("distribution_lab/p 3");
  lab->drag(top.center(), {top.center().x, top.center().y - 120});
  const std::vector<double>& after = lab.shown().p;
  CHECK(after[3] > before[3] + 0.1);
  CHECK(after[0] / after[1] == Approx(before[0] / before[1]).epsilon(1e-5));
  CHECK(lab.shown().q == rows_of(DistributionLabSettings{}).q);
  CHECK(lab.shown().verdict == LabVerdict::consistent);
  // As logits: down to the floor is a masked token.
  lab->choose("distribution_lab/drag", "logits");
  const ControlRect q = lab->rect("distribution_lab/q 1");
  lab->drag(q.center(), {q.center().x, q.center().y + 2000});
  CHECK(lab.shown().q[1] == 0.0);
}

TEST_CASE("the lab draws without complaint with few tokens, one sample, in a narrow window and at 200 %") {
  for (const auto& [width, height, scale] :
       std::vector<std::tuple<int, int, float>>{{1600, 1000, 1.0f}, {500, 700, 1.0f}, {1600, 1000, 2.0f}}) {
    const LabDriver lab(width, height, scale);
    DistributionLabSettings settings;
    settings.target = {1.0, 0.0};
    settings.draft = {0.0, 1.0};
    settings.samples = 1;
    lab.panel().set(settings);
    lab->frames(3);
    CHECK(lab.shown().looks.size() == 1);
    settings.target.assign(kLabVocabMax, 1.0);
    settings.draft = settings.target;
    settings.guidance_scale = 1.5f;
    settings.lossy = true;
    lab.panel().set(settings);
    lab->frames(3);
    CHECK(lab.shown().p.size() == kLabVocabMax);
    lab->click("distribution_lab/play");
    lab->frames(3);
  }
}
