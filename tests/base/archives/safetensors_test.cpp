// Reading what the Python package wrote, writing what it reads. The malformed files are in safetensors_header_test.cpp.
// The fixtures come from make_safetensors_fixtures.py; the values below are repeated here by hand.
#include "base/archives/safetensors.hpp"

#include "base/archives/sha256.hpp"
#include "tests/support/test.hpp"

namespace {

const std::string kFixtures = std::string(DRAFTPROOF_SOURCE_DIR) + "/tests/vectors/safetensors/";
const std::string kQuotedName = "\u00e9t\u00e9 \u2192 \"quoted\\name\"";
using Shape = std::vector<std::uint64_t>;

template <class T>
std::vector<T> elements(const TensorView& tensor) {
  const std::span<const T> span = tensor.as<T>();
  return {span.begin(), span.end()};
}

std::vector<int> byte_values(const TensorView& tensor) {
  std::vector<int> values;
  for (const std::byte byte : tensor.bytes) values.push_back(std::to_integer<int>(byte));
  return values;
}

template <class T>
std::vector<int> bit_patterns(const TensorView& tensor) {
  std::vector<int> patterns;
  for (const T value : tensor.as<T>()) patterns.push_back(value.bits);
  return patterns;
}

// Adds to a new writer every tensor and metadata text of a file.
SafetensorsWriter copy_of(const SafetensorsFile& file, std::vector<TensorView>& keep_alive) {
  SafetensorsWriter writer;
  for (const std::string& name : file.names()) keep_alive.push_back(file.tensor(name));
  // Added last to first: the order in the file must be the writer's own.
  for (auto tensor = keep_alive.rbegin(); tensor != keep_alive.rend(); ++tensor) {
    writer.add(tensor->name, tensor->dtype, tensor->shape, tensor->bytes);
  }
  for (const auto& [key, value] : file.metadata()) writer.metadata(key, value);
  return writer;
}

}  // namespace

TEST_CASE("A file of the Python package with every dtype reads back value by value") {
  const SafetensorsFile file = SafetensorsFile::open(kFixtures + "every_dtype.safetensors");
  CHECK(file.names().size() == kDTypes.size());
  CHECK(file.metadata().empty());

  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(elements<double>(file.tensor("f64")) == std::vector<double>{0.1, -infinity});
  CHECK(file.tensor("f32").shape == Shape{2, 3});
  CHECK(elements<float>(file.tensor("f32")) == std::vector<float>{1.5f, -2.25f, 0x1p-149f, 0.0f, -0.0f, 3.0e38f});
  CHECK(std::signbit(file.tensor("f32").as<float>()[4]));
  CHECK(bit_patterns<Float16>(file.tensor("f16")) == std::vector<int>{0x3c00, 0x7bff, 0x0001});
  CHECK(bit_patterns<BFloat16>(file.tensor("bf16")) == std::vector<int>{0x3f80, 0xc040, 0x0001});
  CHECK(to_f32(file.tensor("bf16").as<BFloat16>()[1]) == -3.0f);
  CHECK(file.tensor("f8_e4m3").dtype == DType::f8_e4m3);
  CHECK(byte_values(file.tensor("f8_e4m3")) == std::vector<int>{0x38, 0x7e});
  CHECK(file.tensor("f8_e5m2").dtype == DType::f8_e5m2);
  CHECK(byte_values(file.tensor("f8_e5m2")) == std::vector<int>{0x3c, 0x7b});
  CHECK(elements<std::int64_t>(file.tensor("i64")) == std::vector<std::int64_t>{INT64_MIN, INT64_MAX});
  CHECK(elements<std::uint64_t>(file.tensor("u64")) == std::vector<std::uint64_t>{UINT64_MAX, 0});
  CHECK(elements<std::int32_t>(file.tensor("i32")) == std::vector<std::int32_t>{-1, INT32_MAX, INT32_MIN});
  CHECK(elements<std::uint32_t>(file.tensor("u32")) == std::vector<std::uint32_t>{UINT32_MAX});
  CHECK(elements<std::int16_t>(file.tensor("i16")) == std::vector<std::int16_t>{INT16_MIN, 258});
  CHECK(elements<std::uint16_t>(file.tensor("u16")) == std::vector<std::uint16_t>{UINT16_MAX, 258});
  CHECK(elements<std::int8_t>(file.tensor("i8")) == std::vector<std::int8_t>{-128, 127, 5});
  CHECK(elements<std::uint8_t>(file.tensor("u8")) == std::vector<std::uint8_t>{255, 0, 7});
  CHECK(file.tensor("bool").dtype == DType::boolean);
  CHECK(file.tensor("bool").shape == Shape{3, 1});
  CHECK(elements<std::uint8_t>(file.tensor("bool")) == std::vector<std::uint8_t>{1, 0, 1});
}

TEST_CASE("Scalars and empty tensors and names and texts beyond ASCII are read from the Python package") {
  const SafetensorsFile file = SafetensorsFile::open(kFixtures + "empty_and_scalar.safetensors");
  CHECK(file.tensor("scalar").shape.empty());
  CHECK(file.tensor("scalar").element_count() == 1);
  CHECK(elements<std::int32_t>(file.tensor("scalar")) == std::vector<std::int32_t>{-7});
  CHECK(file.tensor("empty").shape == Shape{0});
  CHECK(file.tensor("empty").as<float>().empty());
  CHECK(file.tensor("empty_rows").shape == Shape{3, 0, 2});
  CHECK(file.tensor("empty_rows").as<std::int64_t>().empty());
  REQUIRE(file.contains(kQuotedName));
  CHECK(elements<std::uint8_t>(file.tensor(kQuotedName)) == std::vector<std::uint8_t>{1, 2});
  CHECK(file.metadata() == std::map<std::string, std::string>{{"verifier", "chain \u2713"}});

  const SafetensorsFile no_tensors = SafetensorsFile::open(kFixtures + "only_metadata.safetensors");
  CHECK(no_tensors.names().empty());
  CHECK(no_tensors.metadata().at("version") == "0.1");
  CHECK(no_tensors.metadata().at("note") == "line\nbreak");
}

TEST_CASE("A tensor that is missing or of another dtype is an error that says what is there") {
  const std::string path = kFixtures + "empty_and_scalar.safetensors";
  const SafetensorsFile file = SafetensorsFile::open(path);
  CHECK_FALSE(file.contains("draft_tokens"));
  CHECK_THROWS_WITH(file.tensor("draft_tokens"),
                    Contains(path + ": tensor 'draft_tokens': is not in the file; it has ") && Contains("'scalar'"));
  CHECK_THROWS_WITH(file.tensor("scalar").as<std::int64_t>(), path + ": tensor 'scalar': has dtype I32; expected I64");
  CHECK_THROWS_WITH(file.tensor("scalar").as<std::uint8_t>(), Contains("has dtype I32; expected U8"));
  CHECK_THROWS_AS(file.tensor("scalar").as<float>(), Error);
}

TEST_CASE("Writing again what the Python package wrote gives the same bytes") {
  // So the order of tensors, the padding and the JSON are the package's own.
  const TemporaryFolder folder;
  for (const std::string name : {"every_dtype.safetensors", "empty_and_scalar.safetensors"}) {
    CAPTURE(name);
    std::vector<TensorView> keep_alive;
    copy_of(SafetensorsFile::open(kFixtures + name), keep_alive).write(folder.file(name));
    CHECK(read_whole_file(folder.file(name)) == read_whole_file(kFixtures + name));
  }
}

TEST_CASE("A file whose header has an odd length is read through aligned copies") {
  const TemporaryFolder folder;
  const std::array<float, 2> values = {1.5f, -2.5f};
  std::string json = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"F32","shape":[2],)"
                     R"("data_offsets":[1,9]}})";
  for (int padding = 0; padding < 8; ++padding) {
    CAPTURE(padding);
    std::string content(8, '\0');
    content[0] = static_cast<char>(json.size());
    REQUIRE(json.size() < 128);
    content += json + "\x07" + std::string(reinterpret_cast<const char*>(values.data()), sizeof values);
    write_whole_file(folder.file("odd"), content);
    const TensorView tensor = SafetensorsFile::open(folder.file("odd")).tensor("a");
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(float) == 0);
    CHECK(elements<float>(tensor) == std::vector<float>{1.5f, -2.5f});
    json += ' ';
  }
}

TEST_CASE("A tensor view outlives its file object and the replacement of the file") {
  const TemporaryFolder folder;
  const std::vector<std::int32_t> before = {1, 2, 3};
  const std::vector<std::int32_t> after = {4, 5, 6};
  const auto write = [&](const std::vector<std::int32_t>& values) {
    SafetensorsWriter writer;
    writer.add("t", DType::i32, {3}, std::as_bytes(std::span(values)));
    writer.write(folder.file("t"));
  };
  write(before);
  const TensorView old_view = SafetensorsFile::open(folder.file("t")).tensor("t");
  write(after);
  CHECK(elements<std::int32_t>(old_view) == before);
  CHECK(elements<std::int32_t>(SafetensorsFile::open(folder.file("t")).tensor("t")) == after);
  CHECK(folder.file_names() == std::vector<std::string>{"t"});
}

TEST_CASE("The bytes of an open file are those on the disk") {
  const std::string path = kFixtures + "every_dtype.safetensors";
  CHECK(sha256_hex(SafetensorsFile::open(path).bytes()) == sha256_hex(read_whole_file(path)));
}

TEST_CASE("The safetensors writer refuses what would not be a valid file") {
  const TemporaryFolder folder;
  const std::array<float, 2> values{};
  const auto bytes = std::as_bytes(std::span(values));
  SafetensorsWriter writer;
  writer.add("p", DType::f32, {2, 1}, bytes);
  CHECK_THROWS_WITH(writer.add("p", DType::f32, {2}, bytes),
                    "tensor 'p': is already there; each name can be written once");
  CHECK_THROWS_WITH(writer.add("q", DType::f32, {3}, bytes),
                    "tensor 'q': has 8 bytes of data but shape [3] of F32 takes 12");
  CHECK_THROWS_WITH(writer.add("q", DType::f32, {1ull << 62, 0}, bytes), Contains("takes 2^64 or more"));
  CHECK_THROWS_WITH(writer.add("__metadata__", DType::f32, {2}, bytes), Contains("reserved name"));
  CHECK_THROWS_WITH(writer.write(folder.file("missing/file")), Contains("missing/file: cannot be written"));
  writer.metadata("key", "\xff");
  CHECK_THROWS_WITH(writer.write(folder.file("file")), Contains("file: ") && Contains("not UTF-8"));
  CHECK(folder.file_names().empty());
}

TEST_CASE("The Python package reads what we write") {
  if (run_command({"sh", "-c", "python3 -c 'import safetensors, numpy'"}).exit_code != 0) {
    WARN("SKIPPED: python3 with safetensors is not installed");
    return;
  }
  const TemporaryFolder folder;
  const std::string path = folder.file("ours.safetensors");
  const std::vector<float> logits = {1.5f, -std::numeric_limits<float>::infinity(), 0.25f, 2.0f};
  const std::vector<BFloat16> probs = {{0x3f80}, {0x3e80}};
  const std::vector<std::int32_t> tokens = {-1, 258};
  const std::vector<std::uint8_t> accepted = {1, 0, 1};
  const std::vector<std::uint64_t> seeds = {UINT64_MAX};
  SafetensorsWriter writer;
  writer.add("accepted", DType::boolean, {3}, std::as_bytes(std::span(accepted)));
  writer.add("target_logits", DType::f32, {2, 2}, std::as_bytes(std::span(logits)));
  writer.add("draft_probs", DType::bf16, {1, 2}, std::as_bytes(std::span(probs)));
  writer.add(kQuotedName, DType::i32, {2}, std::as_bytes(std::span(tokens)));
  writer.add("none", DType::i64, {0, 5}, {});
  writer.add("seed", DType::u64, {}, std::as_bytes(std::span(seeds)));
  writer.metadata("input_sha256", "abc");
  writer.metadata("note", "\u2713 \"line\"\nbreak");
  writer.write(path);

  const std::string program =
      "import sys, safetensors\n"
      "for name, t in sorted(safetensors.deserialize(open(sys.argv[1], \"rb\").read())):\n"
      "    print(ascii(name), t[\"dtype\"], t[\"shape\"], bytes(t[\"data\"]).hex())\n"
      "with safetensors.safe_open(sys.argv[1], framework=\"np\") as f:\n"
      "    print(ascii(sorted(f.metadata().items())))\n"
      "    print(f.get_tensor(\"target_logits\").tolist())\n";
  CHECK(run_command({"python3", "-c", program, path}).out ==
        "'accepted' BOOL [3] 010001\n"
        "'draft_probs' BF16 [1, 2] 803f803e\n"
        "'none' I64 [0, 5] \n"
        "'seed' U64 [] ffffffffffffffff\n"
        "'target_logits' F32 [2, 2] 0000c03f000080ff0000803e00000040\n"
        "'\\xe9t\\xe9 \\u2192 \"quoted\\\\name\"' I32 [2] ffffffff02010000\n"
        "[('input_sha256', 'abc'), ('note', '\\u2713 \"line\"\\nbreak')]\n"
        "[[1.5, -inf], [0.25, 2.0]]\n");
}
