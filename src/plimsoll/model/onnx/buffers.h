// Which float initialisers of an .onnx file were no parameters of the model it was made from.
//
// The format does not tell parameters from buffers: an initialiser is an initialiser. Training one
// that was a buffer (the frequencies of a rotary embedding, a table of sines, a clip's bound)
// trains another model. So there has to be evidence that it was none; without any, it is a weight.
//
//   its name        the last part is what PyTorch models call buffers: `inv_freq`, `running_mean`
//   its uses        every one is a setting: the exponent of Pow, a bound of Clip, one side of Less;
//                   or one number with a name that an exporter made up (`onnx::Mul_17`, `val_3`)
//   where it goes   together with nothing but positions (integers) into Sin and Cos, and nowhere
//                   else
//   its content     a table of sines beside one of cosines, or both in one: a*a + b*b = 1
//                   throughout, with numbers other than -1, 0 and 1
//
// Integers are never trained; masks are found by the importer, and running statistics become state
// where BatchNormalization reads them (both: importer.h).
//
// Cost: the nodes of the main graph are parsed once more, and tables of at most kMostTable elements
// are read.
#pragma once

#include <string_view>
#include <unordered_map>

#include "plimsoll/model/onnx/format/model_file.h"
#include "plimsoll/store/data_folder.h"

namespace plimsoll::model::onnx {

// By initialiser: why it is not trained, in a few words. `folder` as for content_of.
using Buffers = std::unordered_map<const TensorFile*, std::string_view>;
Result<Buffers> find_buffers(const GraphFile& graph, store::DataFolder* folder);

}  // namespace plimsoll::model::onnx
