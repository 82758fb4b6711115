// One row of scores of an attention: to probabilities, and back.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// What is added to the scores of a row; nothing when data is null.
struct MaskRow {
  const float* data = nullptr;
  std::int64_t step = 0;
};

// scores[0, visible) become e^(scale * score + mask - max), the rest of the n become 0. Returns
// their sum and stores the log of the sum of exponentials; a row that sees nothing gives 0 and
// minus infinity.
float probabilities(float* scores, std::int64_t visible, std::int64_t n, float scale, MaskRow mask,
                    float* lse);

// scores become probabilities P = e^(scale * score + mask - lse), slopes become
// scale * P * (slope - mean); both are 0 where the row sees nothing. An lse beyond ops::kFarLse
// only says that the row sees something.
void score_gradients(float* scores, float* slopes, std::int64_t visible, std::int64_t n,
                     float scale, MaskRow mask, float lse, float mean);

}  // namespace plimsoll::kernels
