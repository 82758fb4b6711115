// Examples in .npz files, fed batch by batch: `run --data train.npz` or `--data shards/`.
//
//   train.npz     x float32[50000, 3, 32, 32]     the model takes x[64, 3, 32, 32], labels[64]
//                 labels int64[50000]             so this is a data set of 50,000 examples
//
// An archive, or every *.npz of a folder in the order of their names, one behind the other. Each
// has an array for every input of the model. The first axis of an array counts examples, the others
// agree with the input's; an array of exactly the input's shape, beside one that has more examples,
// is fed whole every step.
//
// Examples come as one long row of epochs: example k of the run is place k mod n of epoch k / n,
// and a batch may begin in one epoch and end in the next, so that every example is seen once in
// each. In training every epoch has another order, by the seed (shuffle.h); for inference the order
// is the file's, and the last batch is filled up with the last example.
//
// An element type that is not the input's is cast, with a note: between floats with rounding,
// integers to floats, and to an integer whatever it can hold exactly; anything else is an error
// that names the element.
//
// Arrays that are stored row by row are copied from the mapped file, after their checksum was
// compared; compressed ones and those in column order are unpacked once and stay in host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/runtime/executor.h"
#include "plimsoll/runtime/index_ranges.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::runtime {

class Dataset {
 public:
  // A file or a folder.
  static Result<Dataset> open(const std::string& path);

  // Compares the arrays with the inputs of the graph, once, before the first batch.
  Status bind(const ir::Graph& graph);
  // Whether there are more examples than the graph takes at once; else the arrays are its batch.
  bool has_batches() const { return batch_ > 0; }
  std::int64_t examples() const { return examples_; }
  std::int64_t batch() const { return batch_; }
  // Steps that see every example: of one epoch, rounded up.
  std::int64_t steps_per_epoch() const {
    return batch_ > 0 ? (examples_ + batch_ - 1) / batch_ : 1;
  }

  // Writes the batch of a step into the graph's inputs, and compares its indices with what the
  // graph reads them as (index_ranges.h).
  Status feed(Executor& executor, std::int64_t step);
  void shuffle_by(std::uint64_t seed) { seed_ = seed; }
  bool is_shuffled() const { return seed_.has_value(); }

 private:
  struct Archive {
    std::string path;
    std::shared_ptr<const store::NpzFile> file;
    std::int64_t first = 0;  // of its examples, in all
    std::int64_t examples = 0;
  };
  static tl::unexpected<Error> is_missing(const Archive& archive, const std::string& input);
  // An array of one archive, ready to be copied from.
  struct Column {
    ir::TensorType type;
    std::span<const std::byte> elements;
    std::shared_ptr<std::vector<std::byte>> unpacked;
  };
  struct Input {
    ValueId value;
    bool whole = false;           // fed as it is, every step
    std::vector<Column> columns;  // by archive
  };

  Result<Column> column_of(const Archive& archive, const ir::Value& value) const;
  void warn_of_others(const ir::Graph& graph) const;
  Status count_examples(const ir::Graph& graph);
  Status place(Executor& executor, const Input& input, std::int64_t step);
  Status write(const ir::Value& value, const Column& column, std::int64_t from, std::int64_t to,
               std::int64_t rows, std::span<std::byte> memory) const;
  std::int64_t example_of(std::int64_t step, std::int64_t row) const;
  std::size_t archive_of(std::int64_t example) const;
  std::string name_of(std::int64_t example) const;

  std::string path_;
  std::vector<Archive> archives_;
  std::vector<Input> inputs_;
  std::vector<IndexRange> ranges_;
  std::int64_t examples_ = 0;
  std::int64_t batch_ = 0;             // 0: the arrays are one batch
  std::optional<std::uint64_t> seed_;  // absent: in the order of the files
};

// The archives of a path: itself, or the *.npz of a folder by name. An error when there is none.
Result<std::vector<std::string>> archives_at(const std::string& path);

}  // namespace plimsoll::runtime
