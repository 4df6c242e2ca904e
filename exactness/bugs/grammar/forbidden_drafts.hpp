// Drafts that the grammar forbids: judged, with p = 0, or cut off before the verifier sees them; and draws that are
// checked against the grammar when they are made.
#pragma once

#include <cstdint>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

enum class ForbiddenDrafts : std::uint8_t { judged, cut };
// A draft from a bare row counts as: drawn from its q, or certain.
enum class TakenFor : std::uint8_t { drawn, certain };

// E: two drafts from bare rows under the toy grammar.
Finding find_forbidden_drafts(ForbiddenDrafts forbidden, TakenFor taken_for);

// E: a draw from the bare row without filters, made again from the masked one where it is forbidden. Exact.
Finding find_wrong_checked_draw(bool faulty);

}  // namespace draftproof
