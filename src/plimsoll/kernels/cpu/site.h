// What a kernel factory sees: one node with its types, and how many threads will run it.
//
// A factory answers with a kernel, or with null when it does not take these types or layouts; the
// table (table.h) then falls back on the reference evaluation. So a factory is a list of what it
// can do, and nothing else has to know.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "plimsoll/kernels/node_site.h"

namespace plimsoll::kernels {

struct Site : NodeSite {
  int threads = 1;
};

using Factory = std::unique_ptr<Kernel> (*)(const Site&);

// Sets how many threads OpenMP gives to parallel loops and to oneDNN, for the calling thread.
void use_threads(int threads);

// A kernel that is one function of its arguments. Most are: what they know of the node is captured.
template <typename Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(int threads, Bytes scratch, Body body)
      : threads_(threads), scratch_(scratch), body_(std::move(body)) {}
  Bytes scratch() const override { return scratch_; }
  void run(const Arguments& arguments) override {
    use_threads(threads_);
    body_(arguments);
  }

 private:
  int threads_;
  Bytes scratch_;
  Body body_;
};

template <typename Body>
std::unique_ptr<Kernel> make_kernel(const Site& site, Body body, Bytes scratch = Bytes(0)) {
  return std::make_unique<FunctionKernel<Body>>(site.threads, scratch, std::move(body));
}

}  // namespace plimsoll::kernels
