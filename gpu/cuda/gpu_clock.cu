#include "gpu/gpu_clock.hpp"

#include <algorithm>

#include "gpu/cuda/launch.cuh"

namespace draftproof::cuda_executor {
namespace {

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_{};
};

// The launches of `run`, recorded once to be started as a whole.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void(void* stream)>& run) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    run(stream);
    check_cuda(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&started_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Graph() {
    cudaGraphExecDestroy(started_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void start(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(started_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_{};
  cudaGraphExec_t started_{};
};

class Events {
 public:
  explicit Events(cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaEventCreate(&begin_), "cudaEventCreate");
    check_cuda(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Events() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  template <class Work>
  double milliseconds_of(Work work) {
    check_cuda(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    work();
    check_cuda(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end_), "timed work");
    float elapsed = 0.0f;
    check_cuda(cudaEventElapsedTime(&elapsed, begin_, end_), "cudaEventElapsedTime");
    return static_cast<double>(elapsed);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_{};
  cudaEvent_t end_{};
};

// Device memory for the length of a measurement.
class Bytes {
 public:
  explicit Bytes(std::size_t count) { check_cuda(cudaMalloc(&data_, count), "cudaMalloc"); }
  ~Bytes() { cudaFree(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace

GpuDescription describe_gpu() {
  cudaDeviceProp properties{};
  int driver = 0;
  int runtime = 0;
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {properties.name,
          version(driver),
          version(runtime),
          std::to_string(properties.major) + "." + std::to_string(properties.minor),
          properties.multiProcessorCount,
          static_cast<std::int64_t>(properties.totalGlobalMem),
          properties.l2CacheSize};
}

double copy_bandwidth_bytes_per_s() {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const Bytes from(kBytes);
  const Bytes to(kBytes);
  Events events(nullptr);
  double best = 0.0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const double ms = events.milliseconds_of([&] {
      check_cuda(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice), "copying on the GPU");
    });
    best = std::max(best, 2.0 * static_cast<double>(kBytes) / (ms * 1e-3));
  }
  return best;
}

KernelTimes milliseconds(int repeats, const std::function<void(void* stream)>& run) {
  constexpr std::size_t kFlushBytes = std::size_t{512} << 20;
  constexpr int kUncounted = 3;
  const Bytes flush(kFlushBytes);
  const Stream stream;
  Events events(stream);
  run(stream);  // loads the kernels, which a capture may not
  check_cuda(cudaStreamSynchronize(stream), "timed work");
  const Graph graph(stream, run);
  KernelTimes times;
  for (int repeat = -kUncounted; repeat < repeats; ++repeat) {
    const auto time = [&](auto work, std::vector<double>& out) {
      check_cuda(cudaMemsetAsync(flush.data(), repeat & 1, kFlushBytes, stream), "flushing the L2 cache");
      const double ms = events.milliseconds_of(work);
      if (repeat >= 0) out.push_back(ms);
    };
    time([&] { run(stream); }, times.launched);
    time([&] { graph.start(stream); }, times.of_graph);
  }
  return times;
}

}  // namespace draftproof::cuda_executor
