// The processes of a sweep that mpirun has started: rank 0 hands out points and has the file, the others ask it.
// Behind it stands MPI where the build found its headers; without, a sweep is one process.
#pragma once

#include <memory>

#include "cli/sweep/points.hpp"

namespace draftproof {

class Ranks {
 public:
  // Joins the others if mpirun started this process. Error (usage): it did, and the program was built without MPI.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int size_on_this_machine() const { return local_size_; }

  // Rank 0: answers the other ranks until they have no more to ask. Call it while other threads compute.
  void serve(Points& points);
  // Other ranks: the points of rank 0. Says goodbye when it ends.
  std::unique_ptr<Points> points_of_rank_0();
  // After an error that was shown: ends all ranks with this exit code. Returns where there is one only.
  void end_all(int exit_code);

 private:
  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
};

}  // namespace draftproof
