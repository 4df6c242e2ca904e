// The arguments of every call as the coverage of the regression sees them: each takes one of a few kinds of values, and
// a call is described by which. An optional array is "given" only where it asks for something: with the values that
// mean "off", or where nothing looks at it, it counts as absent.
#pragma once

#include <string>
#include <vector>

#include "gpu/draftproof.h"
#include "gpu/regress/covering_array.hpp"

namespace draftproof::regress {

// One call as it was made: an index into the values of each argument.
struct CallArguments {
  std::string call;
  std::vector<ArgumentValues> arguments;
  std::vector<std::size_t> values;

  const std::string& value(const std::string& argument) const;
};

// Pointers of the arguments must be the host's, and valid.
CallArguments described(const draftproof_mass_pass_arguments& a, const draftproof_settings& settings);
CallArguments described(const draftproof_guidance_arguments& a, const draftproof_settings& settings);
CallArguments described(const draftproof_sample_arguments& a, const draftproof_settings& settings);
CallArguments described(const draftproof_logprobs_arguments& a, const draftproof_settings& settings);
// call: verify_chain, verify_block or verify_tree.
CallArguments described(const draftproof_verify_arguments& a, const draftproof_settings& settings,
                        const std::string& call);
CallArguments described(const draftproof_tree_mask_arguments& a, const draftproof_settings& settings);
CallArguments described(const draftproof_kv_commit_arguments& a, const draftproof_settings& settings);

// Every call's name and its arguments.
std::vector<std::string> call_names();
const std::vector<ArgumentValues>& arguments_of(const std::string& call);

// May the two values stand together in one call that looks at both?
bool can_meet(const std::string& argument, const std::string& value, const std::string& other,
              const std::string& other_value);

}  // namespace draftproof::regress
