#include "cli/shared/ranks.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/printable.hpp"
#include "cli/shared/command.hpp"

#ifdef DRAFTPROOF_HAS_MPI
#include <mpi.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#endif

namespace draftproof {

// Open MPI, MPICH and Slurm say so in the environment; to initialise MPI without need takes half a second.
bool Ranks::is_started() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

bool Ranks::is_of_mpirun(std::string_view variable) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"OMPI_", "PMI_", "PMIX_"},
                             [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

#ifdef DRAFTPROOF_HAS_MPI

namespace {

// ask (empty) -> give (a point, -1: no more); rows (JSON: the point, its rows); goodbye (empty).
enum Tag : int { kAsk = 1, kGive, kRows, kGoodbye };

nlohmann::json json_of(const Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return *integer;
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

Cell cell_of(const nlohmann::json& json) {
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return std::monostate{};
}

class MpiCollectives final : public Collectives {
 public:
  void sum(std::span<std::uint64_t> words) override { combine(words, MPI_UINT64_T, MPI_SUM); }
  void largest(std::span<std::int32_t> numbers) override { combine(numbers, MPI_INT32_T, MPI_MAX); }

 private:
  template <class T>
  static void combine(std::span<T> values, MPI_Datatype type, MPI_Op operation) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), type, operation, MPI_COMM_WORLD);
  }
};

class RemotePoints final : public Points {
 public:
  ~RemotePoints() override { MPI_Send(nullptr, 0, MPI_BYTE, 0, kGoodbye, MPI_COMM_WORLD); }

  std::optional<std::size_t> next() override {
    const std::lock_guard lock(mutex_);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, kAsk, MPI_COMM_WORLD);
    std::int64_t point = -1;
    MPI_Recv(&point, 1, MPI_INT64_T, 0, kGive, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (point < 0) return std::nullopt;
    return static_cast<std::size_t>(point);
  }
  void deliver(std::size_t point, const std::vector<Row>& rows) override {
    nlohmann::json message{{"point", point}, {"rows", nlohmann::json::array()}};
    for (const Row& row : rows) {
      nlohmann::json& cells = message["rows"].emplace_back(nlohmann::json::array());
      for (const Cell& cell : row) cells.push_back(json_of(cell));
    }
    const std::string text = message.dump();
    const std::lock_guard lock(mutex_);
    MPI_Send(text.data(), static_cast<int>(text.size()), MPI_BYTE, 0, kRows, MPI_COMM_WORLD);
  }

 private:
  std::mutex mutex_;
};

}  // namespace

Ranks::Ranks() {
  if (!is_started()) return;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local);
  MPI_Comm_size(local, &local_size_);
  MPI_Comm_free(&local);
}

Ranks::~Ranks() {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) MPI_Finalize();
}

void Ranks::serve(Points& points) {
  for (int left = size_ - 1; left > 0;) {
    MPI_Status status;
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
    if (found == 0) {
      // A blocking receive of Open MPI would keep a core busy that computes.
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    MPI_Recv(text.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (status.MPI_TAG == kAsk) {
      const std::optional<std::size_t> next = points.next();
      const std::int64_t point = next ? static_cast<std::int64_t>(*next) : -1;
      MPI_Send(&point, 1, MPI_INT64_T, status.MPI_SOURCE, kGive, MPI_COMM_WORLD);
    } else if (status.MPI_TAG == kRows) {
      const nlohmann::json message = nlohmann::json::parse(text);
      std::vector<Row> rows;
      for (const nlohmann::json& cells : message.at("rows")) {
        Row& row = rows.emplace_back();
        for (const nlohmann::json& cell : cells) row.push_back(cell_of(cell));
      }
      points.deliver(message.at("point").get<std::size_t>(), rows);
    } else {
      --left;
    }
  }
}

std::unique_ptr<Points> Ranks::points_of_rank_0() {
  return std::make_unique<RemotePoints>();
}

std::unique_ptr<Collectives> Ranks::collectives() {
  return is_started() ? std::make_unique<MpiCollectives>() : nullptr;
}

void Ranks::end_all(const Error& error) {
  if (size_ == 1) return;
  std::cerr << "draftproof: error: " << printable_line(error.what()) << std::endl;
  MPI_Abort(MPI_COMM_WORLD,
            static_cast<int>(error.kind() == ErrorKind::internal ? ExitCode::internal : ExitCode::misuse));
}

#else

Ranks::Ranks() {
  if (is_started())
    throw usage_error("mpirun",
                      "this program was built without MPI; expected ./draftproof build --with-mpi to have been run");
}
Ranks::~Ranks() {}
void Ranks::serve(Points&) {}
std::unique_ptr<Points> Ranks::points_of_rank_0() {
  return nullptr;
}
std::unique_ptr<Collectives> Ranks::collectives() {
  return nullptr;
}
void Ranks::end_all(const Error&) {}

#endif

}  // namespace draftproof
