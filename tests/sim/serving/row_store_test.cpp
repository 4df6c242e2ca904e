#include "sim/serving/row_store.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/io/temporary_folder.hpp"
#include "tests/support/error_of.hpp"

namespace draftproof {

TEST_CASE("rows come back from the file bit for bit, in the order of their groups") {
  const testing::TemporaryFolder folder;
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

TEST_CASE("a file of something else is refused") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("rows.sqlite");
  { RowStore store(path, "grid 1", "point", {"policy"}); }
  CHECK(error_of(ErrorKind::input, [&] { RowStore(path, "grid 2", "point", {"policy"}); }) ==
        path + ": it holds the rows of something else; expected a file of the same grid, or a new one");
  testing::write_whole_file(folder.file("text"), std::string(4096, 'x'));
  CHECK(error_of(ErrorKind::input, [&] {
          RowStore(folder.file("text"), "grid", "point", {"policy"});
        }).find("file is not a database; expected an SQLite file") != std::string::npos);
}

}  // namespace draftproof
