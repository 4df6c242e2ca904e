// Known answers in a text file, and the one loop that holds any backend against them: the CPU library today, a device
// tomorrow. The format is described in tests/vectors/make_schedule.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace draftproof::testing {

// Every number travels as 64 bits: an integer in two's complement, the bits of a binary64, or those of a binary32.
using Word = std::uint64_t;

// All records of one kind, record after record: a block of memory that a kernel can take as it is.
struct VectorTable {
  std::string kind;
  std::string path;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<unsigned> tolerance_ulp;  // of each output; 0: compared bit by bit
  std::vector<bool> is_single;          // of each output: a binary32, else an integer or a binary64
  std::vector<int> lines;               // of each record
  std::vector<Word> inputs;
  std::vector<Word> outputs;

  std::size_t records() const { return lines.size(); }
};

// Error (input): a line that does not fit the declaration of its kind, naming file and line.
std::vector<VectorTable> read_vectors(const std::string& path);

// Fills outputs [records][outputs of the kind] from inputs [records][inputs of the kind].
using Evaluate = std::function<void(std::size_t records, const Word* inputs, Word* outputs)>;
// A backend need not have every kind; what it lacks is counted.
using Backend = std::map<std::string, Evaluate>;

struct VectorReport {
  std::size_t checked = 0;  // records compared
  std::size_t skipped = 0;  // records of kinds that the backend lacks
  std::size_t wrong = 0;    // records with a wrong output
  std::string first_wrong;  // file, line, output, and both values in hexadecimal and decimal
};

VectorReport check_vectors(const std::vector<VectorTable>& tables, const Backend& backend);

}  // namespace draftproof::testing
