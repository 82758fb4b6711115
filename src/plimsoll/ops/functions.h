// One function per operator, for people who write models and for gradient rules.
//
//   Var y = relu(conv(x, w, bias, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}));
//
// Families stand in headers of their own; this one includes them all.
#pragma once

#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/elementwise/activation.h"
#include "plimsoll/ops/elementwise/add_relu.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/bitwise.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/elementwise/comparison.h"
#include "plimsoll/ops/elementwise/dropout.h"
#include "plimsoll/ops/elementwise/unary.h"
#include "plimsoll/ops/movement/indexing.h"
#include "plimsoll/ops/movement/padding.h"
#include "plimsoll/ops/movement/resize.h"
#include "plimsoll/ops/movement/shaping.h"
#include "plimsoll/ops/movement/slicing.h"
#include "plimsoll/ops/normalization/loss.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/normalization/softmax.h"
#include "plimsoll/ops/products/attention.h"
#include "plimsoll/ops/products/conv.h"
#include "plimsoll/ops/products/linear.h"
#include "plimsoll/ops/products/matmul.h"
#include "plimsoll/ops/products/recurrent.h"
#include "plimsoll/ops/reduction/pool.h"
#include "plimsoll/ops/reduction/ranking.h"
#include "plimsoll/ops/reduction/reduction.h"
#include "plimsoll/ops/update/update.h"
