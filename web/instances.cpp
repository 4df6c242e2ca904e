// The page and its second instances (studies/page_worker.hpp): the arena, and what JavaScript calls and is called for
// (web/page.js).
#include <emscripten.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "studies/page_worker.hpp"

namespace {

constexpr std::size_t kArenaBytes = std::size_t{24} << 20;
alignas(16) std::byte arena[kArenaBytes];
std::size_t arena_used = 0;
int packing = 0;

bool is_in_arena(const void* address) {
  return address >= arena && address < arena + kArenaBytes;
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (packing == 0) {
    if (void* const address = std::malloc(bytes != 0 ? bytes : 1)) return address;
    throw std::bad_alloc();
  }
  const std::size_t begin = arena_used;
  arena_used += (bytes + 15) / 16 * 16;
  if (arena_used > kArenaBytes) throw std::bad_alloc();
  return arena + begin;
}
void* operator new[](std::size_t bytes) {
  return ::operator new(bytes);
}
void operator delete(void* address) noexcept {
  if (!is_in_arena(address)) std::free(address);
}
void operator delete[](void* address) noexcept {
  ::operator delete(address);
}
void operator delete(void* address, std::size_t) noexcept {
  ::operator delete(address);
}
void operator delete[](void* address, std::size_t) noexcept {
  ::operator delete(address);
}

// clang-format off
EM_JS(void, draftproof_ask, (int place, const void* begin, int bytes), {
  Module.draftproof.ask(place, HEAPU8.slice(begin, begin + bytes));
});
EM_JS(void, draftproof_stop, (int place), { Module.draftproof.stop(place); });
EM_JS(void, draftproof_publish, (int answer, const void* begin, int bytes, const char* text), {
  Module.draftproof.publish(answer, HEAPU8.slice(begin, begin + bytes), UTF8ToString(text));
});
// clang-format on

namespace draftproof::page {
namespace {

std::vector<Computation*>& computations() {
  static std::vector<Computation*> all;
  return all;
}

}  // namespace

IntoArena::IntoArena() {
  if (packing++ == 0) arena_used = 0;
}
IntoArena::~IntoArena() {
  --packing;
}
void* arena_begin() {
  return arena;
}

Computation::Computation() : place_(static_cast<int>(computations().size())) {
  computations().push_back(this);
}
Computation::~Computation() {
  std::erase(computations(), this);  // their places are those of the panels that are made next, once all are gone
}
void Computation::ask() const {
  draftproof_ask(place_, arena, static_cast<int>(arena_used));
}
void Computation::stop() const {
  draftproof_stop(place_);
}
void Computation::publish(Answer answer, const std::string& text) const {
  const bool has_bytes = answer == Answer::snapshot;
  draftproof_publish(static_cast<int>(answer), arena, has_bytes ? static_cast<int>(arena_used) : 0, text.c_str());
}

}  // namespace draftproof::page

extern "C" {
EMSCRIPTEN_KEEPALIVE void* draftproof_arena() {
  return arena;
}
EMSCRIPTEN_KEEPALIVE void draftproof_compute(int place) {
  draftproof::page::computations().at(static_cast<std::size_t>(place))->compute_here();
}
EMSCRIPTEN_KEEPALIVE void draftproof_take(int place, int answer, int more, const char* text) {
  draftproof::page::computations()
      .at(static_cast<std::size_t>(place))
      ->take(static_cast<draftproof::page::Answer>(answer), more != 0, text);
}
}
