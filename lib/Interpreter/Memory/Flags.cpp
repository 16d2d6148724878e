//===- Flags.cpp - What blocks publish and await --------------------------===//

#include "Run/Handlers.h"
#include "Run/Residents.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

static uint64_t addressOf(Warp &warp, const Instruction &in) {
  return uint64_t(warp.integer(in, 0)) +
         uint64_t(warp.integer(in, 1)) * sizeof(int32_t);
}

static std::string nameOf(Warp &warp, const Instruction &in) {
  return "flag " + std::to_string(warp.integer(in, 1));
}

/// `warp 4 of block 1, 0, 0`.
static std::string nameOf(Warp &warp, const Event &event) {
  return ("warp " + Twine(event.warp) + " of " +
          warp.block.residents.block(event.block).name())
      .str();
}

Flags::Flag *Flags::find(Warp &warp, const Instruction &in, uint64_t address) {
  Flag &flag = flags[address];
  if (!flag.releases.empty())
    return &flag;
  int32_t value = 0;
  if (std::optional<std::string> error =
          warp.block.memory.read(address, &value, sizeof value)) {
    warp.report(in, "flag", *error);
    return nullptr;
  }
  if (value != 0) {
    warp.report(in, "flag",
                "expects " + Twine(nameOf(warp, in)) +
                    " to be 0 when the kernel begins, but got " + Twine(value));
    return nullptr;
  }
  flag.releases.emplace_back();
  return &flag;
}

int64_t Flags::value(uint64_t address) const {
  auto flag = flags.find(address);
  return flag == flags.end() ? 0 : flag->second.releases.back().value;
}

//===----------------------------------------------------------------------===//
// tile.publish, tile.count
//===----------------------------------------------------------------------===//

Step Flags::publish(Warp &warp, const Instruction &in) {
  uint64_t address = addressOf(warp, in);
  auto value = int32_t(warp.integer(in, 2));
  bool begins = in.op->hasAttr("begins");
  if (!begins && !in.op->hasAttr("kept"))
    warp.block.launch.counters[address] = in.op;
  // Where no block may wait, nobody awaits it.
  if (!warp.block.program.together) {
    if (std::optional<std::string> error =
            warp.block.memory.write(address, &value, sizeof value))
      return warp.stop(in, "flag", *error);
    return Step::next;
  }
  if (begins)
    return begin(warp, in);
  Flag *flag = find(warp, in, address);
  if (!flag)
    return Step::stop;
  const Release &last = flag->releases.back();
  if (last.by && !inSight(warp, *last.by))
    warp.report(in, "publishes",
                "expects to publish " + Twine(value) + " in " +
                    nameOf(warp, in) + " behind the " + Twine(last.value) +
                    " of " + nameOf(warp, *last.by) +
                    ", but got no order between them",
                warp.block.program.ops[last.by->instruction],
                "the other publish is here");
  release(warp, in, *flag, value, /*clock=*/{});
  return Step::next;
}

Step Flags::begin(Warp &warp, const Instruction &in) {
  uint64_t address = addressOf(warp, in);
  auto value = int32_t(warp.integer(in, 2));
  Flag &flag = flags[address];
  if (!flag.releases.empty())
    return warp.stop(in, "begins",
                     "expects to begin " + Twine(nameOf(warp, in)) +
                         " before all else that is done with it, but got some "
                         "that came before");
  Event now = eventOf(warp, in);
  Clock clock;
  warp.block.clocks.release(warp.id, clock);
  flag.releases.push_back({value, now, std::move(clock)});
  if (std::optional<std::string> error =
          warp.block.memory.write(address, &value, sizeof value))
    return warp.stop(in, "flag", *error);
  return Step::next;
}

void Flags::release(Warp &warp, const Instruction &in, Flag &flag,
                    int32_t value, Clock clock) {
  const Release &last = flag.releases.back();
  Event now = eventOf(warp, in);
  warp.block.clocks.release(warp.id, clock);
  if (value < last.value)
    for (const Event &await : flag.awaits)
      if (clock.sight.of(await.block, await.warp) < await.time)
        warp.report(in, "down",
                    "expects to lower " + Twine(nameOf(warp, in)) + " from " +
                        Twine(last.value) + " to " + Twine(value) +
                        " behind the await of " + nameOf(warp, await) +
                        ", but got no order between them",
                    warp.block.program.ops[await.instruction],
                    "the await is here");
  flag.releases.push_back({value, now, std::move(clock)});
  warp.block.memory.write(addressOf(warp, in), &value, sizeof value);
}

Step Flags::count(Warp &warp, const Instruction &in) {
  int64_t below = warp.integer(in, 2);
  uint64_t address = addressOf(warp, in);
  warp.block.launch.counters[address] = in.op;
  Flag *flag = find(warp, in, address);
  if (!flag)
    return Step::stop;
  const Release &last = flag->releases.back();
  if (last.value < 0 || last.value >= below)
    return warp.stop(in, "below",
                     "expects a flag from 0 to " + Twine(below - 1) +
                         ", but got " + Twine(last.value));
  int64_t next = last.value + 1;
  release(warp, in, *flag, int32_t(next == below ? 0 : next), last.clock);
  return Step::next;
}

//===----------------------------------------------------------------------===//
// tile.await
//===----------------------------------------------------------------------===//

/// One of the values that it may see.
size_t Flags::choose(Warp &warp, const Instruction &in, const Flag &flag,
                     ArrayRef<size_t> seen) const {
  if (in.op->use_empty())
    return seen.front();
  if (std::mt19937_64 *random = warp.block.chance())
    return seen[(*random)() % seen.size()];
  return warp.block.seesBefore() ? seen.front() : seen.back();
}

Step Flags::await(Warp &warp, const Instruction &in) {
  uint64_t address = addressOf(warp, in);
  int64_t wanted = warp.integer(in, 2);
  Flag *flag = find(warp, in, address);
  if (!flag)
    return Step::stop;
  // Not older than what is in sight.
  size_t oldest = flag->releases.size() - 1;
  while (flag->releases[oldest].by &&
         !inSight(warp, *flag->releases[oldest].by)) {
    if (oldest == 0)
      return warp.stop(in, "begins",
                       "expects to await " + Twine(nameOf(warp, in)) +
                           " behind its first value, of " +
                           nameOf(warp, *flag->releases[0].by) +
                           ", but got no order between them");
    --oldest;
  }
  SmallVector<size_t> seen;
  for (size_t i = oldest; i < flag->releases.size(); ++i)
    if (flag->releases[i].value >= wanted)
      seen.push_back(i);
  if (seen.empty())
    return warp.stall(in, {Obstacle::Kind::flag, unsigned(warp.integer(in, 1)),
                           wanted, address});
  for (size_t i = seen.front() + 1; i < flag->releases.size(); ++i)
    if (const Release &later = flag->releases[i]; later.value < wanted)
      return warp.stop(
          in, "down",
          "expects to await " + Twine(wanted) + " in " + nameOf(warp, in) +
              " before " + nameOf(warp, *later.by) + " lowers it to " +
              Twine(later.value) + ", but got no order between them");
  const Release &release = flag->releases[choose(warp, in, *flag, seen)];
  warp.block.clocks.acquire(warp.id, release.clock);
  Event now = eventOf(warp, in);
  auto last = llvm::find_if(flag->awaits, [&](const Event &other) {
    return other.block == now.block && other.warp == now.warp;
  });
  if (last == flag->awaits.end())
    flag->awaits.push_back(now);
  else
    *last = now;
  return warp.set(in, Number{release.value});
}

Step attn::interpreter::runPublish(Warp &warp, const Instruction &in) {
  return warp.block.residents.flags.publish(warp, in);
}

Step attn::interpreter::runCount(Warp &warp, const Instruction &in) {
  return warp.block.residents.flags.count(warp, in);
}

Step attn::interpreter::runAwait(Warp &warp, const Instruction &in) {
  return warp.block.residents.flags.await(warp, in);
}

//===----------------------------------------------------------------------===//
// tile.await_launch, tile.release_launch
//===----------------------------------------------------------------------===//

// Launches run one after the other here.  That nothing is touched before the
// wait is for the verifier to see.
Step attn::interpreter::runLaunchOrder(Warp &, const Instruction &) {
  return Step::next;
}
