// Programs in Python that a verb runs: finding an interpreter, starting it, reading what it prints.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

// A Python interpreter that imports one of the modules: $DRAFTPROOF_PYTHON, that beside this program (where a wheel put
// both), python3 or /usr/bin/python3, the first that does.
std::optional<std::string> find_python_with(const std::vector<std::string>& modules);

// The command that runs a module with arguments. Isolated (-I): nothing of the current folder
// is imported, by it or by processes that it starts; the user's packages and whole paths of PYTHONPATH are.
std::vector<std::string> module_command(const std::string& python, const std::string& module,
                                        const std::vector<std::string>& arguments);

// The same of a file.
std::vector<std::string> script_command(const std::string& python, const std::string& file,
                                        const std::vector<std::string>& arguments);

// Runs a program and hands over what it prints, as it comes; its errors go where ours go. Its exit code, 128 + n where
// signal n ended it. Errors (input): no process can be started.
int run_program(const std::vector<std::string>& command, const std::function<void(std::string_view)>& take);

}  // namespace draftproof
