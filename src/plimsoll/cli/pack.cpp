#include <cstdio>
#include <memory>
#include <string>

#include "plimsoll/api/packing.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

struct PackArguments {
  std::vector<std::string> files;
  api::PackRequest request;
  std::string generate;
  std::size_t count = 1000;
  double holes = 0;
  bool check = false;
};

Status check_files(const PackArguments& arguments) {
  if (arguments.files.size() != 2)
    return fail(ErrorCode::kUsage, "--check takes two files: the problem and the packing");
  PLIMSOLL_TRY(const Bytes height, api::check_packing_file(arguments.files[0], arguments.files[1]));
  if (arguments.request.json) {
    std::printf("{\"ok\":true,\"height\":%lld}\n", static_cast<long long>(height.value));
  } else {
    std::printf("right: height %s\n", grouped(height.value).c_str());
  }
  return {};
}

Status generate(const PackArguments& arguments) {
  if (arguments.request.output.empty())
    return fail(ErrorCode::kUsage, "--generate needs -o FILE to write the problem to");
  return api::generate_problem(arguments.generate, arguments.count, arguments.request.options.seed,
                               arguments.holes, arguments.request.output);
}

void print_summary(const api::PackReport& report) {
  std::fprintf(stderr, "%lld buffers, ", static_cast<long long>(report.buffers));
  if (report.packed) {
    std::fprintf(stderr, "height %s, lower bound %s (+%.3f %%), ",
                 grouped(report.height.value).c_str(), grouped(report.lower_bound.value).c_str(),
                 100 * report.gap);
  }
  std::fprintf(stderr, "%s, %s, %.3f s%s\n", report.status.c_str(), report.method.c_str(),
               report.seconds, report.interrupted ? ", interrupted" : "");
}

Status pack_file(PackArguments& arguments, Command& command) {
  if (arguments.files.size() != 1)
    return fail(ErrorCode::kUsage, "pack takes one problem file; see --help");
  api::PackRequest& request = arguments.request;
  request.problem = arguments.files[0];
  request.on_progress = waiting_on_terminal;
  request.options.stop = stop_on_interrupt();
  PLIMSOLL_TRY(const api::PackReport report, api::pack_file(request));
  if (request.json) {
    command.answer(report.json);
  } else {
    print_summary(report);
  }
  PLIMSOLL_RETURN_IF_ERROR(report.verdict);
  if (request.output.empty()) std::fputs(report.offsets.c_str(), stdout);
  return {};
}

Action bind_pack(Command& app) {
  auto arguments = std::make_shared<PackArguments>();
  api::PackRequest& a = arguments->request;
  app.add_inputs("FILE", arguments->files,
                 "problem (.csv as MiniMalloc's, or .json; - is standard input); with --check also "
                 "a packing");
  app.add_option("--capacity", a.capacity, "bytes there are (1048576, 1MiB)").type_name("SIZE");
  app.add_flag("--minimize", a.minimize, "the smallest height, not only one that fits");
  app.add_option("--deadline", a.deadline, "time to search (default 10s)").type_name("TIME");
  app.add_output("-o,--output", a.output, "file for the offsets (.csv or .json)");
  app.add_flag("--json", a.json, "summary as JSON on stdout");
  app.add_flag("--check", arguments->check,
               "check a packing of the problem with the independent verifier");
  app.add_option("--method", a.method, "how to search, or one classic order alone (default auto)")
      .type_name(
          "auto|skyline|exact|by-size|by-lifetime|by-area|execution-order|first-fit|given-order");
  app.add_option("--threads", a.options.threads,
                 "workers for the search; 0: all cores (default 1)");
  app.add_option("--seed", a.options.seed, "seed of the search or of --generate (default 1)");
  app.add_flag("--deterministic", a.options.deterministic,
               "count work instead of time: the same offsets on every machine");
  app.add_option("--repack", a.old_packing,
                 "an older packing, .csv or .json: move as few of its buffers as possible")
      .type_name("FILE");
  app.add_flag("--keep-hints", a.options.keep_hints,
               "the same, the old offsets being the problem's hints");
  app.add_option("--slab", a.slab, "no buffer crosses a multiple of this many bytes")
      .type_name("SIZE");
  app.add_option(
         "--two-ended", a.two_ended,
         "buffers that live at least this fraction of all time to the front, others to the back")
      .between(0.0, 1.0)
      .type_name("FRACTION");
  app.add_option("--without", a.without,
                 "parts of the search to switch off, by name: memo,backjump")
      .type_name("IDEA,...");
  app.add_option("--generate", arguments->generate, "write a problem instead")
      .type_name("tiling|training|random");
  app.add_option("-n,--count", arguments->count, "buffers of --generate (default 1000)");
  app.add_option("--holes", arguments->holes,
                 "share of tiles --generate tiling leaves out (default 0)");
  return [arguments, &app]() -> Status {
    if (!arguments->generate.empty()) return generate(*arguments);
    return arguments->check ? check_files(*arguments) : pack_file(*arguments, app);
  };
}

}  // namespace

Verb pack_verb() {
  return {"pack", "offsets for buffers with known lifetimes, optimal or with a proven bound",
          "Examples:\n"
          "  plimsoll pack problem.csv --capacity 1MiB -o offsets.csv\n"
          "  plimsoll pack problem.csv --minimize --deadline 10s --json\n"
          "  plimsoll pack --check problem.csv offsets.csv\n"
          "  plimsoll pack changed.csv --repack offsets.csv -o new.csv\n"
          "  make_problem | plimsoll pack - > offsets.csv\n"
          "  plimsoll pack --generate training -n 1000000 --seed 7 -o p.csv",
          bind_pack};
}

}  // namespace plimsoll::cli
