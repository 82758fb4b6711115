// The walk over an ONNX graph that builds ours: names to tensors, operators to builder calls.
//
// A Tensor is what a name in the file stands for while importing. It is in up to three states at
// once: an initialiser still in the file, a known array, a value of the graph under construction;
// it enters the graph only when some operator reads it there, so constants that fold away leave no
// trace.
//
// Operators are converted by the functions of the operator table, which see one node through an
// OperatorCall (operator_call.h). When all inputs of a node are foldable the same function runs
// against a scratch builder and the little graph is evaluated at once: one description serves graph
// and folding.
//
// A sequence of tensors is the list of their ids (convert_sequences.cpp); it never enters the
// graph.
//
// Scopes: names of a subgraph (If, Loop) see those outside; a function body sees only its own.
//
// Bounds, all far above what real models have: kMostSteps nodes converted and made (functions,
// loops and recurrences inlined), kMostDepth nested bodies, kMostFolded elements for one folded
// node and in all known arrays, kMostMade elements of a tensor that comes from constants but is too
// large to be folded.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plimsoll/model/onnx/bounded_axes.h"
#include "plimsoll/model/onnx/buffers.h"
#include "plimsoll/model/onnx/format/model_file.h"
#include "plimsoll/model/onnx/import_options.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/store/data_folder.h"

namespace plimsoll::model::onnx {

inline constexpr std::int64_t kMostSteps = 200'000;
inline constexpr int kMostDepth = 24;
inline constexpr std::size_t kMostLimits = 4096;  // of lists that NonZero finds
inline constexpr std::int64_t kMostFolded = 1 << 23;
// elements of one tensor made of constants alone
inline constexpr std::int64_t kMostMade = 1LL << 31;
inline constexpr double kMostFoldedWork = 2e8;  // arithmetic operations of one folded node

struct Tensor {
  std::string name;
  ir::TensorType type = {};
  ops::Var var = {};                             // once it is in the graph
  std::shared_ptr<const ops::Array> known = {};  // once its content is
  const TensorFile* file = nullptr;              // an initialiser
  // a sequence, which is no value of the graph
  std::shared_ptr<const std::vector<Id<Tensor>>> items = {};
};
using TensorId = Id<Tensor>;

// A body whose names are being defined.
struct Scope {
  std::unordered_map<std::string_view, TensorId> names;
  const Scope* outer = nullptr;
  const std::vector<OpsetFile>* opsets = nullptr;
  // In a function body: the attributes of the call.
  const std::unordered_map<std::string_view, const AttributeFile*>* attributes = nullptr;
  int depth = 0;
  bool repeats = false;  // a body that may stand for several rounds of a loop

  TensorId find(std::string_view name) const;
};

// A node that makes the next version of state: its first `states` inputs are replaced by its
// outputs.
struct StateUpdate {
  std::string op;
  std::vector<ops::Var> inputs;
  ir::Attributes attributes;
  int states = 1;
};

class Importer;
struct Operator;

// The operators that can be converted (convert/operator_table.h): they know the importer, not it
// them.
struct OperatorSet {
  // Null when there is no such operator.
  const Operator* (*find)(std::string_view domain, std::string_view name) = nullptr;
  Status (*check)(const Operator& op, const NodeFile& node) = nullptr;
  // The outputs' tensors, invalid where none was made.
  Result<std::vector<TensorId>> (*convert)(Importer& importer, const NodeFile& node, Scope& scope,
                                           const Operator& op, std::int64_t version,
                                           std::vector<TensorId> inputs) = nullptr;
};

class Importer {
 public:
  Importer(const ModelFile& file, store::DataFolder* folder, const ImportOptions& options,
           const OperatorSet& operators);

  // The whole model; may be called once.
  Result<ImportedModel> run();

  ops::Builder& builder() { return builder_; }
  bool training() const { return options_.training; }

  TensorId add(Tensor tensor);
  TensorId add_known(std::string name, std::shared_ptr<const ops::Array> array);
  const Tensor& tensor(TensorId id) const { return tensors_[id.index()]; }
  // A sequence of tensors. All lists together are bounded like folded elements: each change makes
  // another list.
  Result<TensorId> add_items(std::string_view name, std::vector<TensorId> items);
  // As a value of the graph: a weight, a constant, or what a node made.
  Result<ops::Var> in_graph(TensorId id);
  // The content when it is or can be known; null for what only a run can tell, or what is too
  // large.
  Result<const ops::Array*> known(TensorId id);
  // Whether folding may read it: known, and no weight.
  bool foldable(TensorId id) const;

  // Converts the nodes of a body into the scope.
  Status convert(const std::vector<WireBytes>& nodes, Scope& scope);
  // A subgraph of an If, Loop or Scan with its inputs given; its outputs.
  Result<std::vector<TensorId>> inline_graph(const GraphFile& graph,
                                             const std::vector<TensorId>& inputs,
                                             const Scope& outer);
  // The random counter of the graph (one for all dropouts, counted up once a step), and a seed for
  // each.
  ops::Var random_counter();
  std::int64_t next_seed() { return ++seeds_; }
  // An initialiser that is state, not a weight (running statistics); absent for any other tensor.
  // When training, every place has state of its own: exporters store equal tensors once, and two
  // layers must not write to one. Otherwise it is absent when it is in the graph as a weight.
  ops::Var as_state(TensorId id);
  // Another name of an initialiser, which an exporter that stored equal tensors once gave it.
  TensorId renamed(TensorId id, std::string_view name);
  // Updates stand behind everything else, so that every reader of the old version comes first.
  void at_end_of_step(StateUpdate update) { updates_.push_back(std::move(update)); }
  // A weight that begins as one number in every element.
  ops::Var filled_weight(std::string_view name, const ir::TensorType& type, double value);
  // A name no source of the graph has yet: the one given, or with a number behind.
  std::string unique(std::string_view name);
  // For what NonZero finds in a run, under this name. A list that the file cuts into a fixed number
  // of parts has its capacity there.
  std::int64_t room_for(std::string_view list, std::int64_t most) const {
    return lists_in_parts_.contains(list) ? most : options_.capacity.of(most);
  }
  // What NonZero finds (bounded_axes.h): places[rank, room], and how many there are.
  void found(ops::Var places, ops::Var count) { found_.push_back({places.id(), count.id()}); }
  std::span<const Found> all_found() const { return found_; }
  // More of the list than this, and the outputs are NaN.
  Status limit(std::size_t found, std::int64_t most);
  // Keeps a subgraph's initialisers alive as long as the importer.
  const GraphFile& keep(GraphFile graph) { return graphs_.emplace_back(std::move(graph)); }

 private:
  // What is known of an initialiser that stands in one place or in several, when training.
  struct Standing {
    ops::Var weight;
    ops::Var state;
    std::int64_t weight_at = -1;  // the place of the last use
    std::int64_t state_at = -1;
    std::int64_t places = 0;
    bool trained = false;
  };

  Result<ops::Var> add_from_file(const Tensor& tensor, ir::ValueKind kind, std::string_view called);
  bool keeps_weights() const { return options_.training || options_.keeps_weights; }
  Result<ops::Var> place_weight(const Tensor& tensor);
  Result<ops::Var> place_state(const Tensor& tensor);
  bool is_buffer(const Tensor& tensor) const;
  TrainedInitialisers trained_initialisers() const;
  Status add_initializers(const GraphFile& graph, Scope& scope);
  Status add_inputs(Scope& scope);
  Result<ir::TensorType> input_type(const ValueFile& value);
  Result<std::int64_t> bind(const ValueFile& value, std::size_t axis, const ir::Shape* given);
  std::optional<std::int64_t> size_of(const ValueFile& value, std::size_t axis) const;
  tl::unexpected<Error> without_size(const ValueFile& value) const;
  Status convert_node(const NodeFile& node, Scope& scope);
  Status call_function(const FunctionFile& function, const NodeFile& node, Scope& scope);
  const FunctionFile* find_function(const NodeFile& node) const;
  bool is_weight(const Tensor& tensor) const;
  bool looks_like_mask(const Tensor& tensor) const;
  void build_updates();
  // The outputs, NaN where a run found more than there is room for.
  Result<std::vector<ops::Var>> limited(std::vector<ops::Var> outputs);
  Result<ImportedModel> finish(const Scope& scope);

  const ModelFile& file_;
  store::DataFolder* folder_;
  ImportOptions options_;
  OperatorSet operators_;
  ops::Builder builder_;
  store::WeightSource weights_;
  std::deque<Tensor> tensors_;
  std::deque<GraphFile> graphs_;
  std::unordered_set<std::string> used_names_;
  std::map<std::string, std::int64_t, std::less<>> bound_;
  std::unordered_map<std::string, const FunctionFile*> functions_;
  std::vector<StateUpdate> updates_;
  std::vector<Found> found_;
  std::unordered_set<std::string_view> lists_in_parts_;  // names in the file
  std::vector<std::pair<std::size_t, std::int64_t>> limits_;
  ops::Var random_counter_;
  std::int64_t seeds_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t place_ = 0;  // the node being converted; of a loop the loop
  Buffers buffers_;
  std::map<const TensorFile*, Standing> standing_;
  std::int64_t folded_ = 0;
};

}  // namespace plimsoll::model::onnx
