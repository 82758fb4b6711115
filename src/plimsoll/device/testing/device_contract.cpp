#include "plimsoll/device/testing/device_contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/random.h"

namespace plimsoll::device {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBlocks = 12;
constexpr std::int64_t kAll = kBlock * kBlocks;

// A command as numbers of blocks: what a host can run without a device.
struct Move {
  bool copies = false;
  std::size_t to = 0;
  std::size_t from = 0;
  std::byte value{};
};

struct Program {
  std::vector<Move> moves;
  std::vector<Command> commands;  // with streams and waits only
};

// Behind whoever wrote what it reads or writes, and behind whoever read what it writes.
Program random_program(std::uint64_t seed, int streams) {
  Random random(seed);
  Program out;
  struct Use {
    std::int64_t writer = -1;
    std::vector<std::uint32_t> readers;
  };
  std::vector<Use> uses(kBlocks);
  for (std::uint32_t c = 0; c < 60; ++c) {
    Move move;
    move.copies = random.below(3) > 0;
    move.to = static_cast<std::size_t>(random.below(kBlocks));
    move.from = (move.to + 1 + static_cast<std::size_t>(random.below(kBlocks - 1))) % kBlocks;
    move.value = static_cast<std::byte>(random.below(256));
    Command command;
    command.stream = static_cast<std::uint8_t>(random.below(streams));
    const auto behind = [&](std::int64_t other) {
      if (other < 0) return;
      const auto wait = static_cast<std::uint32_t>(other);
      if (out.commands[wait].stream != command.stream) command.waits.push_back(wait);
    };
    Use& target = uses[move.to];
    behind(target.writer);
    for (const std::uint32_t reader : target.readers) behind(reader);
    if (move.copies) behind(uses[move.from].writer);
    if (move.copies) uses[move.from].readers.push_back(c);
    target = {c, {}};
    out.moves.push_back(move);
    out.commands.push_back(std::move(command));
  }
  return out;
}

void run_on_host(const Program& program, std::vector<std::byte>& memory) {
  for (const Move& move : program.moves) {
    std::byte* const to = memory.data() + move.to * kBlock;
    if (move.copies) {
      std::memcpy(to, memory.data() + move.from * kBlock, kBlock);
    } else {
      std::memset(to, static_cast<int>(move.value), kBlock);
    }
  }
}

// Half of the blocks lie in device memory, half in the host's; every other fill is work.
struct Bound {
  std::unique_ptr<Device> device;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Arena> host;
  std::vector<std::unique_ptr<Work>> work;
  std::unique_ptr<Sequence> sequence;

  std::byte* block(std::size_t b) const {
    return (b % 2 == 0 ? arena : host)->data() + b / 2 * kBlock;
  }
};

Bound bind(const DeviceUnderTest& subject, const Program& program) {
  Bound out;
  out.device = std::move(subject.make().value());
  out.arena = std::move(out.device->make_arena(Bytes(kAll)).value());
  out.host = std::move(out.device->make_host_arena(Bytes(kAll)).value());
  std::vector<Command> commands = program.commands;
  for (std::size_t c = 0; c < commands.size(); ++c) {
    const Move& move = program.moves[c];
    Command& command = commands[c];
    command.to = out.block(move.to);
    command.bytes = kBlock;
    if (move.copies) {
      command.kind = Command::Kind::kCopy;
      command.from = out.block(move.from);
    } else if (c % 2 == 0 && move.to % 2 == 0) {
      command.kind = Command::Kind::kWork;
      out.work.push_back(subject.fill_work(command.to, move.value, kBlock));
      command.work = out.work.back().get();
    } else {
      command.kind = Command::Kind::kFill;
      command.value = move.value;
    }
  }
  auto sequence = out.device->make_sequence(std::move(commands));
  EXPECT_TRUE(sequence) << sequence.error().message;
  out.sequence = std::move(sequence.value());
  return out;
}

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random.below(256));
  return out;
}

void write_blocks(const Bound& bound, const std::vector<std::byte>& content) {
  for (std::size_t b = 0; b < kBlocks; ++b)
    ASSERT_TRUE(
        bound.device->write(bound.block(b), std::span(content).subspan(b * kBlock, kBlock)));
}

std::vector<std::byte> read_blocks(const Bound& bound) {
  std::vector<std::byte> out(static_cast<std::size_t>(kAll));
  for (std::size_t b = 0; b < kBlocks; ++b)
    EXPECT_TRUE(bound.device->read(std::span(out).subspan(b * kBlock, kBlock), bound.block(b)));
  return out;
}

std::unique_ptr<Device> made(const DeviceUnderTest& subject) {
  auto device = subject.make();
  EXPECT_TRUE(device) << device.error().message;
  return std::move(*device);
}

bool is_aligned(const std::byte* address, Bytes alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(alignment.value) ==
         0;
}

}  // namespace

void expect_memory_as_promised(const DeviceUnderTest& subject) {
  const auto device = made(subject);
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{3000001}}) {
    const auto arena = device->make_arena(Bytes(bytes));
    ASSERT_TRUE(arena) << arena.error().message;
    EXPECT_EQ((*arena)->size(), Bytes(bytes));
    EXPECT_TRUE(is_aligned((*arena)->data(), device->alignment()));
    const auto sent = random_bytes(static_cast<std::size_t>(bytes), 1);
    std::vector<std::byte> back(sent.size());
    ASSERT_TRUE(device->write((*arena)->data(), sent));
    ASSERT_TRUE(device->read(back, (*arena)->data()));
    EXPECT_TRUE(sent == back);
  }
  const auto info = device->memory_info();
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_GT(info->free.value, 0);
  EXPECT_LE(info->free, info->total);
  const auto refused = device->make_arena(Bytes(std::int64_t{1} << 60));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit) << refused.error().message;
}

void expect_pool_as_promised(const DeviceUnderTest& subject) {
  const auto device = made(subject);
  auto stream = device->make_stream();
  ASSERT_TRUE(stream) << stream.error().message;
  auto pool = device->make_pool(**stream);
  ASSERT_TRUE(pool) << pool.error().message;
  std::byte* const a = (*pool)->allocate(Bytes(1000));
  std::byte* const b = (*pool)->allocate(Bytes(3 << 20));
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_TRUE(is_aligned(a, device->alignment()) && is_aligned(b, device->alignment()));
  EXPECT_TRUE(b >= a + 1000 || a >= b + (3 << 20));
  EXPECT_EQ((*pool)->peak_in_use(), Bytes(1000 + (3 << 20)));
  (*pool)->free(b);
  std::byte* const c = (*pool)->allocate(Bytes(100));
  EXPECT_EQ((*pool)->peak_in_use(), Bytes(1000 + (3 << 20)));
  (*pool)->free(a);
  (*pool)->free(c);
  (*pool)->free(nullptr);
}

void expect_stream_in_order(const DeviceUnderTest& subject) {
  const auto device = made(subject);
  auto arena = device->make_arena(Bytes(kAll));
  auto stream = device->make_stream();
  ASSERT_TRUE(arena && stream);
  std::vector<std::unique_ptr<Work>> work;
  for (int i = 0; i < 200; ++i) {
    const auto value = static_cast<std::byte>(i);
    if (i % 3 == 0) {
      ASSERT_TRUE((*stream)->fill((*arena)->data(), value, kBlock));
    } else {
      work.push_back(subject.fill_work((*arena)->data(), value, kBlock));
      ASSERT_TRUE((*stream)->run(*work.back()));
    }
  }
  ASSERT_TRUE((*stream)->synchronize());
  std::vector<std::byte> back(kBlock);
  ASSERT_TRUE(device->read(back, (*arena)->data()));
  EXPECT_TRUE(back == std::vector<std::byte>(kBlock, std::byte{199}));
}

void expect_waits_kept(const DeviceUnderTest& subject) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    for (const int streams : {1, 3, 6}) {
      SCOPED_TRACE(testing::Message()
                   << subject.name << " seed " << seed << " streams " << streams);
      const Program program = random_program(seed, streams);
      const Bound bound = bind(subject, program);
      std::vector<std::byte> expected = random_bytes(static_cast<std::size_t>(kAll), seed);
      write_blocks(bound, expected);
      for (int run = 0; run < 4; ++run) {
        ASSERT_TRUE(bound.sequence->run());
        run_on_host(program, expected);
        ASSERT_TRUE(read_blocks(bound) == expected) << "run " << run;
      }
    }
  }
}

// The same programs command by command, with marks for waits.
void expect_marks_kept(const DeviceUnderTest& subject) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << subject.name << " seed " << seed);
    constexpr int kMarked = 3;
    const Program program = random_program(seed, kMarked);
    const Bound bound = bind(subject, program);
    std::vector<std::unique_ptr<Stream>> streams;
    for (int s = 0; s < kMarked; ++s) {
      auto stream = s == 0 ? bound.device->make_stream() : bound.device->make_copy_stream();
      ASSERT_TRUE(stream) << stream.error().message;
      streams.push_back(std::move(*stream));
    }
    std::vector<std::byte> expected = random_bytes(static_cast<std::size_t>(kAll), seed);
    write_blocks(bound, expected);
    std::vector<std::int64_t> marks(program.commands.size());
    for (int run = 0; run < 4; ++run) {
      for (std::size_t c = 0; c < program.commands.size(); ++c) {
        const Move& move = program.moves[c];
        const Command& command = program.commands[c];
        Stream& stream = *streams[command.stream];
        for (const std::uint32_t wait : command.waits)
          ASSERT_TRUE(stream.wait(*streams[program.commands[wait].stream], marks[wait]));
        ASSERT_TRUE(move.copies ? stream.copy(bound.block(move.to), bound.block(move.from), kBlock)
                                : stream.fill(bound.block(move.to), move.value, kBlock));
        const auto mark = stream.mark();
        ASSERT_TRUE(mark) << mark.error().message;
        EXPECT_GT(*mark, 0);
        marks[c] = *mark;
      }
      for (const auto& stream : streams) ASSERT_TRUE(stream->synchronize());
      run_on_host(program, expected);
      ASSERT_TRUE(read_blocks(bound) == expected) << "run " << run;
      // A mark that has passed is no wait.
      ASSERT_TRUE(streams[0]->wait(*streams[1], 1));
    }
  }
}

void expect_times_in_order(const DeviceUnderTest& subject) {
  const Program program = random_program(7, 3);
  const Bound bound = bind(subject, program);
  std::vector<std::byte> expected = random_bytes(static_cast<std::size_t>(kAll), 7);
  write_blocks(bound, expected);
  std::vector<Interval<std::int64_t>> ran(program.commands.size());
  ASSERT_TRUE(bound.sequence->run_timed(ran));
  run_on_host(program, expected);
  EXPECT_TRUE(read_blocks(bound) == expected);
  constexpr std::int64_t kResolution = 2000;  // nanoseconds, of a GPU's events
  for (std::size_t c = 0; c < ran.size(); ++c) {
    EXPECT_LE(ran[c].begin, ran[c].end);
    for (const std::uint32_t wait : program.commands[c].waits)
      EXPECT_LE(ran[wait].end, ran[c].end + kResolution) << c << " behind " << wait;
  }
}

void expect_bad_commands_refused(const DeviceUnderTest& subject) {
  const auto device = made(subject);
  std::vector<Command> later(2);
  later[0].waits = {1};
  EXPECT_FALSE(device->make_sequence(later));
  std::vector<Command> wide(1);
  wide[0].stream = kMostStreams;
  EXPECT_FALSE(device->make_sequence(wide));
}

}  // namespace plimsoll::device
