// In place of jinja.cpp where the library is not there.
#include <stdexcept>

#include "engine/chat/chat_template.hpp"

namespace draftproof {

bool has_jinja() {
  return false;
}

std::string run_jinja(const std::string&, std::span<const ChatMessage>, const ChatContext&) {
  throw std::logic_error("built without Jinja");
}

}  // namespace draftproof
