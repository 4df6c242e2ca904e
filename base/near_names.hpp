// Suggestions for a name that nothing has ("did you mean").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

// Characters to insert, remove or replace to turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name that is near: about a third of its characters differ at most, or `name` is its beginning; upper and
// lower case are one. Empty where none is.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// "; did you mean 'x'?", to end a message with; empty where no name is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace draftproof
