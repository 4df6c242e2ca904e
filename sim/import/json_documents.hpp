// The JSON documents of a text: one, one a line, or those of a stream of server-sent events ("data: {...}").
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sim/import/text_lines.hpp"

namespace draftproof {

class JsonDocuments {
 public:
  JsonDocuments(std::string_view text, std::string name);

  // The next document; false behind the last. Errors (input) naming the line: it is no JSON; the last line may be cut,
  // if it is not the only one.
  bool next();
  nlohmann::json& document() { return document_; }
  const std::string& where() const { return where_; }  // "NAME, line 12", or NAME where the text is one document
  // A part of an answer: later parts with its id say more of it.
  bool is_chunk() const;
  // The text says, behind the document before this one, that an answer ended ("data: [DONE]").
  bool ended_before() const { return ended_before_; }

 private:
  std::string name_;
  TextLines lines_;
  nlohmann::json document_;
  std::string where_;
  bool whole_ = false;   // the text is one document
  bool stream_ = false;  // has lines "data: "
  bool ended_before_ = false;
  bool any_ = false;
};

// The value under `key` of an object; nothing where it is missing or null.
const nlohmann::json* json_field(const nlohmann::json& object, const char* key);

// Does a text begin as JSON, or a stream of it, does?
bool begins_as_json(std::string_view text);

}  // namespace draftproof
