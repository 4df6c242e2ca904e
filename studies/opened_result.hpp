// A file or folder that a person opens in the dashboard, read as far as is needed to see whose it is.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace draftproof {

struct OpenedResult {
  std::string path;                 // as given
  std::string file;                 // that was read: the path, or the result in the folder
  std::string verb;                 // of the subcommand that wrote the document ("predict"); empty for other files
  nlohmann::ordered_json document;  // null for files that are not JSON

  // Extension of the file, in lower case, with its dot: ".toml".
  std::string extension() const;
};

// Reads a JSON document, or of a folder that the program wrote (out/demo) the document in it, by name the first where
// there are several; files with other endings than .json are for the panels to read. Input error naming the path where
// there is nothing to read, and for a .json that is no JSON document.
OpenedResult open_result(const std::string& path);

}  // namespace draftproof
