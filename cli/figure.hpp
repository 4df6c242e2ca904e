// Figures for papers: a gnuplot script becomes an SVG file.
#pragma once

#include <string>

namespace draftproof {

struct FigureSize {
  int width_px = 800;
  int height_px = 500;
};

// Runs gnuplot on `script` (plot commands and data blocks; terminal and output are set here, and the user's own gnuplot
// settings are not read) and writes the picture to `svg_path`, complete or not at all. Errors: input when gnuplot is
// not installed or the file cannot be written; internal, with gnuplot's words, when it does not accept the script.
void write_figure(const std::string& svg_path, const std::string& script, FigureSize size = {});

// `text` as a gnuplot string constant, in which nothing is expanded; line ends become spaces.
std::string gnuplot_quoted(const std::string& text);

}  // namespace draftproof
