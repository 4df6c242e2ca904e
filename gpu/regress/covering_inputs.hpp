// Inputs that have exactly the arguments that an assignment of a covering array asks for.
#pragma once

#include <map>
#include <string>

#include "gpu/regress/arguments.hpp"
#include "gpu/regress/distribution_inputs.hpp"

namespace draftproof::regress {

// The values of one call's arguments, by name.
class Assignment {
 public:
  Assignment(const std::vector<ArgumentValues>& arguments, const std::vector<std::size_t>& values);

  const std::string& operator[](const std::string& argument) const { return values_.at(argument); }
  bool has(const std::string& argument) const { return values_.at(argument) == "given"; }
  bool is(const std::string& argument, const std::string& value) const { return values_.at(argument) == value; }
  bool knows(const std::string& argument) const { return values_.contains(argument); }

  std::int64_t vocab_size() const;
  int block_threads() const;
  // Of "f32", "f16" or "bf16"; f32 where the matrix is absent.
  std::int32_t dtype(const std::string& matrix) const;
  // Of "exact", "padded" or "odd"; exact where the matrix is absent.
  std::int64_t row_stride(const std::string& matrix) const;

 private:
  std::map<std::string, std::string> values_;
};

// Parameters and constraints as assigned. The first request asks for something of everything that is given, others for
// something else or nothing. rows: of the masks; drafts_max: the longest draft that a history goes on with.
DistributionInputs covering_lists(std::uint64_t seed, const Assignment& given, std::int64_t rows, std::int64_t requests,
                                  std::int64_t drafts_max);

// Temperature and filters of a drafter.
DistributionInputs covering_draft_parameters(const Assignment& given, std::int64_t requests);

// A NaN in some row of the first request, whose policy takes it for -infinity.
void put_nan(DistributionInputs& in, std::int64_t row);

}  // namespace draftproof::regress
