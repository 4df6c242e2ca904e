// Samples of metrics, in the forms in which they are handed over:
//
//   vllm:spec_decode_num_drafts_total{engine="0"} 3806             Prometheus text (exposition format 0.0.4)
//   vllm:spec_decode_num_drafts (counter) = 3806                   vLLM's get_metrics() as its example prints it;
//                                                                  vectors are [..] by position
//   vllm:spec_decode_num_drafts_total{engine="0"} => 3806 @[...]   promtool
//   | vllm:spec_decode_num_drafts_total | 3806 |                   a table of Markdown
//   {"status":"success","data":{"resultType":"vector", ...}}       Prometheus' HTTP API, vector or matrix, one or one a
//                                                                  line
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace draftproof {

struct PrometheusSample {
  std::string name;
  std::map<std::string, std::string> labels;  // all
  double value = 0.0;
};

bool is_prometheus_api(std::string_view text);
// Calls take(sample, where) for each sample whose name is wanted, in the order of the file; others are skipped unread,
// as are cells of tables that are no numbers. Errors (input) naming the line: a sample without a number, malformed
// labels, an answer of the API without samples of named metrics.
void for_each_sample(std::string_view text, const std::string& name,
                     const std::function<bool(std::string_view)>& wanted,
                     const std::function<void(const PrometheusSample&, const std::string&)>& take);

}  // namespace draftproof
