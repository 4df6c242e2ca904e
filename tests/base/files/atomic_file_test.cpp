#include "base/files/atomic_file.hpp"

#include <sys/resource.h>
#include <csignal>

#include "tests/support/test.hpp"

namespace {

// While it lives, no file of this process can grow beyond `size_bytes`: a stand-in for a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t size_bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = size_bytes;
    signal_before_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }

 private:
  rlimit before_{};
  void (*signal_before_)(int) = nullptr;
};

}  // namespace

TEST_CASE("An atomic file shows the old content until it is committed and then the new one") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("result"), "old");
  AtomicFile file(folder.file("result"));
  file.stream() << "new\n" << 42;
  file.stream().flush();
  CHECK(read_whole_file(folder.file("result")) == "old");
  CHECK(folder.file_names().size() == 2);
  file.commit();
  CHECK(read_whole_file(folder.file("result")) == "new\n42");
  file.commit();
  CHECK(folder.file_names() == std::vector<std::string>{"result"});
}

TEST_CASE("An atomic file that is not committed leaves nothing behind") {
  const TemporaryFolder folder;
  { AtomicFile(folder.file("result")).stream() << "half"; }
  CHECK(folder.file_names().empty());
}

TEST_CASE("Two atomic files for one name do not disturb each other and the last commit stays") {
  const TemporaryFolder folder;
  AtomicFile first(folder.file("result"));
  AtomicFile second(folder.file("result"));
  first.stream() << "first";
  second.stream() << "second";
  second.commit();
  first.commit();
  CHECK(read_whole_file(folder.file("result")) == "first");
  CHECK(folder.file_names().size() == 1);
}

TEST_CASE("A failed write is an error at commit and leaves the old file alone") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("result"), "old");
  {
    AtomicFile file(folder.file("result"));
    const FileSizeLimit limit(1000);
    file.stream() << std::string(100'000, 'x');
    CHECK_THROWS_WITH(file.commit(), Contains("result: writing failed"));
  }
  CHECK(read_whole_file(folder.file("result")) == "old");
  CHECK(folder.file_names().size() == 1);
}

TEST_CASE("An atomic file follows a symbolic link and refuses what is not a regular file") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("target"), "old");
  std::filesystem::create_symlink("target", folder.file("link"));
  AtomicFile file(folder.file("link"));
  file.stream() << "new";
  file.commit();
  CHECK(std::filesystem::is_symlink(folder.file("link")));
  CHECK(read_whole_file(folder.file("target")) == "new");

  CHECK_THROWS_WITH(AtomicFile(folder.path()), Contains("not a regular file"));
  CHECK_THROWS_WITH(AtomicFile("/dev/null"), Contains("/dev/null: exists and is not a regular file"));
  CHECK_THROWS_WITH(AtomicFile(folder.file("no/folder/result")), Contains("cannot be written: No such file"));
}
