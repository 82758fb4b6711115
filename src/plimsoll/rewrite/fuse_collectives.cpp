#include "plimsoll/rewrite/fuse_collectives.h"

#include <algorithm>
#include <map>

#include "plimsoll/base/check.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct Bucket {
  std::vector<std::size_t> members;  // nodes
  Bytes bytes;
};

class Fuser {
 public:
  Fuser(ir::Graph graph, Bytes bucket) : graph_(std::move(graph)), size_(bucket) {}

  Result<ir::Graph> run() {
    fill();
    if (buckets_.empty()) return std::move(graph_);
    available_.assign(graph_.values.size(), false);
    for (std::size_t v = 0; v < graph_.values.size(); ++v)
      available_[v] = ir::is_source(graph_.values[v].kind);
    find_held();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      visit(n);
      if (n == last_gather_) send_held();
    }
    hand_out();
    sent_ = std::move(later_);
    hand_out();
    return finish();
  }

 private:
  static bool may_wait(const ir::Node& node) {
    return node.op == "all_reduce" && ops::attributes_of(node).integer("fuse") == 1;
  }

  // Rows of tables (sparse_gradients.h): sent at once, and read when the next bucket is on its way.
  static bool is_late_gather(const ir::Node& node) {
    return node.op == "all_gather" && ops::attributes_of(node).integer("fuse") == 1;
  }

  void fill() {
    bucket_of_.assign(graph_.nodes.size(), kNone);
    std::map<std::pair<ir::DType, std::string>, std::size_t> open;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (!may_wait(node)) continue;
      const ir::DType dtype = graph_.value(node.outputs.front()).type.dtype;
      auto [place, fresh] =
          open.try_emplace({dtype, ops::attributes_of(node).text("order")}, buckets_.size());
      if (!fresh) {
        const Bucket& last = buckets_[place->second];
        fresh = last.bytes >= size_ ||
                last.members.size() >= static_cast<std::size_t>(ops::kMostReduced);
        if (fresh) place->second = buckets_.size();
      }
      if (fresh) buckets_.emplace_back();
      Bucket& bucket = buckets_[place->second];
      bucket.members.push_back(n);
      for (const ValueId output : node.outputs)
        bucket.bytes += ir::bytes_of(graph_.value(output).type);
      bucket_of_[n] = place->second;
    }
  }

  // A bucket that is larger than all others together is still on its way when the backward pass
  // ends. What comes behind it would only stand in the way of the rows that its update waits for.
  void find_held() {
    Bytes all;
    for (const Bucket& bucket : buckets_) all += bucket.bytes;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (2 * buckets_[b].bytes.value > all.value) heaviest_ = b;
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (is_late_gather(graph_.nodes[n])) last_gather_ = n;
    }
  }

  bool is_held(std::size_t b, std::size_t n) const {
    return last_gather_ != kNone && heaviest_ != kNone && b > heaviest_ && n < last_gather_;
  }

  void visit(std::size_t n) {
    if (const std::size_t b = bucket_of_[n]; b != kNone) {
      if (buckets_[b].members.back() != n) return;
      if (is_held(b, n)) {
        held_.push_back(b);
      } else {
        send(buckets_[b]);
      }
      return;
    }
    if (!ready(graph_.nodes[n])) {
      waiting_.push_back(n);
    } else if (is_late_gather(graph_.nodes[n])) {
      sent_.push_back(graph_.nodes[n].outputs.front());
      out_.push_back(std::move(graph_.nodes[n]));
    } else {
      emit(std::move(graph_.nodes[n]));
    }
  }

  // A member whose input waits for an earlier sum is a sum of sums: that one is handed out first.
  std::vector<ValueId> post(const Bucket& bucket) {
    ir::Node joined = graph_.nodes[bucket.members.front()];
    joined.layer = "gradients";
    joined.phase = ir::Phase::kBackward;
    joined.inputs.clear();
    joined.outputs.clear();
    for (const std::size_t member : bucket.members) {
      const ir::Node& node = graph_.nodes[member];
      joined.inputs.insert(joined.inputs.end(), node.inputs.begin(), node.inputs.end());
      joined.outputs.insert(joined.outputs.end(), node.outputs.begin(), node.outputs.end());
    }
    if (!ready(joined)) hand_out();
    std::vector<ValueId> made = joined.outputs;
    out_.push_back(std::move(joined));
    return made;
  }

  void send(const Bucket& bucket) {
    const std::vector<ValueId> made = post(bucket);
    hand_out();
    sent_ = std::move(later_);
    later_.clear();
    sent_.insert(sent_.end(), made.begin(), made.end());
  }

  // Behind the rows. Their readers, and those of the largest bucket, come before the readers of
  // these.
  void send_held() {
    for (const std::size_t b : held_) {
      const std::vector<ValueId> made = post(buckets_[b]);
      later_.insert(later_.end(), made.begin(), made.end());
    }
    held_.clear();
  }

  // What was sent before has arrived: its readers run.
  void hand_out() {
    for (const ValueId value : sent_) available_[value.index()] = true;
    sent_.clear();
    std::vector<std::size_t> still;
    for (const std::size_t n : waiting_) {
      if (ready(graph_.nodes[n])) {
        emit(std::move(graph_.nodes[n]));
      } else {
        still.push_back(n);
      }
    }
    waiting_ = std::move(still);
  }

  bool ready(const ir::Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [this](ValueId input) {
      return !input.valid() || available_[input.index()];
    });
  }

  void emit(ir::Node node) {
    for (const ValueId output : node.outputs) available_[output.index()] = true;
    out_.push_back(std::move(node));
  }

  Result<ir::Graph> finish() {
    PLIMSOLL_CHECK(waiting_.empty(), "{} nodes wait for sums that nobody sends", waiting_.size());
    graph_.nodes = std::move(out_);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        graph_.value(node.outputs[i]).producer = NodeId(n);
        graph_.value(node.outputs[i]).output = static_cast<std::uint32_t>(i);
      }
    }
    PLIMSOLL_RETURN_IF_ERROR(ops::verify(graph_));
    return std::move(graph_);
  }

  ir::Graph graph_;
  Bytes size_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // by node
  std::vector<bool> available_;         // by value
  std::vector<std::size_t> waiting_;    // nodes, in order
  std::vector<ValueId> sent_;           // sums that have not arrived yet
  std::vector<ValueId> later_;          // the same, behind those
  std::vector<std::size_t> held_;       // buckets that are full and wait for the last rows
  std::size_t heaviest_ = kNone;        // bucket, of more than half of all bytes
  std::size_t last_gather_ = kNone;     // node, of rows of tables
  std::vector<ir::Node> out_;
};

}  // namespace

Result<ir::Graph> fuse_collectives(ir::Graph graph, Bytes bucket) {
  return Fuser(std::move(graph), bucket).run();
}

}  // namespace plimsoll::rewrite
