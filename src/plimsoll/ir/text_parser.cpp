#include <algorithm>
#include <optional>
#include <unordered_set>

#include "plimsoll/ir/init_names.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/ir/text_scanner.h"

namespace plimsoll::ir {
namespace {

constexpr std::int64_t kVersion = 1;
// Attributes are a sorted list, made for a dozen; a hostile million would take quadratic time.
constexpr std::size_t kMaxAttributes = 256;

// The place of a word in a list of `count` names, or nothing.
template <typename T>
std::optional<T> find_named(std::string_view word, int count) {
  for (int i = 0; i < count; ++i) {
    if (name(static_cast<T>(i)) == word) return static_cast<T>(i);
  }
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, std::span<const SymbolSize> sizes) : scan_(text), sizes_(sizes) {}

  Result<Graph> parse() {
    PLIMSOLL_RETURN_IF_ERROR(parse_heading());
    PLIMSOLL_RETURN_IF_ERROR(parse_symbols());
    bool ended = false;
    for (scan_.skip_to_line(); !ended; scan_.skip_to_line()) {
      if (scan_.at_end()) return scan_.error("the text ends without the line 'end'");
      PLIMSOLL_TRY(ended, parse_line());
      PLIMSOLL_RETURN_IF_ERROR(scan_.expect_line_end());
    }
    if (!scan_.at_end()) return scan_.error("there is more after the line 'end'");
    PLIMSOLL_RETURN_IF_ERROR(place_values());
    PLIMSOLL_RETURN_IF_ERROR(verify(graph_));
    return std::move(graph_);
  }

 private:
  struct Definition {
    std::uint32_t id;
    Value value;
    std::optional<std::vector<std::byte>> data;
  };

  Status parse_heading() {
    scan_.skip_to_line();
    for (const std::string_view expected : {"plimsoll", "graph"}) {
      PLIMSOLL_TRY(const std::string_view found, scan_.word("'plimsoll graph 1 \"name\"'"));
      if (found != expected)
        return scan_.error("expected 'plimsoll graph 1 \"name\"', found '{}'", found);
    }
    PLIMSOLL_TRY(const std::int64_t version, scan_.integer());
    if (version != kVersion)
      return scan_.error("version {} of the format; this program reads {}", version, kVersion);
    PLIMSOLL_TRY(graph_.name, scan_.string("the graph's name"));
    return scan_.expect_line_end();
  }

  // `symbols batch=8 seq=128`, if that comes next; the sizes that were asked for go before the
  // file's.
  Status parse_symbols() {
    scan_.skip_to_line();
    std::vector<SymbolSize> symbols;
    if (scan_.next_is("symbols ")) {
      PLIMSOLL_RETURN_IF_ERROR(scan_.word("'symbols'"));
      do {
        PLIMSOLL_TRY(const std::string_view symbol, scan_.word("a symbol"));
        PLIMSOLL_RETURN_IF_ERROR(scan_.expect('='));
        PLIMSOLL_TRY(const std::int64_t size, scan_.integer());
        if (!is_symbol(symbol) || size < 0)
          return scan_.error("'{}={}': expects a plain word and a size", symbol, size);
        if (symbols.size() == kMaxSymbols) return scan_.error("more than {} symbols", kMaxSymbols);
        symbols.push_back({std::string(symbol), size});
      } while (scan_.peek() != '\n' && scan_.peek() != '#');
      PLIMSOLL_RETURN_IF_ERROR(scan_.expect_line_end());
    }
    PLIMSOLL_TRY(symbols, choose_sizes(std::move(symbols), sizes_));
    scan_.set_symbols(std::move(symbols));
    return {};
  }

  // True when the line was `end`.
  Result<bool> parse_line() {
    const char first = scan_.peek();
    if (first == '%' || first == '=') {
      PLIMSOLL_RETURN_IF_ERROR(parse_definition());
      return false;
    }
    PLIMSOLL_TRY(const std::string_view word, scan_.word("a value, 'output', 'update' or 'end'"));
    if (word == "end") return true;
    if (word == "output") {
      PLIMSOLL_TRY(const ValueId id, parse_known_id());
      graph_.outputs.push_back(id);
      return false;
    }
    if (word == "update") {
      PLIMSOLL_TRY(const ValueId source, parse_known_id());
      PLIMSOLL_RETURN_IF_ERROR(scan_.expect('-'));
      PLIMSOLL_RETURN_IF_ERROR(scan_.expect('>'));
      PLIMSOLL_TRY(const ValueId next, parse_known_id());
      graph_.updates.push_back({source, next});
      return false;
    }
    return scan_.error("expected a value, 'output', 'update' or 'end', found '{}'", word);
  }

  // A source, or the values of a node and the node.
  Status parse_definition() {
    std::vector<Definition> made;
    while (scan_.peek() == '%') {
      PLIMSOLL_TRY(Definition definition, parse_value());
      made.push_back(std::move(definition));
      if (!scan_.take(',')) break;
    }
    if (scan_.take('=')) {
      PLIMSOLL_RETURN_IF_ERROR(parse_node(made));
    } else if (made.size() != 1) {
      return scan_.error("expected '=' and an operator");
    }
    for (Definition& definition : made) {
      if (!known_.insert(definition.id).second) {
        return scan_.error("value %{} is defined twice", definition.id);
      }
      definitions_.push_back(std::move(definition));
    }
    return {};
  }

  Result<Definition> parse_value() {
    Definition out;
    PLIMSOLL_TRY(out.id, scan_.id());
    PLIMSOLL_TRY(const std::string_view word, scan_.word("a kind of value"));
    const auto kind = find_named<ValueKind>(word, kValueKindCount);
    if (!kind) return scan_.error("'{}' is no kind of value", word);
    out.value.kind = *kind;
    PLIMSOLL_TRY(out.value.name, scan_.string("the value's name"));
    PLIMSOLL_TRY(out.value.type, parse_type());
    while (scan_.peek() != '\n' && scan_.peek() != ',' && scan_.peek() != '=' &&
           scan_.peek() != '#') {
      PLIMSOLL_TRY(const std::string_view part, scan_.word("'data' or an initialisation"));
      if (part == "data") {
        PLIMSOLL_TRY(out.data, scan_.bytes());
      } else {
        PLIMSOLL_TRY(out.value.init, parse_init(part));
      }
    }
    return out;
  }

  Result<TensorType> parse_type() {
    TensorType out;
    PLIMSOLL_TRY(const std::string_view word, scan_.word("a dtype"));
    const auto dtype = parse_dtype(word);
    if (!dtype) return scan_.error("'{}' is no dtype", word);
    out.dtype = *dtype;
    PLIMSOLL_TRY(const Ints dims, scan_.integers());
    const auto shape = Shape::make(dims);
    if (!shape) return scan_.error("{}", shape.error().message);
    out.shape = *shape;
    const std::string_view text = scan_.layout_text();
    const auto layout = parse_layout(text);
    if (!layout || !fits(*layout, out.shape))
      return scan_.error("'{}' is no layout of {}", text, to_string(out.shape));
    out.layout = *layout;
    return out;
  }

  Result<Init> parse_init(std::string_view word) {
    const auto* place = std::find(kInitNames.begin(), kInitNames.end(), word);
    if (place == kInitNames.end()) return scan_.error("'{}' is no initialisation", word);
    Init out{static_cast<Init::Kind>(place - kInitNames.begin()), 0, 0};
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect('('));
    PLIMSOLL_TRY(out.a, scan_.real());
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect(','));
    PLIMSOLL_TRY(out.b, scan_.real());
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect(')'));
    return out;
  }

  Status parse_node(std::vector<Definition>& made) {
    Node node;
    PLIMSOLL_TRY(node.op, word_or_string("an operator"));
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect('('));
    PLIMSOLL_TRY(node.inputs, parse_inputs());
    if (scan_.peek() == '{') {
      PLIMSOLL_TRY(node.attributes, parse_attributes());
    }
    PLIMSOLL_TRY(const std::string_view word, scan_.word("a phase"));
    const auto phase = find_named<Phase>(word, kPhaseCount);
    if (!phase) return scan_.error("'{}' is no phase", word);
    node.phase = *phase;
    if (scan_.peek() == '"') {
      PLIMSOLL_TRY(node.layer, scan_.string("a layer"));
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].value.producer = NodeId(graph_.nodes.size());
      made[i].value.output = static_cast<std::uint32_t>(i);
      node.outputs.emplace_back(made[i].id);
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Result<std::vector<ValueId>> parse_inputs() {
    std::vector<ValueId> out;
    if (scan_.take(')')) return out;
    do {
      if (scan_.take('_')) {
        out.emplace_back();
        continue;
      }
      PLIMSOLL_TRY(const ValueId id, parse_known_id());
      out.push_back(id);
    } while (scan_.take(','));
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect(')'));
    return out;
  }

  Result<Attributes> parse_attributes() {
    Attributes out;
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect('{'));
    do {
      PLIMSOLL_TRY(const std::string key, word_or_string("an attribute's name"));
      if (out.entries().size() == kMaxAttributes)
        return scan_.error("more than {} attributes", kMaxAttributes);
      if (out.has(key)) return scan_.error("attribute '{}' stands twice", key);
      PLIMSOLL_RETURN_IF_ERROR(scan_.expect('='));
      PLIMSOLL_TRY(Attribute value, parse_attribute());
      out.set(key, std::move(value));
    } while (scan_.take(','));
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect('}'));
    return out;
  }

  Result<Attribute> parse_attribute() {
    const char first = scan_.peek();
    if (first == '"') {
      PLIMSOLL_TRY(std::string text, scan_.string("a text"));
      return Attribute(std::move(text));
    }
    if (first == '[') {
      PLIMSOLL_TRY(Ints values, scan_.integers());
      return Attribute(std::move(values));
    }
    if (scan_.next_is("r[")) return parse_reals();
    return scan_.number();
  }

  Result<Attribute> parse_reals() {
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect('r'));
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect('['));
    Reals out;
    if (scan_.take(']')) return Attribute(std::move(out));
    do {
      PLIMSOLL_TRY(const double value, scan_.real());
      out.push_back(value);
    } while (scan_.take(','));
    PLIMSOLL_RETURN_IF_ERROR(scan_.expect(']'));
    return Attribute(std::move(out));
  }

  Result<std::string> word_or_string(std::string_view what) {
    if (scan_.peek() == '"') return scan_.string(what);
    PLIMSOLL_TRY(const std::string_view word, scan_.word(what));
    return std::string(word);
  }

  Result<ValueId> parse_known_id() {
    PLIMSOLL_TRY(const std::uint32_t id, scan_.id());
    if (!known_.contains(id)) return scan_.error("value %{} is not defined above this line", id);
    return ValueId(id);
  }

  // Moves the definitions from the order of the text to the order of their ids.
  Status place_values() {
    graph_.values.resize(definitions_.size());
    for (Definition& definition : definitions_) {
      if (definition.id >= definitions_.size()) {
        return bad_input(
            "value %{} is defined, but there are only {} values; ids run from 0 without gaps",
            definition.id, definitions_.size());
      }
      if (definition.data)
        graph_.constants.push_back({ValueId(definition.id), std::move(*definition.data)});
      graph_.values[definition.id] = std::move(definition.value);
    }
    std::sort(graph_.constants.begin(), graph_.constants.end(),
              [](const Constant& a, const Constant& b) { return a.value < b.value; });
    return {};
  }

  TextScanner scan_;
  std::span<const SymbolSize> sizes_;
  Graph graph_;
  std::vector<Definition> definitions_;  // in the order of the text
  std::unordered_set<std::uint32_t> known_;
};

}  // namespace

Result<Graph> parse_text(std::string_view text, std::span<const SymbolSize> sizes) {
  return Parser(text, sizes).parse();
}

}  // namespace plimsoll::ir
