#include "cli/study/runs.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/archives/sha256.hpp"
#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"
#include "base/files/temporary.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/utc_now.hpp"
#include "cli/shared/build_commit.hpp"

extern char** environ;

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// Sorted names of what lies in a folder.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Parts of a command that may be names of folders: whole arguments and pieces of them (--model=DIR, a,head:DIR).
std::set<std::string> parts_of(const StudyRun& run) {
  std::set<std::string> parts;
  for (const std::string& argument : run.arguments)
    for (std::size_t begin = 0; begin < argument.size(); ++begin) {
      if (begin > 0 && std::string_view(",=:").find(argument[begin - 1]) == std::string_view::npos) continue;
      for (std::size_t end = begin; end != std::string::npos;) {
        end = argument.find_first_of(",=:", end + 1);
        if (end != begin) parts.insert(argument.substr(begin, end == std::string::npos ? end : end - begin));
      }
    }
  return parts;
}

Json json_of(const RunKey& key) {
  return {{"program", key.program},   {"command", key.command},     {"inputs", key.inputs},    {"folders", key.folders},
          {"document", key.document}, {"exit_code", key.exit_code}, {"measured", key.measured}};
}

// A lock of some bytes of an open file, which goes with the descriptor, not with the process. Where the file system
// has no locks, none is held.
bool take_lock(const Descriptor& file, short type, off_t first, off_t count) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  return ::fcntl(file.value(), F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

Descriptor open_lock(const fs::path& folder) {
  return Descriptor(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
}

}  // namespace

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw input_error(path.string(), "cannot be read");
  return text.str();
}

// Digests of inputs, which many runs share: a file is hashed once a version.
struct StudyFolder::Digests {
  struct Version {
    struct stat status;
    std::string sha256;
  };
  std::mutex mutex;
  std::map<std::string, Version> by_path;
};

struct StudyFolder::Command {
  std::vector<std::string> arguments;
  std::string out, error;  // files of its standard output and error
  std::string inputs;      // file that takes what it read; empty: none
  std::string files;       // folder of what it writes where --out is not said
  bool is_check = false;   // of its options alone
};

StudyFolder::StudyFolder(const std::string& path, const std::string& study_file)
    : path_(fs::absolute(path)), base_(fs::absolute(study_file).parent_path()), digests_(std::make_shared<Digests>()) {
  for (const char* part : {"runs", "tables", "figures", "files"}) {
    std::error_code error;
    fs::create_directories(path_ / part, error);
    if (error) throw input_error("--out", in_quotes(path) + " cannot be made: " + error.message());
  }
}

// Byte 0 is the folder's, one of the others a run's.
void StudyFolder::lock(bool shared) {
  lock_ = open_lock(path_);
  shared_ = shared;
  if (lock_.is_open() && !take_lock(lock_, static_cast<short>(shared ? F_RDLCK : F_WRLCK), 0, 1))
    throw input_error(
        "--out", in_quotes(path_.string()) + " is being written by another study; expected another folder, or its end");
}

Descriptor StudyFolder::lock_run(const StudyRun& run) const {
  if (!shared_) return {};
  Descriptor lock = open_lock(path_);
  const auto place = static_cast<off_t>(std::hash<std::string>()(run.name) >> 2);
  if (lock.is_open() && !take_lock(lock, F_WRLCK, 1 + place, 1))
    throw input_error("--part", "the run " + in_quotes(run.name) +
                                    " is being done by another process; expected parts that no other process does");
  return lock;
}

std::string StudyFolder::digest(const std::string& name) const {
  const fs::path path = base_ / name;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  const std::lock_guard lock(digests_->mutex);
  Digests::Version& version = digests_->by_path[path.string()];
  const auto is_same = [&](const struct stat& other) {
    return other.st_dev == status.st_dev && other.st_ino == status.st_ino && other.st_size == status.st_size &&
           std::memcmp(&other.st_mtim, &status.st_mtim, sizeof status.st_mtim) == 0 &&
           std::memcmp(&other.st_ctim, &status.st_ctim, sizeof status.st_ctim) == 0;
  };
  if (version.sha256.empty() || !is_same(version.status))
    version = {status, sha256_hex(InputFile(path.string()).bytes())};
  return version.sha256;
}

RunKey StudyFolder::read_key(const StudyRun& run) const {
  if (!fs::exists(key(run))) return {};
  try {
    const Json json = Json::parse(text_of_file(key(run)));
    RunKey key;
    json.at("program").get_to(key.program);
    json.at("command").get_to(key.command);
    json.at("inputs").get_to(key.inputs);
    json.at("folders").get_to(key.folders);
    json.at("document").get_to(key.document);
    json.at("exit_code").get_to(key.exit_code);
    json.at("measured").get_to(key.measured);
    return key;
  } catch (const Json::exception&) {  // of another version, or damaged
    return {};
  }
}

void StudyFolder::write_key(const StudyRun& run, const RunKey& key_of_run) const {
  AtomicFile file(key(run).string());
  file.stream() << json_of(key_of_run).dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  file.commit();
}

bool StudyFolder::has(const StudyRun& run) const {
  const RunKey key = read_key(run);
  return !key.document.empty() && key.program == program_and_commit() && key.command == shell_command(run.arguments) &&
         fs::exists(document(run)) && sha256_hex(text_of_file(document(run))) == key.document &&
         std::ranges::all_of(key.inputs, [&](const auto& input) { return digest(input.first) == input.second; }) &&
         std::ranges::all_of(key.folders,
                             [&](const auto& folder) { return names_in(base_ / folder.first) == folder.second; });
}

FinishedRun StudyFolder::read(const StudyRun& run) const {
  return {parse_json<Json>(text_of_file(document(run)), document(run).string()), read_key(run)};
}

// The command with what it writes in the run's own folder, and "{files}" as the folder of all of them.
std::vector<std::string> StudyFolder::arguments(const StudyRun& run) const {
  std::vector<std::string> arguments = run.arguments;
  constexpr std::string_view kFiles = "{files}";
  for (std::string& argument : arguments)
    if (const std::size_t at = argument.find(kFiles); at != std::string::npos)
      argument.replace(at, kFiles.size(), (path_ / "files").string());
  if (!run.out) return arguments;
  std::string& out = arguments[*run.out];
  const std::size_t name = out.starts_with("--out=") ? 6 : 0;
  if (fs::path(out.substr(name)).is_absolute()) return arguments;
  const fs::path own_out = own(run) / out.substr(name);
  fs::create_directories(own_out.parent_path());
  out.replace(name, std::string::npos, own_out.string());
  return arguments;
}

// Its exit code. It ends with us, whatever ends us.
int StudyFolder::start(const Command& command) const {
  std::vector<std::string> words{own_program()};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> settings{"DRAFTPROOF_OUT=" + command.files, "DRAFTPROOF_INPUTS=" + command.inputs};
  if (command.is_check) settings.emplace_back("DRAFTPROOF_CHECK=1");
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!Ranks::is_of_mpirun(*variable)) settings.emplace_back(*variable);
  const auto pointers_to = [](std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  };
  std::vector<char*> pointers = pointers_to(words), environment = pointers_to(settings);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {  // system calls alone: other threads may have held locks of the library
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    const int in = ::open("/dev/null", O_RDONLY);
    const int out = ::open(command.out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int error = ::open(command.error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(error, 2) == 2 && ::chdir(base_.c_str()) == 0)
      ::execve(pointers.front(), pointers.data(), environment.data());
    ::_exit(127);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw input_error(words.front(), std::string("is lost: ") + std::strerror(errno));
  if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
    throw input_error(words.front(), "does not start");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The figure of a run in the forms that a paper takes. Where one cannot be drawn, none is there; the first says why.
std::string StudyFolder::draw(const StudyRun& run) const {
  for (const FigureForm& form : kFigureForms) fs::remove(figure(run.name + form.suffix));
  for (const FigureForm& form : kFigureForms) {
    const Temporary error(Temporary::Kind::file, path_ / "runs", "--out");
    Command command{arguments(run), "/dev/null", error.path(), "", own(run).string()};
    command.arguments.insert(command.arguments.end(), {"--figure", figure(run.name + form.suffix).string(),
                                                       "--paper-width", form.width, "--json"});
    const int exit_code = start(command);
    if (exit_code != 0 && exit_code != 1 && exit_code != 4) return printable_line(text_of_file(error.path()));
  }
  return "";
}

void StudyFolder::require_success(const StudyRun& run, int exit_code, const std::string& error_path) const {
  if (exit_code == 0 || exit_code == 1 || exit_code == 4) return;
  std::string said = text_of_file(error_path);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  said = said.substr(said.rfind('\n') == std::string::npos ? 0 : said.rfind('\n') + 1);
  throw input_error(run.where, "the command " + in_quotes(shell_command(run.arguments)) + " ended with exit code " +
                                   std::to_string(exit_code) + ": " + printable_line(said));
}

void StudyFolder::check(const StudyRun& run) const {
  const Temporary error(Temporary::Kind::file, path_ / "runs", "--out");
  Command command{run.arguments, "/dev/null", error.path(), "", own(run).string(), true};
  command.arguments.emplace_back("--json");
  if (run.figure) command.arguments.insert(command.arguments.end(), {"--figure", "x.svg", "--paper-width", "single"});
  require_success(run, start(command), error.path());
}

std::string StudyFolder::finish(const StudyRun& run) const {
  RunKey key;
  key.program = program_and_commit();
  key.command = shell_command(run.arguments);
  // A stopped command goes on with its own files; those of another command, or of one that ended, are removed.
  const RunKey before = read_key(run);
  if (before.program != key.program || before.command != key.command || !before.document.empty())
    fs::remove_all(own(run));
  write_key(run, key);
  fs::create_directories(own(run));

  Temporary out(Temporary::Kind::file, path_ / "runs", "--out");
  const Temporary error(Temporary::Kind::file, path_ / "runs", "--out");
  const Temporary inputs(Temporary::Kind::file, path_ / "runs", "--out");
  Command command{arguments(run), out.path(), error.path(), inputs.path(), own(run).string()};
  command.arguments.emplace_back("--json");
  key.exit_code = start(command);
  require_success(run, key.exit_code, error.path());
  const std::string document_text = text_of_file(out.path());
  if (!parse_json<Json>(document_text, run.where).is_object())
    throw input_error(run.where, "prints no JSON document; expected a verb with --json");
  const auto told = parse_json<Json>(text_of_file(inputs.path()), inputs.path());
  if (!told.is_object())
    throw input_error(run.where,
                      "the program of " + in_quotes(run.arguments.front()) +
                          " does not say what it read: it is older than this one; expected one build of both");
  told.get_to(key.inputs);
  std::set<fs::path> read_in;
  for (const auto& [input, sha256] : key.inputs) read_in.insert((base_ / input).lexically_normal().parent_path());
  for (const std::string& part : parts_of(run))
    if (const fs::path inside = base_ / part / "x"; read_in.contains(inside.lexically_normal().parent_path()))
      key.folders[part] = names_in(base_ / part);
  const std::string warning = run.figure ? draw(run) : "";
  fs::rename(out.path(), document(run));
  out.release();
  key.document = sha256_hex(document_text);
  key.measured = utc_now();
  write_key(run, key);
  std::error_code not_empty;
  fs::remove(own(run), not_empty);
  return warning;
}

void finish_runs(const Study& study, Points& points, const StudyFolder& folder, int jobs,
                 std::set<std::string>& warnings, const std::function<void(const StudyRun&)>& look,
                 const std::function<void()>& on_error) {
  std::mutex mutex;
  std::exception_ptr error;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < jobs; ++i)
      workers.emplace_back([&] {
        while (true) {
          try {
            const std::optional<std::size_t> at = points.next();
            if (!at) return;
            const StudyRun& run = study.runs[*at];
            const Descriptor lock = folder.lock_run(run);
            const bool was_there = folder.has(run);
            const std::string warning = was_there ? "" : folder.finish(run);
            look(run);
            points.deliver(*at, {{std::int64_t{was_there}}});
            const std::lock_guard lock_of_warnings(mutex);
            if (!warning.empty()) warnings.insert(warning);
          } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
            on_error();
            return;
          }
        }
      });
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace draftproof
