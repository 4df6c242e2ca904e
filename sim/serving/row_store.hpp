// Rows of results in an SQLite file that grows: each group of rows (a point of a sweep, an experiment) is there whole
// or not at all, also after a kill, and a later run finds which ones are there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace draftproof {

using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;  // monostate: NULL
using Row = std::vector<Cell>;

class RowStore {
 public:
  // The table `rows` with the columns (group_name INTEGER, ...columns) and no two rows of one group with equal first
  // column. A new file is made with its first rows. identity: what the rows come from; a file of anything else is
  // refused and stays as it is. Every path is that of a file: ":memory:" and "file:..." are names like others. A
  // stranger's file runs nothing: triggers and views are off, and a schema other than the one that is made here is
  // refused. Errors (input) naming the path: no SQLite file, a damaged one, another identity or schema, locked by
  // another process, not writable.
  RowStore(const std::string& path, const std::string& identity, const std::string& group_name,
           const std::vector<std::string>& columns);
  ~RowStore();
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  std::vector<std::int64_t> groups() const;  // ascending
  // One transaction. Each row has as many cells as there are columns.
  void add(std::int64_t group, const std::vector<Row>& rows);
  // Ordered by group and first column; without the group.
  std::vector<Row> rows() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace draftproof
