#include "plimsoll/store/torch_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "plimsoll/base/utf8.h"
#include "plimsoll/store/pickle_values.h"

namespace plimsoll::store {
namespace {

using Kind = PickleValue::Kind;

constexpr int kDeepestPath = 16;
constexpr std::size_t kMostVisits = 8'000'000;
constexpr std::size_t kMostTorchDims = 64;

// As the pickle has them: "module\nname\n".
constexpr std::pair<std::string_view, Element> kStorages[] = {
    {"torch\nFloatStorage\n", Element::kF32},        {"torch\nHalfStorage\n", Element::kF16},
    {"torch\nBFloat16Storage\n", Element::kBF16},    {"torch\nDoubleStorage\n", Element::kF64},
    {"torch\nLongStorage\n", Element::kI64},         {"torch\nIntStorage\n", Element::kI32},
    {"torch\nShortStorage\n", Element::kI16},        {"torch\nCharStorage\n", Element::kI8},
    {"torch\nByteStorage\n", Element::kU8},          {"torch\nBoolStorage\n", Element::kBool},
    {"torch\nComplexFloatStorage\n", Element::kC64},
};
constexpr std::pair<std::string_view, Element> kTorchTypes[] = {
    {"torch\nfloat8_e4m3fn\n", Element::kF8E4M3},
    {"torch\nfloat8_e5m2\n", Element::kF8E5M2},
    {"torch\nfloat8_e4m3fnuz\n", Element::kF8E4M3Fnuz},
    {"torch\nfloat8_e5m2fnuz\n", Element::kF8E5M2Fnuz},
    {"torch\nfloat8_e8m0fnu\n", Element::kF8E8M0},
    {"torch\nuint16\n", Element::kU16},
    {"torch\nuint32\n", Element::kU32},
    {"torch\nuint64\n", Element::kU64},
    {"torch\nfloat32\n", Element::kF32},
    {"torch\nfloat16\n", Element::kF16},
    {"torch\nbfloat16\n", Element::kBF16},
};
std::optional<Element> element_named(std::span<const std::pair<std::string_view, Element>> table,
                                     std::string_view global) {
  for (const auto& [text, element] : table)
    if (text == global) return element;
  return std::nullopt;
}

class TorchReader {
 public:
  TorchReader(const Pickle& pickle, const std::map<std::string_view, const ZipMember*>& storages,
              std::uint64_t file_bytes)
      : pickle_(pickle),
        storages_(storages),
        most_bytes_((std::uint64_t{256} << 20) + 16 * file_bytes) {}

  Result<std::vector<TorchTensor>> read() {
    PLIMSOLL_RETURN_IF_ERROR(visit(pickle_.root, "", 0));
    if (out_.empty()) return bad_input("there are no tensors in it");
    return std::move(out_);
  }

 private:
  const PickleValue& value(std::uint32_t id) const { return pickle_.values[id]; }
  bool is_call_of(const PickleValue& call, std::string_view global) const {
    return call.kind == Kind::kCall && value(call.items[0]).kind == Kind::kGlobal &&
           value(call.items[0]).text == global;
  }
  // The value of a key as a part of a name; nothing where it is no text or number.
  std::optional<std::string> part(std::uint32_t id) const {
    const PickleValue& key = value(id);
    if (key.kind == Kind::kText) return std::string(key.text);
    if (key.kind == Kind::kInteger) return std::to_string(key.integer);
    return std::nullopt;
  }

  Status visit(std::uint32_t id, const std::string& path, int depth) {
    if (++visits_ > kMostVisits) return bad_input("its pickle refers to itself too often");
    const PickleValue& at = value(id);
    const auto below = [&](const std::string& name, std::uint32_t child) {
      return visit(child, path.empty() ? name : path + "." + name, depth + 1);
    };
    if (depth > kDeepestPath) return {};
    if (at.kind == Kind::kDictionary) {
      for (std::size_t i = 0; i + 1 < at.items.size(); i += 2)
        if (const auto name = part(at.items[i]))
          PLIMSOLL_RETURN_IF_ERROR(below(*name, at.items[i + 1]));
      return {};
    }
    if (at.kind == Kind::kSequence) {
      for (std::size_t i = 0; i < at.items.size(); ++i)
        PLIMSOLL_RETURN_IF_ERROR(below(std::to_string(i), at.items[i]));
      return {};
    }
    if (is_call_of(at, "torch._utils\n_rebuild_parameter\n")) {
      const PickleValue& arguments = value(at.items[1]);
      if (arguments.kind != Kind::kSequence || arguments.items.empty()) return {};
      return visit(arguments.items[0], path, depth + 1);
    }
    // An object of which nothing is known but its state: the modules of TorchScript.
    if (at.kind == Kind::kCall && at.items.size() == 3) return visit(at.items[2], path, depth + 1);
    const bool second = is_call_of(at, "torch._utils\n_rebuild_tensor_v2\n");
    if (!second && !is_call_of(at, "torch._utils\n_rebuild_tensor_v3\n")) return {};
    TorchTensor tensor;
    tensor.name = path;
    const Status built = build(value(at.items[1]), second, tensor);
    if (!built) return forward(built, fmt::format("tensor '{}'", excerpt(path)));
    out_.push_back(std::move(tensor));
    return {};
  }

  Result<std::uint64_t> count(std::uint32_t id) const {
    const PickleValue& number = value(id);
    if (number.kind != Kind::kInteger || number.integer < 0)
      return bad_input("a size is no number from 0 on");
    return static_cast<std::uint64_t>(number.integer);
  }
  Result<std::vector<std::uint64_t>> counts(std::uint32_t id) const {
    const PickleValue& list = value(id);
    if (list.kind != Kind::kSequence || list.items.size() > kMostTorchDims)
      return bad_input("its shape is no tuple of at most {} numbers", kMostTorchDims);
    std::vector<std::uint64_t> out;
    for (const std::uint32_t item : list.items) {
      PLIMSOLL_TRY(const std::uint64_t extent, count(item));
      out.push_back(extent);
    }
    return out;
  }

  // (storage, offset, size, stride, requires_grad, hooks[, dtype][, metadata])
  Status build(const PickleValue& arguments, bool typed_storage, TorchTensor& out) {
    if (arguments.kind != Kind::kSequence || arguments.items.size() < (typed_storage ? 4u : 7u))
      return bad_input("its description is cut off");
    PLIMSOLL_RETURN_IF_ERROR(open_storage(arguments.items[0], typed_storage, out));
    if (!typed_storage) {
      const PickleValue& type = value(arguments.items[6]);
      const auto element = element_named(kTorchTypes, type.text);
      if (type.kind != Kind::kGlobal || !element)
        return bad_input("its type '{}' is not read", excerpt(type.text));
      out.element = *element;
    }
    PLIMSOLL_TRY(const std::uint64_t offset, count(arguments.items[1]));
    PLIMSOLL_TRY(out.dims, counts(arguments.items[2]));
    PLIMSOLL_TRY(out.strides, counts(arguments.items[3]));
    return check_extent(offset, out);
  }
  // ('storage', torch.FloatStorage, '0', 'cpu', elements)
  Status open_storage(std::uint32_t id, bool typed, TorchTensor& out) {
    const PickleValue& persistent = value(id);
    if (persistent.kind != Kind::kPersistent) return bad_input("it has no storage");
    const PickleValue& parts = value(persistent.items[0]);
    if (parts.kind != Kind::kSequence || parts.items.size() < 3)
      return bad_input("its storage is not described as torch.save does");
    const PickleValue& type = value(parts.items[1]);
    const PickleValue& key = value(parts.items[2]);
    if (type.kind != Kind::kGlobal || key.kind != Kind::kText)
      return bad_input("its storage is not described as torch.save does");
    if (typed) {
      const auto element = element_named(kStorages, type.text);
      if (!element) return bad_input("its storage type '{}' is not read", excerpt(type.text));
      out.element = *element;
    }
    const auto member = storages_.find(key.text);
    if (member == storages_.end())
      return bad_input("its storage '{}' is not in the file", excerpt(key.text));
    out.storage = member->second->packed_bytes;
    return {};
  }
  // The last element that is reached must lie in the storage.
  Status check_extent(std::uint64_t offset, TorchTensor& out) {
    if (out.dims.size() != out.strides.size()) return bad_input("shape and strides disagree");
    const auto bytes = store::bytes_of(out.element, out.dims);
    const auto width = static_cast<std::uint64_t>(bits(out.element) / 8);
    if (!bytes) return bad_input("{} is too large", to_string(out.element, out.dims));
    std::uint64_t last = offset;
    std::uint64_t packed = 1;
    out.contiguous = true;
    for (std::size_t i = out.dims.size(); i-- > 0;) {
      if (out.dims[i] > 1) {
        std::uint64_t reach = 0;
        if (__builtin_mul_overflow(out.dims[i] - 1, out.strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
          return bad_input("its strides are too large");
        out.contiguous = out.contiguous && out.strides[i] == packed;
      }
      packed *= std::max<std::uint64_t>(out.dims[i], 1);
    }
    const std::uint64_t held = out.storage.size() / width;
    if (*bytes > 0 && last >= held)
      return bad_input("reaches element {} of a storage of {}", last, held);
    if (*bytes / width > held)
      return bad_input("has {} elements in a storage of {}: expanded tensors are not read",
                       *bytes / width, held);
    out.storage = *bytes == 0 ? out.storage.first(0) : out.storage.subspan(offset * width);
    if (__builtin_add_overflow(total_, *bytes, &total_) || total_ > most_bytes_)
      return bad_input("all tensors together have more than {} bytes", most_bytes_);
    return {};
  }

  const Pickle& pickle_;
  const std::map<std::string_view, const ZipMember*>& storages_;
  std::uint64_t most_bytes_;
  std::uint64_t total_ = 0;
  std::size_t visits_ = 0;
  std::vector<TorchTensor> out_;
};

}  // namespace

Result<std::vector<TorchTensor>> read_torch(std::span<const std::byte> file) {
  PLIMSOLL_TRY(std::vector<ZipMember> members, read_zip_directory(file, "a file of torch.save"));
  PLIMSOLL_RETURN_IF_ERROR(locate_zip_members(file, members));
  const ZipMember* pickle = nullptr;
  std::map<std::string_view, const ZipMember*> storages;
  for (const ZipMember& member : members) {
    const std::size_t folder = member.name.find('/');
    const std::string_view name =
        folder == std::string_view::npos ? member.name : member.name.substr(folder + 1);
    const bool is_pickle = name == "data.pkl";
    const bool is_storage = name.starts_with("data/");
    if ((is_pickle || is_storage) && (member.method != 0 || member.size != member.packed))
      return bad_input("member '{}' is deflated: torch.save stores", excerpt(member.name));
    if (is_pickle) pickle = &member;
    if (is_storage) storages.emplace(name.substr(5), &member);
    if (name == "byteorder" &&
        std::string_view(reinterpret_cast<const char*>(member.packed_bytes.data()),
                         member.packed_bytes.size()) != "little")
      return bad_input("it was written by a big-endian machine");
  }
  if (pickle == nullptr) return bad_input("not a file of torch.save: it has no data.pkl");
  PLIMSOLL_TRY(const Pickle values, read_pickle(pickle->packed_bytes));
  return TorchReader(values, storages, file.size()).read();
}

void gather_torch(const TorchTensor& tensor, std::span<std::byte> out) {
  if (out.empty()) return;
  if (tensor.contiguous) {
    std::copy_n(tensor.storage.begin(), out.size(), out.begin());
    return;
  }
  const auto width = static_cast<std::size_t>(bits(tensor.element) / 8);
  std::vector<std::uint64_t> index(tensor.dims.size(), 0);
  std::uint64_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::memcpy(out.data() + to, tensor.storage.data() + from * width, width);
    for (std::size_t axis = tensor.dims.size(); axis-- > 0;) {
      from += tensor.strides[axis];
      if (++index[axis] < tensor.dims[axis]) break;
      from -= tensor.strides[axis] * tensor.dims[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace plimsoll::store
