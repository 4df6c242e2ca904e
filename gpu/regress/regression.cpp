#include "gpu/regress/regression.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <system_error>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/files/inputs_read.hpp"
#include "base/parallel.hpp"
#include "gpu/api.hpp"

namespace draftproof::regress {
namespace {

std::string hexadecimal(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// An element as an integer of its size, the most significant byte first.
std::string hexadecimal(const std::byte* element, std::size_t bytes) {
  std::string text = "0x";
  for (std::size_t i = bytes; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", std::to_integer<unsigned>(element[i]));
    text += digits;
  }
  return text;
}

template <class T>
std::string decimal(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  if constexpr (std::is_floating_point_v<T>) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", std::numeric_limits<T>::max_digits10, static_cast<double>(value));
    return text;
  } else {
    return std::to_string(value);
  }
}

std::string decimal(const Output& output, const std::byte* element) {
  const std::size_t bytes = output.element_bytes;
  switch (output.kind) {
    case ElementKind::bits:
      return {};
    case ElementKind::floating:
      return bytes == 4 ? decimal<float>(element) : bytes == 8 ? decimal<double>(element) : "";
    case ElementKind::signed_integer:
      return bytes == 1   ? decimal<std::int8_t>(element)
             : bytes == 2 ? decimal<std::int16_t>(element)
             : bytes == 4 ? decimal<std::int32_t>(element)
                          : decimal<std::int64_t>(element);
    case ElementKind::unsigned_integer:
      return bytes == 1   ? decimal<std::uint8_t>(element)
             : bytes == 2 ? decimal<std::uint16_t>(element)
             : bytes == 4 ? decimal<std::uint32_t>(element)
                          : decimal<std::uint64_t>(element);
  }
  return {};
}

Difference::Value value_of(const Output& output, std::size_t index) {
  const std::byte* const element = output.bytes.data() + index * output.element_bytes;
  return {hexadecimal(element, output.element_bytes), decimal(output, element)};
}

std::vector<Output> outputs_of(const RegressCase& one, draftproof_executor executor, const RegressionOptions& options,
                               int block_threads) {
  draftproof_settings settings{};
  settings.executor = executor;
  settings.block_threads = block_threads;
  settings.os_threads = options.os_threads;
  settings.seed = one.seed.value_or(options.seed);
  const std::unique_ptr<device::DeviceMemory> memory = device::memory_of(executor);
  CaseRun run(*memory, settings);
  one.run(run);
  return run.outputs();
}

std::string again(const RegressCase& one, const RegressionOptions& options) {
  const std::string executor = device::executor_name(options.executor);
  if (one.seed)
    return "; run it again: draftproof regress --executor " + executor + " --random 1 --seed " +
           std::to_string(*one.seed);
  const std::string order =
      options.executor == DRAFTPROOF_CUDA ? "" : " --seed " + std::to_string(options.seed) + " --threads 1";
  return "; run it again: draftproof regress --executor " + executor + " --filter " + one.name + order;
}

}  // namespace

std::string digest_of(const std::vector<Output>& outputs) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3;
  };
  for (const Output& output : outputs) {
    const std::string head =
        output.name + ":" + std::to_string(output.element_bytes) + ":" + std::to_string(output.bytes.size()) + "\n";
    take(head.data(), head.size());
    take(output.bytes.data(), output.bytes.size());
  }
  return hexadecimal(hash);
}

std::optional<Difference> difference_of(const std::vector<Output>& expected, const std::vector<Output>& found) {
  for (std::size_t o = 0; o < std::min(expected.size(), found.size()); ++o) {
    const Output& wanted = expected[o];
    const Output& other = found[o];
    if (wanted.name != other.name || wanted.bytes.size() != other.bytes.size()) return std::nullopt;
    const auto at = std::mismatch(wanted.bytes.begin(), wanted.bytes.end(), other.bytes.begin());
    if (at.first == wanted.bytes.end()) continue;
    const std::size_t index = static_cast<std::size_t>(at.first - wanted.bytes.begin()) / wanted.element_bytes;
    return Difference{wanted.name, static_cast<std::int64_t>(index), value_of(other, index), value_of(wanted, index)};
  }
  return std::nullopt;
}

std::string first_difference(const std::vector<Output>& expected, const std::vector<Output>& found) {
  if (const auto difference = difference_of(expected, found)) {
    const auto text = [](const Difference::Value& value) {
      return value.hex + (value.decimal.empty() ? "" : " (" + value.decimal + ")");
    };
    return difference->output + "[" + std::to_string(difference->index) + "] is " + text(difference->found) +
           ", the reference has " + text(difference->expected);
  }
  if (expected.size() != found.size()) return "the number of outputs differs";
  for (std::size_t o = 0; o < expected.size(); ++o)
    if (expected[o].name != found[o].name || expected[o].bytes.size() != found[o].bytes.size())
      return "output " + expected[o].name + " has another name or size: " + found[o].name;
  return {};
}

std::vector<CaseResult> run_case(const RegressCase& one, const RegressionOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<CaseResult> results;
  const std::vector<Output> expected = outputs_of(one, DRAFTPROOF_REFERENCE, options, 0);
  for (const int block_threads : one.block_threads) {
    CaseResult result;
    result.name = one.name;
    result.block_threads = block_threads;
    result.digest = digest_of(expected);
    if (one.host_only && options.executor == DRAFTPROOF_CUDA) {
      result.verdict = Verdict::skipped;
      result.finding = "it maps memory that only a host has";
    } else {
      const auto begin = Clock::now();
      try {
        const std::vector<Output> found = outputs_of(one, options.executor, options, block_threads);
        result.finding = first_difference(expected, found);
        result.difference = difference_of(expected, found);
      } catch (const Error& fault) {
        result.finding = fault.what();
      }
      result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      if (!result.finding.empty()) {
        result.verdict = Verdict::different;
        result.finding += again(one, options);
      }
    }
    results.push_back(std::move(result));
  }
  return results;
}

Digests read_digests(const std::filesystem::path& file) {
  constexpr std::uint64_t kGoldenBytesMax = std::uint64_t{1} << 24;
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown) && !unknown)
    throw input_error(file.string(), "the golden file is missing; `draftproof regress --update` writes it");
  const InputFile input(file.string(), kGoldenBytesMax);
  std::istringstream in{std::string(input.text())};
  Digests digests;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    const std::string where = file.string() + ", line " + std::to_string(number);
    if (line.size() < 18 || line[16] != ' ' || line.find_first_not_of("0123456789abcdef") != 16)
      throw input_error(where, "expected 16 hexadecimal digits, a space and the name of a case");
    if (!digests.emplace(line.substr(17), line.substr(0, 16)).second)
      throw input_error(where, "the case " + line.substr(17) + " has a line already");
  }
  return digests;
}

void write_digests(const std::filesystem::path& file, const Digests& digests) {
  allow_replacing(file.string());
  AtomicFile out(file.string());
  std::string text =
      "# Digests of the outputs of every regression case: the same for the reference, the CPU executor, every GPU and\n"
      "# every launch configuration. A changed line is a finding. Written by `draftproof regress --update`.\n";
  for (const auto& [name, digest] : digests) text += digest + " " + name + "\n";
  out.stream() << text;
  out.commit();
}

std::string name_of(Verdict verdict) {
  return verdict == Verdict::equal ? "equal" : verdict == Verdict::different ? "different" : "skipped";
}

std::int64_t RegressionReport::count(Verdict verdict) const {
  return std::count_if(results.begin(), results.end(), [&](const CaseResult& r) { return r.verdict == verdict; });
}

std::vector<std::string> RegressionReport::findings() const {
  std::vector<std::string> found;
  for (const CaseResult& result : results)
    if (result.verdict == Verdict::different) found.push_back(result.name + ": " + result.finding);
  return found;
}

std::vector<CallTally> RegressionReport::by_call() const {
  std::vector<CallTally> tallies;
  for (const CaseResult& result : results) {
    const std::string call = result.name.substr(0, result.name.find('/'));
    auto found = std::ranges::find(tallies, call, &CallTally::call);
    if (found == tallies.end()) {
      tallies.emplace_back().call = call;
      found = std::prev(tallies.end());
    }
    CallTally& tally = *found;
    ++(result.verdict == Verdict::equal       ? tally.equal
       : result.verdict == Verdict::different ? tally.different
                                              : tally.skipped);
    tally.seconds += result.seconds;
  }
  return tallies;
}

std::string RegressionReport::why_skipped() const {
  for (const CaseResult& result : results)
    if (result.verdict == Verdict::skipped) return result.finding;
  return {};
}

// On the CPU executor each case has one OS thread of its own, so that a fault shows again in the same words.
RegressionReport run_cases(const std::vector<RegressCase>& cases, const RegressionOptions& options, int threads,
                           const std::function<void()>& done) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  RegressionReport report;
  const std::string why = device::why_unavailable(options.executor);
  if (!why.empty()) {
    for (const RegressCase& one : cases)
      for (const int block_threads : one.block_threads)
        report.results.push_back({one.name, block_threads, Verdict::skipped, why, {}, 0.0, {}});
    return report;
  }
  std::vector<std::vector<CaseResult>> of_case(cases.size());
  parallel_for(static_cast<std::int64_t>(cases.size()), options.executor == DRAFTPROOF_CUDA ? 1 : threads,
               [&](std::int64_t i, int) {
                 const auto index = static_cast<std::size_t>(i);
                 of_case[index] = run_case(cases[index], options);
                 if (done) done();
               });
  for (std::vector<CaseResult>& more : of_case) std::move(more.begin(), more.end(), std::back_inserter(report.results));
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

void check_digests(RegressionReport& report, const std::vector<RegressCase>& cases, const Digests& golden,
                   bool every_case) {
  for (CaseResult& result : report.results) check_digest(result, golden);
  if (!every_case) return;
  for (const auto& [name, digest] : golden)
    if (std::none_of(cases.begin(), cases.end(), [&](const RegressCase& one) { return one.name == name; }))
      report.results.push_back(
          {name, 0, Verdict::different, "the golden file names a case that is not there", digest, 0.0, {}});
}

void check_digest(CaseResult& result, const Digests& golden) {
  if (result.verdict != Verdict::equal) return;
  const auto found = golden.find(result.name);
  if (found != golden.end() && found->second == result.digest) return;
  result.verdict = Verdict::different;
  result.finding = found == golden.end()
                       ? "the golden file has no digest of this case; `draftproof regress --update` adds it"
                       : "the outputs have digest " + result.digest + ", the golden file says " + found->second;
}

}  // namespace draftproof::regress
