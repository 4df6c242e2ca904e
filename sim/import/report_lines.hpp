// Lines in which engines and benchmarks say what a request, or a run, drafted and accepted:
//
//   [AL] AVERAGE: 1.86
//       trtllm-bench's report, the mean length of its requests; [AR] AVERAGE in versions that print no [DAR]. "Number
//       of requests" weighs runs, [DT] and [ADT] AVERAGE are the drafted and accepted tokens of a request
//   MTP[1] finish=stop tokens=335 cycles=127 tok/cycle=2.64 accept=207/257 (80.5%) depth[d1=111/124,d2=77/107,d3=19/26]
//     d0=3 emits[init=2,draft=207,bonus=76,verify=50]
//       oMLX: accepted of drafted tokens, by position where depth is printed, and the cycles without a draft, d0
//   vlm_mtp stats: request=a finish=stop rounds=605 accepted=418/1210 (34.5%) tokens_per_round=1.69 block_size=3
//       oMLX; a block has the token before the drafts
//   code_python        pred= 192 draft= 180 acc= 146 rate=0.811 tok/s=31.3
//       mtp-bench.py, which asks llama.cpp's server: steps without a draft are among those of the tokens
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

bool is_report(std::string_view text);
// Errors (input) naming the line: a count that is none, or that another contradicts; no line that counts a draft; lines
// of two of these kinds.
AcceptanceData read_report(std::string_view text, const std::string& name);

}  // namespace draftproof
