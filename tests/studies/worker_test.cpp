#include "studies/worker.hpp"

#include <atomic>
#include <future>
#include <thread>

#include "tests/support/test.hpp"

namespace {

using NumberWorker = Worker<int, std::string>;

TEST_CASE("a worker shows a snapshot of the newest settings, whatever it was doing") {
  std::promise<void> started;
  std::atomic<int> cancelled{0};
  NumberWorker worker([&](const int& settings, Job& job, const NumberWorker::Publish& publish) {
    if (settings == 1) {
      publish("begun");
      started.set_value();
      while (!job.cancelled()) std::this_thread::yield();
      ++cancelled;
      publish("too late");
      job.check();
    }
    publish(std::to_string(settings));
  });
  CHECK(worker.latest() == nullptr);
  CHECK_FALSE(worker.state().busy);
  worker.request(1);
  started.get_future().wait();
  CHECK(worker.state().busy);
  CHECK(*worker.latest() == "begun");
  worker.request(2);
  worker.request(3);
  worker.settle();
  CHECK(cancelled == 1);
  CHECK(*worker.latest() == "3");
  CHECK(worker.state().error.empty());
}

TEST_CASE("a worker that is cancelled keeps the snapshot that it had") {
  std::promise<void> started;
  NumberWorker worker([&](const int& settings, Job& job, const NumberWorker::Publish& publish) {
    if (settings == 0) return publish("first");
    job.report(0.5, "halfway");
    started.set_value();
    while (true) job.check();
  });
  worker.request(0);
  worker.settle();
  worker.request(1);
  started.get_future().wait();
  CHECK(worker.state().progress.fraction == 0.5);
  CHECK(worker.state().progress.doing == "halfway");
  worker.cancel();
  worker.settle();
  CHECK(*worker.latest() == "first");
  CHECK(worker.state().error.empty());
}

TEST_CASE("what a computation throws is the worker's error until settings work again") {
  NumberWorker worker([](const int& settings, Job&, const NumberWorker::Publish& publish) {
    if (settings == 1) throw usage_error("--k", "is 1; expected 2");
    if (settings == 2) throw std::runtime_error("surprise");
    publish(std::to_string(settings));
  });
  worker.request(1);
  worker.settle();
  CHECK(worker.state().error == "--k: is 1; expected 2");
  CHECK(worker.latest() == nullptr);
  worker.request(2);
  worker.settle();
  CHECK_THAT(worker.state().error, Contains("a bug of ours") && Contains("surprise"));
  worker.request(3);
  worker.settle();
  CHECK(worker.state().error.empty());
  CHECK(*worker.latest() == "3");
}

TEST_CASE("a worker that still computes ends with its owner") {
  NumberWorker worker([](const int&, Job& job, const NumberWorker::Publish&) {
    while (true) job.check();
  });
  worker.request(1);
}

}  // namespace
