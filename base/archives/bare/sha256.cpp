// SHA-256 where there is no library for it: the build for a bare GPU machine, none of whose programs asks for contents.
#include "base/archives/sha256.hpp"

#include "base/error.hpp"

namespace draftproof {
namespace {

[[noreturn]] void fail() {
  throw Error(ErrorKind::internal, "SHA-256", "is not in this build");
}

}  // namespace

void Sha256::FreeContext::operator()(SHA256state_st*) const {}

Sha256::Sha256() {
  fail();
}

void Sha256::update(std::span<const std::byte>) {
  fail();
}

void Sha256::update(std::string_view) {
  fail();
}

std::string Sha256::hex_digest() const {
  fail();
}

std::string sha256_hex(std::span<const std::byte>) {
  fail();
}

std::string sha256_hex(std::string_view) {
  fail();
}

}  // namespace draftproof
