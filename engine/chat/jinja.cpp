// llama.cpp's Jinja behind our interface. The build takes this file where the library is, and without_jinja.cpp where
// not.
#include <jinja/lexer.h>
#include <jinja/parser.h>
#include <jinja/runtime.h>
#include <jinja/value.h>

#include "engine/chat/chat_template.hpp"

namespace draftproof {

bool has_jinja() {
  return true;
}

std::string run_jinja(const std::string& text, std::span<const ChatMessage> messages, const ChatContext& context) {
  using namespace jinja;
  const program template_program = parse_from_tokens(lexer().tokenize(text));
  jinja::context variables(text);
  if (context.now) variables.current_time = *context.now;
  const auto list = mk_val<value_array>();
  for (const ChatMessage& message : messages) {
    const auto entry = mk_val<value_object>();
    entry->insert("role", mk_val<value_string>(message.role));
    entry->insert("content", mk_val<value_string>(message.content));
    list->push_back(entry);
  }
  variables.set_val("messages", list);
  variables.set_val("tools", mk_val<value_none>());
  variables.set_val("documents", mk_val<value_none>());
  variables.set_val("add_generation_prompt", mk_val<value_bool>(true));
  if (context.start) variables.set_val("bos_token", mk_val<value_string>(*context.start));
  if (context.end) variables.set_val("eos_token", mk_val<value_string>(*context.end));
  const value result = runtime(variables).execute(template_program);
  return runtime::gather_string_parts(result)->as_string().str();
}

}  // namespace draftproof
