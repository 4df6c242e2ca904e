#include "engine/decode/model_backend.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "reference/logits/edits.hpp"

namespace draftproof {
namespace {

std::vector<Token> stream_of(const LanguageModel& target, std::span<const Token> prompt) {
  std::vector<Token> tokens;
  if (const auto start = target.start_token(); start && (prompt.empty() || prompt.front() != *start))
    tokens.push_back(*start);
  tokens.insert(tokens.end(), prompt.begin(), prompt.end());
  return tokens;
}

// The options with the context that the model has; validated.
DecodingOptions bounded(DecodingOptions options, const LanguageModel& target, std::span<const Token> prompt) {
  validate(options, prompt, target.vocab_size());
  // A companion's longer prompt leaves less room for the output.
  std::size_t longest = stream_of(target, prompt).size();
  if (options.parameters.guidance_scale != 1.0f)
    longest = std::max(longest, stream_of(target, options.unconditional_prompt).size());
  const auto room = target.context_len_max() - static_cast<std::int64_t>(longest - prompt.size());
  options.stop.max_model_len = std::min(options.stop.max_model_len.value_or(room), room);
  options.verify.logprobs = options.verify.logprobs && options.keep_steps;  // of emissions, which nobody else looks at
  return options;
}

// The part of the plan's shape that fits into a number of nodes and a depth.
DraftPlan limited(const DraftPlan& plan, std::int32_t nodes, std::int32_t depth_max) {
  DraftPlan fitting = plan;
  if (plan.num_paths > 1) {
    fitting.shape = chain_shape(std::min({plan.shape.size(), depth_max, nodes / plan.num_paths}));
    return fitting;
  }
  fitting.shape.parents.clear();
  std::vector<std::int32_t> depths;
  for (const std::int32_t parent : plan.shape.parents) {
    const std::int32_t depth = parent == kRootNode ? 1 : depths[static_cast<std::size_t>(parent)] + 1;
    if (depth > depth_max || fitting.shape.size() == nodes) break;  // breadth first: what follows is no better
    depths.push_back(depth);
    fitting.shape.parents.push_back(parent);
  }
  return fitting;
}

// Keeps these nodes, which are closed under parents, ascending; of a draft without rows.
void keep_nodes(Draft& draft, std::span<const std::int32_t> nodes) {
  if (std::ssize(nodes) == draft.tree.size()) return;
  Draft kept;
  std::vector<std::int32_t> number(draft.tree.tokens.size());
  for (const std::int32_t node : nodes) {
    const auto i = static_cast<std::size_t>(node);
    const std::int32_t parent = draft.tree.parents[i];
    number[i] =
        kept.tree.add(draft.tree.tokens[i], parent == kRootNode ? kRootNode : number[static_cast<std::size_t>(parent)]);
    if (!draft.evidence.empty()) kept.evidence.push_back(draft.evidence[i]);
    if (!draft.confidences.empty()) kept.confidences.push_back(draft.confidences[i]);
  }
  draft.tree = std::move(kept.tree);
  draft.evidence = std::move(kept.evidence);
  draft.confidences = std::move(kept.confidences);
}

// The error for a grammar that this vocabulary cannot write to its end.
Error dead_end(const ActiveRequest& request, std::size_t new_tokens) {
  return input_error("request " + std::to_string(request.id),
                     "no token of the vocabulary goes on with its grammar behind " +
                         std::to_string(request.generation.tokens.size() + new_tokens) +
                         " tokens; expected a grammar that this vocabulary can write");
}

}  // namespace

ActiveRequest::ActiveRequest(std::uint64_t request_id, const LanguageModel& target, std::span<const Token> prompt,
                             DecodingOptions decoding, bool does_speculate)
    : id(request_id),
      options(bounded(std::move(decoding), target, prompt)),
      own_mask(options.constraints.allowed_mask),
      speculates(does_speculate),
      sequence(start_sequence(options, prompt)),
      streams{stream_of(target, prompt)},
      stop(options.stop, static_cast<std::size_t>(target.vocab_size()), static_cast<std::int64_t>(prompt.size()),
           options.detokeniser) {
  if (sequence.guided()) streams.push_back(stream_of(target, options.unconditional_prompt));
  if (needs_prompt_rows() && streams[0].size() == prompt.size()) generation.prompt_logprobs.emplace_back();
  if (options.grammar.grammar) {
    grammar = options.grammar.grammar->start();
    generation.grammar_complete = grammar->is_complete();
  }
  if (speculates) {
    plan = plan_for(options.verify.verifier, options.tree, options.num_speculative_tokens, "tree");
    generation.acceptance = AcceptanceCounts(static_cast<std::size_t>(options.num_speculative_tokens));
  } else if (needs_history(options.parameters, options.constraints)) {
    history = History(prompt, {}, target.vocab_size());
  }
}

ModelBackend::ModelBackend(LanguageModel& target, Drafter* drafter, StepSampler& sampler, std::int32_t num_blocks,
                           std::int32_t num_swap_blocks, const SpeculationPolicy& policy)
    : target_(target),
      drafter_(drafter),
      sampler_(sampler),
      policy_(policy),
      num_blocks_(num_blocks),
      cache_(target.make_kv_cache((std::int64_t{num_blocks} + num_swap_blocks) * kKvBlockSlots)) {
  if (drafter_ != nullptr) draft_cache_ = drafter_->make_cache(num_blocks + num_swap_blocks);
  if (policy.keeps_likely()) selection_.emplace(policy.cost());
}

std::int64_t ModelBackend::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
}

void ModelBackend::add(RequestHandle handle, std::unique_ptr<ActiveRequest> request) {
  if (requests_.size() <= static_cast<std::size_t>(handle)) requests_.resize(static_cast<std::size_t>(handle) + 1);
  requests_[static_cast<std::size_t>(handle)] = std::move(request);
}

std::unique_ptr<ActiveRequest> ModelBackend::remove(RequestHandle handle) {
  std::unique_ptr<ActiveRequest> request = std::move(requests_[static_cast<std::size_t>(handle)]);
  if (drafter_ != nullptr && request->speculates)
    drafter_->finish({request->sequence.tokens(), request->sequence.prompt().size(), request->id});
  if (draft_cache_) draft_cache_->forget(request->id);
  return request;
}

void ModelBackend::copy_blocks(std::span<const BlockCopy> copies, std::int64_t from, std::int64_t to) {
  for (const BlockCopy& copy : copies) {
    for (std::int64_t i = 0; i < kKvBlockSlots; ++i)
      cache_->copy_slot((from + copy.from) * kKvBlockSlots + i, (to + copy.to) * kKvBlockSlots + i);
    if (draft_cache_)
      draft_cache_->copy_block(static_cast<std::int32_t>(from + copy.from), static_cast<std::int32_t>(to + copy.to));
  }
}

void ModelBackend::move(std::span<const SlotMove> moves) {
  for (const SlotMove& move : moves) cache_->copy_slot(move.from, move.to);
}

void ModelBackend::propose(const StepPlan& plan) {
  const bool by_confidence = policy_.choice().rule == SpeculationRule::confidence;
  std::vector<DraftOrder> orders;
  std::vector<std::size_t> indices;
  std::deque<DraftMask> masks;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& planned = plan.requests[i];
    ActiveRequest& active = request(planned.request);
    SpeculativeStep& step = active.step;
    step.draft = {};
    if (drafter_ == nullptr || !planned.sample || !active.speculates) continue;
    step.step = static_cast<std::uint32_t>(active.generation.target_steps);
    step.output_len = active.sequence.output().size();
    const DraftPlan fitting = limited(active.plan, planned.num_drafts_max, planned.draft_depth_max);
    if (fitting.shape.size() == 0) continue;
    const Sequence& sequence = active.sequence;
    orders.push_back(
        {{sequence.tokens(), sequence.prompt().size(), active.id, {}, active.stream(0), planned.streams[0].context},
         fitting,
         &active.options,
         &step,
         by_confidence});
    if (sequence.guided()) {
      orders.back().context.companion_stream = active.stream(1);
      orders.back().context.companion_kv = planned.streams[1].context;
    }
    if (active.grammar) {
      orders.back().context.grammar = &masks.emplace_back(*active.grammar, target_.vocab_size());
      orders.back().context.follows_grammar = active.options.grammar.masks_drafts;
    }
    indices.push_back(i);
  }
  if (orders.empty()) return;
  sampler_.propose(*drafter_, draft_cache_.get(), orders);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    std::exception_ptr& failure = failures_[indices[i]] = orders[i].failure;
    if (failure) continue;
    try {
      Draft& draft = orders[i].step->draft;
      const std::int32_t nodes_max = plan.requests[indices[i]].num_drafts_max;
      if (draft.tree.size() > nodes_max)
        throw Error(ErrorKind::internal, "drafter",
                    "it proposed " + std::to_string(draft.tree.size()) + " nodes; expected at most " +
                        std::to_string(nodes_max));
      if (by_confidence) require_confidences(draft.confidences, draft.tree.tokens.size());
      // Drawn drafts stay as they were drawn; one-hot drafts may depend on all that is known, the grammar too.
      if (orders[i].context.follows_grammar && draft.proposal_kind == ProposalKind::one_hot)
        keep_nodes(draft, allowed_nodes(*orders[i].context.grammar, draft.tree));
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
}

void ModelBackend::select_drafts(const StepPlan& plan) {
  std::vector<DraftSelection::Offer> offers;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& planned = plan.requests[i];
    if (!planned.sample || failures_[i]) continue;
    ActiveRequest& active = request(planned.request);
    active.offered = {active.step.draft.tree, active.step.draft.evidence};
    offers.push_back({&active.step.draft, planned.num_streams});
  }
  selection_->choose(offers, plan.num_tokens);
}

void ModelBackend::keep_confident(const StepPlan& plan) {
  std::vector<ConfidentDraft> drafts;
  std::vector<Draft*> of;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& planned = plan.requests[i];
    if (!planned.sample || failures_[i]) continue;
    Draft& draft = request(planned.request).step.draft;
    drafts.push_back({draft.confidences, planned.num_streams});
    of.push_back(&draft);
  }
  policy_.keep_confident(drafts);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    Draft& draft = *of[i];
    const auto kept = static_cast<std::size_t>(drafts[i].kept);
    draft.tree.tokens.resize(kept);
    draft.tree.parents.resize(kept);
    draft.confidences.resize(kept);
    if (!draft.evidence.empty()) draft.evidence.resize(kept);
    if (!draft.logits.empty()) draft.logits.resize(kept * static_cast<std::size_t>(target_.vocab_size()));
  }
}

// Masks of the request's grammar for the rows of the step. The request's own mask stays within them.
void ModelBackend::fill_grammar_masks(ActiveRequest& request) const {
  DraftMask mask(*request.grammar, target_.vocab_size());
  if (mask.allowed_after({}).empty()) throw dead_end(request, 0);
  request.step.allowed_masks.clear();
  fill_masks(mask, request.speculates ? request.step.draft.tree : DraftTree(), request.own_mask, target_.vocab_size(),
             request.step.allowed_masks);
  if (!request.speculates) request.options.constraints.allowed_mask = request.step.allowed_masks;
}

// Adds the request's committed tokens, and the draft behind them, to the batch.
void ModelBackend::gather(const PlannedRequest& planned, const ActiveRequest& request) {
  places_.emplace_back();
  for (std::int32_t s = 0; s < planned.num_streams; ++s) {
    const PlannedStream& stream = planned.streams[static_cast<std::size_t>(s)];
    Place& place = places_.back()[static_cast<std::size_t>(s)];
    place = {batch_.tokens.size(), batch_.wanted.size(), 0};
    // The token of the prompt whose row is wanted next, as a position of the stream.
    const auto before_prompt = request.stream(s).size() - request.sequence.tokens().size();
    const auto next = static_cast<std::int64_t>(before_prompt + request.generation.prompt_logprobs.size());
    const auto prompt_end = static_cast<std::int64_t>(before_prompt + request.sequence.prompt().size());
    for (std::int32_t i = 0; i < stream.num_tokens; ++i) {
      const std::int64_t position = stream.context.length + i;
      if (s == 0 && request.needs_prompt_rows() && position + 1 >= next && position + 1 < prompt_end)
        batch_.wanted.push_back(batch_.size());
      batch_.add(request.stream(s)[static_cast<std::size_t>(position)], position,
                 i == 0 ? kContextParent : batch_.size() - 1, stream.context.slot(position));
    }
    place.first_wanted = batch_.wanted.size();
    const std::int32_t root = batch_.size() - 1;
    if (planned.sample) batch_.wanted.push_back(root);
    if (planned.sample && request.speculates) {
      const DraftTree& tree = request.step.draft.tree;
      for (std::int32_t node = 0; node < tree.size(); ++node) {
        const std::int32_t parent = tree.parents[static_cast<std::size_t>(node)] + root + 1;
        batch_.wanted.push_back(batch_.add(tree.tokens[static_cast<std::size_t>(node)],
                                           batch_.positions[static_cast<std::size_t>(parent)] + 1, parent,
                                           stream.draft_slot(node)));
      }
    }
    batch_.contexts.push_back(stream.context);
  }
}

TargetRows ModelBackend::rows_of(std::size_t index, const ActiveRequest& request) const {
  const auto width = static_cast<std::size_t>(target_.vocab_size());
  const std::size_t rows = request.speculates ? static_cast<std::size_t>(request.step.draft.tree.size()) + 1 : 1;
  const auto of = [&](std::size_t stream) {
    return std::span(output_.logits).subspan(places_[index][stream].first_wanted * width, rows * width);
  };
  return {of(0), request.sequence.guided() ? of(1) : std::span<const float>()};
}

// Moves the request's grammar along the tokens, up to where it ends; how many these are.
std::size_t ModelBackend::follow_grammar(ActiveRequest& request, std::span<const Token> tokens) const {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!request.grammar->accept(tokens[i])) throw dead_end(request, i);
    if (request.grammar->goes_on()) continue;
    if (!request.grammar->is_complete()) throw dead_end(request, i + 1);
    return i + 1;
  }
  return tokens.size();
}

// Log-probabilities of a wanted row before parameters.
std::vector<TokenLogprob> ModelBackend::logprobs_after(std::size_t wanted, std::int64_t n, Token token,
                                                       const DecodingOptions& options) const {
  const auto width = static_cast<std::size_t>(target_.vocab_size());
  LogitsDistribution distribution;
  distribution.assign(std::span(output_.logits).subspan(wanted * width, width), RowName{});
  return top_logprobs(distribution, n, token, options.logprob_token_ids);
}

void ModelBackend::emit(std::size_t index, ActiveRequest& request, StepOutcome& outcome) {
  SequenceOutcome& sequence = outcome.sequences[index];
  Generation& generation = request.generation;
  const TargetRows rows = rows_of(index, request);
  SpeculativeStep& step = request.step;
  std::vector<Token> tokens;
  if (request.speculates) {
    sampler_.verify(rows, request.options, target_.vocab_size(), request.sequence, step);
    tokens = step.emission.tokens;
    if (selection_) selection_->observe(request.offered, tokens);
  } else {
    tokens = {sampler_.sample(rows, request.options, request.sequence, request.history ? &*request.history : nullptr)};
  }
  if (request.grammar) tokens.resize(follow_grammar(request, tokens));
  StopResult result = request.stop.push(tokens);
  if (request.grammar) {
    request.grammar->roll_back(tokens.size() - result.tokens_kept);
    generation.grammar_complete = request.grammar->is_complete();
    if (!request.stop.finished() && !request.grammar->goes_on())
      result.released_text += request.stop.end(FinishReason::grammar).released_text;
  }
  ++generation.target_steps;
  generation.text += result.released_text;
  for (std::size_t i = 0; i < result.tokens_kept; ++i) {
    if (request.options.num_logprobs) {
      const std::size_t row = i == 0 ? 0 : static_cast<std::size_t>(step.emission.path[i - 1]) + 1;
      generation.logprobs.push_back(logprobs_after(places_[index][0].first_wanted + row, *request.options.num_logprobs,
                                                   tokens[i], request.options));
    }
    request.sequence.append(tokens[i]);
    for (std::vector<Token>& stream : request.streams) stream.push_back(tokens[i]);
    if (request.history) request.history->append(tokens[i]);
    generation.tokens.push_back(tokens[i]);
    generation.origins.push_back(request.speculates ? origin_of(step, i) : TokenOrigin::sampled);
  }
  sequence.num_emitted = static_cast<std::int32_t>(result.tokens_kept);
  if (request.speculates) {
    const DraftTree& tree = step.draft.tree;
    sequence.num_drafted = tree.size();
    sequence.num_accepted = static_cast<std::int32_t>(step.emission.num_accepted);
    sequence.rejected = rejected_a_draft(tree, step.emission);
    if (!tree.is_chain()) {
      sequence.path = static_cast<std::int32_t>(outcome.paths.size());
      outcome.paths.insert(outcome.paths.end(), step.emission.path.begin(), step.emission.path.end());
    }
    generation.acceptance.add_step(
        {tree.tokens.size(), step.emission.num_accepted, sequence.rejected, result.tokens_kept});
    if (request.options.keep_steps) {
      step.target_logits.assign(rows.logits.begin(), rows.logits.end());
      step.unconditional_logits.assign(rows.unconditional.begin(), rows.unconditional.end());
      generation.steps.push_back(step);
    }
  }
  generation.finish_reason = request.stop.finish_reason();
  // Where the output is at its length, the scheduler ends it, and counts it so.
  if (!request.may_go_on() && engine_name(generation.finish_reason) != "length") sequence.end = SequenceEnd::stop;
  if (on_tokens) on_tokens(request, result.tokens_kept, result.released_text);
}

// The features of the committed tokens of this pass, and of the accepted nodes.
void ModelBackend::show_features(const StepPlan& plan) {
  if (output_.hidden.empty()) return;
  std::vector<ComputedTokens> computed;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const PlannedRequest& planned = plan.requests[i];
    const ActiveRequest& active = request(planned.request);
    if (failures_[i]) continue;
    for (std::int32_t s = 0; s < planned.num_streams; ++s) {
      const PlannedStream& stream = planned.streams[static_cast<std::size_t>(s)];
      ComputedTokens& of = computed.emplace_back(
          ComputedTokens{active.id, s, active.stream(s), stream.context.length, {}, stream.context, planned.sample});
      const auto first = static_cast<std::int32_t>(places_[i][static_cast<std::size_t>(s)].first_token);
      for (std::int32_t t = 0; t < stream.num_tokens; ++t) of.rows.push_back(first + t);
      if (!planned.sample || !active.speculates) continue;
      // A request that stopped among accepted tokens has the rest in no stream.
      const std::int64_t known = static_cast<std::int64_t>(of.stream.size()) - stream.end();
      for (const std::int32_t node : active.step.emission.path)
        if (static_cast<std::int64_t>(of.rows.size()) < stream.num_tokens + known)
          of.rows.push_back(first + stream.num_tokens + node);
    }
  }
  drafter_->observe(computed, output_.hidden, draft_cache_.get());
}

void ModelBackend::run(const StepPlan& plan, StepOutcome& outcome) {
  outcome = {};
  outcome.begin_ns = now();
  copy_blocks(plan.swap_out, 0, num_blocks_);
  copy_blocks(plan.swap_in, num_blocks_, 0);
  copy_blocks(plan.copies, 0, 0);
  batch_.clear();
  places_.clear();
  failures_.assign(plan.requests.size(), nullptr);
  outcome.sequences.assign(plan.requests.size(), {});
  const auto guarded = [&](std::size_t i, auto action) {
    if (failures_[i]) return;
    try {
      action(plan.requests[i], request(plan.requests[i].request));
    } catch (const Error&) {
      failures_[i] = std::current_exception();
    }
  };
  propose(plan);
  if (selection_) select_drafts(plan);
  if (policy_.choice().rule == SpeculationRule::confidence) keep_confident(plan);
  outcome.draft_ns = now() - outcome.begin_ns;
  for (std::size_t i = 0; i < plan.requests.size(); ++i)
    guarded(i, [&](const PlannedRequest& planned, ActiveRequest& active) {
      if (planned.sample && active.grammar) fill_grammar_masks(active);
    });
  outcome.mask_ns = now() - outcome.begin_ns - outcome.draft_ns;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    if (!failures_[i]) {
      gather(plan.requests[i], request(plan.requests[i].request));
    } else {
      places_.emplace_back();
    }
  }
  const std::int64_t before_verify = now();
  if (batch_.size() > 0) {
    const auto layers = drafter_ == nullptr ? std::span<const std::int32_t>() : drafter_->hidden_layers();
    target_.forward(batch_.view(layers), *cache_, output_);
  }
  outcome.verify_ns = now() - before_verify;
  const std::int64_t before_sample = now();
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    guarded(i, [&](const PlannedRequest& planned, ActiveRequest& active) {
      auto& of_prompt = active.generation.prompt_logprobs;
      for (std::size_t row = places_[i][0].first_prompt; row < places_[i][0].first_wanted; ++row)
        of_prompt.push_back(logprobs_after(row, *active.options.num_prompt_logprobs,
                                           active.sequence.prompt()[of_prompt.size()], active.options));
      if (planned.sample) emit(i, active, outcome);
    });
    if (!failures_[i]) continue;
    outcome.sequences[i] = {};
    outcome.sequences[i].end = SequenceEnd::failed;
    request(plan.requests[i].request).generation.failure = failures_[i];
  }
  outcome.sample_ns = now() - before_sample;
  if (drafter_ != nullptr) show_features(plan);
  outcome.draft_ns += now() - before_sample - outcome.sample_ns;
  if (draft_cache_) outcome.late_ns = draft_cache_->take_late_ns();
  outcome.end_ns = now();
}

}  // namespace draftproof
