// NumPy's .npz archives: arrays by name, stored or deflated (numpy.savez, numpy.savez_compressed).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace draftproof {

// Does a file begin as a ZIP archive does?
bool is_zip(std::span<const std::byte> file);

// The arrays of an archive as the bytes of a safetensors file, which everything else reads. Names are those of its
// members without ".npy". Errors (input) naming the file and the member: a broken archive, a member that is no array,
// elements that have no dtype of ours (objects, text, structures, big-endian numbers), Fortran order, and sizes that
// the file cannot hold: members that overlap, more than deflate can make of so many bytes, a shape that takes another
// size. No memory is taken for elements before all of that is checked.
std::vector<std::byte> safetensors_of_npz(const std::string& path, std::span<const std::byte> file);

}  // namespace draftproof
