#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>

#include "base/dtype.hpp"
#include "base/words.hpp"
#include "cli/bench/cases.hpp"
#include "cli/bench/inputs.hpp"
#include "engine/model/gathered_batch.hpp"
#include "engine/transformer/buffers.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "engine/transformer/transformer_weights.hpp"

namespace draftproof {
namespace {

// --- A model of the shipped one's sizes whose weights are random: what a pass costs does not depend on them.

// Makes tensors and keeps their bytes.
class RandomTensors {
 public:
  WeightTensor matrix(TensorKind kind, std::int64_t rows, std::int64_t columns) {
    // One row of random codes for all: what kernels do does not depend on the values.
    std::vector<std::byte> row(static_cast<std::size_t>(encoded_bytes(kind, columns)));
    if (can_encode(kind)) {
      std::vector<float> values(static_cast<std::size_t>(columns));
      pool_.fill(next_++, values.size(), values.data());
      for (float& v : values) v *= 0.04f;
      encode_blocks(kind, values, row);
    } else {
      fill_super_blocks(kind, row);
    }
    bytes_.emplace_back();
    for (std::int64_t r = 0; r < rows; ++r) bytes_.back().insert(bytes_.back().end(), row.begin(), row.end());
    return {"random", kind, rows, columns, bytes_.back()};
  }

  WeightTensor ones(std::int64_t length) {
    const std::vector<float> values(static_cast<std::size_t>(length), 1.0f);
    bytes_.emplace_back(values.size() * sizeof(float));
    std::memcpy(bytes_.back().data(), values.data(), bytes_.back().size());
    return {"ones", TensorKind::f32, 1, length, bytes_.back()};
  }

 private:
  // Codes from the bits of floats, scales of a thousandth.
  void fill_super_blocks(TensorKind kind, std::vector<std::byte>& row) {
    std::vector<float> noise(row.size());
    pool_.fill(next_++, noise.size(), noise.data());
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<std::byte>(bit_cast<std::uint32_t>(noise[i]) >> 8);
    const auto block_bytes = static_cast<std::size_t>(info_of(kind).block_bytes);
    const std::uint16_t small = f32_to_f16(0.0005f);
    for (std::size_t at = 0; at < row.size(); at += block_bytes) {
      const std::size_t scale_at = kind == TensorKind::q6_k ? 208 : 0;
      std::memcpy(row.data() + at + scale_at, &small, sizeof small);
      if (kind != TensorKind::q6_k) std::memcpy(row.data() + at + 2, &small, sizeof small);
    }
  }

  NormalPool pool_{11};
  std::uint64_t next_ = 0;
  std::deque<std::vector<std::byte>> bytes_;
};

// SmolLM2-135M's sizes (tiny: a small part of them), matrices of kind `body`, embedding and head of kind `head`.
std::shared_ptr<const TransformerWeights> random_model(TensorKind body, TensorKind head, bool tiny, int threads) {
  ModelWeights model;
  ModelDescription& shape = model.description;
  shape.num_layers = tiny ? 2 : 30;
  // Formats with blocks of 256 take the next width that holds whole blocks.
  const bool super_blocks = info_of(body).block_len > 32;
  shape.width = tiny ? 256 : super_blocks ? 768 : 576;
  shape.num_heads = shape.width / 64;
  shape.num_kv_heads = tiny || super_blocks ? shape.num_heads / 2 : 3;
  shape.feed_forward = tiny ? 512 : 1536;
  shape.head_size = 64;
  shape.vocab_size = tiny ? 1024 : 49152;
  shape.context_len_max = 8192;
  shape.rms_epsilon = 1e-5;
  shape.rope_base = 1e5;
  shape.rope_divisors.assign(32, 1.0f);
  shape.tied = true;
  RandomTensors tensors;
  model.token_embedding = tensors.matrix(head, shape.vocab_size, shape.width);
  model.head = model.token_embedding;
  model.final_norm = tensors.ones(shape.width);
  for (std::int64_t l = 0; l < shape.num_layers; ++l) {
    LayerWeights layer;
    layer.attention_norm = tensors.ones(shape.width);
    layer.query = tensors.matrix(body, query_width_of(shape), shape.width);
    layer.key = tensors.matrix(body, kv_width_of(shape), shape.width);
    layer.value = tensors.matrix(body, kv_width_of(shape), shape.width);
    layer.output = tensors.matrix(body, shape.width, query_width_of(shape));
    layer.feed_forward_norm = tensors.ones(shape.width);
    layer.gate = tensors.matrix(body, shape.feed_forward, shape.width);
    layer.up = tensors.matrix(body, shape.feed_forward, shape.width);
    layer.down = tensors.matrix(body, shape.width, shape.feed_forward);
    model.layers.push_back(layer);
  }
  return std::make_shared<const TransformerWeights>(pack_weights(model, threads));
}

std::vector<float> normal_numbers(std::int64_t count) {
  static const NormalPool pool(7);
  std::vector<float> values(static_cast<std::size_t>(count));
  pool.fill(0, values.size(), values.data());
  return values;
}

// The matrices of a pass, one after the other, times rows of int8: what a step costs at least.
class Products {
 public:
  Products(std::shared_ptr<const TransformerWeights> weights, const TransformerKernels& kernels, int threads, int rows)
      : weights_(std::move(weights)), kernels_(kernels), team_(threads) {
    for (const PackedLayer& l : weights_->layers)
      for (const auto* matrix : {&l.query, &l.key, &l.value, &l.attention_out, &l.gate, &l.up, &l.down})
        matrices_.push_back(matrix->get());
    matrices_.push_back(weights_->head.get());
    std::size_t out_floats = 0;
    for (const PackedMatrix* matrix : matrices_) {
      Int8Rows& of_width = inputs_[matrix->columns()];
      if (of_width.rows() == 0) quantise(of_width, rows, matrix->columns());
      out_floats = std::max(out_floats, static_cast<std::size_t>(matrix->groups() * kGroupRows * rows));
    }
    out_.resize(out_floats);
  }

  // As a pass does it: two groups at a time, and a thread asks for its share of the next matrix before it gets there.
  void run() {
    team_.run([&](int thread) {
      for (std::size_t i = 0; i < matrices_.size(); ++i) {
        const PackedMatrix& matrix = *matrices_[i];
        const PackedMatrix& following = *matrices_[(i + 1) % matrices_.size()];
        const auto stride = static_cast<std::size_t>(matrix.groups() * kGroupRows);
        const std::int64_t grain =
            std::max<std::int64_t>(1, (64 << 10) / (2 * static_cast<std::int64_t>(matrix.group_bytes())));
        team_.for_ranges(thread, pairs_of(matrix), grain, [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t group_end = std::min(matrix.groups(), 2 * end);
          const bool ends_share = end >= pairs_of(matrix) * (thread + 1) / team_.threads();
          const std::byte* const next = ends_share
                                            ? following.group(2 * (pairs_of(following) * thread / team_.threads()))
                                            : matrix.group(group_end);
          kernels_.int8_product({&matrix, 2 * begin, group_end, out_.data(), stride, next},
                                inputs_.at(matrix.columns()).tiles());
        });
      }
    });
  }

 private:
  static std::int64_t pairs_of(const PackedMatrix& matrix) { return (matrix.groups() + 1) / 2; }

  void quantise(Int8Rows& to, int rows, std::int64_t columns) const {
    to.resize(rows, columns);
    const std::vector<float> values = normal_numbers(rows * columns);
    for (int r = 0; r < rows; ++r) {
      const Int8Tile& tile = to.tile_of(r);
      kernels_.quantise(values.data() + r * columns, 0, to.blocks(), tile, r - tile.first_row);
    }
  }

  std::shared_ptr<const TransformerWeights> weights_;
  TransformerKernels kernels_;
  ThreadTeam team_;
  std::vector<const PackedMatrix*> matrices_;  // as a pass reads them
  std::map<std::int64_t, Int8Rows> inputs_;    // by width
  AlignedFloats out_;
};

// One stream whose context is there, and a chain of tokens after it.
class Passes {
 public:
  Passes(const std::shared_ptr<const TransformerWeights>& weights, const TransformerKernels& kernels, int threads,
         std::int64_t context_len, std::int64_t rows)
      : model_(weights, Arithmetic::int8, threads, std::nullopt, kernels),
        kv_(model_.make_kv_cache(context_len + rows)),
        blocks_(static_cast<std::size_t>(kv_->num_slots() / kKvBlockSlots)) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
    for (std::int64_t from = 0; from < context_len; from += 256)
      run(from, std::min<std::int64_t>(256, context_len - from), true);
  }

  // Tokens [from, from + count), with the logits of all or of the last one.
  void run(std::int64_t from, std::int64_t count, bool last_only) {
    batch_.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t position = from + i;
      batch_.add(static_cast<Token>(position * 37 % model_.vocab_size()), position, static_cast<std::int32_t>(i) - 1,
                 position);
      if (!last_only || i + 1 == count) batch_.wanted.push_back(static_cast<std::int32_t>(i));
    }
    batch_.contexts.push_back({blocks_, from});
    model_.forward(batch_.view(), *kv_, out_);
  }

 private:
  TransformerModel model_;
  std::unique_ptr<KvCache> kv_;
  std::vector<std::int32_t> blocks_;
  GatheredBatch batch_;
  ForwardOutput out_;
};

// Attention of one layer alone, on one thread.
class Attention {
 public:
  Attention(const TransformerKernels& kernels, std::int64_t context_len, std::int64_t rows)
      : kernels_(kernels), kv_({1, kKvHeads, kHeadLen}, context_len + rows) {
    blocks_.resize(static_cast<std::size_t>(kv_.num_slots() / kKvBlockSlots));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    const std::vector<float> noise = normal_numbers(kHeadLen * kKvBlockSlots);
    for (std::int64_t block = 0; block < kv_.num_slots() / kKvBlockSlots; ++block)
      for (std::int64_t head = 0; head < kKvHeads; ++head) {
        kernels_.to_f16(noise.data(), noise.size(), kv_.keys(0, block, head));
        kernels_.to_f16(noise.data(), noise.size(), kv_.values(0, block, head));
      }
    batch_.add_chain(std::vector<Token>(static_cast<std::size_t>(rows), 0), context_len);
    batch_.contexts = {{blocks_, context_len}};
    queries_ = normal_numbers(rows * kHeads * kHeadLen);
    out_.resize(queries_.size());
    paths_.build(batch_.view());
    tasks_ = attention_tasks(batch_.view(), kHeads, kKvHeads, 1);
  }

  void run() {
    for (const AttentionTask& task : tasks_)
      worker_.run(task, paths_, kernels_, kv_, 0, kHeads, queries_.data(), out_.data());
  }

  std::uint64_t bytes() const {  // of keys and values
    return static_cast<std::uint64_t>(batch_.positions.front()) * 2 * kKvHeads * kHeadLen * sizeof(std::uint16_t);
  }

 private:
  static constexpr std::int64_t kHeads = 9;
  static constexpr std::int64_t kKvHeads = 3;
  static constexpr std::int64_t kHeadLen = 64;

  TransformerKernels kernels_;
  TransformerKvCache kv_;
  std::vector<std::int32_t> blocks_;
  GatheredBatch batch_;
  std::vector<float> queries_, out_;
  AttentionPaths paths_;
  std::vector<AttentionTask> tasks_;
  AttentionWorker worker_;
};

// The models of all cases, each made when it is first asked for.
class RandomModels {
 public:
  explicit RandomModels(bool tiny) : tiny_(tiny) {}
  std::shared_ptr<const TransformerWeights> of(TensorKind body) {
    std::shared_ptr<const TransformerWeights>& weights = made_[body];
    if (weights == nullptr) weights = random_model(body, TensorKind::q8_0, tiny_, 1);
    return weights;
  }

 private:
  bool tiny_;
  std::map<TensorKind, std::shared_ptr<const TransformerWeights>> made_;
};

// The goals of the specification, which are for all cores.
struct Goals {
  double bandwidth;       // of the products of one row, at least
  double products_ratio;  // eight rows to one, at most
  double step_ratio;
};
std::optional<Goals> goals_of(const TransformerKernels& kernels) {
  const std::string target = kernels.target;
  if (target.starts_with("AVX2")) return Goals{0.75, 2.5, 2.7};
  if (target.starts_with("AVX3")) return Goals{0.85, 1.3, 1.5};
  return std::nullopt;
}

BenchCase products_case(const std::shared_ptr<RandomModels>& models, TensorKind kind, const TransformerKernels& kernels,
                        int threads, int rows, bool with_goals) {
  const std::optional<Goals> goals = with_goals ? goals_of(kernels) : std::nullopt;
  std::optional<BenchGoal> goal;
  if (goals && rows == 1) goal = BenchGoal{"ratio_to_bandwidth", false, goals->bandwidth};
  if (goals && rows == 8) goal = BenchGoal{"ratio_to_one_row", true, goals->products_ratio};
  const auto prepare = [models, kind, kernels, threads, rows] {
    const auto weights = models->of(kind);
    const auto body = std::make_shared<Products>(weights, kernels, threads, rows);
    BenchWork work;
    work.bytes = weights->bytes_per_pass();
    work.body = [body] { body->run(); };
    if (rows > 1) {
      const auto one_row = std::make_shared<Products>(weights, kernels, threads, 1);
      work.one_row = [one_row] { one_row->run(); };
    }
    return work;
  };
  return {
      "products_" + lower_case(info_of(kind).name) + "_" + lower_case(kernels.target) + "_rows_" + std::to_string(rows),
      threads, goal, false, prepare};
}

constexpr std::int64_t kStepContext = 256;

BenchCase step_case(const std::shared_ptr<RandomModels>& models, const TransformerKernels& kernels, int threads,
                    int rows, bool with_goals) {
  const std::optional<Goals> goals = with_goals ? goals_of(kernels) : std::nullopt;
  std::optional<BenchGoal> goal;
  if (goals && rows == 1) goal = BenchGoal{"ratio_to_bandwidth", false, 0.65};
  if (goals && rows == 8) goal = BenchGoal{"ratio_to_one_row", true, goals->step_ratio};
  const auto prepare = [models, kernels, threads, rows] {
    const auto weights = models->of(TensorKind::q4_1);
    const auto passes = std::make_shared<Passes>(weights, kernels, threads, kStepContext, rows);
    BenchWork work;
    work.bytes = weights->bytes_per_pass();
    work.elements = static_cast<std::uint64_t>(rows);
    work.body = [passes, rows] { passes->run(kStepContext, rows, false); };
    if (rows > 1) work.one_row = [passes] { passes->run(kStepContext, 1, false); };
    return work;
  };
  return {"step_context_256_" + lower_case(kernels.target) + "_rows_" + std::to_string(rows), threads, goal, false,
          prepare};
}

BenchCase prefill_case(const std::shared_ptr<RandomModels>& models, const TransformerKernels& kernels, int threads,
                       std::int64_t tokens) {
  const auto prepare = [models, kernels, threads, tokens] {
    const auto passes = std::make_shared<Passes>(models->of(TensorKind::q4_1), kernels, threads, 0, tokens);
    BenchWork work;
    work.elements = static_cast<std::uint64_t>(tokens);
    work.body = [passes, tokens] { passes->run(0, tokens, true); };
    return work;
  };
  return {"prefill_" + std::to_string(tokens) + "_" + lower_case(kernels.target), threads, std::nullopt, false,
          prepare};
}

BenchCase attention_case(const TransformerKernels& kernels, std::int64_t context_len, std::int64_t rows) {
  const auto prepare = [kernels, context_len, rows] {
    const auto attention = std::make_shared<Attention>(kernels, context_len, rows);
    BenchWork work;
    work.bytes = attention->bytes();
    work.elements = static_cast<std::uint64_t>(rows * context_len);
    work.body = [attention] { attention->run(); };
    if (rows > 1) {
      const auto one_row = std::make_shared<Attention>(kernels, context_len, 1);
      work.one_row = [one_row] { one_row->run(); };
    }
    return work;
  };
  return {"attention_" + lower_case(kernels.target) + "_context_" + std::to_string(context_len) + "_rows_" +
              std::to_string(rows),
          1, std::nullopt, false, prepare};
}

}  // namespace

std::vector<BenchCase> forward_cases(const std::vector<int>& threads, bool quick) {
  const auto models = std::make_shared<RandomModels>(quick);
  std::vector<BenchCase> cases;
  const std::vector<TransformerKernels> sets = available_transformer_kernels();
  for (std::size_t set = 1; set < sets.size(); ++set) {
    const TransformerKernels& kernels = sets[set];
    for (const int count : threads) {
      const bool all = count == threads.back();
      for (const int rows : {1, 2, 4, 6, 8, 16, 32})
        cases.push_back(products_case(models, TensorKind::q4_1, kernels, count, rows, all));
      for (const TensorKind kind :
           {TensorKind::q4_0, TensorKind::q8_0, TensorKind::q4_k, TensorKind::q5_k, TensorKind::q6_k})
        for (const int rows : {1, 8}) cases.push_back(products_case(models, kind, kernels, count, rows, false));
      for (const int rows : {1, 2, 4, 8}) cases.push_back(step_case(models, kernels, count, rows, all));
      cases.push_back(prefill_case(models, kernels, count, 512));
    }
    for (const std::int64_t context_len : {128, 1024, 4096})
      for (const std::int64_t rows : {1, 8}) cases.push_back(attention_case(kernels, context_len, rows));
  }
  return cases;
}

}  // namespace draftproof
