// Files that lie: each must be an error that names the file or tensor and says what would be right, and never a crash.
#include "base/archives/safetensors_header.hpp"

#include "base/archives/safetensors.hpp"
#include "base/printable.hpp"
#include "tests/support/test.hpp"

namespace {

std::string length_field(std::uint64_t length) {
  std::string field;
  for (int i = 0; i < 8; ++i) field += static_cast<char>(length >> (8 * i) & 0xff);
  return field;
}

std::string file_of(std::string_view json, std::size_t data_bytes) {
  return length_field(json.size()).append(json) + std::string(data_bytes, '\x01');
}

SafetensorsHeader parse(const std::string& content) {
  // A buffer of exactly this size on the heap, so that the address sanitizer sees a read beyond it.
  const std::vector<char> exact(content.begin(), content.end());
  return parse_safetensors_header("trace", std::as_bytes(std::span(exact)));
}

std::string complaint(const std::string& content) {
  return error_of(ErrorKind::input, [&] { parse(content); });
}

struct Lie {
  std::string json;
  std::size_t data_bytes;
  std::string message;  // must be in the error
};

void check(const std::vector<Lie>& lies) {
  for (const Lie& lie : lies) {
    CAPTURE(lie.json);
    CHECK_THAT(complaint(file_of(lie.json, lie.data_bytes)), Contains(lie.message));
  }
}

const std::string kValidJson = R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                               R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
constexpr std::size_t kValidDataBytes = 11;

}  // namespace

TEST_CASE("A header of correct promises is taken as it is") {
  const SafetensorsHeader header = parse(file_of(kValidJson, kValidDataBytes));
  REQUIRE(header.entries.size() == 2);
  CHECK(header.entries[1].name == "b");
  CHECK(header.entries[1].dtype == DType::u8);
  CHECK(header.entries[1].shape == std::vector<std::uint64_t>{3});
  CHECK(header.entries[1].begin_byte == 8);
  CHECK(header.entries[1].end_byte == 11);
  CHECK(header.metadata.at("k") == "v");
  CHECK(header.data_section_begin_byte == 8 + kValidJson.size());
  CHECK(parse(file_of("{}", 0)).entries.empty());
  // Any order of keys, white space and tensors; empty tensors between others.
  const SafetensorsHeader shuffled = parse(file_of(R"({ "z" : {"data_offsets":[4, 5],"dtype":"BOOL","shape":[]},
      "e1":{"dtype":"F64","shape":[0,7],"data_offsets":[4,4]},"e0":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},
      "a":{"shape":[2],"dtype":"F16","data_offsets":[0,4]}}  )",
                                                   5));
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : shuffled.entries) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"e0", "a", "e1", "z"});
}

TEST_CASE("A header length that the file cannot hold is an error with both numbers") {
  CHECK(complaint("") == "trace: is 0 bytes long; a safetensors file begins with an 8-byte header length");
  CHECK_THAT(complaint(std::string(7, '\0')), Contains("begins with an 8-byte header length"));
  CHECK_THAT(complaint(length_field(std::uint64_t{1} << 60) + "{}"),
             Contains("is no safetensors file: ") && Contains(" say 1152921504606846976; the format allows 100000000"));
  CHECK_THAT(complaint(length_field(UINT64_MAX) + "{}"), Contains(" say 18446744073709551615;"));
  CHECK_THAT(complaint(length_field(UINT64_MAX - 7) + "{}"), Contains("the format allows"));
  CHECK_THAT(complaint(length_field(100'000'001) + "{}"), Contains("the format allows"));
  CHECK_THAT(complaint(length_field(100'000'000) + "{}"), Contains("the file has 2 bytes after the length"));
  CHECK_THAT(complaint(length_field(3) + "{}"), Contains("3 bytes long but the file has 2"));
}

TEST_CASE("A header that is not one JSON object in UTF-8 is an error") {
  check({
      {"", 0, "trace: its header must begin with '{'"},
      {"[]", 0, "must begin with '{'"},
      {"\xef\xbb\xbf{}", 0, "must begin with '{'"},
      {"{", 0, "not JSON in UTF-8, at its byte 2"},
      {"{}x", 0, "not JSON in UTF-8, at its byte 3"},
      {"{\"a\":}", 0, "not JSON"},
      {"{\"a\xff\":1}", 0, "UTF-8"},
      {"{\"\xc0\x80\":1}", 0, "UTF-8"},
      {"{'a':1}", 0, "not JSON"},
      {"{\"a\":1e999}", 0, "not JSON"},
      {R"({"a":3})", 0, "the header's 'a' is the number 3; expected an object"},
      {R"({"a":"F32"})", 0, "the header's 'a' is the string 'F32'; expected an object"},
      {std::string("{}\0 ", 4), 0, "zero byte"},
      {std::string("{\"\0\":{}}", 8), 0, "zero byte"},
  });
}

TEST_CASE("A header nested a hundred thousand deep is an error and no stack overflow") {
  const std::string deep(100'000, '[');
  const std::string deep_objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text;
  }();
  check({
      {deep, 0, "must begin with '{'"},
      {"{\"a\":" + deep, 0, "'a' is an array"},
      {R"({"a":{"shape":)" + deep, 0, "tensor 'a': its shape holds an array"},
      {deep_objects, 0, "tensor 'a': has the unknown field 'a'"},
      {R"({"__metadata__":{"a":)" + deep_objects, 0, "'a' in __metadata__ is an object"},
  });
}

TEST_CASE("A repeated key is an error wherever it is") {
  const std::string tensor = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  check({
      {"{" + tensor + "," + tensor + "}", 1, "the header has the key 'a' twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "the header has the key '__metadata__' twice"},
      {R"({"__metadata__":{"k":"1","k":"1"}})", 0, "__metadata__ has the key 'k' twice"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
       "tensor 'a': has the field 'dtype' twice"},
      {R"({"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)" + tensor + "}", 1, "the key 'a' twice"},
  });
}

TEST_CASE("Metadata that is not text is an error") {
  check({
      {R"({"__metadata__":{"k":1}})", 0, "the value of 'k' in __metadata__ is the number 1; expected a string"},
      {R"({"__metadata__":{"k":["v"]}})", 0, "'k' in __metadata__ is an array"},
      {R"({"__metadata__":{"k":true}})", 0, "'k' in __metadata__ is true"},
      {R"({"__metadata__":"v"})", 0, "'__metadata__' is the string 'v'; expected an object"},
  });
}

TEST_CASE("A tensor with a missing or unknown or mistyped field is an error that names both") {
  check({
      {R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "trace: tensor 'a': lacks the field dtype"},
      {R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, "tensor 'a': lacks the field shape"},
      {R"({"a":{"dtype":"U8","shape":[1]}})", 1, "tensor 'a': lacks the field data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1, "tensor 'a': has the unknown field 'x'"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4,
       "tensor 'a': has the unknown dtype 'F31'; known are BOOL"},
      {R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype 'f32'"},
      {R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})", 4,
       "its dtype is the number 4; expected a string such as \"F32\""},
      {R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1,
       "its shape is the number 1; expected an array of non-negative integers"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
       "its shape holds the negative number -1; expected non-negative integers"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "its shape holds the number '1.0'"},
      {R"({"a":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}})", 1, "its shape holds true"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]}})", 1,
       "holds the number '18446744073709551616'"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1,
       "tensor 'a': has 1 data_offsets; expected [begin, end]"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1, "more than two data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 1, "its data_offsets holds the negative number -1"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1e0]}})", 1, "its data_offsets holds the number '1e0'"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":null}})", 1, "its data_offsets is null"},
  });
}

TEST_CASE("A shape that does not fit its bytes is an error with both sizes") {
  check({
      {R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]}})", 20,
       "trace: tensor 'a': its data_offsets say bytes 0 to 20, which is 20 bytes, but shape [2, 3] of F32 takes 24"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,0]}})", 0, "which is 0 bytes, but shape [] of F32 takes 4"},
      {R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,4]}})", 4, "shape [0] of F32 takes 0"},
      {R"({"a":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0, "overflows 64 bits"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "overflows 64 bits"},
      {R"({"a":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", 0, "overflows 64 bits"},
      {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,1]}})", 1,
       "1, ... (10 dimensions)] of U8 takes 2"},
  });
}

TEST_CASE("Offsets that run backwards or leave the data or overlap or leave a hole are errors") {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  check({
      {two("[4,0]", "[4,8]"), 8,
       "tensor 'a': its data_offsets say bytes 4 to 0; the end must not lie before the begin"},
      {two("[18446744073709551612,0]", "[0,4]"), 4, "tensor 'a': its data_offsets say bytes 18446744073709551612 to 0"},
      {two("[0,4]", "[4,8]"), 7,
       "tensor 'b': its data_offsets say bytes 4 to 8 but the data section has 7 bytes; is the file truncated?"},
      {two("[0,4]", "[18446744073709551611,18446744073709551615]"), 8,
       "tensor 'b': its data_offsets say bytes 18446744073709551611"},
      {two("[0,4]", "[3,7]"), 7, "tensor 'b': begins at byte 3 and overlaps tensor 'a', which ends at byte 4"},
      {two("[3,7]", "[0,4]"), 7, "tensor 'a': begins at byte 3 and overlaps tensor 'b', which ends at byte 4"},
      {two("[0,4]", "[0,4]"), 4, "tensor 'b': begins at byte 0 and overlaps tensor 'a'"},
      {two("[0,4]", "[5,9]"), 9, "tensor 'b': begins at byte 5; expected byte 4, as the format allows no hole"},
      {two("[1,5]", "[5,9]"), 9, "tensor 'a': begins at byte 1; expected byte 0"},
      {two("[0,4]", "[4,8]"), 9, "trace: the data section has 9 bytes but the tensors cover 8"},
      {"{}", 1, "the data section has 1 bytes but the tensors cover 0"},
  });
  // An empty tensor inside another one's bytes.
  check(
      {{R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
        4, "tensor 'e': begins at byte 2 and overlaps tensor 'a'"}});
}

TEST_CASE("A hostile name comes out of the message short and printable") {
  const std::string long_name(1'000'000, 'n');
  const std::string message = complaint(file_of("{\"" + long_name + "\":{}}", 0));
  CHECK_THAT(message, Contains("nnn...': lacks the field dtype"));
  CHECK(message.size() < 200);
  CHECK_THAT(complaint(file_of(R"({"\u001b[31m\n":{}})", 0)), Contains("tensor '\uFFFD[31m\uFFFD': lacks"));
  // 79 letters and a character of three bytes: cut before it, not inside.
  const std::string cut = complaint(file_of("{\"" + std::string(79, 'n') + "\u2713\u2713\":{}}", 0));
  CHECK_THAT(cut, Contains("n...': lacks"));
  CHECK(std::all_of(cut.begin(), cut.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  const std::string long_garbage = complaint(file_of("{\"" + std::string(100'000, '\xff'), 0));
  CHECK(long_garbage.size() < 600);
  CHECK(printable_line(long_garbage) == long_garbage);
}

TEST_CASE("Every truncation of a valid file is an error") {
  const TemporaryFolder folder;
  const std::string whole = file_of(kValidJson, kValidDataBytes);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    write_whole_file(folder.file("truncated"), whole.substr(0, size));
    CHECK_THROWS_WITH(SafetensorsFile::open(folder.file("truncated")), Contains("truncated: "));
  }
  write_whole_file(folder.file("truncated"), whole);
  CHECK_NOTHROW(SafetensorsFile::open(folder.file("truncated")));
}

TEST_CASE("Whatever byte of the header is changed the file opens within its bounds or is an input error") {
  const std::string whole = file_of(kValidJson, kValidDataBytes);
  int opened = 0;
  int refused = 0;
  const auto attempt = [&](const std::string& content) {
    try {
      const SafetensorsHeader header = parse(content);
      ++opened;
      for (const SafetensorsEntry& entry : header.entries) {
        const std::uint64_t data_bytes = content.size() - header.data_section_begin_byte;
        if (entry.begin_byte > entry.end_byte || entry.end_byte > data_bytes) FAIL("out of bounds: " << content);
      }
    } catch (const Error& error) {
      ++refused;
      if (error.kind() != ErrorKind::input) FAIL("not an input error: " << error.what());
    }
  };
  for (std::size_t i = 0; i < 8 + kValidJson.size(); ++i) {
    std::string changed = whole;
    for (int bit = 0; bit < 8; ++bit) {
      changed[i] = static_cast<char>(whole[i] ^ (1 << bit));
      attempt(changed);
    }
    for (const char value :
         {'\0', '\x7f', '\xff', '0', '9', '-', '.', 'e', '"', '\\', '{', '}', '[', ']', ',', ':', ' '}) {
      changed[i] = value;
      attempt(changed);
    }
    // And with one byte left out, or doubled, without the length field's knowing.
    attempt(std::string(whole).erase(i, 1));
    attempt(std::string(whole).insert(i, 1, whole[i]));
  }
  CHECK(opened > 100);  // a changed letter of a name is still a valid file
  CHECK(refused > 1000);
}

TEST_CASE("Things that are no files are errors that name them") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(SafetensorsFile::open(folder.file("missing")), Contains("missing: cannot be opened: No such file"));
  CHECK_THROWS_WITH(SafetensorsFile::open(folder.path()),
                    Contains(folder.path() + ": is a folder; expected a regular file"));
  CHECK_THROWS_WITH(SafetensorsFile::open("/dev/null"), Contains("is a device; expected a regular file"));
}
