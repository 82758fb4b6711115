// The end of a training step: update nodes, and the state of the optimizer. Internal to autodiff;
// see training.h.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/autodiff/training_options.h"

namespace plimsoll::autodiff {

// Appends update nodes and the optimizer's own state.
class Updates {
 public:
  Updates(Builder& builder, const TrainingOptions& options)
      : builder_(builder), options_(options) {}

  // `scale` of the gradient may be absent.
  void add(Var weight, Var gradient, Var scale);

 private:
  bool adaptive() const;
  void count_step();
  Var moment(const std::string& weight_name, const char* which, const ir::TensorType& type);
  void append(Var weight, const std::string& weight_name, Var gradient, Var scale);

  Builder& builder_;
  const TrainingOptions& options_;
  Var step_;
};

// Clipping and update nodes at the end of the graph.
void finish_updates(Builder& builder, const std::vector<Var>& weights,
                    const std::vector<Var>& gradients, const TrainingOptions& options);

}  // namespace plimsoll::autodiff
