#include "base/archives/sha256.hpp"

#include <openssl/evp.h>

#include <array>

#include "base/error.hpp"

namespace draftproof {
namespace {

void require(bool ok) {
  if (!ok) throw Error(ErrorKind::internal, "SHA-256", "OpenSSL's libcrypto refused the operation");
}

}  // namespace

void Sha256::FreeContext::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

std::string Sha256::hex_digest() const {
  // Finishing ends a context, so a copy is finished.
  const std::unique_ptr<EVP_MD_CTX, FreeContext> copy(EVP_MD_CTX_new());
  std::array<unsigned char, 32> digest{};
  unsigned int digest_size = 0;
  require(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1 &&
          EVP_DigestFinal_ex(copy.get(), digest.data(), &digest_size) == 1 && digest_size == digest.size());
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 15];
  }
  return hex;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sha256;
  sha256.update(bytes);
  return sha256.hex_digest();
}

std::string sha256_hex(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

}  // namespace draftproof
