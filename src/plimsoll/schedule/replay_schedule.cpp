#include "plimsoll/schedule/replay_schedule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll::schedule {
namespace {

constexpr std::int32_t kAbsent = -1;
constexpr double kRounding = 1e-9;  // of sums in another order

class FileReplay {
 public:
  explicit FileReplay(const ScheduleFile& file)
      : f_(file),
        device_(file.workload.values.size(), kAbsent),
        encoded_(file.workload.values.size(), kAbsent),
        host_(file.workload.values.size(), kAbsent),
        encoding_(file.workload.values.size(), 0),
        runs_(file.workload.values.size(), 0) {}

  ScheduleReplay run() {
    for (at_ = 0; at_ < f_.steps.size() && out_.ok(); ++at_) {
      const FileStep& step = f_.steps[at_];
      out_.step_seconds.push_back(0);
      act(step, f_.workload.value(step.value));
    }
    if (out_.ok()) finish();
    const auto end = Step(static_cast<std::int64_t>(at_));
    for (HeldValue& held : out_.held) {
      if (held.life.end.value < 0) held.life.end = end;
    }
    if (out_.ok()) add_up();
    if (out_.ok()) compare();
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void wrong(fmt::format_string<Args...> format, Args&&... args) {
    if (out_.ok())
      out_.problems.push_back(
          fmt::format("step {}: {}", at_, fmt::format(format, std::forward<Args>(args)...)));
  }

  Step now() const { return Step(static_cast<std::int64_t>(at_)); }

  void make(std::vector<std::int32_t>& where, ValueId id, Form form, Bytes bytes) {
    const Value& value = f_.workload.value(id);
    if (where[id.index()] != kAbsent)
      return wrong("makes '{}', which is there already", value.name);
    where[id.index()] = static_cast<std::int32_t>(out_.held.size());
    out_.held.push_back({id, form, bytes, {now(), Step(-1)}, static_cast<std::int32_t>(at_), -1});
  }

  // Its memory is free from this step on.
  void end(std::vector<std::int32_t>& where, ValueId id, const char* what) {
    std::int32_t& held = where[id.index()];
    if (held == kAbsent)
      return wrong("drops {} '{}', which is not there", what, f_.workload.value(id).name);
    out_.held[static_cast<std::size_t>(held)].life.end = now();
    held = kAbsent;
  }

  void read(const std::vector<std::int32_t>& where, ValueId id, std::string_view reader,
            const char* place) {
    const std::int32_t held = where[id.index()];
    if (held == kAbsent)
      return wrong("'{}' needs '{}' {}, where it is not", reader, f_.workload.value(id).name,
                   place);
    out_.held[static_cast<std::size_t>(held)].last_read = static_cast<std::int32_t>(at_);
  }

  void act(const FileStep& step, const Value& value) {
    using Kind = FileStep::Kind;
    switch (step.kind) {
      case Kind::kCompute:
        return compute(step.value, value);
      case Kind::kDrop:
        // What was taken over is gone already.
        if (taken_over_ == step.value) {
          taken_over_ = ValueId();
          return;
        }
        return end(device_, step.value, "the value");
      case Kind::kDropEncoded:
        return end(encoded_, step.value, "the encoded form of");
      case Kind::kSendOut:
        if (!value.swappable) return wrong("'{}' must not leave for the host", value.name);
        out_.copies = true;
        read(device_, step.value, "send_out", "on the device");
        if (host_[step.value.index()] != kAbsent) close_host(step.value);
        return make(host_, step.value, Form::kHost, value.bytes);
      case Kind::kBringIn:
        out_.copies = true;
        read(host_, step.value, "bring_in", "on the host");
        return make(device_, step.value, Form::kDevice, value.bytes);
      case Kind::kEncode:
        if (step.encoding >= value.encodings.size())
          return wrong("'{}' has no encoding {}", value.name, step.encoding);
        read(device_, step.value, "encode", "on the device");
        encoding_[step.value.index()] = step.encoding;
        out_.step_seconds.back() = value.encodings[step.encoding].encode_seconds;
        return make(encoded_, step.value, Form::kEncoded, value.encodings[step.encoding].bytes);
      case Kind::kDecode:
        read(encoded_, step.value, "decode", "encoded");
        if (out_.ok())
          out_.step_seconds.back() = value.encodings[encoding_[step.value.index()]].decode_seconds;
        return make(device_, step.value, Form::kDevice, value.bytes);
    }
  }

  void compute(ValueId id, const Value& value) {
    const Task& task = f_.workload.task(value.producer);
    for (const ValueId input : task.inputs) read(device_, input, value.name, "on the device");
    if (runs_[id.index()]++ > 0 && (!value.recompute || task.once))
      wrong("'{}' runs again, and must not", value.name);
    out_.step_seconds.back() = task.seconds;
    const bool follows =
        at_ + 1 < f_.steps.size() && value.in_place &&
        f_.steps[at_ + 1] == FileStep{FileStep::Kind::kDrop, value.in_place->input};
    if (out_.ok() && follows) {
      taken_over_ = value.in_place->input;
      end(device_, taken_over_, "the value");
    }
    make(device_, id, Form::kDevice, value.bytes);
  }

  void close_host(ValueId id) {
    HeldValue& held = out_.held[static_cast<std::size_t>(host_[id.index()])];
    held.life.end = Step(std::max<std::int64_t>(held.last_read, held.made_at) + 1);
    host_[id.index()] = kAbsent;
  }

  void finish() {
    for (std::size_t v = 0; v < runs_.size(); ++v) {
      const Value& value = f_.workload.values[v];
      if (runs_[v] == 0) wrong("the steps end, and '{}' never ran", value.name);
      if (value.keep && device_[v] == kAbsent)
        wrong("the steps end, and '{}', which must be kept, is not on the device", value.name);
      if (host_[v] != kAbsent) close_host(ValueId(v));
    }
  }

  void add_up() {
    std::vector<std::int64_t> device(f_.steps.size() + 1, 0), host(f_.steps.size() + 1, 0);
    for (const HeldValue& held : out_.held) {
      auto& change = held.form == Form::kHost ? host : device;
      change[static_cast<std::size_t>(held.life.begin.value)] += held.bytes.value;
      change[static_cast<std::size_t>(held.life.end.value)] -= held.bytes.value;
    }
    std::int64_t on_device = 0;
    std::int64_t on_host = 0;
    for (std::size_t s = 0; s < f_.steps.size(); ++s) {
      on_device += device[s];
      on_host += host[s];
      const bool runs = f_.steps[s].kind == FileStep::Kind::kCompute;
      const Value& value = f_.workload.value(f_.steps[s].value);
      const Bytes scratch = runs ? f_.workload.task(value.producer).scratch : Bytes(0);
      out_.peak = std::max(out_.peak, Bytes(on_device) + scratch);
      out_.host_peak = std::max(out_.host_peak, Bytes(on_host));
      out_.seconds += out_.step_seconds[s];
    }
  }

  void compare() {
    const auto promise = [&](const std::string& what) { out_.problems.push_back(what); };
    if (out_.peak != f_.peak)
      promise(fmt::format("the file says a peak of {} bytes, its steps need {}", f_.peak.value,
                          out_.peak.value));
    if (f_.budget && out_.peak > *f_.budget)
      promise(fmt::format("the budget is {} bytes, the steps need {}", f_.budget->value,
                          out_.peak.value));
    if (out_.host_peak > f_.host_peak)
      promise(fmt::format("the file says {} bytes on the host, its steps need {}",
                          f_.host_peak.value, out_.host_peak.value));
    const double slack = kRounding * std::max(out_.seconds, f_.seconds);
    if (f_.seconds < out_.seconds - slack || (!out_.copies && f_.seconds > out_.seconds + slack))
      promise(fmt::format("the file says {} seconds, its steps take {}{}", f_.seconds,
                          out_.copies ? "at least " : "", out_.seconds));
  }

  const ScheduleFile& f_;
  // By value: the place in out_.held of what is there now.
  std::vector<std::int32_t> device_, encoded_, host_;
  std::vector<std::uint8_t> encoding_;  // by value: the form of what is encoded
  std::vector<int> runs_;
  ValueId taken_over_;  // by the step before, whose drop is still listed
  std::size_t at_ = 0;
  ScheduleReplay out_;
};

}  // namespace

ScheduleReplay replay_schedule(const ScheduleFile& file) {
  return FileReplay(file).run();
}

}  // namespace plimsoll::schedule
