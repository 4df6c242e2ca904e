// The tree, its walk and its curves as JSON, as rows and as a figure.
#include <sstream>

#include "base/json_values.hpp"
#include "base/printable.hpp"
#include "studies/figures/figure.hpp"
#include "studies/palette.hpp"
#include "studies/tree/tree_explorer.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json node_json(const TreeExplorerNode& node) {
  Json json;
  json["token"] = node.token;
  json["text"] = node.text;
  json["parent"] = node.parent;
  json["depth"] = node.depth;
  json["q"] = node.q;
  json["p"] = node.p;
  json["value"] = node.value;
  json["reach"] = node.reach;
  return json;
}

Json step_json(const WalkStep& step) {
  Json json;
  json["kind"] = name_of(step.kind);
  json["at"] = step.at;
  json["node"] = step.node == kRootNode ? Json(nullptr) : Json(step.node);
  const bool is_coin = step.kind == WalkStep::Kind::coin;
  json["p"] = is_coin ? Json(step.p) : Json(nullptr);
  json["q"] = is_coin ? Json(step.q) : Json(nullptr);
  const bool has_u = is_coin || step.kind == WalkStep::Kind::shares || step.kind == WalkStep::Kind::draw;
  json["u"] = has_u ? Json(step.u) : Json(nullptr);
  json["shares"] = step.shares;
  json["token"] = step.token == kPaddingToken ? Json(nullptr) : Json(step.token);
  json["probability"] = step.token == kPaddingToken && step.shares.empty() ? Json(nullptr) : Json(step.probability);
  json["accepted"] = step.accepted;
  json["text"] = step.text;
  return json;
}

Json point_json(const BudgetPoint& point) {
  Json json;
  json["nodes"] = point.nodes;
  json["depth"] = point.depth;
  json["accepted"] = point.accepted;
  json["standard_error"] = or_null(point.standard_error);
  return json;
}

// The nodes and edges of the tree, for two plots.
void put_tree(std::ostream& script, const TreeExplorerSnapshot& snapshot) {
  script << "$edges << EOD\n";
  for (const TreeExplorerNode& node : snapshot.nodes) {
    const bool at_root = node.parent == kRootNode;
    const TreeExplorerNode* parent = at_root ? nullptr : &snapshot.nodes[static_cast<std::size_t>(node.parent)];
    script << (at_root ? snapshot.root_x : parent->x) << ' ' << -(at_root ? snapshot.root_y : parent->y) << '\n'
           << node.x << ' ' << -node.y << "\n\n";
  }
  script << "0 0\nEOD\n";
  for (const NodeState state : {NodeState::waiting, NodeState::accepted, NodeState::rejected}) {
    script << "$" << name_of(state) << " << EOD\n";
    for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
      const TreeExplorerNode& node = snapshot.nodes[i];
      if (snapshot.walk.empty() || snapshot.walk.back().states[i] == state)
        script << node.x << ' ' << -node.y << ' ' << node.q << '\n';
    }
    script << "EOD\n";
  }
}

}  // namespace

Json to_json(const TreeExplorerSnapshot& snapshot) {
  const TreeExplorerSettings& settings = snapshot.settings;
  Json json;
  json["builder"] = settings.builder;
  json["verifier"] = settings.verifier;
  json["pair"] = snapshot.pair;
  json["seed"] = settings.seed;
  json["nodes"] = json_list(snapshot.nodes, node_json);
  json["mask"] = Json::array();
  const std::size_t rows = snapshot.nodes.size() + 1;
  for (std::size_t r = 0; r < rows; ++r) {
    std::string row;
    for (std::size_t c = 0; c < rows; ++c) row += snapshot.mask[r * rows + c] ? '1' : '0';
    json["mask"].push_back(row);
  }
  json["walk"] = json_list(snapshot.walk, step_json);
  json["path"] = snapshot.path;
  json["emitted"] = snapshot.emitted;
  json["expected_by_draft"] = snapshot.expected_by_draft;
  json["expected_by_target"] = snapshot.expected_by_target;
  json["rank_rates"] = snapshot.rank_rates;
  json["curves"] = json_list(snapshot.curves, [](const BudgetCurve& curve) -> Json {
    return {{"builder", curve.builder},
            {"verifier", text_or_null(curve.verifier)},
            {"points", json_list(curve.points, point_json)}};
  });
  json["comparison"] = nullptr;
  if (snapshot.comparison)
    json["comparison"] = {{"verifier", text_or_null(snapshot.comparison->verifier)},
                          {"chain", point_json(snapshot.comparison->chain)},
                          {"tree", point_json(snapshot.comparison->tree)}};
  json["notes"] = snapshot.notes;
  return json;
}

Table to_table(const TreeExplorerSnapshot& snapshot) {
  Table table{{"node", "parent", "depth", "token", "text", "q", "p", "value", "reach", "state"}, {}};
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    const TreeExplorerNode& node = snapshot.nodes[i];
    const NodeState state = snapshot.walk.empty() ? NodeState::waiting : snapshot.walk.back().states[i];
    table.rows.push_back({static_cast<std::int64_t>(i), std::int64_t{node.parent}, std::int64_t{node.depth},
                          std::int64_t{node.token}, node.text, node.q, node.p, node.value, node.reach,
                          std::string(name_of(state))});
  }
  return table;
}

std::string to_figure(const TreeExplorerSnapshot& snapshot) {
  std::ostringstream script;
  put_tree(script, snapshot);
  for (std::size_t i = 0; i < snapshot.curves.size(); ++i) {
    script << "$curve" << i << " << EOD\n";
    for (const BudgetPoint& point : snapshot.curves[i].points)
      script << point.nodes << ' ' << 1.0 + point.accepted << ' ' << point.standard_error.value_or(0.0) << '\n';
    script << "EOD\n";
  }
  script << "set multiplot layout 1,2\nset title "
         << gnuplot_quoted(
                printable_line(snapshot.settings.builder + " tree, verified by " + snapshot.settings.verifier))
         << "\nunset border\nunset tics\nset key below\nset offsets 0.2,0.2,0.5,0.5\n"
         << "plot $edges with lines lc rgb '#bbbbbb' notitle";
  for (const auto& [state, colour] : {std::pair(NodeState::accepted, palette::kAccepted),
                                      {NodeState::rejected, palette::kRecovered},
                                      {NodeState::waiting, palette::kRejected}})
    script << ", $" << name_of(state) << " using 1:2:(0.6 + 2*sqrt($3)) with points pt 7 ps variable lc rgb '"
           << colour.hex << "' title '" << (state == NodeState::waiting ? "not reached" : name_of(state)) << "'";
  script << "\nset title 'tokens of a step by node budget'\nset border\nset tics\nset key inside bottom right vertical "
            "maxcols 1\n"
         << "set offsets 1,1,0,0\nset xlabel 'nodes verified'\nset grid ytics lc rgb '#dddddd'\n";
  for (std::size_t i = 0; i < snapshot.curves.size(); ++i) {
    const BudgetCurve& curve = snapshot.curves[i];
    const std::string title = curve.builder + (curve.verifier.empty() ? "" : ", " + curve.verifier);
    script << (i == 0 ? "plot " : ", ") << "$curve" << i
           << " using 1:2:(1.96*$3) with yerrorlines lw 2 pt 7 ps 0.5 lc rgb '"
           << palette::kSeries[i % palette::kSeries.size()].hex << "' title " << gnuplot_quoted(title);
  }
  script << "\nunset multiplot\n";
  return script.str();
}

}  // namespace draftproof
