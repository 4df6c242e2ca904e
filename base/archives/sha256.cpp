#include "base/archives/sha256.hpp"

// The functions of SHA-256 alone, which OpenSSL 3 calls deprecated: its general ones bring 5 MB of other algorithms
// into a program that is linked statically.
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

#include <array>

namespace draftproof {

void Sha256::FreeContext::operator()(SHA256state_st* context) const {
  delete context;
}

Sha256::Sha256() : context_(new SHA256_CTX) {
  SHA256_Init(context_.get());
}

void Sha256::update(std::span<const std::byte> bytes) {
  SHA256_Update(context_.get(), bytes.data(), bytes.size());
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

std::string Sha256::hex_digest() const {
  SHA256_CTX copy = *context_;  // finishing ends a context
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(digest.data(), &copy);
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 15];
  }
  return hex;
}

}  // namespace draftproof
