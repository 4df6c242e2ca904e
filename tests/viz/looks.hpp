// A test that looks: what is wrong with the picture of a frame, found in its draw lists and not by frozen pixels.
#pragma once

#include "tests/support/test.hpp"
#include "viz/panels/controls.hpp"

namespace draftproof::testing {

struct Looks {
  int plots = 0, texts = 0;         // that were looked at
  std::vector<std::string> faults;  // a sentence each
  std::string text;                 // what is read, a run of letters a line
  std::string lines;                // as it is read: from left to right, then down
};

// Draws one frame and looks at it. `controls`: those that it draws; what is typed into fields may be longer than they.
//
// axis      one that reaches beyond its data by more than a decade, or has none of it inside; ten times the largest
//           value where it is linear
// plot      without height or width to see anything in
// legend    over data or a border, or cut; two of its curves that cannot be told apart
// text      cut off, over another, or of an axis and in the plot
Looks looks_of_frame(const std::function<void()>& draw, const Controls* controls = nullptr);

}  // namespace draftproof::testing
