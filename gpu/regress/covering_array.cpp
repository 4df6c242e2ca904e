#include "gpu/regress/covering_array.hpp"

#include <optional>

#include "base/error.hpp"

namespace draftproof::regress {
namespace {

using Assignment = std::vector<std::optional<std::size_t>>;

class Cover {
 public:
  Cover(const std::vector<ArgumentValues>& arguments, const CanMeet& can_meet)
      : arguments_(arguments), can_meet_(can_meet) {
    for (const ArgumentValues& argument : arguments_) {
      begins_.push_back(count_);
      count_ += argument.values.size();
    }
    waits_.assign(count_ * count_, false);
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      for (std::size_t j = i + 1; j < arguments_.size(); ++j)
        for (std::size_t v = 0; v < values(i); ++v)
          for (std::size_t w = 0; w < values(j); ++w)
            if (can_meet_(i, v, j, w)) set(i, v, j, w, true);
  }

  // An assignment around the first pair that waits; nothing where none does.
  std::optional<std::vector<std::size_t>> next() {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      for (std::size_t j = i + 1; j < arguments_.size(); ++j) {
        for (std::size_t v = 0; v < values(i); ++v) {
          for (std::size_t w = 0; w < values(j); ++w) {
            if (!waits(i, v, j, w)) continue;
            Assignment row(arguments_.size());
            row[i] = v;
            row[j] = w;
            if (!complete(row))
              throw Error(ErrorKind::internal, arguments_[i].name + " and " + arguments_[j].name,
                          "no call can have them as " + arguments_[i].values[v] + " and " + arguments_[j].values[w]);
            return met(row);
          }
        }
      }
    }
    return std::nullopt;
  }

 private:
  std::size_t values(std::size_t i) const { return arguments_[i].values.size(); }
  std::size_t at(std::size_t i, std::size_t v, std::size_t j, std::size_t w) const {
    return (begins_[i] + v) * count_ + begins_[j] + w;
  }
  bool waits(std::size_t i, std::size_t v, std::size_t j, std::size_t w) const { return waits_[at(i, v, j, w)]; }
  void set(std::size_t i, std::size_t v, std::size_t j, std::size_t w, bool waits) {
    waits_[at(i, v, j, w)] = waits;
    waits_[at(j, w, i, v)] = waits;
  }

  bool fits(const Assignment& row, std::size_t i, std::size_t v) const {
    for (std::size_t j = 0; j < row.size(); ++j)
      if (j != i && row[j] && !can_meet_(i, v, j, *row[j])) return false;
    return true;
  }
  std::size_t new_pairs(const Assignment& row, std::size_t i, std::size_t v) const {
    std::size_t count = 0;
    for (std::size_t j = 0; j < row.size(); ++j)
      if (j != i && row[j] && waits(i, v, j, *row[j])) ++count;
    return count;
  }

  // Arguments from the first to the last, best values first; back where an argument has none that fits.
  bool complete(Assignment& row, std::size_t i = 0) const {
    while (i < row.size() && row[i]) ++i;
    if (i == row.size()) return true;
    std::vector<bool> tried(values(i), false);
    for (std::size_t round = 0; round < values(i); ++round) {
      std::optional<std::size_t> best;
      for (std::size_t v = 0; v < values(i); ++v)
        if (!tried[v] && fits(row, i, v) && (!best || new_pairs(row, i, v) > new_pairs(row, i, *best))) best = v;
      if (!best) break;
      tried[*best] = true;
      row[i] = best;
      if (complete(row, i + 1)) return true;
      row[i].reset();
    }
    return false;
  }

  std::vector<std::size_t> met(const Assignment& row) {
    std::vector<std::size_t> chosen;
    for (const auto& v : row) chosen.push_back(*v);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      for (std::size_t j = i + 1; j < chosen.size(); ++j) set(i, chosen[i], j, chosen[j], false);
    return chosen;
  }

  const std::vector<ArgumentValues>& arguments_;
  const CanMeet& can_meet_;
  std::vector<std::size_t> begins_;
  std::size_t count_ = 0;
  std::vector<bool> waits_;
};

}  // namespace

std::vector<std::vector<std::size_t>> covering_array(const std::vector<ArgumentValues>& arguments,
                                                     const CanMeet& can_meet) {
  Cover cover(arguments, can_meet);
  std::vector<std::vector<std::size_t>> rows;
  while (auto row = cover.next()) rows.push_back(std::move(*row));
  return rows;
}

}  // namespace draftproof::regress
