// Does something end in time, in so much memory? Tried in a copy of this process, which is thrown away.
#pragma once

#include <cstddef>
#include <functional>

namespace draftproof {

// seconds: of processor time. bytes: of memory beyond what the process has. True: `action` ended, in whatever way;
// false: it took more, or crashed. True without a try where no process can be started.
bool ends_within(int seconds, std::size_t bytes, const std::function<void()>& action);

}  // namespace draftproof
