// The colours of panels and figures: those of Okabe and Ito ("Color Universal Design", 2008), which people with any
// kind of colour blindness tell apart.
#pragma once

#include <array>

namespace draftproof {

struct Colour {
  const char* hex;  // as gnuplot takes it
  unsigned char red, green, blue;
};

namespace palette {
inline constexpr Colour kOrange{"#E69F00", 0xE6, 0x9F, 0x00};
inline constexpr Colour kSkyBlue{"#56B4E9", 0x56, 0xB4, 0xE9};
inline constexpr Colour kGreen{"#009E73", 0x00, 0x9E, 0x73};
inline constexpr Colour kYellow{"#F0E442", 0xF0, 0xE4, 0x42};
inline constexpr Colour kBlue{"#0072B2", 0x00, 0x72, 0xB2};
inline constexpr Colour kVermilion{"#D55E00", 0xD5, 0x5E, 0x00};
inline constexpr Colour kPurple{"#CC79A7", 0xCC, 0x79, 0xA7};
inline constexpr Colour kGrey{"#7F7F7F", 0x7F, 0x7F, 0x7F};

// What a colour means wherever it is shown.
inline constexpr Colour kTarget = kBlue;          // p; plain decoding
inline constexpr Colour kDraft = kOrange;         // q; time spent drafting
inline constexpr Colour kVerify = kBlue;          // time spent verifying
inline constexpr Colour kSample = kPurple;        // time spent sampling
inline constexpr Colour kPrefill = kSkyBlue;      // time spent on prompts
inline constexpr Colour kAccepted = kGreen;       // draft tokens that were accepted
inline constexpr Colour kRecovered = kVermilion;  // tokens from a residual; failures
inline constexpr Colour kBonus = kSkyBlue;        // the token after a draft accepted whole
inline constexpr Colour kRejected = kGrey;        // draft tokens that were rejected or not reached

// Of curves that have no meaning of their own, in this order.
inline constexpr std::array kSeries{kBlue, kVermilion, kGreen, kOrange, kPurple, kSkyBlue, kGrey};
}  // namespace palette

}  // namespace draftproof
