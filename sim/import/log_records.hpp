// Records of a server's log as people pass them on: a record is a line, or one that a terminal or a mail has wrapped,
// with the marks of a quotation in front; or one of several in a line whose ends were lost.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/text_lines.hpp"

namespace draftproof {

class LogRecords {
 public:
  LogRecords(std::string_view text, std::string name);

  bool next();
  const std::string& line() const { return record_; }
  std::string where() const { return where_; }  // "NAME, line 12", the first of them
  // The text ends within this record: it may have been cut while it was written.
  bool is_cut() const { return cut_; }

 private:
  void take();  // the next line, without the marks of a quotation, into ahead_

  TextLines lines_;
  std::size_t width_ = 0;            // at which a terminal has wrapped; 0: it has not
  std::vector<std::size_t> begins_;  // of the records of the newest line
  std::size_t next_of_line_ = 0;     // of them, that is taken next
  std::optional<std::string> ahead_;
  bool ahead_is_full_ = false;  // as wide as a terminal
  std::string ahead_where_;
  bool ahead_cut_ = false;
  std::string record_, where_;
  bool cut_ = false;
};

}  // namespace draftproof
