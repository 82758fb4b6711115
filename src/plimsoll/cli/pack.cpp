#include <cstdio>
#include <memory>
#include <string>

#include "plimsoll/api/pack_file.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

struct PackArguments {
  std::vector<std::string> files;
  std::string capacity;
  std::string deadline = "10s";
  std::string output;
  std::string generate;
  std::string method = "auto";
  std::string old_packing;
  std::string slab;
  std::string without;
  double two_ended = -1;
  std::size_t count = 1000;
  double holes = 0;
  bool minimize = false;
  bool check = false;
  bool json = false;
  pack::PackOptions options;
};

Status check_files(const PackArguments& arguments) {
  if (arguments.files.size() != 2)
    return fail(ErrorCode::kUsage, "--check takes two files: the problem and the packing");
  PLIMSOLL_TRY(const pack::Packing packing,
               api::check_packing_file(arguments.files[0], arguments.files[1]));
  if (arguments.json) {
    std::printf("{\"ok\":true,\"height\":%lld}\n", static_cast<long long>(packing.height().value));
  } else {
    std::printf("right: height %s\n", grouped(packing.height().value).c_str());
  }
  return {};
}

Status generate(const PackArguments& arguments) {
  if (arguments.output.empty())
    return fail(ErrorCode::kUsage, "--generate needs -o FILE to write the problem to");
  return api::generate_problem(arguments.generate, arguments.count, arguments.options.seed,
                               arguments.holes, arguments.output);
}

void print_summary(const pack::Problem& problem, const pack::Packing& packing) {
  if (packing.offsets.empty() && problem.size() > 0) {
    std::fprintf(stderr, "%zu buffers, %s, %s, %.3f s\n", problem.size(),
                 pack::name(packing.status), packing.method.c_str(), packing.seconds);
    return;
  }
  std::fprintf(stderr, "%zu buffers, height %s, lower bound %s (+%.3f %%), %s, %s, %.3f s\n",
               problem.size(), grouped(packing.height().value).c_str(),
               grouped(packing.lower_bound.value).c_str(), 100 * packing.gap(),
               pack::name(packing.status), packing.method.c_str(), packing.seconds);
}

// What the command line adds to the problem in the file.
Status amend(pack::Problem& problem, PackArguments& arguments) {
  if (!arguments.capacity.empty()) {
    PLIMSOLL_TRY(const Bytes capacity, parse_byte_size(arguments.capacity));
    problem.set_capacity(capacity);
  }
  if (!arguments.slab.empty()) {
    PLIMSOLL_TRY(const Bytes slab, parse_byte_size(arguments.slab));
    api::limit_slabs(problem, slab);
  }
  if (arguments.two_ended >= 0) pack::split_ends_by_lifetime(problem, arguments.two_ended);
  if (!arguments.old_packing.empty()) {
    PLIMSOLL_RETURN_IF_ERROR(api::take_hints(problem, arguments.old_packing));
    arguments.options.keep_hints = true;
  }
  return api::leave_out(arguments.options, arguments.without);
}

Status pack_file(PackArguments arguments) {
  if (arguments.files.size() != 1)
    return fail(ErrorCode::kUsage, "pack takes one problem file; see --help");
  auto waiting = waiting_on_terminal("reading");
  PLIMSOLL_TRY(pack::Problem problem, api::read_packing_problem(arguments.files[0]));
  waiting.reset();
  PLIMSOLL_RETURN_IF_ERROR(amend(problem, arguments));
  PLIMSOLL_RETURN_IF_ERROR(api::check_output(arguments.output, problem));
  PLIMSOLL_TRY(arguments.options.deadline_seconds, parse_seconds(arguments.deadline));
  PLIMSOLL_TRY(arguments.options.method, api::packing_method(arguments.method));
  arguments.options.goal = arguments.minimize ? pack::Goal::kMinimize : pack::Goal::kAuto;
  waiting = waiting_on_terminal("packing", arguments.options.deadline_seconds);
  PLIMSOLL_TRY(const pack::Packing packing, pack::pack(problem, arguments.options));
  waiting.reset();
  if (arguments.json) {
    PLIMSOLL_TRY(const std::string summary, api::packing_json(problem, packing));
    std::fputs(summary.c_str(), stdout);
  } else {
    print_summary(problem, packing);
  }
  PLIMSOLL_RETURN_IF_ERROR(api::packing_verdict(problem, packing));
  if (!arguments.output.empty()) return api::write_packing(arguments.output, problem, packing);
  if (arguments.json) return {};
  PLIMSOLL_TRY(const std::string offsets, api::packing_text(problem, packing));
  std::fputs(offsets.c_str(), stdout);
  return {};
}

Action bind_pack(Command& app) {
  auto arguments = std::make_shared<PackArguments>();
  PackArguments& a = *arguments;
  app.add_option("FILE", a.files,
                 "problem (.csv as MiniMalloc's, or .json); with --check also a packing");
  app.add_option("--capacity", a.capacity, "bytes there are (1048576, 1MiB)").type_name("SIZE");
  app.add_flag("--minimize", a.minimize, "the smallest height, not only one that fits");
  app.add_option("--deadline", a.deadline, "time to search (default 10s)").type_name("TIME");
  app.add_output("-o,--output", a.output, "file for the offsets (.csv or .json)");
  app.add_flag("--json", a.json, "summary as JSON on stdout");
  app.add_flag("--check", a.check, "check a packing of the problem with the independent checker");
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
  app.add_option("--without", a.without, "ideas of the search to leave out, by name: memo,backjump")
      .type_name("IDEA,...");
  app.add_option("--generate", a.generate, "write a problem instead")
      .type_name("tiling|training|random");
  app.add_option("-n,--count", a.count, "buffers of --generate (default 1000)");
  app.add_option("--holes", a.holes, "share of tiles --generate tiling leaves out (default 0)");
  return [arguments]() -> Status {
    if (!arguments->generate.empty()) return generate(*arguments);
    return arguments->check ? check_files(*arguments) : pack_file(*arguments);
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
          "  plimsoll pack --generate training -n 1000000 --seed 7 -o p.csv",
          bind_pack};
}

}  // namespace plimsoll::cli
