#include "base/files/signal_cleanup.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>

namespace draftproof {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

enum State : int { kFree, kBeingFilled, kPath, kProcessGroup, kNote };

// The handler may run at any moment and in any thread, so it reads a fixed table that is filled before its state says
// so, and calls nothing but system calls.
struct Slot {
  std::atomic<int> state{kFree};
  pid_t group = 0;
  std::array<char, PATH_MAX> path{};  // or the text of a note
};
constexpr std::size_t kSlots = 32;
std::array<Slot, kSlots> slots;
static_assert(std::atomic<int>::is_always_lock_free);

std::size_t claim_slot() {
  for (std::size_t i = 0; i < kSlots; ++i) {
    int expected = kFree;
    if (slots[i].state.compare_exchange_strong(expected, kBeingFilled)) return i;
  }
  return kSlots;
}

void fill(Slot& slot, const std::string& text, State state) {
  const bool fits = text.size() < slot.path.size();
  if (fits) std::memcpy(slot.path.data(), text.c_str(), text.size() + 1);
  slot.state.store(fits ? state : kBeingFilled);
}

// Layout of the buffer that the system call getdents64 fills.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  unsigned char type;
  char name[1];
};

// readdir() allocates, and must not be called in a handler.
void remove_files_in(const char* folder) {
  const int descriptor = ::open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  alignas(DirectoryEntry) static char buffer[8192];
  for (long filled = 0; (filled = ::syscall(SYS_getdents64, descriptor, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < filled;) {
      const auto* const entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      ::unlinkat(descriptor, entry->name, 0);  // fails on . and .., which is as it should be
      at += entry->length;
    }
  }
  ::close(descriptor);
}

void remove_everything() {
  for (Slot& slot : slots) {
    const int state = slot.state.load();
    if (state == kProcessGroup) ::kill(-slot.group, SIGKILL);
    if (state == kNote && ::write(STDERR_FILENO, slot.path.data(), std::strlen(slot.path.data())) < 0) continue;
    if (state != kPath || ::unlink(slot.path.data()) == 0) continue;
    remove_files_in(slot.path.data());
    ::rmdir(slot.path.data());
  }
}

extern "C" void clean_up_and_die(int signal_number) {
  static std::atomic_flag is_running = ATOMIC_FLAG_INIT;
  if (!is_running.test_and_set()) remove_everything();
  // The signal is blocked while its handler runs; as soon as this one returns it ends the process.
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

sigset_t our_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kSignals) ::sigaddset(&set, number);
  return set;
}

}  // namespace

void clean_up_on_signals() {
  ::signal(SIGXFSZ, SIG_IGN);
  for (const int number : kSignals) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = clean_up_and_die;
    action.sa_mask = our_signals();
    action.sa_flags = 0;
    ::sigaction(number, &action, nullptr);
  }
}

SignalCleanup::SignalCleanup(const std::string& path) : slot_(claim_slot()) {
  if (slot_ != kSlots) fill(slots[slot_], path, kPath);
}

SignalCleanup::SignalCleanup(const SignalNote& note) : slot_(claim_slot()) {
  if (slot_ != kSlots) fill(slots[slot_], note.text, kNote);
}

SignalCleanup::SignalCleanup(pid_t process_group) : slot_(claim_slot()) {
  if (slot_ == kSlots) return;
  slots[slot_].group = process_group;
  slots[slot_].state.store(kProcessGroup);
}

SignalCleanup::~SignalCleanup() {
  if (slot_ != kSlots) slots[slot_].state.store(kFree);
}

SignalsHeld::SignalsHeld() {
  const sigset_t set = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalsHeld::~SignalsHeld() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace draftproof
