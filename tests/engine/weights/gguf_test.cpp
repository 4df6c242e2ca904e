// GGUF files: right ones are read as they were written, and every lie is one error that names it.
#include "engine/weights/gguf.hpp"

#include "tests/engine/weights/gguf_builder.hpp"
#include "tests/support/test.hpp"

namespace {

const std::vector<float> kNine = {0, 1, 2, 3, 4, 5, 6, 7, 8};

GgufBuilder small_file() {
  GgufBuilder builder;
  builder.string("general.architecture", "llama").u32("answer", 42).f32("half", 0.5F).boolean("yes", true);
  builder.strings("words", std::vector<std::string>{"one", "", "three"});
  builder.numbers<std::int32_t>("signed", GgufType::i32, std::vector<std::int32_t>{-1, 2});
  builder.numbers<float>("scores", GgufType::f32, std::vector<float>{-1.5F, 0.25F});
  builder.f32_tensor("nine", {3, 3}, kNine);
  builder.tensor("codes", {32, 2}, 8, std::string(68, 'q'));
  return builder;
}

std::string failure_of(const GgufBuilder& builder) {
  const std::string bytes = builder.bytes();
  return error_of(ErrorKind::input, [&] { GgufFile::parse("m.gguf", as_file(bytes)); });
}

// Error message for the small file after one change.
std::string failure_after(const std::function<void(GgufBuilder&)>& change) {
  GgufBuilder builder = small_file();
  change(builder);
  return failure_of(builder);
}

TEST_CASE("a GGUF file gives back the metadata and tensors that were written") {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufBuilder builder = small_file();
    builder.version = version;
    const TemporaryFolder folder;
    write_whole_file(folder.file("m.gguf"), builder.bytes());
    const GgufFile file = GgufFile::open(folder.file("m.gguf"));
    CHECK(file.version() == version);
    const GgufMetadata& metadata = file.metadata();
    CHECK(metadata.string("general.architecture") == "llama");
    CHECK(metadata.integer("answer") == 42);
    CHECK(metadata.number("answer") == 42.0);
    CHECK(metadata.number("half") == 0.5);
    CHECK(metadata.boolean("yes") == true);
    CHECK(metadata.strings("words").value() == std::vector<std::string_view>{"one", "", "three"});
    CHECK(metadata.integers("signed").value() == std::vector<std::int64_t>{-1, 2});
    CHECK(metadata.floats("scores").value() == std::vector<float>{-1.5F, 0.25F});
    CHECK_FALSE(metadata.string("absent"));
    CHECK_FALSE(metadata.strings("absent"));

    REQUIRE(file.tensors().size() == 2);
    const GgufTensor* const nine = file.find("nine");
    REQUIRE(nine != nullptr);
    CHECK(nine->kind == TensorKind::f32);
    CHECK(nine->shape == std::vector<std::int64_t>{3, 3});
    CHECK(std::memcmp(nine->bytes.data(), kNine.data(), 36) == 0);
    const GgufTensor* const codes = file.find("codes");
    REQUIRE(codes != nullptr);
    CHECK(codes->kind == TensorKind::q8_0);
    CHECK(codes->shape == std::vector<std::int64_t>{2, 32});  // rows first
    CHECK(codes->bytes.size() == 68);
    CHECK(reinterpret_cast<std::uintptr_t>(codes->bytes.data()) % 32 == 0);
    CHECK(file.find("none") == nullptr);
  }
}

TEST_CASE("a GGUF file may have any alignment that the format allows") {
  for (const std::uint64_t alignment : {8U, 64U, 4096U}) {
    GgufBuilder builder = small_file();
    builder.u32("general.alignment", static_cast<std::uint32_t>(alignment));
    builder.alignment = alignment;
    const std::string bytes = builder.bytes();
    const GgufFile file = GgufFile::parse("m.gguf", as_file(bytes));
    CHECK(file.find("codes")->bytes.front() == std::byte{'q'});
  }
  CHECK_THAT(failure_after([](GgufBuilder& b) { b.u32("general.alignment", 24); }),
             Contains("m.gguf: metadata 'general.alignment' is 24; expected a power of two from 8"));
}

TEST_CASE("a value of another type than the reader needs is an error that names both") {
  const std::string bytes = small_file().bytes();
  const GgufFile file = GgufFile::parse("m.gguf", as_file(bytes));
  const auto failure = [&](auto get) { return error_of(ErrorKind::input, [&] { get(file.metadata()); }); };
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.integer("general.architecture"); }),
             Contains("m.gguf: metadata 'general.architecture' is of type string; expected an integer"));
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.string("answer"); }),
             Contains("metadata 'answer' is of type u32; expected a string"));
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.strings("answer"); }),
             Contains("metadata 'answer' is of type u32; expected an array"));
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.strings("signed"); }),
             Contains("metadata 'signed' is of type array of i32; expected an array of string"));
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.floats("signed"); }), Contains("expected an array of f32"));
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.integers("words"); }), Contains("expected an array of int"));
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.boolean("half"); }), Contains("expected a bool"));
  CHECK_THAT(failure([](const GgufMetadata& m) { return m.number("yes"); }), Contains("expected a number"));
}

TEST_CASE("a GGUF file that is cut anywhere is an error that names the file") {
  const std::string bytes = small_file().bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut = bytes.substr(0, length);
    const std::string error = error_of(ErrorKind::input, [&] { GgufFile::parse("m.gguf", as_file(cut)); });
    INFO(length);
    CHECK(error.starts_with("m.gguf: "));
  }
}

TEST_CASE("a GGUF file of another format, version or byte order is refused") {
  std::string bytes = small_file().bytes();
  const auto failure = [&] { return error_of(ErrorKind::input, [&] { GgufFile::parse("m.gguf", as_file(bytes)); }); };
  bytes[0] = 'X';
  CHECK_THAT(failure(), Contains("does not begin with 'GGUF'"));
  CHECK_THAT(failure_after([](GgufBuilder& b) { b.version = 1; }), Contains("is of GGUF version 1; expected 2 or 3"));
  CHECK_THAT(failure_after([](GgufBuilder& b) { b.version = 4; }), Contains("is of GGUF version 4; expected 2 or 3"));
  CHECK_THAT(failure_after([](GgufBuilder& b) { b.version = 0x03000000; }), Contains("big-endian"));
}

TEST_CASE("counts and lengths that the file cannot hold are refused at once") {
  const std::uint64_t huge = ~std::uint64_t{0};
  CHECK_THAT(failure_after([=](GgufBuilder& b) { b.num_tensors = huge; }),
             Contains("is said to have 18446744073709551615 tensors, more than"));
  CHECK_THAT(failure_after([=](GgufBuilder& b) { b.num_metadata = huge; }), Contains("metadata entries, more than"));
  const auto array = [](GgufType element, std::uint64_t count) {
    return [=](GgufBuilder& b) {
      b.metadata("long", GgufType::array,
                 ByteWriter().number(static_cast<std::uint32_t>(element)).number(count).bytes());
    };
  };
  CHECK_THAT(failure_after(array(GgufType::u64, huge / 4)),
             Contains("metadata 'long' has 4611686018427387903 elements"));
  CHECK_THAT(failure_after(array(GgufType::string, huge)), Contains("metadata 'long'"));
  CHECK_THAT(
      failure_after([=](GgufBuilder& b) { b.metadata("text", GgufType::string, ByteWriter().number(huge).bytes()); }),
      Contains("ends inside metadata 'text'"));
}

TEST_CASE("metadata of unknown types, twice the same key and bools that are none are refused") {
  CHECK_THAT(failure_after([](GgufBuilder& b) { b.metadata("k", static_cast<GgufType>(13), "x"); }),
             Contains("metadata 'k' has type 13; expected 0 (u8) to 12 (f64)"));
  CHECK_THAT(failure_after([](GgufBuilder& b) { b.u32("answer", 43); }), Contains("has the key 'answer' twice"));
  CHECK_THAT(failure_after([](GgufBuilder& b) { b.metadata("k", GgufType::boolean, "\2"); }),
             Contains("metadata 'k' holds the bool 2"));
  ByteWriter nested;
  for (int depth = 0; depth < 9; ++depth) nested.number(std::uint32_t{9}).number(std::uint64_t{1});
  CHECK_THAT(failure_after([&](GgufBuilder& b) { b.metadata("k", GgufType::array, nested.bytes()); }),
             Contains("nests arrays deeper than 4"));
}

TEST_CASE("tables of integers are read as what they are, and no weights") {
  GgufBuilder builder;
  const std::int64_t table[] = {1, -2, 1'000'000'000'000};
  builder.tensor("d2t", {3}, 27, std::string(reinterpret_cast<const char*>(table), sizeof table));
  builder.tensor("small", {2}, 24, "ab");
  const std::string bytes = builder.bytes();
  const GgufFile file = GgufFile::parse("m.gguf", as_file(bytes));
  REQUIRE(file.find("d2t") != nullptr);
  CHECK(file.find("d2t")->integers == DType::i64);
  CHECK(file.find("d2t")->bytes.size() == sizeof table);
  CHECK(std::memcmp(file.find("d2t")->bytes.data(), table, sizeof table) == 0);
  CHECK(file.find("small")->integers == DType::i8);
  CHECK(file.find("small")->shape == std::vector<std::int64_t>{2});
  builder.tensors[0].kind = 28;
  const std::string doubles = builder.bytes();
  CHECK_THAT(error_of(ErrorKind::input, [&] { GgufFile::parse("m.gguf", as_file(doubles)); }),
             Contains("tensor 'd2t': is of kind F64; expected one of F32"));
}

TEST_CASE("tensors whose shape, kind, place or name lies are refused by name") {
  const auto tensor = [](auto change) { return failure_after([&](GgufBuilder& b) { change(b.tensors[1]); }); };
  using Tensor = GgufBuilder::Tensor;
  using Dimensions = std::vector<std::uint64_t>;
  for (const auto& [dimensions, error] :
       {std::pair(Dimensions{}, "m.gguf: tensor 'codes': has 0 dimensions"),
        {{32, 1, 1, 1, 2}, "has 5 dimensions; expected 1 to 4"},
        {{32, 0}, "dimension 1 of its shape is 0"},
        {{std::uint64_t{1} << 40, std::uint64_t{1} << 40}, "product is at most 2^56"},
        {{64, 2}, "is the file truncated?"},
        {{48, 2}, "has rows of 48 values; expected a multiple of 32, the block length of Q8_0"}})
    CHECK_THAT(tensor([&](Tensor& t) { t.dimensions = dimensions; }), Contains(error));
  CHECK_THAT(tensor([](Tensor& t) { t.kind = 11; }), Contains("is of kind Q3_K; expected one of F32, F16, BF16, Q8_0"));
  CHECK_THAT(tensor([](Tensor& t) { t.kind = 4; }), Contains("is of the unknown kind 4; expected one of"));
  CHECK_THAT(tensor([](Tensor& t) { t.offset = 65; }), Contains("begins at byte 65 of the data; expected a multiple"));
  CHECK_THAT(tensor([](Tensor& t) { t.offset = ~std::uint64_t{31}; }), Contains("is the file truncated?"));
  CHECK_THAT(
      tensor([](Tensor& t) { t.offset = 32; }),
      Contains("tensor 'codes': begins at byte 32 of the data and overlaps tensor 'nine', which ends at byte 36"));
  CHECK_THAT(tensor([](Tensor& t) { t.name = "nine"; }), Contains("tensor 'nine': is there twice"));
}

}  // namespace
