#include "sim/serving/row_store.hpp"

#include <sqlite3.h>

#include "tests/support/test.hpp"

TEST_CASE("rows come back from the file bit for bit, in the order of their groups") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rows.sqlite");
  const std::vector<std::string> columns{"policy", "a \"quoted\" name", "x"};
  const Row first{std::string("b"), std::int64_t{-5}, 0.1 + 0.2};
  const Row second{std::string("a'; DROP TABLE rows; --"), std::monostate{}, std::numeric_limits<double>::denorm_min()};
  {
    RowStore store(path, "grid 1", "point", columns);
    store.add(7, {first});
    store.add(2, {first, second});
    store.add(2, {first});  // it is there
  }
  RowStore store(path, "grid 1", "point", columns);
  CHECK(store.groups() == std::vector<std::int64_t>{2, 7});
  CHECK(store.rows() == std::vector<Row>{second, first, first});
}

TEST_CASE("names that SQLite gives a meaning of its own are names of files") {
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  for (const std::string& name :
       {std::string(":memory:"), std::string("file:rows?mode=memory"), std::string("file:rows")}) {
    INFO(name);
    RowStore(name, "grid 1", "point", {"policy"}).add(3, {{std::string("off")}});
    CHECK(std::filesystem::exists(folder.file(name)));
    CHECK(RowStore(name, "grid 1", "point", {"policy"}).groups() == std::vector<std::int64_t>{3});
  }
  std::filesystem::current_path(before);
}

TEST_CASE("a damaged file is refused as that, and not touched") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rows.sqlite");
  {
    RowStore store(path, "grid 1", "point", {"policy"});
    for (int group = 0; group < 50; ++group) store.add(group, {{std::string(1000, 'x')}});
  }
  const std::string whole = read_whole_file(path);
  constexpr std::size_t kPage = 4096;
  REQUIRE(whole.size() >= 12 * kPage);
  std::vector<std::string> damaged{whole.substr(0, whole.size() - 3 * kPage)};
  for (const std::size_t page : {std::size_t{3}, whole.size() / kPage / 2, whole.size() / kPage - 1}) {
    damaged.push_back(whole);
    damaged.back().replace(page * kPage, kPage, kPage, '\x5a');
  }
  damaged.push_back(whole);
  damaged.back().replace(100, 8, 8, '\x5a');
  for (const std::string& file : damaged) {
    write_whole_file(path, file);
    CHECK(error_of(ErrorKind::input, [&] {
            RowStore(path, "grid 1", "point", {"policy"});
          }).find(path + ": it is damaged (") == 0);
    CHECK(read_whole_file(path) == file);
  }
  write_whole_file(path, whole);
  CHECK(RowStore(path, "grid 1", "point", {"policy"}).groups().size() == 50);
}

TEST_CASE("a file of something else is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rows.sqlite");
  RowStore(path, "grid 1", "point", {"policy"}).add(0, {{std::string("off")}});
  CHECK(error_of(ErrorKind::input, [&] { RowStore(path, "grid 2", "point", {"policy"}); }) ==
        path +
            ": it holds the rows of something else, or of files that have changed since; expected a file of the same "
            "grid, or a new one");
  for (const std::string& text : {std::string(4096, 'x'), std::string("x")}) {
    write_whole_file(folder.file("text"), text);
    CHECK(error_of(ErrorKind::input, [&] { RowStore(folder.file("text"), "grid", "point", {"policy"}); }) ==
          folder.file("text") + ": it is no SQLite file; expected a file of the same grid, or a new one");
    CHECK(read_whole_file(folder.file("text")) == text);
  }
}

TEST_CASE(
    "an SQLite file of somebody else, or with rows that are not as they were written, is refused and not touched") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& sql) {
    const std::string path = folder.file(name);
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
    REQUIRE(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(database);
    const std::string before = read_whole_file(path);
    const std::string message = error_of(ErrorKind::input, [&] {
      RowStore store(path, "grid 1", "point", {"policy"});
      store.groups();
    });
    CHECK(read_whole_file(path) == before);
    return message.substr(std::min(message.size(), path.size() + 2));
  };
  const std::string expected = "; expected a file of the same grid, or a new one";
  CHECK(refusal("other", "CREATE TABLE mine (x)") == "it is an SQLite file of another program" + expected);
  CHECK(refusal("rows", "CREATE TABLE rows (x)") == "it is an SQLite file of another program" + expected);
  CHECK(
      refusal("identity", "CREATE TABLE identity (text); CREATE TABLE rows (x); INSERT INTO identity VALUES (NULL)") ==
      "it holds the rows of something else, or of files that have changed since" + expected);
  CHECK(refusal("empty", "CREATE TABLE identity (text); CREATE TABLE rows (x)") ==
        "it holds the rows of something else, or of files that have changed since" + expected);
  RowStore(folder.file("own"), "grid 1", "point", {"policy"}).add(0, {{std::string("off")}});
  CHECK(refusal("own", "INSERT INTO rows VALUES ('one', 'p')") ==
        "a row's \"point\" is no whole number; expected rows as they were written");
}

TEST_CASE("a result file of a stranger runs nothing of its own, and is refused and not touched") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& sql) {
    const std::string path = folder.file(name);
    RowStore(path, "grid 1", "point", {"policy"}).add(0, {{std::string("off")}});
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
    REQUIRE(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(database);
    const std::string before = read_whole_file(path);
    const std::string message = error_of(
        ErrorKind::input, [&] { RowStore(path, "grid 1", "point", {"policy"}).add(1, {{std::string("on")}}); });
    CHECK(read_whole_file(path) == before);
    return message.substr(std::min(message.size(), path.size() + 2));
  };
  const std::string expected = ", which draftproof does not make; expected a file as it was written, or a new one";
  CHECK(refusal("trigger", "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END") ==
        "it has the trigger 't'" + expected);
  CHECK(refusal("view", "CREATE VIEW v AS SELECT * FROM rows") == "it has the view 'v'" + expected);
  CHECK(refusal("index", "CREATE INDEX i ON rows (policy)") == "it has the index 'i'" + expected);
  CHECK(refusal("column", "ALTER TABLE rows ADD COLUMN more AS (abs(point))") == "it has the table 'rows'" + expected);
  CHECK(refusal("table", "CREATE TABLE more (x CHECK (random() > 0))") == "it has the table 'more'" + expected);
}

TEST_CASE("a file is made with its first rows, also by two at once, and what cannot be made is known before") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rows.sqlite");
  RowStore first(path, "grid 1", "point", {"policy"});
  RowStore second(path, "grid 1", "point", {"policy"});
  RowStore other(path, "grid 2", "point", {"policy"});
  CHECK(first.groups().empty());
  CHECK(first.rows().empty());
  CHECK(folder.file_names().empty());
  first.add(0, {{std::string("off")}});
  second.add(1, {{std::string("off")}});
  CHECK(first.groups() == std::vector<std::int64_t>{0, 1});
  CHECK(error_of(ErrorKind::input, [&] {
          other.add(2, {{std::string("off")}});
        }).find("it holds the rows of something else") != std::string::npos);
  CHECK_THAT(
      error_of(ErrorKind::input, [&] { RowStore(folder.file("no/rows.sqlite"), "grid 1", "point", {"policy"}); }),
      Contains("no/rows.sqlite: cannot be written"));
}
