// A queue between one thread that puts work in and one that runs it, without a lock.
//
// Pieces lie in a list; the producer writes a piece and then publishes how many there are, the
// consumer reads that number before it follows the list. Nothing goes back to the producer but the
// count of finished pieces, and only who asks for it (wait_until_done) is ordered behind them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace plimsoll::device {

class WorkQueue {
 public:
  WorkQueue() : first_(new Piece), last_(first_) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() {
    while (first_ != nullptr) {
      Piece* const next = first_->next;
      delete first_;
      first_ = next;
    }
  }

  // By the producer.
  void push(std::function<void()> job) {
    auto* piece = new Piece;
    piece->job = std::move(job);
    last_->next = piece;
    last_ = piece;
    published_.fetch_add(1, std::memory_order_release);
    published_.notify_one();
  }
  void wait_until_done() {
    const std::int64_t all = published_.load(std::memory_order_relaxed);
    for (std::int64_t seen = done_.load(std::memory_order_acquire); seen < all;
         seen = done_.load(std::memory_order_acquire))
      done_.wait(seen, std::memory_order_acquire);
  }

  // By the consumer: waits for the next piece and runs it.
  void run_one() {
    const std::int64_t before = done_.load(std::memory_order_relaxed);
    while (published_.load(std::memory_order_acquire) <= before)
      published_.wait(before, std::memory_order_acquire);
    Piece* const piece = first_->next;
    piece->job();
    delete first_;
    first_ = piece;
    done_.store(before + 1, std::memory_order_release);
    done_.notify_all();
  }

 private:
  struct Piece {
    std::function<void()> job;
    Piece* next = nullptr;
  };
  Piece* first_;  // of the consumer: the piece that ran last
  Piece* last_;   // of the producer
  std::atomic<std::int64_t> published_{0};
  std::atomic<std::int64_t> done_{0};
};

}  // namespace plimsoll::device
