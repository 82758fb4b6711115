// In front of the cases that the CPU's kernels are tested by, when they are compiled for the GPU:
// every suite gets `Cuda` before its name, so that it runs under the label `cuda`.
#pragma once

#include <gtest/gtest.h>

#undef TEST
#define TEST(suite, name) GTEST_TEST(Cuda##suite, name)
// The one suite with parameters is named by its class.
#define EdgeValues CudaEdgeValues
