// SHA-256, so that a result file can name the exact input that it came from.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct SHA256state_st;  // OpenSSL's SHA256_CTX; its headers stay out of ours

namespace draftproof {

// The digest of the concatenation of everything given to update().
class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);

  // 64 lower-case hexadecimal digits of what has been given so far; more may be given afterwards.
  std::string hex_digest() const;

 private:
  struct FreeContext {
    void operator()(SHA256state_st* context) const;
  };
  std::unique_ptr<SHA256state_st, FreeContext> context_;
};

inline std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sha256;
  sha256.update(bytes);
  return sha256.hex_digest();
}
inline std::string sha256_hex(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace draftproof
