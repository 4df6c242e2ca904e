// Error message of an expression that must fail: tests look for the words that name the place and the expected value.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "base/error.hpp"

namespace draftproof {

// The message of the draftproof::Error that `body` throws; fails the test where it throws nothing or has another kind.
template <class Body>
std::string error_of(ErrorKind kind, Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL_CHECK("no error was thrown");
  return {};
}

}  // namespace draftproof
