// Rows of `bench --device cuda` that stand for a language model's.
#include "gpu/bench/gpu_tensors.hpp"
#include "gpu/bench/model_rows.hpp"
#include "tests/support/test.hpp"

namespace draftproof::bench {
namespace {

struct Figures {
  int nucleus = 0;  // tokens of top_p 0.9
  double entropy = 0.0;
  double largest = 0.0;
};

// By doubles over the sorted row.
Figures figures_of(std::vector<float> logits) {
  std::sort(logits.begin(), logits.end(), std::greater<>());
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  Figures out;
  double before = 0.0;
  for (const float x : logits) {
    const double p = std::exp(static_cast<double>(x)) / sum;
    if (before < 0.9) ++out.nucleus;
    before += p;
    if (p > 0.0) out.entropy -= p * std::log(p);
    out.largest = std::max(out.largest, p);
  }
  return out;
}

}  // namespace

TEST_CASE("peaked rows of the kernels' benchmark have nucleus, entropy and largest probability of the model's rows",
          "[release]") {
  std::int64_t index = 0;
  for (const ModelRow& row : kModelRows) {
    INFO("row " << index);
    const Figures same = figures_of(model_row(index, kModelVocabSize));
    CHECK(std::abs(same.nucleus - row.nucleus) <= std::max(1, row.nucleus / 50));
    CHECK(std::abs(same.entropy - row.entropy) < 0.01);
    CHECK(std::abs(same.largest / row.largest - 1.0) < 0.005);
    const Figures larger = figures_of(model_row(index++, 128'256));
    CHECK(std::abs(larger.nucleus - row.nucleus) <= std::max(1, row.nucleus / 20));
    CHECK(std::abs(larger.largest / row.largest - 1.0) < 0.01);
  }
}

}  // namespace draftproof::bench
