#include "plimsoll/pack/pack_c.h"

#include <fmt/format.h>

#include <new>
#include <string>

#include "plimsoll/pack/formats/json.h"
#include "plimsoll/pack/pack.h"

namespace pack = plimsoll::pack;
using plimsoll::BufferId;
using plimsoll::Bytes;
using plimsoll::ErrorCode;
using plimsoll::Offset;

struct plimsoll_pack {
  pack::Problem problem;
  pack::Packing packing;
  std::string message;
};

namespace {

int refuse(plimsoll_pack* handle, ErrorCode code, std::string message) {
  handle->message = std::move(message);
  return static_cast<int>(code);
}

// No exception may cross into C.
template <typename Work>
int guarded(plimsoll_pack* handle, Work work) {
  if (!handle) return static_cast<int>(ErrorCode::kUsage);
  try {
    return work();
  } catch (const std::exception& problem) {
    return refuse(handle, ErrorCode::kInternal, problem.what());
  }
}

bool known(const plimsoll_pack* handle, std::int64_t buffer) {
  return buffer >= 0 && static_cast<std::size_t>(buffer) < handle->problem.size();
}

int set_place(plimsoll_pack* handle, std::int64_t buffer, std::int64_t offset,
              std::optional<Offset> pack::Buffer::*which) {
  return guarded(handle, [&] {
    if (!known(handle, buffer)) return refuse(handle, ErrorCode::kUsage, "there is no such buffer");
    handle->problem.buffers[static_cast<std::size_t>(buffer)].*which = Offset(offset);
    return 0;
  });
}

int add_class(plimsoll_pack* handle, const std::int64_t* buffers, std::size_t count,
              std::vector<std::vector<BufferId>> pack::Problem::*which) {
  return guarded(handle, [&] {
    std::vector<BufferId> members;
    for (std::size_t k = 0; k < count; ++k) {
      if (buffers == nullptr || !known(handle, buffers[k]))
        return refuse(handle, ErrorCode::kUsage, "there is no such buffer");
      members.push_back(BufferId(static_cast<std::size_t>(buffers[k])));
    }
    (handle->problem.*which).push_back(std::move(members));
    return 0;
  });
}

}  // namespace

plimsoll_pack* plimsoll_pack_new(void) {
  return new (std::nothrow) plimsoll_pack;
}
void plimsoll_pack_free(plimsoll_pack* handle) {
  delete handle;
}

int64_t plimsoll_pack_add_buffer(plimsoll_pack* handle, int64_t lower, int64_t upper, int64_t size,
                                 int64_t alignment) {
  const int code = guarded(handle, [&] {
    if (size < 0 || alignment < 1 || upper < lower)
      return refuse(handle, ErrorCode::kBadInput,
                    fmt::format("a buffer of {} bytes at multiples of {} that lives from {} to {}: "
                                "sizes are 0 or more, "
                                "alignments 1 or more, and nothing ends before it begins",
                                size, alignment, lower, upper));
    handle->problem.buffers.push_back(
        {.lifetime = {lower, upper}, .size = Bytes(size), .alignment = alignment});
    return 0;
  });
  return code == 0 ? static_cast<std::int64_t>(handle->problem.size()) - 1 : -1;
}

int plimsoll_pack_fix(plimsoll_pack* handle, int64_t buffer, int64_t offset) {
  return set_place(handle, buffer, offset, &pack::Buffer::fixed);
}
int plimsoll_pack_hint(plimsoll_pack* handle, int64_t buffer, int64_t offset) {
  return set_place(handle, buffer, offset, &pack::Buffer::hint);
}
int plimsoll_pack_contiguous(plimsoll_pack* handle, const int64_t* buffers, size_t count) {
  return add_class(handle, buffers, count, &pack::Problem::contiguous);
}
int plimsoll_pack_colocated(plimsoll_pack* handle, const int64_t* buffers, size_t count) {
  return add_class(handle, buffers, count, &pack::Problem::colocated);
}

int plimsoll_pack_read_json(plimsoll_pack* handle, const char* text, size_t length) {
  return guarded(handle, [&] {
    if (text == nullptr) return refuse(handle, ErrorCode::kUsage, "the text is NULL");
    auto problem = pack::read_json({text, length});
    if (!problem) return refuse(handle, problem.error().code, problem.error().message);
    handle->problem = std::move(*problem);
    return 0;
  });
}

int plimsoll_pack_solve(plimsoll_pack* handle, int64_t capacity, double deadline_seconds,
                        int deterministic) {
  return guarded(handle, [&] {
    if (capacity >= 0) handle->problem.set_capacity(Bytes(capacity));
    auto packing = pack::pack(handle->problem,
                              {.goal = capacity < 0 ? pack::Goal::kMinimize : pack::Goal::kFit,
                               .deadline_seconds = deadline_seconds,
                               .deterministic = deterministic != 0});
    if (!packing) return refuse(handle, packing.error().code, packing.error().message);
    handle->packing = std::move(*packing);
    if (handle->packing.fits()) return 0;
    const bool refuted = handle->packing.status == pack::PackStatus::kInfeasible;
    return refuse(handle, refuted ? ErrorCode::kDoesNotFit : ErrorCode::kNoAnswer,
                  refuted ? "no packing fits the capacity" : "no answer in the time given");
  });
}

int64_t plimsoll_pack_offset(const plimsoll_pack* handle, int64_t buffer) {
  if (!handle || buffer < 0) return -1;
  const auto at = static_cast<std::size_t>(buffer);
  return at < handle->packing.offsets.size() ? handle->packing.offsets[at].value : -1;
}
int64_t plimsoll_pack_height(const plimsoll_pack* handle) {
  return handle ? handle->packing.height().value : -1;
}
int64_t plimsoll_pack_lower_bound(const plimsoll_pack* handle) {
  return handle ? handle->packing.lower_bound.value : -1;
}
const char* plimsoll_pack_status(const plimsoll_pack* handle) {
  return pack::name(handle ? handle->packing.status : pack::PackStatus::kUnknown);
}
const char* plimsoll_pack_message(const plimsoll_pack* handle) {
  return handle ? handle->message.c_str() : "the handle is NULL";
}
