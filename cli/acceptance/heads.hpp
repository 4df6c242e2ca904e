// draftproof acceptance head:PATH: a drafting head on its target, as text.
#pragma once

#include <ostream>

#include "studies/heads/heads.hpp"

namespace draftproof {

void print_heads(std::ostream& out, const HeadsSnapshot& snapshot);

}  // namespace draftproof
