// Fields of CSV files that we write. One place, since spreadsheets run text that looks like a formula.
#pragma once

#include <string>
#include <string_view>

namespace draftproof {

// A text as one field (RFC 4180): in quotes where it holds a comma, a quote or a line end, or has blanks around it. One
// that begins with = + - @, a tab or a return and is no number gets an apostrophe in front, so that no spreadsheet
// takes it for a formula (CWE-1236).
std::string csv_field(std::string_view text);

}  // namespace draftproof
