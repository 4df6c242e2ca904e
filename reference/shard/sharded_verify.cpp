#include "reference/shard/sharded_verify.hpp"

#include <bit>

#include "reference/step/dense_step_rows.hpp"

namespace draftproof {

ShardedDense::ShardedDense(const ShardedRow& row) : row_(&row), parts_(row.devices().count()) {
  for (std::size_t d = row.devices().begin_here(); d < row.devices().end_here(); ++d)
    parts_[d] = dense_row(row.shard(d).distribution());
  if (row.is_probabilities())
    row.agree([&](std::size_t d) { check_dense_row(parts_[d], row.shard(d).distribution(), false); });
}

double ShardedDense::at(Token token) const {
  const std::size_t owner = row_->devices().owner(token);
  return std::bit_cast<double>(row_->devices().from(owner, [&] {
    return std::bit_cast<std::uint64_t>(parts_[owner][static_cast<std::size_t>(token - base(owner))]);
  }));
}

Token ShardedDense::draw(const RandomBlock& block) const {
  const Devices& devices = row_->devices();
  const auto first_tile = [&](std::size_t d) { return row_->shard(d).first_tile(); };
  std::vector<std::vector<std::uint64_t>> own(devices.count());
  const std::vector<std::uint64_t> sums = devices.sum(devices.tile_count(), [&](std::size_t d, auto words) {
    own[d] = DenseDraw(parts_[d]).tile_sums();
    for (std::size_t t = 0; t < own[d].size(); ++t) words[first_tile(d) + t] += own[d][t];
  });
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  if (total == 0) throw all_zero(row_->name());
  return draw_across(
      devices, block, total, sums, [&](std::size_t t) { return sums[t]; },
      [&](std::size_t d, std::size_t t) { return own[d][t - first_tile(d)]; },
      [&](std::size_t d, std::size_t t, std::uint64_t before) {
        return DenseDraw(parts_[d]).token_at(t - first_tile(d), before) + base(d);
      });
}

ShardedDense scaled(ShardedDense masses, double factor) {
  for (DenseMasses<double>& part : masses.parts_) part = scaled(std::move(part), factor);
  return masses;
}

ShardedDense positive_difference(ShardedDense p, const ShardedDense& q) {
  for (std::size_t d = 0; d < p.parts_.size(); ++d) p.parts_[d] = positive_difference(p.parts_[d], q.parts_[d]);
  return p;
}

double total_of(const ShardedDense& masses) {
  const std::uint64_t sum = masses.row_->devices().sum(1, [&](std::size_t d, auto words) {
    for (const double x : masses.parts_[d]) words[0] += residual_mass(x);
  })[0];
  return static_cast<double>(sum) * 0x1p-62;
}

double taken_out(ShardedDense& masses, Token token) {
  const double mass = masses.at(token);
  const std::size_t owner = masses.row_->devices().owner(token);
  if (!masses.parts_[owner].empty()) masses.parts_[owner][static_cast<std::size_t>(token - masses.base(owner))] = 0.0;
  return mass;
}

}  // namespace draftproof
