#include "plimsoll/pack/model/bodies.h"

#include <algorithm>

namespace plimsoll::pack {

std::int64_t BodyModel::lift(std::size_t index, std::int64_t x) const {
  const Body& body = bodies[index];
  if (body.modulus > 1 || body.residue > 0) {
    const std::int64_t off = (x - body.residue) % body.modulus;
    if (off != 0) x += off > 0 ? body.modulus - off : -off;
  }
  if (slab == 0 || x % slab + body.extent <= slab) return x;
  // Alignments divide the slab, so the next slab offers its lowest aligned place or there is none.
  if (body.residue + body.extent > slab) return kNever;
  return (x / slab + 1) * slab + body.residue;
}

std::int64_t BodyModel::ceiling(std::size_t body, std::int64_t capacity) const {
  const std::int64_t room = capacity + bodies[body].overhang - bodies[body].height * unit;
  return room < 0 ? -1 : room / unit;
}

bool pieces_meet(const BodyModel& model, const Piece& a, const Piece& b) {
  if (a.first >= b.last || b.first >= a.last) return false;
  return model.problem->clocks.streams == 0 ||
         meet(*model.problem, BufferId(a.buffer), BufferId(b.buffer));
}

void write_offsets(const BodyModel& model, std::span<const std::int64_t> places,
                   std::span<Offset> offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint32_t body = model.body_of[i];
    const std::int64_t delta = model.delta_of.empty() ? 0 : model.delta_of[i];
    if (body != BodyModel::kNoBody) {
      offsets[i] = Offset(places[body] * model.unit + delta);
    } else if (model.here[i]) {
      offsets[i] = model.problem->buffers[i].fixed.value_or(Offset(delta));
    }
  }
}

std::int64_t height_of(const BodyModel& model, std::span<const std::int64_t> places) {
  std::int64_t height = 0;
  for (std::size_t b = 0; b < places.size(); ++b) {
    height = std::max(height, model.top_bytes(b, places[b]));
  }
  return height;
}

}  // namespace plimsoll::pack
