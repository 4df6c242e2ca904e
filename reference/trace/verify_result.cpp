#include "reference/trace/verify_result.hpp"

#include <algorithm>

#include "base/archives/safetensors.hpp"
#include "base/archives/sha256.hpp"
#include "base/error.hpp"

namespace draftproof {
namespace {

struct ResultTensor {
  const char* name;
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

template <class T>
ResultTensor vector_tensor(const char* name, const std::vector<T>& values) {
  return {name, DTypeOf<T>::value, {values.size()}, std::as_bytes(std::span(values))};
}

template <class T>
ResultTensor matrix_tensor(const char* name, const std::vector<T>& values, std::size_t rows, std::int64_t width) {
  return {name, DTypeOf<T>::value, {rows, static_cast<std::uint64_t>(width)}, std::as_bytes(std::span(values))};
}

std::vector<ResultTensor> tensors_of(const VerifyResult& result) {
  const std::size_t requests = result.num_accepted.size();
  std::vector<ResultTensor> tensors{matrix_tensor("output_tokens", result.output_tokens, requests, result.width),
                                    vector_tensor("num_accepted", result.num_accepted),
                                    vector_tensor("accepted", result.accepted),
                                    matrix_tensor("logprob", result.logprob, requests, result.width),
                                    matrix_tensor("raw_logprob", result.raw_logprob, requests, result.width),
                                    vector_tensor("kept_mass", result.kept_mass),
                                    vector_tensor("kept_count", result.kept_count)};
  if (!result.path.empty()) tensors.push_back(matrix_tensor("path", result.path, requests, result.width - 1));
  if (const std::size_t ids = result.token_id_logprob.size() / static_cast<std::size_t>(result.width); ids > 0) {
    tensors.push_back(matrix_tensor("token_id_logprob", result.token_id_logprob, ids, result.width));
    tensors.push_back(matrix_tensor("raw_token_id_logprob", result.raw_token_id_logprob, ids, result.width));
  }
  return tensors;
}

auto longest_request(std::span<const VerifyRequest> requests) {
  return std::max_element(requests.begin(), requests.end(), [](const VerifyRequest& a, const VerifyRequest& b) {
    return a.draft.size() < b.draft.size();
  });
}

}  // namespace

std::span<const Token> VerifyResult::tokens_of(std::int64_t request) const {
  const auto b = static_cast<std::size_t>(request);
  const auto first = b * static_cast<std::size_t>(width);
  return std::span(output_tokens).subspan(first, static_cast<std::size_t>(num_accepted[b]) + 1);
}

void require_result_fits(std::span<const VerifyRequest> requests) {
  const auto longest = longest_request(requests);
  if (longest == requests.end()) return;
  const auto count = static_cast<std::int64_t>(requests.size());
  std::int64_t ids = 0;
  for (const VerifyRequest& request : requests) ids += std::ssize(request.logprob_token_ids);
  const std::int64_t rows = std::max(count, ids);
  const auto width = static_cast<std::int64_t>(longest->draft.size()) + 1;
  if (width <= kResultEntriesMax / rows) return;
  throw input_error("request " + std::to_string(longest - requests.begin()),
                    "has " + std::to_string(width - 1) + " drafts, which makes " +
                        (ids > count ? "token_id_logprob [" : "output_tokens [") + std::to_string(rows) + ", " +
                        std::to_string(width) + "] for all requests; expected at most " +
                        std::to_string(kResultEntriesMax) + " entries, so give long requests a trace of their own");
}

VerifyResult collect_result(std::span<const VerifyRequest> requests, std::span<const Emission> emissions) {
  require_result_fits(requests);
  VerifyResult result;
  if (!requests.empty()) result.width = static_cast<std::int64_t>(longest_request(requests)->draft.size()) + 1;
  const auto width = static_cast<std::size_t>(result.width);
  result.output_tokens.assign(requests.size() * width, kPaddingToken);
  result.logprob.assign(requests.size() * width, 0.0f);
  result.raw_logprob.assign(requests.size() * width, 0.0f);
  const bool trees =
      std::any_of(requests.begin(), requests.end(), [](const VerifyRequest& r) { return !r.draft.is_chain(); });
  if (trees) result.path.assign(requests.size() * (width - 1), kPaddingToken);
  for (std::size_t b = 0; b < requests.size(); ++b) {
    const Emission& emission = emissions[b];
    if (trees)
      std::copy(emission.path.begin(), emission.path.end(),
                result.path.begin() + static_cast<std::ptrdiff_t>(b * (width - 1)));
    const auto offset = static_cast<std::ptrdiff_t>(b * width);
    std::copy(emission.tokens.begin(), emission.tokens.end(), result.output_tokens.begin() + offset);
    std::copy(emission.logprobs.begin(), emission.logprobs.end(), result.logprob.begin() + offset);
    std::copy(emission.raw_logprobs.begin(), emission.raw_logprobs.end(), result.raw_logprob.begin() + offset);
    result.num_accepted.push_back(static_cast<std::int32_t>(emission.num_accepted));
    result.draft_len.push_back(static_cast<std::int32_t>(requests[b].draft.size()));
    const std::size_t first_draft = result.accepted.size();
    result.accepted.resize(first_draft + requests[b].draft.tokens.size());
    for (const std::int32_t node : emission.path) result.accepted[first_draft + static_cast<std::size_t>(node)] = 1;
    result.kept_mass.insert(result.kept_mass.end(), emission.kept_mass.begin(), emission.kept_mass.end());
    for (const std::int64_t count : emission.kept_count) result.kept_count.push_back(static_cast<std::int32_t>(count));
    const std::span<const Token> ids = requests[b].logprob_token_ids;
    result.logprob_token_ids.emplace_back(ids.begin(), ids.end());
    const std::size_t first_id = result.token_id_logprob.size();
    result.token_id_logprob.resize(first_id + ids.size() * width, 0.0f);
    result.raw_token_id_logprob.resize(first_id + ids.size() * width, 0.0f);
    for (std::size_t i = 0; i < emission.token_id_logprobs.size(); ++i) {
      const std::size_t place = first_id + i % ids.size() * width + i / ids.size();
      result.token_id_logprob[place] = emission.token_id_logprobs[i];
      result.raw_token_id_logprob[place] = emission.raw_token_id_logprobs[i];
    }
  }
  return result;
}

std::string digest_of(const VerifyResult& result) {
  Sha256 digest;
  for (const ResultTensor& tensor : tensors_of(result)) digest.update(tensor.bytes);
  return digest.hex_digest();
}

void write_result(const std::string& path, const VerifyResult& result,
                  const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer;
  for (const ResultTensor& tensor : tensors_of(result))
    writer.add(tensor.name, tensor.dtype, tensor.shape, tensor.bytes);
  for (const auto& [key, value] : metadata) writer.metadata(key, value);
  writer.write(path);
}

}  // namespace draftproof
