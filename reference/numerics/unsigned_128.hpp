// The 128-bit integer that g++, clang and nvcc share for exact products of masses.
#pragma once

namespace draftproof {

__extension__ typedef unsigned __int128 Unsigned128;

}  // namespace draftproof
