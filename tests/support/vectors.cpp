#include "tests/support/vectors.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/host_device.hpp"

namespace draftproof::testing {
namespace {

// No answer in the files looks like this, so a backend that writes nothing is noticed.
constexpr Word kPoison = 0xdeadbeefdeadbeefULL;
constexpr Word kMinusInfinityBits = 0xff800000u;  // binary32

Word parse_word(const std::string& text, const std::string& where) {
  if (text == "-inf") return kMinusInfinityBits;
  const char* begin = text.c_str();
  char* end = nullptr;
  Word word = 0;
  if (text.find('p') == std::string::npos) {
    const bool negative = text.front() == '-';
    word = negative ? static_cast<Word>(std::strtoll(begin, &end, 0)) : std::strtoull(begin, &end, 0);
  } else if (text.back() == 'f') {
    word = bit_cast<std::uint32_t>(std::strtof(begin, &end));
    ++end;  // the suffix
  } else {
    word = bit_cast<Word>(std::strtod(begin, &end));
  }
  if (end != begin + text.size())
    throw input_error(where, "'" + text + "' is not an integer, a hexadecimal float or -inf");
  return word;
}

// One step of this order is one ulp.
std::int64_t ordered(Word bits, bool is_single) {
  if (is_single) {
    const auto magnitude = static_cast<std::int64_t>(bits & 0x7fffffffu);
    return (bits & 0x80000000u) != 0 ? -magnitude : magnitude;
  }
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7fffffffffffffffULL);
  return (bits >> 63) != 0 ? -magnitude : magnitude;
}

bool agree(Word answer, Word expected, unsigned tolerance_ulp, bool is_single) {
  if (answer == expected) return true;
  if (tolerance_ulp == 0 || answer == kPoison) return false;
  const std::int64_t distance = ordered(answer, is_single) - ordered(expected, is_single);
  return distance <= tolerance_ulp && -distance <= static_cast<std::int64_t>(tolerance_ulp);
}

std::string describe(Word word, bool is_single) {
  char text[120];
  const double value =
      is_single ? static_cast<double>(bit_cast<float>(static_cast<std::uint32_t>(word))) : bit_cast<double>(word);
  std::snprintf(text, sizeof text, "0x%llx (integer %lld, float %a)", static_cast<unsigned long long>(word),
                static_cast<long long>(word), value);
  return text;
}

VectorTable declared(std::istringstream& rest, const std::string& path, const std::string& where) {
  VectorTable table;
  table.path = path;
  std::string name;
  rest >> table.kind;
  while (rest >> name && name != "->") table.input_names.push_back(name);
  if (name != "->") throw input_error(where, "a declaration is: kind NAME input... -> output...");
  while (rest >> name) {
    const std::size_t tilde = name.find('~');
    table.tolerance_ulp.push_back(
        tilde == std::string::npos ? 0 : static_cast<unsigned>(std::stoul(name.substr(tilde + 1))));
    table.output_names.push_back(name.substr(0, tilde));
  }
  table.is_single.resize(table.output_names.size());
  return table;
}

void add_record(VectorTable& table, std::istringstream& rest, int line, const std::string& where) {
  std::string text;
  std::size_t inputs = 0;
  for (; rest >> text && text != "->"; ++inputs) table.inputs.push_back(parse_word(text, where));
  std::size_t outputs = 0;
  for (; rest >> text; ++outputs) {
    if (outputs < table.output_names.size()) table.is_single[outputs] = text.back() == 'f';
    table.outputs.push_back(parse_word(text, where));
  }
  if (inputs != table.input_names.size() || outputs != table.output_names.size())
    throw input_error(where, std::to_string(inputs) + " inputs and " + std::to_string(outputs) + " outputs; kind " +
                                 table.kind + " has " + std::to_string(table.input_names.size()) + " and " +
                                 std::to_string(table.output_names.size()));
  table.lines.push_back(line);
}

}  // namespace

std::vector<VectorTable> read_vectors(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw input_error(path, "cannot be opened");
  std::vector<VectorTable> tables;
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    const std::string where = path + ":" + std::to_string(line);
    std::istringstream rest(text);
    std::string first;
    if (!(rest >> first) || first.front() == '#') continue;
    if (first == "kind") {
      tables.push_back(declared(rest, path, where));
    } else if (!tables.empty() && tables.back().kind == first) {
      add_record(tables.back(), rest, line, where);
    } else {
      throw input_error(where, "'" + first + "' is not the kind that was declared last");
    }
  }
  return tables;
}

VectorReport check_vectors(const std::vector<VectorTable>& tables, const Backend& backend) {
  VectorReport report;
  for (const VectorTable& table : tables) {
    const auto evaluate = backend.find(table.kind);
    if (evaluate == backend.end()) {
      report.skipped += table.records();
      continue;
    }
    std::vector<Word> answers(table.outputs.size(), kPoison);
    evaluate->second(table.records(), table.inputs.data(), answers.data());
    const std::size_t width = table.output_names.size();
    for (std::size_t record = 0; record < table.records(); ++record) {
      ++report.checked;
      bool right = true;
      for (std::size_t i = 0; i < width && right; ++i) {
        const Word answer = answers[record * width + i];
        const Word expected = table.outputs[record * width + i];
        right = agree(answer, expected, table.tolerance_ulp[i], table.is_single[i]);
        if (!right && report.wrong++ == 0)
          report.first_wrong = table.path + ":" + std::to_string(table.lines[record]) + ", " + table.output_names[i] +
                               ": got " + describe(answer, table.is_single[i]) + ", expected " +
                               describe(expected, table.is_single[i]);
      }
    }
  }
  return report;
}

}  // namespace draftproof::testing
