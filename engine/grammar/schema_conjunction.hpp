// Conjunctions of JSON Schemas as one schema of the keywords that XGrammar applies together.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/grammar/json_schema.hpp"

namespace draftproof {

// A schema and its place, as a JSON pointer.
struct PlacedSchema {
  SchemaJson schema;
  std::string at;
};

// Ours, of numbers: true denies those that are whole. No schema of a user's has it.
inline constexpr const char* kNotWhole = "\x01not whole";

// Is it a keyword that says nothing of documents ("title"), or none that is known?
bool is_note(const std::string& keyword);

class SchemaConjunctions {
 public:
  SchemaConjunctions(const SchemaJson& root, const std::string& where) : root_(root), where_(where) {}

  // Documents that are of every schema: an enum, an anyOf of schemas without an overlap that matters, a schema of one
  // type, {} of any document, a $ref to one of definitions(), or false. Errors (input): what cannot be said so.
  SchemaJson of(std::vector<PlacedSchema> parts);
  // The schemas that the $ref of its results name, as "#/$defs/NAME".
  const SchemaJson& definitions() const { return definitions_; }

  Error fail(const std::string& at, const std::string& what) const;

 private:
  using Parts = std::vector<PlacedSchema>;

  SchemaJson of_flat(const Parts& parts);
  bool flatten(const Parts& parts, Parts& flat) const;
  SchemaJson of_values(const Parts& flat);
  bool split_first(const Parts& flat, SchemaJson& result);
  SchemaJson alternatives(const Parts& rest, const std::vector<Parts>& choices);
  SchemaJson one_of(const Parts& rest, const PlacedSchema& choices);
  std::vector<Parts> negation(const PlacedSchema& schema) const;
  std::vector<Parts> other_types(const PlacedSchema& denied, const Parts& rest) const;
  SchemaJson of_plain(const Parts& flat);
  SchemaJson of_type(const std::string& type, const Parts& flat);
  SchemaJson numbers(const std::string& type, const Parts& flat) const;
  SchemaJson strings(const Parts& flat) const;
  SchemaJson arrays(const Parts& flat);
  // Values of one of our results, where they are few; and arrays of such without a second of the same.
  std::optional<std::vector<SchemaJson>> values_of(const SchemaJson& emitted, int depth = 0) const;
  SchemaJson unique_arrays(const SchemaJson& array, const std::string& at) const;
  SchemaJson objects(const Parts& flat);
  Parts of_property(const std::string& name, const Parts& flat) const;
  // No document of `emitted`, one of our results, is of `schema`.
  bool excludes(const SchemaJson& emitted, const SchemaJson& schema, int depth = 0) const;

  const SchemaJson& root_;
  const std::string& where_;
  SchemaJson definitions_ = SchemaJson::object();
  std::map<std::string, std::string> names_;  // of conjunctions that refer to schemas: references and texts
  int work_ = 0;
  int depth_ = 0;
};

}  // namespace draftproof
