#include "plimsoll/kernels/cpu/strided.h"

namespace plimsoll::kernels {

StridedLoop broadcast_loop(const Site& site) {
  const ir::TensorType& out = site.out();
  std::vector<Strides> strides{broadcast_strides_in(out, out.shape)};
  for (int i = 0; i < site.inputs(); ++i)
    strides.push_back(broadcast_strides_in(site.in(i), out.shape));
  return make_strided_loop(out, strides);
}

}  // namespace plimsoll::kernels
