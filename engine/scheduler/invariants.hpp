// Invariants of a scheduler after every plan() and every commit(), found by counting everything again. It costs a pass
// over all blocks and requests: for tests, and on demand.
//
//   blocks      every block is blank, findable or held, and in the one list of its kind; as many are held by the tables
//               of the requests as the pool counts, block by block, in the swap space too
//   slots       no slot holds two live tokens: a block in two tables is findable by the key that both streams have at
//               its place, and findable blocks are full and written by nobody
//   traces      no block lies behind the last computed position; after commit() nothing is computed of drafts that were
//               not accepted; what waits holds nothing
//   order       running and waiting requests are in order of arrival, the running ones first
//   counters    the metrics are those of a recount
//   starvation  the oldest request is in every plan; under the two-phase policy only in one of 2 (prefill_steps_max +
//               1) from the moment that it is the oldest, which one look cannot tell: it runs
#pragma once

#include <optional>
#include <string>

#include "engine/scheduler/scheduler.hpp"

namespace draftproof {

// The first invariant that does not hold, as "name: what was found"; nothing where all hold.
std::optional<std::string> violated_invariant(const Scheduler& scheduler);

}  // namespace draftproof
