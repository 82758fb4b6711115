#include "plimsoll/codec/weights/form_work.h"

#include <gtest/gtest.h>

#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/weight_codecs.h"

namespace plimsoll::codec {
namespace {

TEST(FormWork, IsKnownOfEveryFormThatStaysInMemory) {
  const FormWork unknown = work_of_form("no such form");
  for (const WeightCodec& codec : weight_codecs()) {
    if (!stays_in_memory(codec)) continue;
    const FormWork work = work_of_form(codec.name);
    EXPECT_GT(work.decode, unknown.decode) << codec.name;
    EXPECT_GT(work.rows, unknown.rows) << codec.name;
    EXPECT_GT(work.columns, unknown.columns) << codec.name;
  }
}

}  // namespace
}  // namespace plimsoll::codec
