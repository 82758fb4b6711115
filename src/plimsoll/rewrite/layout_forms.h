// How the operands of one operator lie when it works channels last, and when it does not.
//
// Most operators have all their full-size tensors in one layout. A convolution wants its weights as
// its kernel says (`LayoutOptions::weights_layout`). One of few input channels may leave its image
// as it comes and write blocks of 16 channels: three channels fill no vector.
#pragma once

#include <vector>

#include "plimsoll/rewrite/layout_options.h"
#include "plimsoll/rewrite/layout_roles.h"

namespace plimsoll::rewrite {

// What is chosen for one operator.
struct LayoutChoice {
  bool reads_last = false;   // its full-size operands lie channels last
  bool writes_last = false;  // its full-size results do
  bool keeps_image = true;   // a convolution of few channels leaves them row-major all the same
  bool operator==(const LayoutChoice&) const = default;
};

struct NodeLayouts {
  std::vector<ir::Layout> inputs;
  std::vector<ir::Layout> outputs;
};

class LayoutForms {
 public:
  LayoutForms(const ir::Graph& graph, const LayoutRoles& roles, const LayoutOptions& options)
      : graph_(graph), roles_(roles), options_(options) {}

  NodeLayouts of(const ir::Node& node, const LayoutChoice& choice) const;
  // The rank of its full-size tensors.
  int rank_of(const ir::Node& node) const;
  // A convolution whose data have few channels.
  bool is_narrow(const ir::Node& node, const ConvolutionForm& form) const;

 private:
  void lay_out_convolution(const ir::Node& node, const ConvolutionForm& form,
                           const LayoutChoice& choice, NodeLayouts& out) const;
  void keep_image(const ir::Node& node, const ConvolutionForm& form, NodeLayouts& out) const;

  const ir::Graph& graph_;
  const LayoutRoles& roles_;
  const LayoutOptions& options_;
};

// A graph of only this node, with its operands lying so: what a kernel or a price is asked for.
ir::Graph node_alone(const ir::Graph& graph, const ir::Node& node, const NodeLayouts& layouts);

}  // namespace plimsoll::rewrite
