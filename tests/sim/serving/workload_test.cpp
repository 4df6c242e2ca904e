#include "sim/serving/workload.hpp"

#include <ctime>

#include "tests/support/test.hpp"

namespace {

struct Moments {
  double mean = 0.0;
  double variation = 0.0;
};

Moments moments_of(const std::vector<double>& values) {
  double sum = 0.0, squares = 0.0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / static_cast<double>(values.size())) / mean};
}

std::vector<double> gaps_s(const ArrivalOptions& arrivals, int count) {
  WorkloadOptions options;
  options.arrivals = arrivals;
  const Workload workload(options, 11);
  Workload::Arrivals times(workload);
  std::vector<double> gaps;
  std::int64_t before_ns = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t ns = times.next_ns();
    REQUIRE(ns >= before_ns);
    gaps.push_back(static_cast<double>(ns - before_ns) * 1e-9);
    before_ns = ns;
  }
  return gaps;
}

}  // namespace

// Standard errors at N = 200,000: of the mean 0.5 % at most, of the variation 1 %.
TEST_CASE("gaps between arrivals have the mean and the variation that were asked for") {
  const Moments poisson = moments_of(gaps_s({ArrivalKind::poisson, 50.0}, 200'000));
  CHECK(poisson.mean == Approx(0.02).epsilon(0.02));
  CHECK(poisson.variation == Approx(1.0).epsilon(0.03));
  for (const double variation : {0.4, 1.0, 2.0}) {
    const Moments gamma = moments_of(gaps_s({ArrivalKind::gamma, 50.0, variation}, 200'000));
    INFO(variation);
    CHECK(gamma.mean == Approx(0.02).epsilon(0.02));
    CHECK(gamma.variation == Approx(variation).epsilon(0.03));
  }
}

// Index of dispersion, variance / mean of the counts in windows of one second: 1 for a Poisson source; an on-off
// source has windows without arrivals and windows of 400.
TEST_CASE("an on-off source keeps the mean rate and is burstier than a Poisson source") {
  const auto dispersion = [](const ArrivalOptions& arrivals) {
    std::vector<double> counts(2000, 0.0);
    double now_s = 0.0;
    for (const double gap : gaps_s(arrivals, 220'000)) {
      now_s += gap;
      if (now_s < 2000.0) counts[static_cast<std::size_t>(now_s)] += 1.0;
    }
    REQUIRE(now_s > 2000.0);
    const Moments moments = moments_of(counts);
    CHECK(moments.mean == Approx(100.0).epsilon(0.05));
    return moments.variation * moments.variation * moments.mean;
  };
  CHECK(dispersion({ArrivalKind::poisson, 100.0}) == Approx(1.0).epsilon(0.15));
  CHECK(dispersion({ArrivalKind::on_off, 100.0, 1.0, 0.5, 1.5}) > 20.0);
}

TEST_CASE("drawn lengths have the mean and the variation that were asked for, and stay inside their bounds") {
  WorkloadOptions options;
  options.prompt = {LengthKind::lognormal, 500.0, 0.6};
  options.output = {LengthKind::exponential, 200.0};
  const Workload workload(options, 12);
  std::vector<double> prompts, outputs;
  for (std::int64_t i = 0; i < 200'000; ++i) {
    prompts.push_back(workload.lengths(i).prompt_len - 0.5);  // rounded up
    outputs.push_back(workload.lengths(i).output_len - 0.5);
  }
  CHECK(moments_of(prompts).mean == Approx(500.0).epsilon(0.01));
  CHECK(moments_of(prompts).variation == Approx(0.6).epsilon(0.02));
  CHECK(moments_of(outputs).mean == Approx(200.0).epsilon(0.01));
  CHECK(moments_of(outputs).variation == Approx(1.0).epsilon(0.02));
  options.output = {LengthKind::lognormal, 200.0, 3.0, 16, 300};
  const Workload bounded(options, 12);
  bool least = false, most = false;
  for (std::int64_t i = 0; i < 2000; ++i) {
    const std::int32_t length = bounded.lengths(i).output_len;
    REQUIRE((length >= 16 && length <= 300));
    least = least || length == 16;
    most = most || length == 300;
  }
  CHECK((least && most));
}

TEST_CASE("recorded requests are read from CSV and JSONL as the public traces have them") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("ours.csv"), "arrival_s,prompt_len,output_len\n2.5,100,20\n3,50,1\n");
  write_whole_file(folder.file("azure.csv"),
                   "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.5000000,100,20\n"
                   "2023-11-17 00:00:00.0000000,50,1\n");
  write_whole_file(folder.file("burst.csv"),
                   "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,100,20,120,API\n"
                   "5.5,GPT-4,50,1,51,API\n");
  write_whole_file(folder.file("mooncake.jsonl"),
                   "{\"timestamp\": 1000, \"input_length\": 100, \"output_length\": 20, \"hash_ids\": [0]}\n\n"
                   "{\"timestamp\": 1500, \"input_length\": 50, \"output_length\": 1}\n");
  write_whole_file(folder.file("blanks.csv"), "arrival_s, prompt_len ,output_len\n2.5, 100, 20\r\n 3 ,50\t,1\n");
  for (const char* const name : {"ours.csv", "blanks.csv", "azure.csv", "burst.csv", "mooncake.jsonl"}) {
    const std::vector<RecordedArrival> rows = read_arrivals_file(folder.file(name)).requests;
    INFO(name);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].arrival_ns == 0);
    CHECK(rows[0].prompt_len == 100);
    CHECK(rows[0].output_len == 20);
    CHECK(rows[1].arrival_ns == 500'000'000);
    CHECK(rows[1].prompt_len == 50);
    CHECK(rows[1].output_len == 1);
  }
}

// Days since 1970 are the C library's, which the reader does not use.
TEST_CASE("every field of recorded requests is counted by hand, on dates over months and leap years") {
  const TemporaryFolder folder;
  std::string csv = "Response tokens,model,TIMESTAMP,Request tokens\n";
  std::vector<RecordedArrival> expected;
  std::int64_t first_s = 0;
  std::int32_t row = 0;
  for (const int year : {1970, 1999, 2000, 2023, 2024, 2090})
    for (int month = 0; month < 12; ++month)
      for (const int day : {1, 28}) {
        std::tm time{};
        time.tm_year = year - 1900, time.tm_mon = month, time.tm_mday = day;
        time.tm_hour = month, time.tm_min = 2 * month + 1, time.tm_sec = row % 60;
        std::array<char, 32> date{};
        std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M:%S", &time);
        const std::int64_t now_s = timegm(&time);
        if (row == 0) first_s = now_s;
        csv += std::to_string(7 + row) + ",m," + date.data() + ".25," + std::to_string(1000 - row) + "\n";
        expected.push_back({(now_s - first_s) * 1'000'000'000, 1000 - row, 7 + row});
        ++row;
      }
  write_whole_file(folder.file("dates.csv"), csv);
  std::string jsonl;
  for (const RecordedArrival& of : expected)
    jsonl += "{\"output_len\": " + std::to_string(of.output_len) +
             ", \"prompt_len\": " + std::to_string(of.prompt_len) +
             ", \"arrival_s\": " + std::to_string(of.arrival_ns / 1'000'000'000) + "}\n";
  write_whole_file(folder.file("seconds.jsonl"), jsonl);
  for (const char* const name : {"dates.csv", "seconds.jsonl"}) {
    INFO(name);
    const std::vector<RecordedArrival> found = read_arrivals_file(folder.file(name)).requests;
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto& [arrival_ns, prompt_len, output_len, turn_before] = found[i];
      CHECK(turn_before == -1);
      CHECK(arrival_ns == expected[i].arrival_ns);
      CHECK(prompt_len == expected[i].prompt_len);
      CHECK(output_len == expected[i].output_len);
    }
  }
}

namespace {

struct ReadTrace {
  std::vector<double> arrivals_ms;
  std::vector<std::int32_t> outputs;
  std::string unit;
  std::int64_t left_out = 0;
  bool operator==(const ReadTrace&) const = default;
};

ReadTrace read_trace(const std::string& text, const std::string& unit = "") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("a trace"), text);
  const ArrivalTrace trace = read_arrivals_file(folder.file("a trace"), unit);
  ReadTrace read{{}, {}, trace.unit, trace.left_out};
  for (const RecordedArrival& request : trace.requests) {
    read.arrivals_ms.push_back(static_cast<double>(request.arrival_ns) / 1e6);
    read.outputs.push_back(request.output_len);
  }
  return read;
}

std::string asked_for_unit(const std::string& text) {
  const std::string message = error_of(ErrorKind::input, [&] { read_trace(text); });
  CHECK_THAT(message, Contains("--time-unit s, ms, us or ns"));
  return message;
}

}  // namespace

// Rows of public traces, their times counted by hand.
TEST_CASE("the unit of a trace's times is known by its keys and its contents, whatever the file is called") {
  // Bailian's are seconds, with the same keys as Mooncake's milliseconds and two more.
  const std::string lengths = "\"input_length\": 521, \"output_length\": 132, \"hash_ids\": [1]}\n";
  const auto bailian = [&](const std::string& time) {
    return "{\"chat_id\": 159, \"parent_chat_id\": -1, \"timestamp\": " + time + ", " + lengths;
  };
  const auto mooncake = [&](const std::string& time) { return "{\"timestamp\": " + time + ", " + lengths; };
  CHECK(read_trace(bailian("61.114") + bailian("62.5") + bailian("121.114")) ==
        ReadTrace{{0.0, 1386.0, 60'000.0}, {132, 132, 132}, "s"});
  CHECK(read_trace(bailian("61") + bailian("121")).arrivals_ms == std::vector<double>{0.0, 60'000.0});
  CHECK(read_trace(mooncake("27482") + mooncake("30535")) == ReadTrace{{0.0, 3053.0}, {132, 132}, "ms"});
  CHECK_THAT(asked_for_unit(mooncake("61.114") + mooncake("62.5")), Contains("'timestamp' has fractions"));
  CHECK(read_trace(mooncake("61.114") + mooncake("62.5"), "s").arrivals_ms == std::vector<double>{0.0, 1386.0});
  // The same in a list, behind a byte order mark.
  CHECK(read_trace("\xEF\xBB\xBF[\n" + bailian("1") + ", " + bailian("2.5") + "]") ==
        ReadTrace{{0.0, 1500.0}, {132, 132}, "s"});

  const std::string vidur = "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,10,3\n2,11,4\n";
  CHECK(read_trace(vidur) == ReadTrace{{0.0, 1500.0}, {3, 4}, "s"});
  const std::string splitwise =
      "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
      "0,2,0,0.0,1,10,3\n1,2,0,0.25,1,11,4\n";
  CHECK(read_trace(splitwise) == ReadTrace{{0.0, 250.0}, {3, 4}, "s"});
  // Names say it, and counts since 1970.
  CHECK(read_trace("arrival_ms,prompt_len,output_len\n10,1,2\n25,1,2\n") == ReadTrace{{0.0, 15.0}, {2, 2}, "ms"});
  CHECK(read_trace("timestamp_us,prompt_len,output_len\n10,1,2\n2500010,1,2\n").arrivals_ms[1] == 2500.0);
  for (const auto& [zeros, unit] : {std::pair("", "s"), {"000", "ms"}, {"000000", "us"}, {"000000000", "ns"}})
    CHECK(read_trace(std::string("timestamp,input_length,output_length\n1715299200") + zeros + ",1,2\n1715299201" +
                     zeros + ",1,2\n") == ReadTrace{{0.0, 1000.0}, {2, 2}, unit});
}

TEST_CASE("a trace whose times could mean anything, or nothing that a server sees, is asked about") {
  const std::string head = "timestamp,input_length,output_length\n";
  CHECK_THAT(asked_for_unit(head + "5,1,2\n45,1,2\n"), Contains("'timestamp' does not say what it counts"));
  CHECK(read_trace(head + "5,1,2\n45,1,2\n", "ms").arrivals_ms[1] == 40.0);
  const auto burst = [](const std::string& a, const std::string& b) {
    return "Timestamp,Request tokens,Response tokens\n" + a + ",1,2\n" + b + ",1,2\n";
  };
  CHECK_THAT(asked_for_unit(burst("0", "5000000")), Contains("requests come 57.9 days after one another"));
  CHECK_THAT(asked_for_unit(burst("0", "0.0005")), Contains("2000 requests come a second"));
  CHECK(read_trace(burst("0", "5000000"), "ms").arrivals_ms[1] == 5e6);
  CHECK(read_trace(burst("0", "0.0005"), "s").arrivals_ms[1] == 0.5);
  CHECK(read_trace(burst("0", "0")).arrivals_ms[1] == 0.0);  // a batch
}

TEST_CASE("dates with zones are times of one clock") {
  const auto csv = [](const std::vector<std::string>& dates) {
    std::string text = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    for (const std::string& date : dates) text += date + ",2162,5\n";
    return text;
  };
  CHECK(read_trace(csv({"2024-05-10 00:00:00.009930+00:00", "2024-05-10 00:00:00.017335+00:00",
                        "2024-05-10 00:00:00.062200+00:00"})) == ReadTrace{{0.0, 7.405, 52.27}, {5, 5, 5}, "dates"});
  // One second apart each, over zones and the end of a leap day.
  CHECK(read_trace(csv({"2024-02-29T23:59:59Z", "2024-03-01 01:00:00+01:00", "2024-02-29 16:00:01-0800",
                        "2024-03-01 05:30:02 +05:30", "2024-03-01 00:00:03+00", "2024-03-01 00:00:04 UTC"}))
            .arrivals_ms == std::vector<double>{0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0});
  CHECK(read_trace("{\"timestamp\": \"2024-03-01T00:00:00.5Z\", \"input_tokens\": 1, \"output_tokens\": 2}\n"
                   "{\"timestamp\": \"2024-03-01T00:00:01Z\", \"input_tokens\": 1, \"output_tokens\": 2}\n") ==
        ReadTrace{{0.0, 500.0}, {2, 2}, "dates"});
  CHECK(read_trace("\"TIMESTAMP\",\"ContextTokens\",\"GeneratedTokens\"\n\"2024-03-01 00:00:00\",\"1\",\"2\"\n").unit ==
        "dates");
  CHECK_THAT(error_of(ErrorKind::input,
                      [&] {
                        read_trace(csv({"2024-03-01 00:00:00Z", "2024-03-01 00:00:01"}));
                      }),
             Contains(":3: its date has no zone, and that of line 2 has one; expected one in every date"));
  CHECK_THAT(error_of(ErrorKind::input,
                      [&] {
                        read_trace(csv({"2024-03-01 00:00:00", "2024-03-01 01:00:01+01"}));
                      }),
             Contains(":3: its date has a zone, and that of line 2 has none"));
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_trace(csv({"2024-03-01 00:00:00"}), "ms"); }),
             Contains("its times are dates, which count nothing; expected no --time-unit"));
}

TEST_CASE("requests that failed are counted and left out") {
  const std::string head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";
  CHECK(read_trace(head + "5,ChatGPT,472,18,490,log\n45,ChatGPT,1087,230,1317,log\n118,GPT-4,417,0,417,log\n"
                          "130,GPT-4,417,276,693,log\n") ==
        ReadTrace{{0.0, 40'000.0, 125'000.0}, {18, 230, 276}, "s", 1});
  // The first of all, and one without a prompt either.
  CHECK(read_trace(head + "5,m,1,0,1,l\n7,m,0,0,0,l\n9,m,1,2,3,l\n10,m,1,2,3,l\n") ==
        ReadTrace{{0.0, 1000.0}, {2, 2}, "s", 2});
  const auto nothing = [&] { read_trace(head + "5,m,1,0,1,l\n"); };
  CHECK_THAT(error_of(ErrorKind::input, nothing), Contains("no request with output tokens"));
}

TEST_CASE("later turns of a session come a delay after the end of the turn before") {
  const TemporaryFolder folder;
  const auto turn = [](const std::string& session, const std::string& time, int output) {
    return "{\"session_id\": \"" + session + "\", " + time +
           ", \"input_length\": 10, \"output_length\": " + std::to_string(output) + "}\n";
  };
  const std::string path = folder.file("turns");
  write_whole_file(path, turn("a", "\"timestamp\": 1000", 1) + turn("b", "\"timestamp\": 1500.5", 2) +
                             turn("a", "\"delay\": 250", 3) + turn("b", "\"delay_s\": 2", 0) +
                             turn("a", "\"delay\": 0", 4) + turn("b", "\"delay_s\": 3", 5));
  const ArrivalTrace trace = read_arrivals_file(path);
  CHECK(trace.unit == "ms");
  CHECK(trace.left_out == 1);
  CHECK(trace.later_turns == 3);
  CHECK(trace.seconds() == 0.5005);
  REQUIRE(trace.requests.size() == 5);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{
      {-1, 0}, {-1, 500'500'000}, {0, 250'000'000}, {2, 0}, {1, 3'000'000'000}};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::pair(trace.requests[i].turn_before, trace.requests[i].arrival_ns) == expected[i]);

  WorkloadOptions options;
  options.num_requests = 9;
  options.arrivals.kind = ArrivalKind::recorded;
  options.arrivals.rate = 0.0;
  options.prompt.kind = options.output.kind = LengthKind::recorded;
  options.recorded = std::make_shared<const ArrivalTrace>(trace);
  const Workload workload(options, 1);
  // Requests 0 and 1 come by the clock, and in a second round, one mean gap later, 5 and 6.
  Workload::Arrivals times(workload);
  for (const auto& [request, ns] : {std::pair(0, 0), {1, 500'500'000}, {5, 1'001'000'000}, {6, 1'501'500'000}}) {
    CHECK(times.request() == request);
    CHECK(times.next_ns() == ns);
  }
  CHECK(workload.turn_after(0)->request == 2);
  CHECK(workload.turn_after(0)->delay_ns == 250'000'000);
  CHECK(workload.turn_after(5)->request == 7);
  CHECK_FALSE(workload.turn_after(6));  // beyond the last request
  CHECK_FALSE(workload.turn_after(3));
  write_whole_file(path, turn("a", "\"delay\": 250", 3));
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_arrivals_file(path); }),
             Contains(":1: it has none of the keys arrival, timestamp"));
}

TEST_CASE("a recorded request of JSON lines that is none is refused by its line") {
  const TemporaryFolder folder;
  const std::string path = folder.file("trace.jsonl");
  const auto refusal = [&](const std::string& text) {
    write_whole_file(path, "\n" + text);
    return error_of(ErrorKind::input, [&] { read_arrivals_file(path); }).substr(path.size());
  };
  const auto line = [](const std::string& arrival_s, const std::string& prompt, const std::string& output) {
    return "{\"arrival_s\": " + arrival_s + ", \"prompt_len\": " + prompt + ", \"output_len\": " + output + "}\n";
  };
  CHECK(refusal("[1, 2, 3]\n") == ":2: it is no JSON object; expected one a line");
  CHECK(refusal(line("1", "2", "3") + line("1", "\"x\"", "3")) == ":3: prompt_len is \"x\"; expected a number");
  CHECK(refusal("{\"arrival_s\": 1, \"prompt_len\": 2}\n") ==
        ":2: it has none of the keys output_len, output_length, GeneratedTokens, Response tokens, output_tokens, "
        "completion_tokens, token_size, num_decode_tokens; expected one of them");
  CHECK(refusal(line("4.1e9", "2", "3")) == ":2: the arrival is at 4100000000.0 s; expected seconds from -4e9 to 4e9");
  CHECK(refusal(line("1", "0", "3")) == ":2: the prompt has 0.0 tokens; expected a whole number from 1");
  CHECK(refusal(line("1", "2", "1.5")) == ":2: the output has 1.5 tokens; expected a whole number from 1");
  CHECK(refusal(line("2", "1", "3") + line("1", "1", "3")) ==
        ":3: the arrival lies before that of the request above; expected times that do not go back");
  CHECK(refusal(line("-3e9", "1", "3") + line("3e9", "1", "3")) ==
        ":3: the arrival lies 6000000000.0 s behind the first; expected at most 4e9 s");
}

TEST_CASE("a recorded request that is none is refused by its line") {
  const TemporaryFolder folder;
  const std::string path = folder.file("trace.csv");
  const auto refusal = [&](const std::string& text) {
    write_whole_file(path, text);
    return error_of(ErrorKind::input, [&] { read_arrivals_file(path); }).substr(path.size());
  };
  const std::string head = "arrival_s,prompt_len,output_len\n";
  CHECK(refusal("arrival_s,prompt_len\n1,2\n") ==
        ":1: it has no column of output_len, output_length, GeneratedTokens, Response tokens, output_tokens, "
        "completion_tokens, token_size, num_decode_tokens; expected one of them");
  CHECK(refusal(head + "1,2,3\n1,2\n") == ":3: it has 2 fields; expected 3, as in the header");
  CHECK(refusal(head + "1,x,3\n") == ":2: the prompt length is 'x'; expected a number");
  CHECK(refusal(head + "1,x\x1b\ty,3\n") == ":2: the prompt length is 'x\uFFFD\uFFFDy'; expected a number");
  CHECK(refusal(head + "1e300,1,3\n") == ":2: the arrival is at 1e+300 s; expected seconds from -4e9 to 4e9");
  CHECK(refusal(head + "9999-11-16 18:15:46.68,1,3\n") ==
        ":2: the arrival is '9999-11-16 18:15:46.68'; expected a number");
  for (const std::string date :
       {"2023-02-29 18:15:46", "2023-11-16 18:15:46+1", "2023-11-16 18:15:46 CET", "2023-11-16 18:15:46+15:00",
        "2023-11-16 18: 5:46", "2023-11--6 18:15:46", "2023-11-00 18:15:46", "2023-11-32 18:15:46",
        "2023-11-16 24:15:46", "2023-11-16 18:60:46"})
    CHECK(refusal(head + date + ",1,3\n") == ":2: the arrival is '" + date + "'; expected a number");
  CHECK(refusal(head + "1,0,3\n") == ":2: the prompt has 0.0 tokens; expected a whole number from 1");
  CHECK(refusal(head + "2,1,3\n1,1,3\n") ==
        ":3: the arrival lies before that of the request above; expected times that do not go back");
  CHECK(refusal(head) == ": it holds no request; expected at least one");
}

TEST_CASE("a recorded workload is replayed in order, begins again, and can be sped up") {
  auto rows = std::make_shared<ArrivalTrace>();
  rows->requests = {{0, 10, 1}, {1'000'000'000, 20, 2}, {3'000'000'000, 30, 3}};
  WorkloadOptions options;
  options.arrivals.kind = ArrivalKind::recorded;
  options.arrivals.rate = 0.0;
  options.prompt.kind = options.output.kind = LengthKind::recorded;
  options.recorded = rows;
  const Workload workload(options, 1);
  CHECK(workload.lengths(4).prompt_len == 20);
  CHECK(workload.lengths(4).output_len == 2);
  Workload::Arrivals times(workload);
  for (const std::int64_t ms : {0, 1000, 3000, 4500, 5500, 7500}) CHECK(times.next_ns() == ms * 1'000'000);
  options.arrivals.rate = 3.0 / 4.5 * 2.0;  // twice as fast
  const Workload faster(options, 1);
  Workload::Arrivals faster_times(faster);
  for (const std::int64_t ms : {0, 500, 1500, 2250}) CHECK(faster_times.next_ns() == ms * 1'000'000);
}

TEST_CASE("a workload that cannot be is refused by the name of its setting") {
  const auto refusal = [](auto change) {
    WorkloadOptions options;
    change(options);
    return error_of(ErrorKind::usage, [&] { Workload(options, 1); });
  };
  CHECK(refusal([](auto& o) { o.num_requests = 0; }) == "requests: there are 0; expected 1 or more");
  CHECK(refusal([](auto& o) { o.arrivals.rate = -1.0; }) == "arrival rate: it is -1.000000; expected a number above 0");
  CHECK(refusal([](auto& o) { o.arrivals.kind = ArrivalKind::recorded; }) ==
        "arrivals: no recorded requests were given; expected a file with them");
  CHECK(refusal([](auto& o) { o.output.least = 0; }).find("output lengths: its bounds are 0") == 0);
  const auto on_off = [](double rate, double seconds) {
    return [=](WorkloadOptions& o) {
      o.arrivals = {.kind = ArrivalKind::on_off, .rate = rate, .on_s = seconds, .off_s = seconds};
    };
  };
  CHECK(refusal(on_off(1.0, 1e-9)) ==
        "arrivals: the source is on and off for 2e-09 s, 5e+08 times between two requests; expected at most 1000 "
        "times: 0.001 s or more at this rate");
  WorkloadOptions often;
  on_off(1.0, 5.01e-4)(often);
  CHECK(Workload::Arrivals(Workload(often, 1)).next_ns() > 0);
}

TEST_CASE("a request that arrives beyond the simulated time is refused by its number, and those before it come") {
  const auto arrivals_before_refusal = [](const WorkloadOptions& options) {
    const Workload workload(options, 3);
    Workload::Arrivals arrivals(workload);
    std::int64_t last = 0;
    std::int64_t count = 0;
    const std::string refusal = error_of(ErrorKind::usage, [&] {
      for (; count < 100; ++count) {
        const std::int64_t ns = arrivals.next_ns();
        CHECK(ns >= last);
        last = ns;
      }
    });
    CHECK_THAT(refusal, Contains("arrivals: request " + std::to_string(count) + " arrives at ") &&
                            Contains("expected at most 4.61e+09 s of simulated time"));
    return count;
  };
  for (const ArrivalKind kind : {ArrivalKind::poisson, ArrivalKind::gamma, ArrivalKind::on_off}) {
    WorkloadOptions options;
    options.arrivals.kind = kind;
    options.arrivals.rate = 1e-9;
    options.arrivals.on_s = options.arrivals.off_s = 1e9;
    CHECK(arrivals_before_refusal(options) < 20);
  }
  WorkloadOptions recorded;
  recorded.arrivals = {.kind = ArrivalKind::recorded, .rate = 0.0};
  recorded.recorded =
      std::make_shared<const ArrivalTrace>(ArrivalTrace{{{0, 1, 1}, {1'000'000'000'000'000'000, 1, 1}}, "s"});
  CHECK(arrivals_before_refusal(recorded) == 5);  // at 0, 1e9, 2e9, 3e9 and 4e9 s
  recorded.arrivals.rate = 1e-9;
  CHECK(arrivals_before_refusal(recorded) == 5);
}
