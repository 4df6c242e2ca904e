// Figures for papers: a gnuplot script becomes an SVG, PNG or PDF file, or TikZ for LaTeX.
#pragma once

#include <chrono>
#include <string>

#include "studies/figures/paper_form.hpp"

namespace draftproof {

struct FigureOptions {
  int width_px = 800;  // on the screen; in a paper a single column has nearly this shape, a double one is flatter
  int height_px = 500;
  std::chrono::milliseconds time_limit{10'000};  // a figure takes a tenth of a second
  PaperForm form{};                              // its caption and label are the document's; a .tex is never `screen`
};

// Runs gnuplot on `script` (plot commands and data blocks; terminal and output are set here, and neither the user's
// gnuplot settings nor the environment, but for the places of programs and libraries, are read) and writes the picture
// to `svg_path`, complete or not at all. Error (input) with gnuplot's words when it is not installed, does not work,
// does not accept the script or does not end within its time, or when the file cannot be written. A figure is an extra:
// callers have shown their result, or go on to, and warn.
//
// In a column's width, letters have 8 points and there is no title: the document has a caption. A .tex is a tikzpicture
// in the document's own font that needs the package tikz alone; program, command and title are its comments, and an
// SVG's description.
void write_figure(const std::string& path, const std::string& script, const FigureOptions& options = {});

// Usage error naming `option` where write_figure() could not tell from the name what to draw. Asked before a command
// starts.
void require_figure_name(const std::string& option, const std::string& path);

// `text` as a gnuplot string constant, in which nothing is expanded; line ends become spaces.
std::string gnuplot_quoted(const std::string& text);

}  // namespace draftproof
