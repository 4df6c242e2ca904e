#include "sim/serving/row_store.hpp"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"

namespace draftproof {
namespace {

std::string quoted_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

// SQLite takes a file of a few bytes for an empty one and writes over it.
void require_sqlite_or_empty(const std::string& path) {
  constexpr std::string_view kHeader = "SQLite format 3";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) == 0) return;
  std::string header(kHeader.size(), '\0');
  std::ifstream(path, std::ios::binary).read(header.data(), static_cast<std::streamsize>(header.size()));
  if (header != kHeader)
    throw input_error(path, "it is no SQLite file; expected a file of the same grid, or a new one");
}

}  // namespace

struct RowStore::Implementation {
  std::string path;
  std::string identity;
  sqlite3* database = nullptr;  // nullptr: the file is not there yet
  std::string group_name;
  std::vector<std::string> columns;

  ~Implementation() { sqlite3_close(database); }

  [[noreturn]] void fail() const {
    const int code = sqlite3_errcode(database);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) fail_damaged(sqlite3_errmsg(database));
    throw input_error(path, std::string(sqlite3_errmsg(database)) + "; expected an SQLite file that can be written");
  }
  [[noreturn]] void fail_damaged(const std::string& damage) const {
    throw input_error(
        path, "it is damaged (" + printable_line(damage) + "); expected a file as it was written, or a new one");
  }

  // Error (input): pages or records of the file are not as SQLite writes them.
  void require_whole() const {
    const Cell found = first_cell("PRAGMA quick_check(1)");
    const auto* const text = std::get_if<std::string>(&found);
    if (text == nullptr || *text != "ok") fail_damaged(text == nullptr ? "no answer" : *text);
  }

  // A statement that ends with its scope.
  class Statement {
   public:
    Statement(const Implementation& store, const std::string& sql) : store_(store) {
      if (sqlite3_prepare_v2(store.database, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) store.fail();
    }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    void bind(int at, const Cell& cell) {
      if (const auto* integer = std::get_if<std::int64_t>(&cell)) sqlite3_bind_int64(statement_, at, *integer);
      if (const auto* number = std::get_if<double>(&cell)) sqlite3_bind_double(statement_, at, *number);
      if (const auto* text = std::get_if<std::string>(&cell))
        sqlite3_bind_text(statement_, at, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
    }
    // True: there is a row.
    bool step() {
      const int result = sqlite3_step(statement_);
      if (result != SQLITE_ROW && result != SQLITE_DONE) store_.fail();
      return result == SQLITE_ROW;
    }
    Cell cell(int at) const {
      switch (sqlite3_column_type(statement_, at)) {
        case SQLITE_INTEGER:
          return static_cast<std::int64_t>(sqlite3_column_int64(statement_, at));
        case SQLITE_FLOAT:
          return sqlite3_column_double(statement_, at);
        case SQLITE_NULL:
          return std::monostate{};
        default:
          return std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement_, at)));
      }
    }
    int columns() const { return sqlite3_column_count(statement_); }

   private:
    const Implementation& store_;
    sqlite3_stmt* statement_ = nullptr;
  };

  void run(const std::string& sql) const { Statement(*this, sql).step(); }
  // The first cell that the query finds; NULL where it finds none.
  Cell first_cell(const std::string& sql) const {
    Statement select(*this, sql);
    return select.step() ? select.cell(0) : Cell();
  }

  // A file of a stranger runs nothing of its own: no trigger, view or function of its schema.
  void harden() const {
    for (const int option :
         {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA})
      sqlite3_db_config(database, option, 0, static_cast<int*>(nullptr));
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, static_cast<int*>(nullptr));
  }

  // Tables as they are made here, by their names.
  std::map<std::string, std::string> tables() const {
    return {{"identity", "CREATE TABLE identity (text TEXT PRIMARY KEY)"},
            {"rows", "CREATE TABLE rows (" + group_name + " INTEGER NOT NULL, " + joined(columns, ", ") +
                         ", PRIMARY KEY (" + group_name + ", " + columns.front() + "))"}};
  }

  // Error (input): the schema is not the one that is made here, word by word; whatever else a file holds, somebody else
  // has put there.
  void require_own_schema() const {
    const std::map<std::string, std::string> own = tables();
    Statement select(
        *this,
        "SELECT type, name, sql FROM sqlite_master WHERE NOT (type = 'index' AND name LIKE 'sqlite_autoindex_%')");
    while (select.step()) {
      const auto text = [&](int at) {
        const Cell cell = select.cell(at);
        const auto* const found = std::get_if<std::string>(&cell);
        return found == nullptr ? "" : *found;
      };
      const auto found = own.find(text(1));
      if (text(0) == "table" && found != own.end() && found->second == text(2)) continue;
      throw input_error(path, "it has the " + printable_line(text(0)) + " " + in_quotes(text(1)) +
                                  ", which draftproof does not make; expected a file as it was written, or a new one");
    }
  }

  // Whether the tables are there. Error (input): others are, or rows of something else.
  bool has_tables() const {
    if (first_cell("SELECT count(*) FROM sqlite_master") == Cell(std::int64_t{0})) return false;
    const Cell own =
        first_cell("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('identity', 'rows')");
    if (own != Cell(std::int64_t{2}))
      throw input_error(path,
                        "it is an SQLite file of another program; expected a file of the same grid, or a new one");
    if (first_cell("SELECT count(*) FROM identity") != Cell(std::int64_t{1}) ||
        first_cell("SELECT text FROM identity") != Cell(identity))
      throw input_error(path,
                        "it holds the rows of something else, or of files that have changed since; expected a file of "
                        "the same grid, or a new one");
    require_own_schema();
    return true;
  }

  // Opens or makes the file.
  void open() {
    require_sqlite_or_empty(path);
    // An absolute path is a file to SQLite, also where the name is ":memory:" or begins with "file:".
    const std::string absolute = std::filesystem::absolute(path).string();
    if (sqlite3_open_v2(absolute.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) != SQLITE_OK)
      fail();
    harden();
    sqlite3_busy_timeout(database, 5000);
    run("BEGIN IMMEDIATE");  // another process may begin the same file; closing it without COMMIT changes nothing
    require_whole();
    if (!has_tables()) {
      for (const auto& [name, sql] : tables()) run(sql);
      Statement insert(*this, "INSERT INTO identity VALUES (?)");
      insert.bind(1, identity);
      insert.step();
    }
    run("COMMIT");
  }
};

RowStore::RowStore(const std::string& path, const std::string& identity, const std::string& group_name,
                   const std::vector<std::string>& columns)
    : implementation_(std::make_unique<Implementation>()) {
  Implementation& store = *implementation_;
  store.path = path;
  store.identity = identity;
  store.group_name = quoted_name(group_name);
  for (const std::string& column : columns) store.columns.push_back(quoted_name(column));
  if (std::filesystem::exists(path)) {
    store.open();
  } else {
    require_writable({{"", path}});
  }
}

RowStore::~RowStore() = default;

std::vector<std::int64_t> RowStore::groups() const {
  const Implementation& store = *implementation_;
  std::vector<std::int64_t> groups;
  if (store.database == nullptr) return groups;
  Implementation::Statement select(store, "SELECT DISTINCT " + store.group_name + " FROM rows ORDER BY 1");
  while (select.step()) {
    const Cell group = select.cell(0);
    if (!std::holds_alternative<std::int64_t>(group))
      throw input_error(store.path,
                        "a row's " + store.group_name + " is no whole number; expected rows as they were written");
    groups.push_back(std::get<std::int64_t>(group));
  }
  return groups;
}

void RowStore::add(std::int64_t group, const std::vector<Row>& rows) {
  Implementation& store = *implementation_;
  if (store.database == nullptr) store.open();
  std::string places = "?";
  for (std::size_t i = 0; i < store.columns.size(); ++i) places += ", ?";
  store.run("BEGIN IMMEDIATE");
  try {
    for (const Row& row : rows) {
      Implementation::Statement insert(store, "INSERT OR IGNORE INTO rows VALUES (" + places + ")");
      insert.bind(1, group);
      for (std::size_t i = 0; i < row.size(); ++i) insert.bind(static_cast<int>(i) + 2, row[i]);
      insert.step();
    }
    store.run("COMMIT");
  } catch (...) {
    sqlite3_exec(store.database, "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

std::vector<Row> RowStore::rows() const {
  const Implementation& store = *implementation_;
  std::vector<Row> rows;
  if (store.database == nullptr) return rows;
  Implementation::Statement select(store,
                                   "SELECT * FROM rows ORDER BY " + store.group_name + ", " + store.columns.front());
  while (select.step()) {
    Row& row = rows.emplace_back();
    for (int i = 1; i < select.columns(); ++i) row.push_back(select.cell(i));
  }
  return rows;
}

}  // namespace draftproof
