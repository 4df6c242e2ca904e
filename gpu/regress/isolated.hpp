// Work in a child process, so that the code of others may crash or hang without taking the report along.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace draftproof::regress {

struct IsolatedResult {
  std::string text;
  bool spoilt = false;  // the process may be damaged: the next item gets another
};

// Calls item(0), ..., item(count - 1) in that order in a child process, whose standard output goes to standard error,
// and done(i, text) here for each result. Where the child dies or needs longer than `seconds_max` for an item, lost(i,
// why) is called instead, as "it was ended by signal 11 (Segmentation fault)", and another child goes on with the next.
// So it is with an item that writes into the pipe by which the child wakes this process; results do not go through it.
// The calling process must have one thread. Error (input): no process can be made.
void run_isolated(std::size_t count, double seconds_max, const std::function<IsolatedResult(std::size_t)>& item,
                  const std::function<void(std::size_t, const std::string&)>& done,
                  const std::function<void(std::size_t, const std::string&)>& lost);

}  // namespace draftproof::regress
