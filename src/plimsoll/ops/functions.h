// One function per operator, for people who write models and for gradient rules.
//
//   Var y = relu(conv(x, w, bias, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}));
//
// Families stand in headers of their own; this one includes them all.
#pragma once

#include "plimsoll/ops/activation.h"
#include "plimsoll/ops/add_relu.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/binary.h"
#include "plimsoll/ops/bitwise.h"
#include "plimsoll/ops/cast.h"
#include "plimsoll/ops/comparison.h"
#include "plimsoll/ops/conv.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/indexing.h"
#include "plimsoll/ops/linear.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/norm.h"
#include "plimsoll/ops/padding.h"
#include "plimsoll/ops/pool.h"
#include "plimsoll/ops/ranking.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/ops/reduction.h"
#include "plimsoll/ops/resize.h"
#include "plimsoll/ops/shaping.h"
#include "plimsoll/ops/slicing.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/ops/unary.h"
#include "plimsoll/ops/update.h"
