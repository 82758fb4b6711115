#include "plimsoll/store/npy.h"

#include <gtest/gtest.h>

#include "plimsoll/store/testing/arrays.h"

namespace plimsoll::store {
namespace {

TEST(Npy, TurnsFortranOrder) {
  const std::string header =
      "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }          \n";
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  file += header;
  const float columns[] = {1, 4, 2, 5, 3, 6};
  file.append(reinterpret_cast<const char*>(columns), sizeof(columns));
  const auto read = read_npy(bytes_of(file));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, floats("", {2, 3}, {1, 2, 3, 4, 5, 6}).bytes);
}

TEST(Npy, RefusesObjectsAndImpossibleShapes) {
  for (const std::string header :
       {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 16), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,), }", "{", "{'descr'",
        ""}) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size());
    file += '\0';
    file += header;
    EXPECT_FALSE(read_npy(bytes_of(file))) << header;
  }
}

}  // namespace
}  // namespace plimsoll::store
