#include "sim/import/log_text.hpp"

#include "sim/import/read_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

// A window of one request with so many tokens a step.
std::string window(double length) {
  return "[2026-01-05 10:00:01 TP0] Decode batch, #running-req: 1, accept len: " + std::to_string(length) +
         ", gen throughput (token/s): 178.86\n";
}

}  // namespace

TEST_CASE("of a long log the lines that are read are kept, with their numbers, whatever lies between them") {
  const TemporaryFolder folder;
  const std::string path = folder.file("server.log");
  std::string text = "speculative_num_steps=3\n";
  for (int i = 0; i < 50; ++i) {
    text += window(i % 2 == 0 ? 1.5 : 2.5);
    for (int j = 0; j < 20; ++j) text += "INFO 200 OK GET /v1/models, nothing of interest\n";
  }
  write_whole_file(path, text);
  const LogText whole = read_log_text(path);
  CHECK(whole.text == text);
  const LogText kept = read_log_text(path, 1000, 1 << 20);
  CHECK(kept.text.size() < text.size() / 3);
  CHECK(kept.lines_left_out == 0);
  CHECK(std::ranges::count(kept.text, '\n') == std::ranges::count(text, '\n'));
  CHECK(parse_acceptance(kept.text, "log").acceptance_length == parse_acceptance(text, "log").acceptance_length);
  // A broken line is named by its number in the file.
  write_whole_file(path, text + "Decode batch, #running-req: 1, accept len: two\n");
  CHECK_THAT(error_of(ErrorKind::input, [&] { parse_acceptance(read_log_text(path, 1000, 1 << 20).text, "log"); }),
             Catch::StartsWith("log, line " + std::to_string(std::ranges::count(text, '\n') + 1)));
  // Without room for all of them, those in the middle are left out and counted.
  const LogText ends = read_log_text(path, 1000, 3000);
  CHECK(ends.lines_left_out > 10);
  CHECK(ends.text.size() < 6000);
  CHECK(ends.text.starts_with("speculative_num_steps=3\n"));
  CHECK(ends.text.ends_with("accept len: two\n"));
  CHECK(std::ranges::count(ends.text, '\n') == std::ranges::count(text, '\n') + 1);
  // Another text is whole.
  const std::string table(3000, ',');
  write_whole_file(path, table);
  CHECK(read_log_text(path, 1000).text == table);
}
