// Sequences of tensors and optional values, resolved at import.
//
// A sequence that exporters write (SplitToSequence, then SequenceAt or ConcatFromSequence; a list
// filled in a loop) has a length that is known as soon as shapes are. So it is no value of our
// graph but a list of tensors while importing (Tensor::items): inserting makes another list,
// reading one is another name for its tensor. Lists come from nodes only: inputs and outputs of a
// model are tensors. An optional value is the tensor or list itself, or absent.
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::model::onnx {
namespace {

using Items = std::vector<TensorId>;

constexpr std::int64_t kMostPieces = 1 << 16;

Result<const Items*> items_of(OperatorCall& call, int input) {
  const Items* items =
      call.has(input) ? call.importer().tensor(call.input(input)).items.get() : nullptr;
  if (items == nullptr) return bad_input("input {} is no sequence", input);
  return items;
}

// What is known of constants stays known: shapes are often put together in lists.
template <typename Build>
Result<Array> computed(const std::vector<const Array*>& inputs, const Build& build) {
  Builder scratch("fold");
  std::vector<Var> vars;
  for (const Array* input : inputs)
    vars.push_back(scratch.constant(fmt::format("input{}", vars.size()), *input));
  const Var y = build(vars);
  if (scratch.error()) return tl::unexpected<Error>(*scratch.error());
  PLIMSOLL_TRY(ops::Environment values, ops::interpret(scratch.graph(), {}));
  return *values[y.id().index()];
}

// The contents of all of them when all are known and no weights, and small enough to be read so
// many times; else nothing.
Result<std::vector<const Array*>> all_known(OperatorCall& call, const Items& items,
                                            std::int64_t times = 1) {
  std::vector<const Array*> out;
  std::int64_t elements = 0;
  for (const TensorId item : items) {
    if (!call.importer().foldable(item)) return std::vector<const Array*>{};
    elements += call.importer().tensor(item).type.shape.elements();
    if (elements > kMostFolded / times) return std::vector<const Array*>{};
    PLIMSOLL_TRY(const Array* array, call.importer().known(item));
    if (array == nullptr) return std::vector<const Array*>{};
    out.push_back(array);
  }
  return out;
}

// A place in a list; one behind the last only for `end`.
Result<std::size_t> place_of(OperatorCall& call, int input, const Items& items, bool end) {
  const auto count = static_cast<std::int64_t>(items.size());
  PLIMSOLL_TRY(std::int64_t place,
               call.known_integer(input, "the position", end ? count : count - 1));
  if (place < 0) place += count;
  if (place < 0 || place >= count + (end ? 1 : 0))
    return bad_input("position {} of a sequence of {}", place, count);
  return static_cast<std::size_t>(place);
}

Status give(OperatorCall& call, int output, Items items) {
  if (!call.wants(output)) return {};
  PLIMSOLL_TRY(const TensorId made,
               call.importer().add_items(call.node().outputs[static_cast<std::size_t>(output)],
                                         std::move(items)));
  call.out_alias(output, made);
  return {};
}

Status construct(OperatorCall& call) {
  Items items;
  for (int i = 0; i < call.inputs(); ++i) {
    if (!call.has(i)) return bad_input("input {} is missing", i);
    items.push_back(call.input(i));
  }
  return give(call, 0, std::move(items));
}

Status empty(OperatorCall& call) {
  return give(call, 0, {});
}

Status insert(OperatorCall& call) {
  PLIMSOLL_TRY(const Items* before, items_of(call, 0));
  if (!call.has(1)) return bad_input("what to insert is missing");
  PLIMSOLL_TRY(const std::size_t place, place_of(call, 2, *before, true));
  Items items = *before;
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(place), call.input(1));
  return give(call, 0, std::move(items));
}

Status erase(OperatorCall& call) {
  PLIMSOLL_TRY(const Items* before, items_of(call, 0));
  PLIMSOLL_TRY(const std::size_t place, place_of(call, 1, *before, false));
  Items items = *before;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(place));
  return give(call, 0, std::move(items));
}

Status at(OperatorCall& call) {
  PLIMSOLL_TRY(const Items* items, items_of(call, 0));
  if (!call.has(1)) return bad_input("the position is missing");
  PLIMSOLL_TRY(const std::size_t place, place_of(call, 1, *items, false));
  return call.done((*items)[place]);
}

Status length(OperatorCall& call) {
  PLIMSOLL_TRY(const Items* items, items_of(call, 0));
  return call.done(Array::of_integers({}, {static_cast<std::int64_t>(items->size())}));
}

Status concat_items(OperatorCall& call) {
  PLIMSOLL_TRY(const Items* items, items_of(call, 0));
  if (items->empty()) return bad_input("nothing to join: the sequence is empty");
  const bool stack = call.integer("new_axis", 0) != 0;
  for (const TensorId item : *items) {
    if (call.importer().tensor(item).items != nullptr)
      return bad_input("joins sequences of sequences");
  }
  const int rank = call.importer().tensor(items->front()).type.shape.rank() + (stack ? 1 : 0);
  if (rank > ir::kMaxRank) return bad_input("stacks tensors of rank {}", ir::kMaxRank);
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", 0), rank));
  const auto joined = [&](std::vector<Var> parts) {
    for (Var& part : parts) {
      if (!stack) continue;
      ir::Ints shape = dims_of(part.shape());
      shape.insert(shape.begin() + std::min(axis, part.rank()), 1);
      part = reshape_to(part, shape);
    }
    return concat_all(parts, axis);
  };
  PLIMSOLL_TRY(const auto known, all_known(call, *items));
  if (!known.empty()) {
    PLIMSOLL_TRY(Array array, computed(known, joined));
    return call.done(std::move(array));
  }
  std::vector<Var> parts;
  for (const TensorId item : *items) {
    PLIMSOLL_TRY(const Var part, call.importer().in_graph(item));
    if (part.rank() >= ir::kMaxRank && stack)
      return bad_input("stacks tensors of rank {}", part.rank());
    parts.push_back(part);
  }
  return call.done(joined(std::move(parts)));
}

// Sizes of the pieces: equal ones, the last of what is left; or as given.
Result<ir::Ints> piece_sizes(OperatorCall& call, std::int64_t extent) {
  std::int64_t each = 1;
  if (call.has(1)) {
    PLIMSOLL_TRY(const ir::Ints split, call.known_integers(1, "split"));
    if (call.rank(1) == 1) {
      std::int64_t sum = 0;
      for (const std::int64_t size : split) {
        if (size < 0 || size > extent - sum)
          return bad_input("split does not add up to {}", extent);
        sum += size;
      }
      if (sum != extent) return bad_input("split does not add up to {}", extent);
      return split;
    }
    if (split.size() == 1) each = split.front();
  }
  if (each < 1 || (extent - 1) / each >= kMostPieces)
    return bad_input("splits {} into pieces of {}", extent, each);
  ir::Ints sizes;
  for (std::int64_t done = 0; done < extent; done += each)
    sizes.push_back(std::min(each, extent - done));
  return sizes;
}

Status split_to_sequence(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", 0), call.rank(0)));
  PLIMSOLL_TRY(const ir::Ints sizes, piece_sizes(call, call.shape(0)[axis]));
  const bool drop_axis = !call.has(1) && call.integer("keepdims", 1) == 0;
  PLIMSOLL_TRY(const auto known,
               all_known(call, {call.input(0)},
                         std::max<std::int64_t>(1, static_cast<std::int64_t>(sizes.size()))));
  Items items;
  std::int64_t from = 0;
  for (const std::int64_t size : sizes) {
    const auto piece_of = [&](Var x) {
      return drop_axis ? select(x, axis, from) : slice_axis(x, axis, from, from + size);
    };
    if (!known.empty()) {
      PLIMSOLL_TRY(Array array,
                   computed(known, [&](const std::vector<Var>& x) { return piece_of(x.front()); }));
      items.push_back(
          call.importer().add_known("piece", std::make_shared<const Array>(std::move(array))));
    } else {
      const Var piece = piece_of(call.in(0));
      if (call.builder().error()) return {};
      items.push_back(call.importer().add({.name = "piece", .type = piece.type(), .var = piece}));
    }
    from += size;
  }
  return give(call, 0, std::move(items));
}

// The body once for every element of the first sequence; further inputs are sequences as long, or
// tensors for all.
Status map(OperatorCall& call) {
  PLIMSOLL_TRY(const Items* first, items_of(call, 0));
  const AttributeFile* attribute = call.attribute("body");
  if (attribute == nullptr || !attribute->has_g) return bad_input("its body is missing");
  PLIMSOLL_TRY(GraphFile read, read_graph(attribute->g));
  const GraphFile& body = call.importer().keep(std::move(read));
  std::vector<Items> made(body.outputs.size());
  for (std::size_t i = 0; i < first->size(); ++i) {
    std::vector<TensorId> inputs;
    for (int k = 0; k < call.inputs(); ++k) {
      if (!call.has(k)) return bad_input("input {} is missing", k);
      const Items* items = call.importer().tensor(call.input(k)).items.get();
      if (items != nullptr && items->size() != first->size())
        return bad_input("its sequences have different lengths");
      inputs.push_back(items != nullptr ? (*items)[i] : call.input(k));
    }
    PLIMSOLL_TRY(const auto outputs, call.importer().inline_graph(body, inputs, call.scope()));
    for (std::size_t k = 0; k < outputs.size(); ++k) made[k].push_back(outputs[k]);
  }
  for (std::size_t k = 0; k < made.size(); ++k)
    PLIMSOLL_RETURN_IF_ERROR(give(call, static_cast<int>(k), std::move(made[k])));
  return {};
}

Status optional_element(OperatorCall& call) {
  if (!call.has(0)) return bad_input("an optional value without content");
  return call.done(call.input(0));
}

Status has_element(OperatorCall& call) {
  return call.done(Array::of_integers({}, {call.has(0) ? 1 : 0}, ir::DType::kBool));
}

}  // namespace

std::vector<Operator> sequence_operators() {
  return {
      {"SequenceConstruct", construct, {}, {}, false},
      {"SequenceEmpty", empty, "dtype", {}, false},
      {"SequenceInsert", insert, {}, {}, false},
      {"SequenceErase", erase, {}, {}, false},
      {"SequenceAt", at, {}, {}, false},
      {"SequenceLength", length, {}, {}, false},
      {"SequenceMap", map, "body", {}, false},
      {"SplitToSequence", split_to_sequence, "axis keepdims", {}, false},
      {"ConcatFromSequence", concat_items, "axis new_axis", {}, false},
      {"Optional", optional_element, "type", {}, false},
      {"OptionalGetElement", optional_element, {}, {}, false},
      {"OptionalHasElement", has_element, {}, {}, false},
  };
}

}  // namespace plimsoll::model::onnx
