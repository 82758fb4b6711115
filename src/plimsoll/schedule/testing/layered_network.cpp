#include "plimsoll/schedule/testing/layered_network.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::schedule {
namespace {

class Network {
 public:
  explicit Network(const LayeredNetwork& shape)
      : shape_(shape),
        random_(shape.seed),
        place_(static_cast<std::size_t>(shape.tasks)),
        inputs_(place_.size()),
        readers_(place_.size()) {}

  Workload make() {
    draw_layers();
    for (std::size_t l = 1; l < layers_.size(); ++l) connect(layers_[l - 1], layers_[l]);
    for (std::size_t l = 1; l + 3 < layers_.size(); ++l) skip_from(l);
    return in_order(walk());
  }

 private:
  using Layer = std::vector<std::size_t>;

  void draw_layers() {
    const std::size_t last = place_.size() - 1;
    layers_.push_back({0});
    for (std::size_t next = 1; next < last;) {
      const auto drawn = std::llround((0.25 + 1.6 * random_.uniform()) * shape_.width);
      const std::size_t size =
          std::min(last - next, static_cast<std::size_t>(std::max(2LL, drawn)));
      layers_.emplace_back();
      for (std::size_t i = 0; i < size; ++i) layers_.back().push_back(next++);
    }
    layers_.push_back({last});
    for (const Layer& layer : layers_) {
      for (std::size_t i = 0; i < layer.size(); ++i) {
        place_[layer[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(layer.size());
      }
    }
  }

  std::size_t nearest(const Layer& layer, double place) const {
    return *std::min_element(layer.begin(), layer.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(place_[a] - place) < std::abs(place_[b] - place);
    });
  }

  void add_edge(std::size_t from, std::size_t to) {
    if (inputs_[to].insert(from).second) readers_[from].push_back(to);
  }

  void connect(const Layer& above, const Layer& below) {
    const double near =
        0.1 * shape_.reach + 0.5 / static_cast<double>(std::min(above.size(), below.size()));
    for (const std::size_t from : above) {
      for (const std::size_t to : below) {
        if (std::abs(place_[from] - place_[to]) <= near && random_.chance(0.98)) add_edge(from, to);
      }
    }
    for (const std::size_t to : below) {
      if (inputs_[to].empty()) add_edge(nearest(above, place_[to]), to);
    }
    for (const std::size_t from : above) {
      if (readers_[from].empty()) add_edge(from, nearest(below, place_[from]));
    }
  }

  void skip_from(std::size_t layer) {
    for (const std::size_t from : layers_[layer]) {
      while (random_.chance(0.34)) {
        const auto to = random_.between(static_cast<std::int64_t>(layer) + 2,
                                        static_cast<std::int64_t>(layers_.size()) - 2);
        const double place = place_[from] - 0.06 + 0.3 * random_.uniform();
        add_edge(from, nearest(layers_[static_cast<std::size_t>(to)], place));
      }
    }
  }

  std::vector<std::size_t> walk() {
    std::vector<std::size_t> missing;
    for (const auto& set : inputs_) missing.push_back(set.size());
    std::vector<std::size_t> ready{0}, order;
    while (!ready.empty()) {
      const std::size_t at = random_.chance(0.2) ? any_of(ready.size()) : ready.size() - 1;
      const std::size_t task = ready[at];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
      order.push_back(task);
      auto& next = readers_[task];
      random_.shuffle(next);
      for (const std::size_t reader : next) {
        if (--missing[reader] == 0) ready.push_back(reader);
      }
    }
    return order;
  }

  std::size_t any_of(std::size_t size) {
    return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(size)));
  }

  std::int64_t draw_bytes() {
    const double dice = random_.uniform();
    const double drawn = dice < 0.52  ? std::abs(600 + 550 * random_.normal())
                         : dice < 0.7 ? 1500 + 450 * random_.normal()
                                      : 3900 + 1200 * random_.normal();
    return std::max<std::int64_t>(20, static_cast<std::int64_t>(drawn));
  }

  Workload in_order(const std::vector<std::size_t>& order) {
    Workload out;
    std::vector<std::size_t> position(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Task task;
      Value value;
      value.name = task.name = "t" + std::to_string(order[i]);
      task.seconds = static_cast<double>(random_.between(1, 999));
      for (const std::size_t input : inputs_[order[i]]) task.inputs.emplace_back(position[input]);
      std::sort(task.inputs.begin(), task.inputs.end());
      task.outputs = {ValueId(i)};
      value.bytes = Bytes(draw_bytes());
      value.producer = TaskId(i);
      out.tasks.push_back(std::move(task));
      out.values.push_back(std::move(value));
    }
    return out;
  }

  const LayeredNetwork& shape_;
  Random random_;
  std::vector<double> place_;  // across its layer, from 0 to 1
  std::vector<std::set<std::size_t>> inputs_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<Layer> layers_;
};

}  // namespace

Workload layered_network(const LayeredNetwork& shape) {
  return Network(shape).make();
}

}  // namespace plimsoll::schedule
