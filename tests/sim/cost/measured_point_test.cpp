// Rows of measured speedups as people write them: what is read, what is assumed, what is refused and why.
#include "sim/cost/measured_point.hpp"
#include "tests/support/test.hpp"

namespace {

const std::string kHeader =
    "source_id,hardware,gpu_count,engine,target_model,target_precision,draft_method,draft_model,K,tree_nodes,tree_"
    "depth,"
    "tree_topk,batch,batch_kind,input_len,output_len,tau,tau_kind,speedup,duplicate_of\n";

MeasuredData read(const std::string& rows) {
  return measured_data_of(parse_csv(kHeader + rows, "f.csv"), "f.csv");
}

MeasuredPoint one(const std::string& row) {
  MeasuredData data = read(row + "\n");
  INFO((data.excluded.empty() ? std::string() : data.excluded[0].reason + " " + data.excluded[0].detail));
  REQUIRE(data.points.size() == 1);
  return data.points[0];
}

ExcludedRow refused(const std::string& row) {
  const MeasuredData data = read(row + "\n");
  REQUIRE(data.excluded.size() == 1);
  CHECK(data.excluded[0].line == 2);
  return data.excluded[0];
}

}  // namespace

TEST_CASE("A full row is read, and nothing is assumed") {
  const MeasuredPoint point =
      one("lab,NVIDIA A100-SXM4-80GB,1,vLLM 0.9,meta-llama/Llama-3.1-8B-Instruct,fp16,EAGLE-3 "
          "chain,,5,,,,8,batch,1000,200,2.8,incl. bonus,1.75,");
  CHECK(point.source == "lab");
  CHECK(point.step_ratio == Approx(1.6));
  CHECK(point.batch.batch == 8);
  CHECK(point.batch.context == 1100);
  CHECK(point.form.nodes == 5);
  CHECK(point.form.depth == 5);
  CHECK_FALSE(point.form.is_tree());
  CHECK(point.kind == DraftingKind::head);
  CHECK(point.complete());
  CHECK(point.setups.size() == 1);
  // 5 passes of a head of (width^2 (2 + 3 x 14336/4096 + 2 x 1.25)... counted by the drafter) over the target.
  CHECK(point.textbook_ratio > 1.2);
  CHECK(point.textbook_ratio < 1.4);
}

TEST_CASE("Trees, roots, adaptive budgets and chains are distinguished") {
  const std::string before = "lab,H100,1,";
  const MeasuredPoint tree = one(before + "HF transformers,Vicuna-7B,fp16,EAGLE-2,,,60,6,10,1,,,,4.0,,2.5,");
  CHECK(tree.form.nodes == 60);
  CHECK(tree.form.is_tree());
  const MeasuredPoint with_root = one(before + "SGLang,Llama-3.1-8B,bf16,EAGLE-3 tree,,,8,5,4,1,,,,3.0,,1.9,");
  CHECK(with_root.form.nodes == 7);
  const MeasuredPoint thin = one(before + "SGLang,Llama-3.1-8B,bf16,EAGLE-3 tree,,,6,5,3,1,,,,3.0,,1.9,");
  CHECK(thin.form.nodes == 5);
  CHECK(thin.form.is_tree());
  const MeasuredPoint chain = one(before + "SGLang,Llama-3.1-8B,bf16,EAGLE-3 chain,,3,3,3,1,1,,,,2.5,,1.9,");
  CHECK(chain.form.nodes == 3);
  CHECK_FALSE(chain.form.is_tree());
  const MeasuredPoint adaptive = one(before + "HF,Llama-3.1-8B,bf16,EAGLE-3 adaptive tree,,,60,7,,1,,,,4.0,,2.5,");
  CHECK(adaptive.form.nodes == 30);
  CHECK_FALSE(adaptive.complete());
}

TEST_CASE("A budget of nodes under K is a tree, and an adaptive tree's depth bounds its acceptance length") {
  const MeasuredPoint budget = one("lab,A100,1,HF,Vicuna-7B,fp16,EAGLE-2,,60,,,,1,,,,4.0,,2.5,");
  CHECK(budget.form.nodes == 60);
  CHECK(budget.form.depth == 6);
  const MeasuredPoint deep = one("lab,A100,1,HF,Vicuna-7B,fp16,EAGLE-2,,30,,4,,1,,,,4.0,,2.5,");
  CHECK(deep.form.nodes == 30);
  CHECK(deep.form.depth == 4);
  CHECK(one("lab,A100,1,HF,Vicuna-7B,fp16,EAGLE-3 adaptive tree,,,60,7,,1,,,,7.5,,3.5,").form.depth == 6);
}

TEST_CASE("A number of GPUs in the name of the hardware is read in all its forms") {
  for (const auto& [hardware, tp] : std::vector<std::pair<std::string, double>>{{"4x A100", 4},
                                                                                {"A100 x4", 4},
                                                                                {"8xH100-80G", 8},
                                                                                {"H100x8", 8},
                                                                                {"H100*8", 8},
                                                                                {"8 \xC3\x97 H200", 8},
                                                                                {"H100 (TP=2)", 2}})
    CHECK(one("lab," + hardware + ",,vLLM,Llama-3.1-8B,,EAGLE-3,,3,,,,1,,,,2.3,,1.5,").setups.at(0).tp == tp);
  CHECK(one("lab,RTX 4090 (PCIe 4.0 x16),,vLLM,Llama-3.1-8B,,EAGLE-3,,3,,,,1,,,,2.3,,1.5,").setups.at(0).tp == 1.0);
}

TEST_CASE("An acceptance length without the bonus token gets one, and a number in words is read") {
  CHECK(
      one("lab,H100,1,vLLM,Llama-3.1-8B,,EAGLE-3,,3,,,,1,,,,1.5,excluding the bonus token,~1.9x,").acceptance_length ==
      2.5);
  CHECK(lenient_number("2.1\xC3\x97") == 2.1);
  CHECK(lenient_number("1,024") == 1024.0);
  CHECK(lenient_number(".5") == 0.5);
  for (const char* text : {"", "1,5", "two", "nan", "inf", "1 2", "x"}) CHECK_FALSE(lenient_number(text));
}

TEST_CASE("What a row does not say is assumed, and the row is not complete") {
  const MeasuredPoint point = one("lab,H100,,MyEngine,Foo-13B,,Medusa,,,,,,,,,,2.3,,1.5,");
  CHECK_FALSE(point.complete());
  CHECK(point.assumptions.size() == 4);  // the model's shape, the engine, the draft, the batch
  CHECK(point.form.nodes == 63);
  const MeasuredPoint large = one("lab,H100,,vLLM,Llama-3.1-70B,,EAGLE-3,,3,,,,1,,,,2.3,,1.5,");
  CHECK(large.setups.size() == 3);  // 2, 4 and 8 GPUs
  CHECK(large.multi_gpu);
  CHECK(one("lab,A100 40GB x4,,vLLM,Llama-3.1-70B,,EAGLE-3,,3,,,,1,,,,2.3,,1.5,").setups.at(0).tp == 4.0);
}

TEST_CASE("What is rounded to a whole number of drafts or requests is listed among the assumptions") {
  const auto assumptions = [](const std::string& drafts, const std::string& batch) {
    return one("lab,H100,1,vLLM,Llama-3.1-8B,bf16,EAGLE-3,," + drafts + ",,,," + batch + ",,,,2.3,,1.5,").assumptions;
  };
  using Texts = std::vector<std::string>;
  CHECK(assumptions("3", "2") == Texts{});
  CHECK(assumptions("4.5", "2") == Texts{"draft rounded to whole tokens"});
  CHECK(assumptions("3", "1.5") == Texts{"batch rounded to whole requests"});
  CHECK(assumptions("3", "0.25") == Texts{"batch below 1: 1"});
  // The length of independent acceptances is that of the drafts that are left.
  const std::string derived =
      "hardware,gpu_count,engine,target_model,draft_method,K,batch,alpha,alpha_kind,speedup\n"
      "H100,1,vLLM,Llama-3.1-8B,EAGLE-3,2.5,1,0.5,i.i.d.,1.2\n";
  CHECK(measured_data_of(parse_csv(derived, "f.csv"), "f.csv").points.at(0).acceptance_length == 1.875);
  CHECK(refused("lab,H100,1.5,vLLM,Llama-3.1-8B,bf16,EAGLE-3,,3,,,,1,,,,2.3,,1.5,").reason ==
        "number of GPUs is not whole");
}

TEST_CASE("Rows that cannot be used are excluded with their line and the reason") {
  const std::string good = "lab,H100,1,vLLM,Llama-3.1-8B,bf16,EAGLE-3,,3,,,,1,,,,";
  CHECK(refused(good + ",,1.5,").reason == "no acceptance length");
  CHECK(refused(good + "2.5,,,").reason == "no speedup");
  CHECK(refused(good + "2.5,,fast,").reason == "speedup is not a number");
  CHECK(refused(good + "-2,,1.5,").reason == "tau is out of range");
  CHECK(refused(good + "0.5,,0.4,").reason == "acceptance length below 1");
  CHECK(refused(good + "2.0,,2.5,").reason == "speedup above the acceptance length");
  CHECK(refused(good + "6.0,,1.5,").reason == "acceptance length above the depth of the draft");
  CHECK(refused(good + "2.5,,1.5,P1").reason == "duplicate of another row");
  CHECK(refused(good + "2.5,,1.5").reason == "another number of fields than the header");
  CHECK(refused("lab,Abacus,1,vLLM,Llama-3.1-8B,,EAGLE-3,,3,,,,1,,,,2.5,,1.5,").reason == "unknown hardware");
  CHECK(refused("lab,H100,1,vLLM,Foo,,EAGLE-3,,3,,,,1,,,,2.5,,1.5,").reason == "unknown target model");
  CHECK(refused("lab,H100,1,vLLM,Llama-3.1-8B,,telepathy,,3,,,,1,,,,2.5,,1.5,").reason ==
        "unknown draft method or draft model");
  CHECK(refused("lab,H100,1,vLLM,Llama-3.1-8B,,EAGLE-3,,3,,,,many,,,,2.5,,1.5,").reason == "batch is not a number");
}

TEST_CASE("A file without the needed columns is one error that names the column") {
  CHECK_THROWS_WITH(measured_data_of(parse_csv("a,b\n1,2\n", "f.csv"), "f.csv"),
                    Contains("f.csv: it has no column hardware"));
  CHECK_THROWS_WITH(measured_data_of(parse_csv("hardware,target_model,draft_method,tau\n", "f.csv"), "f.csv"),
                    Contains("neither a column speedup nor spec_tok_s"));
}
