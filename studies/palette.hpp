// The colours of panels and figures: those of Okabe and Ito ("Color Universal Design", 2008), which people with any
// kind of colour blindness tell apart.
#pragma once

#include <array>

namespace draftproof {

struct PaletteColour {
  const char* hex;  // as gnuplot takes it
  unsigned char red, green, blue;
};

namespace palette {
inline constexpr PaletteColour kOrange{"#E69F00", 0xE6, 0x9F, 0x00};
inline constexpr PaletteColour kSkyBlue{"#56B4E9", 0x56, 0xB4, 0xE9};
inline constexpr PaletteColour kGreen{"#009E73", 0x00, 0x9E, 0x73};
inline constexpr PaletteColour kYellow{"#F0E442", 0xF0, 0xE4, 0x42};
inline constexpr PaletteColour kBlue{"#0072B2", 0x00, 0x72, 0xB2};
inline constexpr PaletteColour kVermilion{"#D55E00", 0xD5, 0x5E, 0x00};
inline constexpr PaletteColour kPurple{"#CC79A7", 0xCC, 0x79, 0xA7};
inline constexpr PaletteColour kGrey{"#7F7F7F", 0x7F, 0x7F, 0x7F};

// Meanings of colours, the same wherever they are shown.
inline constexpr PaletteColour kTarget = kBlue;          // p; plain decoding
inline constexpr PaletteColour kDraft = kOrange;         // q; time spent drafting
inline constexpr PaletteColour kVerify = kBlue;          // time spent verifying
inline constexpr PaletteColour kSample = kPurple;        // time spent sampling
inline constexpr PaletteColour kPrefill = kSkyBlue;      // time spent on prompts
inline constexpr PaletteColour kAccepted = kGreen;       // draft tokens that were accepted
inline constexpr PaletteColour kRecovered = kVermilion;  // tokens from a residual; failures
inline constexpr PaletteColour kBonus = kSkyBlue;        // the token after a draft accepted whole
inline constexpr PaletteColour kRejected = kGrey;        // draft tokens that were rejected or not reached

// Colours of curves that have no meaning of their own, in this order.
inline constexpr std::array kSeries{kBlue, kVermilion, kGreen, kOrange, kPurple, kSkyBlue, kGrey};
}  // namespace palette

}  // namespace draftproof
