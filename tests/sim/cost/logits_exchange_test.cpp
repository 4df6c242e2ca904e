// The exchange of logits between GPUs against numbers done by hand.
#include "sim/cost/logits_exchange.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a gather of logits and the messages of shards take the bytes and times done by hand", "[shards]") {
  Gpu gpu;
  gpu.link_bandwidth = 100e9;
  EngineProfile engine;
  engine.constants[static_cast<std::size_t>(EngineConstant::collective_ms)].value = 0.01;
  // 4 GPUs, 10 rows of 1,000 tokens: 10 x 2,000 x 3/4 bytes; 10 x 100 x 2 x 3/4.
  const LogitsExchange few = logits_exchange(gpu, engine, 4.0, 10.0, 1000.0, 100.0, 5.0);
  CHECK(few.gather_bytes == 15000.0);
  CHECK(few.gather_ns == Approx(150.0 + 10000.0));
  CHECK(few.messages_bytes == 1500.0);
  CHECK(few.messages_ns == Approx(15.0 + 50000.0));
  CHECK(few.messages_ns > few.gather_ns);  // latency decides where rows are few
  const LogitsExchange many = logits_exchange(gpu, engine, 4.0, 10000.0, 1000.0, 100.0, 5.0);
  CHECK(many.messages_ns < many.gather_ns);
  CHECK(logits_exchange(gpu, engine, 1.0, 10.0, 1000.0, 100.0, 5.0).gather_bytes == 0.0);
}
