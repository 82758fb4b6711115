// How much arithmetic it is to compute with a weight in some form, beside moving its bytes: what a
// plan weighs when it chooses forms.
//
//   decode     operations for a value that is decoded to fp32
//   rows       operations for a value of a weight [out, in] that is multiplied with one vector
//              straight from its form, the product's own two included
//   columns    the same of a weight [in, out]
//
// In units of the multiplications and additions of a dense product, since that is the rate which
// profiles have of every machine: what a thread takes for a value, times the fp32 rate of a thread.
// From `weights_bench` and `weight_products_bench 4096 4096 1` (docs/weights.md) on an AMD EPYC
// with AVX-512, 110 GFLOP/s a thread; forms of zeros hold nine in ten. Where bytes take longer than
// this, bytes decide (schedule/device_profile.h), as they do for fp16, bf16, int8, q8_0 and q4_0.
#pragma once

#include <string_view>

namespace plimsoll::codec {

struct FormWork {
  double decode = 2;
  double rows = 2;
  double columns = 2;
};
// Of a form that is not known here, as of bytes that need no decoding.
FormWork work_of_form(std::string_view form);

}  // namespace plimsoll::codec
