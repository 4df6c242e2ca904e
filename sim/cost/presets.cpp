#include "sim/cost/presets.hpp"

#include <algorithm>

#include "base/near_names.hpp"
#include "base/split.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}

std::string lower_without_organisation(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos && slash + 1 < name.size() && name.find(' ') == std::string_view::npos)
    name.remove_prefix(slash + 1);
  return lower_case(name);
}

// "8b", "0.5b" and "68m", but not "80gb".
bool is_parameter_count(const std::string& word) {
  return word.size() >= 2 && is_digit(word[0]) && (word.back() == 'b' || word.back() == 'm') &&
         (is_digit(word[word.size() - 2]));
}

// Letters of the words of `preset` that are found in `name` in their order; 0 where they are not, or where the name has
// a number of parameters beside them that it must not have.
std::size_t letters_matched(const std::vector<std::string>& name, const std::vector<std::string>& preset,
                            bool any_size) {
  std::size_t next = 0;
  std::size_t letters = 0;
  bool other_size = false;
  for (const std::string& word : name) {
    if (next < preset.size() && word == preset[next]) {
      letters += word.size();
      ++next;
    } else if (!any_size && is_parameter_count(word)) {
      other_size = true;
    }
  }
  return next == preset.size() && !other_size ? letters : 0;
}

}  // namespace

std::vector<std::string> name_words(std::string_view name) {
  const std::string text = lower_without_organisation(name);
  std::vector<std::string> words;
  bool open = false;  // the last word goes on
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool point = c == '.' && i > 0 && is_digit(text[i - 1]) && i + 1 < text.size() && is_digit(text[i + 1]);
    if (!is_digit(c) && !is_letter(c) && !point) {
      const bool ends = i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '-';
      if (c == '+' && open && ends) words.emplace_back("plus");  // "Command R+" is another model than "Command R"
      open = false;
      continue;
    }
    if (open && is_digit(c) && is_letter(text[i - 1])) open = false;
    if (!open) words.emplace_back();
    words.back() += c;
    open = true;
    // "8x": a count of what follows, unless that is a size ("8x7b").
    if (c == 'x' && words.back().size() > 1 && i + 1 < text.size() && is_letter(text[i + 1])) {
      words.pop_back();
      open = false;
    }
  }
  for (std::string& word : words)
    if (word.size() > 1 && is_digit(word[0])) {
      if (word.size() > 2 && word.back() == 'x' && is_digit(word[word.size() - 2])) word.pop_back();  // H100x8
      if (word.ends_with("gib")) word.replace(word.size() - 3, 3, "gb");
      if (word.back() == 'g') word += 'b';
    }
  return words;
}

std::optional<std::size_t> match_name(std::string_view name, const std::vector<NamedEntry>& entries, bool any_size) {
  const std::vector<std::string> words = name_words(name);
  std::optional<std::size_t> best;
  std::size_t most = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const std::string& preset : entries[i].names) {
      const std::size_t letters = letters_matched(words, name_words(preset), any_size);
      if (letters > most) {
        most = letters;
        best = i;
      }
    }
  }
  return best;
}

std::string near_names(std::string_view name, const std::vector<NamedEntry>& entries) {
  const std::string wanted = joined(name_words(name), "");
  std::vector<std::pair<std::size_t, std::string>> distances;
  for (const NamedEntry& entry : entries) {
    std::size_t least = edit_distance(wanted, joined(name_words(entry.names.front()), ""));
    for (const std::string& alias : entry.names)
      least = std::min(least, edit_distance(wanted, joined(name_words(alias), "")));
    distances.emplace_back(least, entry.names.front());
  }
  std::stable_sort(distances.begin(), distances.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(distances.size(), 5); ++i)
    text += (i == 0 ? "" : ", ") + distances[i].second;
  return text;
}

}  // namespace draftproof
