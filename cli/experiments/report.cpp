#include "cli/experiments/report.hpp"

#include <algorithm>
#include <sstream>

#include "cli/shared/terminal.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

Json range_json(ValueRange range) {
  return Json::array({finite("low", range.low), finite("high", range.high)});
}

}  // namespace

void print_experiment(std::ostream& out, const ExperimentResult& result) {
  const Palette palette(wants_colour(1));
  out << result.title << "  (" << result.name << ")\n" << result.question << '\n';
  std::size_t width = 8;
  for (const ClaimVerdict& claim : result.claims) width = std::max(width, claim.what.size());
  out << "  " << padded("claim", width + 2) << padded("claimed", 14) << padded("model", 14) << result.quantity << '\n';
  for (const ClaimVerdict& claim : result.claims)
    out << "  " << padded(claim.what, width + 2) << padded(text_of(claim.claimed), 14)
        << padded(text_of(claim.model), 14)
        << palette.paint(claim.consistent ? Colour::green : Colour::red,
                         claim.consistent ? "consistent" : "not consistent")
        << ": " << claim.why << '\n';
  out << result.reading << "\n\n";
}

Json experiment_json(const ExperimentResult& result) {
  Json claims = Json::array();
  for (const ClaimVerdict& claim : result.claims)
    claims.push_back({{"what", claim.what},
                      {"x", result.x_name.empty() ? Json(nullptr) : Json(claim.x)},
                      {"claimed", range_json(claim.claimed)},
                      {"model", range_json(claim.model)},
                      {"consistent", claim.consistent},
                      {"why", claim.why}});
  return {{"name", result.name},       {"title", result.title},         {"question", result.question},
          {"source", result.source},   {"kind", result.kind},           {"quantity", result.quantity},
          {"reading", result.reading}, {"tolerance", result.tolerance}, {"consistent", result.consistent()},
          {"claims", claims}};
}

std::string experiment_csv(const ExperimentResult& result) {
  std::ostringstream out;
  out.precision(17);
  out << "what,x,claimed_low,claimed_high,model_low,model_high,consistent\n";
  for (const ClaimVerdict& claim : result.claims) {
    out << '"' << claim.what << "\",";
    if (!result.x_name.empty()) out << claim.x;
    out << ',' << claim.claimed.low << ',' << claim.claimed.high << ',' << claim.model.low << ',' << claim.model.high
        << ',' << (claim.consistent ? "yes" : "no") << '\n';
  }
  return out.str();
}

std::string experiment_figure(const ExperimentResult& result) {
  std::ostringstream out;
  const bool curve = !result.x_name.empty();
  const auto block = [&](const char* name, bool claimed, double shift) {
    out << '$' << name << " << EOD\n";
    for (std::size_t i = 0; i < result.claims.size(); ++i) {
      const ClaimVerdict& claim = result.claims[i];
      const ValueRange range = claimed ? claim.claimed : claim.model;
      out << (curve ? claim.x : static_cast<double>(i) + shift) << ' ' << 0.5 * (range.low + range.high) << ' '
          << range.low << ' ' << range.high << '\n';
    }
    out << "EOD\n";
  };
  block("claimed", true, -0.1);
  block("model", false, 0.1);
  out << "set title " << gnuplot_quoted(result.title) << "\nset ylabel " << gnuplot_quoted(result.quantity)
      << "\nset yrange [0:*]\nset key top right\nset grid ytics\n";
  if (curve) {
    out << "set xlabel " << gnuplot_quoted(result.x_name) << '\n';
    if (result.log_x) out << "set logscale x 2\n";
    out << "plot $claimed using 1:2 with linespoints lw 2 pt 7 title 'claimed', "
           "$model using 1:2 with linespoints lw 2 pt 5 title 'model'\n";
    return out.str();
  }
  if (result.kind == "bytes") out << "set logscale y\nset yrange [*:*]\n";
  out << "set xrange [-0.6:" << static_cast<double>(result.claims.size()) - 0.4 << "]\nset xtics rotate by -25 (";
  for (std::size_t i = 0; i < result.claims.size(); ++i) {
    // Labels of tics are formats, in which a percent sign is written twice.
    std::string label;
    for (const char c : result.claims[i].what) label += c == '%' ? std::string("%%") : std::string(1, c);
    out << (i == 0 ? "" : ", ") << gnuplot_quoted(label) << ' ' << i;
  }
  out << ")\nset rmargin 12\nplot $claimed using 1:2:3:4 with yerrorbars lw 2 pt 7 title 'claimed', "
         "$model using 1:2:3:4 with yerrorbars lw 2 pt 5 title 'model'\n";
  return out.str();
}

}  // namespace draftproof
