#include "viz/app/exporter.hpp"

#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

void write_file(const ExportRequest& request) {
  const std::filesystem::path folder = std::filesystem::path(request.path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) throw input_error(folder.string(), "cannot be made: " + error.message());
  if (!request.path.ends_with(".csv")) return write_figure(request.path, request.contents);
  AtomicFile file(request.path);
  file.stream() << request.contents;
  file.commit();
}

}  // namespace

Exporter::Exporter()
    : worker_([](const ExportRequest& request, Job&, const Worker<ExportRequest, std::string>::Publish& publish) {
        write_file(request);
        publish("written to " + request.path);
      }) {}

std::string Exporter::message() const {
  const WorkerState state = worker_.state();
  if (!state.error.empty()) return state.error;
  const auto latest = worker_.latest();
  return latest ? *latest : std::string();
}

}  // namespace draftproof
