#include <algorithm>
#include <memory>

#include "base/parallel.hpp"
#include "cli/bench/cases.hpp"
#include "exactness/soak/chain_trials.hpp"
#include "reference/step/batch.hpp"

namespace draftproof {
namespace {

struct VerifySetting {
  const char* name;
  bool target_is_probabilities;
  DType logits_dtype;
  bool one_hot;
  bool raw_logprobs;
};

constexpr VerifySetting kSettings[] = {
    {"chain_verify_probabilities", true, DType::f32, false, false},
    {"chain_verify_probabilities_raw_logprobs", true, DType::f32, false, true},
    {"chain_verify_logits_f32", false, DType::f32, false, false},
    {"chain_verify_logits_f32_raw_logprobs", false, DType::f32, false, true},
    {"chain_verify_logits_bf16", false, DType::bf16, false, false},
    {"chain_verify_logits_f32_one_hot", false, DType::f32, true, false},
};

// A draft without probabilities is accepted with p(x), which a row of plain normal logits gives to no token. The rows
// are therefore written anew with a peak at the draft: a logit that has three times the mass of all others together.
std::vector<float> with_peaks(const BenchVerifyInputs& inputs) {
  const auto size = static_cast<std::size_t>(inputs.vocab_size);
  const auto draft_len = static_cast<std::size_t>(inputs.draft_len);
  // The mass of V standard normal logits is V exp(1/2) in the mean.
  const double log_mass = natural_log(3.0 * static_cast<double>(size)) + 0.5;
  std::vector<float> logits = inputs.target_logits;
  for (std::size_t i = 0; i < inputs.drafts.size(); ++i) {
    const std::size_t row = i / draft_len * (draft_len + 1) + i % draft_len;
    logits[row * size + static_cast<std::size_t>(inputs.drafts[i])] = static_cast<float>(log_mass);
  }
  return logits;
}

// The requests of one setting and what they refer to.
struct VerifyBatch {
  std::vector<float> peaked_logits;
  std::vector<VerifyRequest> requests;
  VerifyOptions options;
  BatchVerifier verifier;
};

std::shared_ptr<VerifyBatch> make_batch(const VerifySetting& setting, const BenchVerifyInputs& inputs, int threads) {
  const auto batch = std::make_shared<VerifyBatch>(VerifyBatch{{}, {}, {}, BatchVerifier(threads)});
  batch->options.raw_logprobs = setting.raw_logprobs;
  RowMatrix target{setting.logits_dtype, nullptr, inputs.batch * (inputs.draft_len + 1), inputs.vocab_size,
                   inputs.vocab_size};
  if (setting.one_hot) batch->peaked_logits = with_peaks(inputs);
  if (setting.target_is_probabilities)
    target.data = inputs.target_probs.data();
  else if (setting.logits_dtype == DType::bf16)
    target.data = inputs.target_bf16.data();
  else
    target.data = setting.one_hot ? batch->peaked_logits.data() : inputs.target_logits.data();
  const RowMatrix proposal{DType::f32, inputs.draft_probs.data(), inputs.batch * inputs.draft_len, inputs.vocab_size,
                           inputs.vocab_size};
  for (std::int64_t b = 0; b < inputs.batch; ++b) {
    VerifyRequest request;
    request.draft =
        DraftTree::chain({inputs.drafts.data() + b * inputs.draft_len, static_cast<std::size_t>(inputs.draft_len)});
    request.target_is_probabilities = setting.target_is_probabilities;
    request.first_row = b * (inputs.draft_len + 1);
    request.target = target.slice(request.first_row, inputs.draft_len + 1);
    if (!setting.one_hot) {
      request.proposal_kind = ProposalKind::probabilities;
      request.proposal = proposal.slice(b * inputs.draft_len, inputs.draft_len);
    }
    request.seed = derive_seed(1, static_cast<std::uint64_t>(b));
    batch->requests.push_back(request);
  }
  return batch;
}

// Rows that a request cannot do without. Single probabilities of other rows are not counted.
struct NeededRows {
  std::int64_t target = 0;
  std::int64_t proposal = 0;
};

NeededRows needed_rows(const VerifyRequest& request, const Emission& emission) {
  const bool rejected = emission.num_accepted + 1 < request.rows();
  const bool reads_proposal = rejected && request.proposal_kind == ProposalKind::probabilities;
  return {request.target_is_probabilities ? 1 : emission.num_accepted + 1, reads_proposal ? 1 : 0};
}

BenchWork make_work(const VerifySetting& setting, const BenchVerifyInputs& inputs, int threads) {
  const auto batch = make_batch(setting, inputs, threads);
  const std::vector<Emission> emissions = batch->verifier.verify(batch->requests, batch->options);
  const std::size_t element_bytes = dtype_size_bytes(setting.logits_dtype);
  std::vector<std::int64_t> target_rows;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::size_t emitted = 0;
  for (std::size_t i = 0; i < emissions.size(); ++i) {
    const NeededRows rows = needed_rows(batch->requests[i], emissions[i]);
    target_rows.push_back(rows.target);
    const auto target_elements = static_cast<std::uint64_t>(rows.target * inputs.vocab_size);
    const auto proposal_elements = static_cast<std::uint64_t>(rows.proposal * inputs.vocab_size);
    elements += target_elements + proposal_elements;
    bytes += target_elements * element_bytes + proposal_elements * sizeof(float);
    emitted += emissions[i].tokens.size();
  }
  BenchWork work;
  work.elements = elements;
  work.bytes = bytes;
  work.acceptance_length = static_cast<double>(emitted) / static_cast<double>(emissions.size());
  work.body = [batch] { batch->verifier.verify(batch->requests, batch->options); };
  if (!setting.target_is_probabilities) {
    work.mass_pass = [batch, target_rows, threads] {
      parallel_for(static_cast<std::int64_t>(target_rows.size()), threads, [&](std::int64_t i, int) {
        for (std::int64_t row = 0; row < target_rows[static_cast<std::size_t>(i)]; ++row)
          mass_pass(batch->requests[static_cast<std::size_t>(i)].target.row(row));
      });
    };
  }
  return work;
}

constexpr std::int64_t kTasks = 64;

struct SoakInputs {
  ChainModel model{8, 4, ModelKind::dense, 0};
  ChainTables tables{model};
  std::vector<std::vector<std::uint64_t>> counts;  // of each thread
};

}  // namespace

std::vector<BenchCase> verify_cases(const std::vector<int>& threads,
                                    const std::function<const BenchVerifyInputs&()>& inputs) {
  std::vector<BenchCase> cases;
  for (const VerifySetting& setting : kSettings) {
    for (const int count : threads) {
      // The goals of the specification; raw logprobs were not part of what it timed.
      std::optional<BenchGoal> goal;
      if (!setting.raw_logprobs) {
        if (!setting.target_is_probabilities)
          goal = BenchGoal{"ratio_to_mass_pass", true, 1.15};
        else if (count > 1)
          goal = BenchGoal{"ratio_to_bandwidth", false, 0.5};
      }
      cases.push_back(
          {setting.name, count, goal, true, [&setting, inputs, count] { return make_work(setting, inputs(), count); }});
    }
  }
  return cases;
}

std::vector<BenchCase> soak_cases(const std::vector<int>& threads, const BenchSizes& sizes) {
  const auto trials_of_task = static_cast<std::uint64_t>(sizes.chain_trials / kTasks);
  std::vector<BenchCase> cases;
  for (const int count : threads) {
    std::optional<BenchGoal> goal;
    if (count == 2) goal = BenchGoal{"ns_per_element", true, 50.0};  // 20 million a second
    const auto prepare = [count, trials_of_task] {
      const auto inputs = std::make_shared<SoakInputs>();
      inputs->counts.assign(static_cast<std::size_t>(count), std::vector<std::uint64_t>(inputs->model.cell_count(), 0));
      BenchWork work;
      work.elements = kTasks * trials_of_task;
      work.body = [inputs, count, trials_of_task] {
        parallel_for(kTasks, count, [&](std::int64_t task, int thread) {
          chain_trials()(inputs->tables, 0,
                         static_cast<std::uint32_t>(static_cast<std::uint64_t>(task) * trials_of_task), trials_of_task,
                         inputs->counts[static_cast<std::size_t>(thread)]);
        });
      };
      return work;
    };
    cases.push_back({"chain_trials", count, goal, false, prepare});
  }
  return cases;
}

}  // namespace draftproof
