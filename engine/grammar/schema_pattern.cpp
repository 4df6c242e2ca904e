// Patterns as XGrammar takes them: of the text between the quotes of a string of JSON, where '"' is written '\"'.
// With a length beside it the counts of the pattern are moved so that every text has it; of parts that may be of any
// length the one that may be longest gets what is left.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strict_number.hpp"
#include "base/utf8.hpp"
#include "engine/grammar/json_schema.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kNoLimit = std::int64_t{1} << 40;
constexpr int kGroupsMax = 100;

std::int64_t product(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? 0 : a >= kNoLimit / b ? kNoLimit : a * b;
}

// A part of a pattern, of texts with least to most characters.
struct Part {
  enum class Kind { text, sequence, alternatives, repeated };
  Kind kind = Kind::text;
  std::string text;         // as the library has it
  std::vector<Part> parts;  // of repeated one
  std::int64_t from = 1;    // of repeated: how often
  std::int64_t up_to = 1;
  std::int64_t least = 0;
  std::int64_t most = 0;

  void measure() {
    if (kind == Kind::text) return;
    least = kind == Kind::alternatives ? kNoLimit : 0;
    most = 0;
    for (const Part& part : parts) {
      if (kind == Kind::alternatives) {
        least = std::min(least, part.least);
        most = std::max(most, part.most);
      } else if (kind == Kind::repeated) {
        least = product(from, part.least);
        most = product(up_to, part.most);
      } else {
        least += part.least;
        most = std::min(most + part.most, kNoLimit);
      }
    }
  }
  std::string written() const {
    if (kind == Kind::text) return text;
    std::string all;
    for (const Part& part : parts)
      all += (kind == Kind::alternatives && &part != parts.data() ? "|" : "") + part.written();
    if (kind == Kind::alternatives) return "(" + all + ")";
    if (kind == Kind::sequence) return all;
    if (parts.front().kind == Kind::sequence || parts.front().kind == Kind::repeated) all = "(" + all + ")";
    return all + "{" + std::to_string(from) + "," + (up_to >= kNoLimit ? "" : std::to_string(up_to)) + "}";
  }
};

using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

constexpr std::uint32_t kLast = 0x10ffff;

// In ascending order, without overlap.
Ranges ordered(Ranges ranges) {
  std::ranges::sort(ranges);
  Ranges merged;
  for (const auto& [low, high] : ranges) {
    if (!merged.empty() && low <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, high);
    } else {
      merged.emplace_back(low, high);
    }
  }
  return merged;
}
Ranges complement(const Ranges& ranges) {
  Ranges others;
  std::uint32_t next = 0;
  for (const auto& [low, high] : ordered(ranges)) {
    if (low > next) others.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= kLast) others.emplace_back(next, kLast);
  return others;
}
// The characters that stand in a string of JSON as they are.
Ranges plain(const Ranges& ranges) {
  Ranges escaped = complement(ranges);
  escaped.insert(escaped.end(), {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0xd800, 0xdfff}});
  return complement(escaped);
}

// Digits, words and spaces: those of every dialect of regular expressions, and those of any.
const Ranges kDigits{{'0', '9'}};
const Ranges kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kPlainSpaces{{'\t', '\r'}, {' ', ' '}};
const Ranges kAnyDigits{{'0', '9'}, {0x80, kLast}};
const Ranges kAnyWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {0x80, kLast}};
const Ranges kAnySpaces{{'\t', '\r'},     {0x1c, ' '},      {0x85, 0x85},     {0xa0, 0xa0},
                        {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200a}, {0x2028, 0x2029},
                        {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
const Ranges kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

std::string written(std::uint32_t code_point) {
  if ((code_point >= 'a' && code_point <= 'z') || (code_point >= 'A' && code_point <= 'Z') ||
      (code_point >= '0' && code_point <= '9'))
    return std::string(1, static_cast<char>(code_point));
  char text[16];
  std::snprintf(text, sizeof text, "\\u{%x}", static_cast<unsigned>(code_point));
  return text;
}
std::string written(Ranges ranges) {
  if (ranges == Ranges{{'^', '^'}}) return "\\^";
  if (ranges.front().first == '^') {  // it would turn the class around
    if (ranges.front().second > '^') ranges.insert(ranges.begin() + 1, {'^' + 1, ranges.front().second});
    ranges.push_back({'^', '^'});
    ranges.erase(ranges.begin());
  }
  std::string text = "[";
  for (const auto& [low, high] : ranges) text += written(low) + (high > low ? "-" + written(high) : "");
  return text + "]";
}

// One of some characters as a string of JSON has it; none: there is no such. With its escapes where few are asked for.
std::optional<std::string> written_in_json(const Ranges& ranges, bool with_escapes) {
  const Ranges as_they_are = plain(ranges);
  std::string escapes;
  for (const auto& [character, name] :
       {std::pair('"', "\\u{22}"), {'\\', "\\\\"}, {'\b', "b"}, {'\f', "f"}, {'\n', "n"}, {'\r', "r"}, {'\t', "t"}})
    if (std::ranges::any_of(ranges, [c = static_cast<std::uint32_t>(character)](const auto& range) {
          return range.first <= c && c <= range.second;
        }))
      escapes += (escapes.empty() ? "" : "|") + std::string(name);
  if (escapes.empty() || (!with_escapes && !as_they_are.empty()))
    return as_they_are.empty() ? std::nullopt : std::optional(written(as_they_are));
  escapes = "\\\\(" + escapes + ")";
  return "(" + (as_they_are.empty() ? "" : written(as_they_are) + "|") + escapes + ")";
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  std::optional<Part> read() {
    std::optional<Part> whole = alternatives(0);
    if (at_ < text_.size()) return std::nullopt;
    return whole;
  }

 private:
  bool takes(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::optional<Part> alternatives(int depth) {
    if (depth > kGroupsMax) return std::nullopt;
    Part all{Part::Kind::alternatives, "", {}};
    do {
      std::optional<Part> one = sequence(depth);
      if (!one) return std::nullopt;
      all.parts.push_back(*std::move(one));
    } while (takes("|"));
    if (all.parts.size() == 1) return std::move(all.parts.front());
    all.measure();
    return all;
  }

  std::optional<Part> sequence(int depth) {
    Part all{Part::Kind::sequence, "", {}};
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      std::optional<Part> one = atom(depth);
      if (!one || !count(*one)) return std::nullopt;
      all.parts.push_back(*std::move(one));
    }
    all.measure();
    return all;
  }

  // A character of a text, an end of it, or a group.
  std::optional<Part> atom(int depth) {
    const std::size_t begin = at_;
    if (takes("(")) {
      if (!takes("?:") && takes("?")) return std::nullopt;
      std::optional<Part> group = alternatives(depth + 1);
      if (!group || !takes(")")) return std::nullopt;
      return group;
    }
    Part one;
    if (takes("^")) return begin == 0 ? std::optional(one) : std::nullopt;
    if (takes("$")) return at_ == text_.size() ? std::optional(one) : std::nullopt;
    std::optional<Ranges> ranges;
    bool with_escapes = true;
    if (takes(".")) {
      ranges = complement(kLineEnds);
      with_escapes = false;
    } else if (takes("[")) {
      with_escapes = !text_.substr(at_).starts_with("^");
      ranges = character_class();
    } else if (std::string_view("*+?{}]").find(text_[at_]) == std::string_view::npos) {
      ranges = character(false);
    }
    const auto text = ranges ? written_in_json(*ranges, with_escapes) : std::nullopt;
    if (!text) return std::nullopt;
    one.text = *text;
    one.least = one.most = 1;
    return one;
  }

  std::optional<Ranges> character_class() {
    const bool is_negated = takes("^");
    Ranges all;
    while (!takes("]")) {
      std::optional<Ranges> low = character(is_negated);
      if (!low) return std::nullopt;
      const bool is_one = low->size() == 1 && low->front().first == low->front().second;
      if (is_one && text_.substr(at_).starts_with("-") && !text_.substr(at_).starts_with("-]")) {
        ++at_;
        const std::optional<Ranges> high = character(is_negated);
        if (!high || high->size() != 1 || high->front().first < low->front().first) return std::nullopt;
        low->front().second = high->front().second;
      }
      all.insert(all.end(), low->begin(), low->end());
    }
    return is_negated ? complement(all) : ordered(all);
  }

  // A character, or those of an escape: in some dialect, or in all.
  std::optional<Ranges> character(bool in_any) {
    if (at_ >= text_.size()) return std::nullopt;
    if (!takes("\\")) {
      const Utf8Character decoded = decode_utf8(text_.substr(at_));
      at_ += decoded.length;
      if (decoded.length == 0) return std::nullopt;
      return Ranges{{decoded.code_point, decoded.code_point}};
    }
    if (at_ >= text_.size()) return std::nullopt;
    const char kind = text_[at_++];
    if (kind == 'd') return in_any ? kAnyDigits : kDigits;
    if (kind == 'D') return complement(in_any ? kDigits : kAnyDigits);
    if (kind == 'w') return in_any ? kAnyWord : kWord;
    if (kind == 'W') return complement(in_any ? kWord : kAnyWord);
    if (kind == 's') return in_any ? kAnySpaces : kPlainSpaces;
    if (kind == 'S') return complement(in_any ? kPlainSpaces : kAnySpaces);
    constexpr std::string_view kNames = "tnrfv0";
    constexpr std::string_view kValues("\t\n\r\f\v\0", 6);
    if (const std::size_t index = kNames.find(kind); index != kNames.npos) {
      const auto value = static_cast<std::uint32_t>(kValues[index]);
      return Ranges{{value, value}};
    }
    if (kind == 'x' || kind == 'u') {
      const bool has_braces = kind == 'u' && takes("{");
      const std::size_t most = has_braces ? 6 : kind == 'x' ? 2 : 4;
      std::uint32_t value = 0;
      std::size_t digits = 0;
      for (; digits < most && at_ < text_.size(); ++digits, ++at_) {
        const std::size_t digit = std::string_view("0123456789abcdef0123456789ABCDEF").find(text_[at_]);
        if (digit == std::string_view::npos) break;
        value = 16 * value + static_cast<std::uint32_t>(digit % 16);
      }
      if ((has_braces ? !takes("}") || digits == 0 : digits != most) || value > kLast) return std::nullopt;
      return Ranges{{value, value}};
    }
    const bool is_letter = (kind >= 'a' && kind <= 'z') || (kind >= 'A' && kind <= 'Z') || (kind >= '0' && kind <= '9');
    if (is_letter || static_cast<unsigned char>(kind) >= 0x80)
      return std::nullopt;  // assertions, references, classes of Unicode
    return Ranges{{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(kind)}};
  }

  bool count(Part& one) {
    std::int64_t from = 0;
    std::int64_t up_to = kNoLimit;
    if (takes("+")) {
      from = 1;
    } else if (takes("?")) {
      up_to = 1;
    } else if (takes("{")) {
      const std::size_t end = text_.find('}', at_);
      if (end == text_.npos) return false;
      const std::string_view inside = text_.substr(at_, end - at_);
      const std::size_t comma = inside.find(',');
      const auto first = read_integer(inside.substr(0, comma), 0, 1 << 20);
      const bool has_end = comma != inside.npos && comma + 1 < inside.size();
      const auto last = has_end ? read_integer(inside.substr(comma + 1), 0, 1 << 20) : first;
      if (!first || !last) return false;
      from = *first;
      up_to = comma != inside.npos && !has_end ? kNoLimit : *last;
      at_ = end + 1;
    } else if (!takes("*")) {
      return true;
    }
    takes("?");  // as few as possible: the same texts
    Part repeated{Part::Kind::repeated, "", {std::move(one)}, from, up_to};
    repeated.measure();
    one = std::move(repeated);
    return from <= up_to;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool shorten(Part& part, std::int64_t most);
bool lengthen(Part& part, std::int64_t least);

// Those that can be moved stay.
bool move_alternatives(Part& part, bool (*move)(Part&, std::int64_t), std::int64_t length) {
  std::erase_if(part.parts, [&](Part& one) { return !move(one, length); });
  return !part.parts.empty();
}

// Texts of at most so many characters; false where there is none.
bool shorten(Part& part, std::int64_t most) {
  if (part.least > most) return false;
  if (part.most <= most) return true;
  if (part.kind == Part::Kind::alternatives) {
    move_alternatives(part, shorten, most);
  } else if (part.kind == Part::Kind::repeated) {
    Part& one = part.parts.front();
    if (part.from <= 1 && one.most > most) part.up_to = std::min<std::int64_t>(part.up_to, 1);
    const std::int64_t each = part.from <= 1 && one.most > most ? most : part.from == 0 ? most : most / part.from;
    if (!shorten(one, each)) {
      if (part.from > 0) return false;
      part.up_to = 0;
    } else if (one.most > 0) {
      part.up_to = std::min(part.up_to, most / one.most);
    }
  } else {
    std::int64_t left = most - part.least;
    std::vector<Part*> order;
    for (Part& one : part.parts) order.push_back(&one);
    std::ranges::stable_sort(order, {}, [](const Part* one) { return one->most - one->least; });
    for (Part* one : order) {
      const std::int64_t before = one->least;
      if (!shorten(*one, before + left)) return false;
      left -= one->most - before;
    }
  }
  part.measure();
  return part.most <= most;
}

// Texts of at least so many characters; false where that cannot be said.
bool lengthen(Part& part, std::int64_t least) {
  if (part.most < least) return false;
  if (part.least >= least) return true;
  if (part.kind == Part::Kind::alternatives) {
    move_alternatives(part, lengthen, least);
  } else if (part.kind == Part::Kind::repeated) {
    const std::int64_t each = part.parts.front().least;
    if (each == 0) return false;
    part.from = (least + each - 1) / each;
    if (part.from > part.up_to) return false;
  } else {
    auto longest = std::ranges::max_element(part.parts, {}, [](const Part& one) { return one.most - one.least; });
    if (longest == part.parts.end() || !lengthen(*longest, least - (part.least - longest->least))) return false;
  }
  part.measure();
  return part.least >= least;
}

}  // namespace

std::optional<PatternWithLength> pattern_of_length(const std::string& pattern, std::int64_t least,
                                                   std::optional<std::int64_t> most) {
  std::optional<Part> part = PatternReader(pattern).read();
  if (!part) return std::nullopt;
  if (part->most < least || part->least > most.value_or(kNoLimit)) return PatternWithLength{};
  if (!shorten(*part, most.value_or(kNoLimit)) || !lengthen(*part, least)) return std::nullopt;
  // A character beyond ASCII, though of no text, keeps the library from its automata (0.2.8), which take too much.
  return PatternWithLength{part->written() + "(\u00e9){0}"};
}

}  // namespace draftproof
