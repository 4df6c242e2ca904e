// The report of `draftproof model` on a drafting head.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>

#include "base/token.hpp"
#include "cli/shared/json_document.hpp"
#include "engine/heads/head_weights.hpp"
#include "engine/model/model_files.hpp"

namespace draftproof {

// Tokens of a text, and how many of them the head can draft.
struct DraftCoverage {
  std::int64_t tokens = 0;
  std::int64_t drafted = 0;
};
DraftCoverage coverage_of(const HeadDescription& head, std::span<const Token> tokens);

// Input error naming the head: a target of another width, vocabulary or number of layers than it is for.
void require_target(const HeadTensors& head, const ModelFiles& target);

// `num_layers` of the target, 0 where it is not known: then the layers of features may be a rule.
Json json_of_head(const HeadTensors& head, std::int64_t num_layers, const std::optional<DraftCoverage>& coverage);
void print_head(const HeadTensors& head, std::int64_t num_layers, const std::optional<DraftCoverage>& coverage,
                std::ostream& out);

}  // namespace draftproof
