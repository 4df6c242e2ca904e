// The table [fit] that stands before the shipped engines.
#include <iomanip>
#include <sstream>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "sim/cost/fit.hpp"
#include "sim/toml.hpp"

namespace draftproof {
namespace {

constexpr std::array<const char*, kScatterClasses> kScatterNames{"dense", "dense_eager", "dense_other", "moe",
                                                                 "closed_loop"};

FitRecord record_of(const TomlValue& table) {
  table.allow_only({"sources", "noise", "parameter", "without", kScatterNames[0], kScatterNames[1], kScatterNames[2],
                    kScatterNames[3], kScatterNames[4]});
  FitRecord record;
  record.sources = table.texts_or_none("sources");
  record.noise = table.at("noise").number(1e-4, 1.0);
  record.state = fit_prior();
  const std::vector<FitParameter>& parameters = fit_parameters();
  for (const TomlValue& entry : table.at("parameter").items()) {
    entry.allow_only({"name", "offset", "spread"});
    bool known = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (entry.at("name").text() != parameters[i].name) continue;
      known = true;
      record.state.offset[i] = entry.at("offset").number(-10.0, 10.0);
      record.state.spread[i] = entry.at("spread").number(1e-6, 10.0);
    }
    if (!known) throw input_error(entry.at("name").where(), "no parameter of the fit has this name");
  }
  if (const TomlValue* without = table.find("without"))
    for (const std::string& source : without->keys()) {
      std::vector<double>& offsets = record.without[source];
      for (const TomlValue& offset : without->at(source).items()) offsets.push_back(offset.number(-10.0, 10.0));
      if (offsets.size() != parameters.size())
        throw input_error(without->at(source).where(), "it has " + std::to_string(offsets.size()) +
                                                           " offsets; expected " + std::to_string(parameters.size()) +
                                                           ", one for each parameter of the fit");
    }
  for (std::size_t i = 0; i < kScatterNames.size(); ++i) {
    const TomlValue& scatter = table.at(kScatterNames[i]);
    scatter.allow_only({"total", "source", "configuration", "degrees"});
    record.scatter[i] = {scatter.at("total").number(1e-3, 10.0), scatter.at("source").number(0.0, 10.0),
                         scatter.at("configuration").number(0.0, 10.0), scatter.at("degrees").number(1.0, 1e6)};
  }
  return record;
}

}  // namespace

const FitRecord& shipped_fit() {
  static const FitRecord read = record_of(read_toml(own_file("presets/engines/engines.toml")).at("fit"));
  return read;
}

std::string toml_of(const FitRecord& record) {
  std::ostringstream out;
  out << std::setprecision(6) << "[fit]\nsources = [";
  for (std::size_t i = 0; i < record.sources.size(); ++i) out << (i ? ", " : "") << toml_quoted(record.sources[i]);
  out << "]\nnoise = " << record.noise << "\n";
  for (std::size_t i = 0; i < kScatterNames.size(); ++i) {
    const FitRecord::Scatter& scatter = record.scatter[i];
    out << kScatterNames[i] << " = { total = " << scatter.total << ", source = " << scatter.source
        << ", configuration = " << scatter.configuration << ", degrees = " << scatter.degrees << " }\n";
  }
  for (std::size_t i = 0; i < record.state.offset.size(); ++i)
    out << "[[fit.parameter]]\nname = " << toml_quoted(fit_parameters()[i].name)
        << "\noffset = " << record.state.offset[i] << "\nspread = " << record.state.spread[i] << "\n";
  if (!record.without.empty()) out << "[fit.without]\n";
  for (const auto& [source, offsets] : record.without) {
    out << toml_quoted(source) << " = [";
    for (std::size_t i = 0; i < offsets.size(); ++i) out << (i ? ", " : "") << offsets[i];
    out << "]\n";
  }
  return out.str();
}

}  // namespace draftproof
