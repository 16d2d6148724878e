//===- Timeline.cpp - One block, step by step, by the model ---------------===//

#include "attn/Schedule/Timeline.h"
#include "Time/Step.h"
#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

using namespace attn;

CopyRates attn::copyRates(const Machine &machine) {
  const Calibration &c = calibrationOf(machine);
  double clock = clockOf(machine);
  return {clock, c.l2Gain * l2RateOf(machine) / clock / double(machine.sms),
          c.latencySeconds * clock};
}

double Timeline::busy(Unit unit) const {
  double sum = 0;
  for (const BusySpan &span : spans)
    sum += span.unit == unit ? span.end - span.begin : 0;
  return sum;
}

namespace {

/// An execution of a leaf.
struct Job {
  const Node *node;
  Unit unit;
  double clocks = 0; ///< of all workers
  int64_t depth = 1; ///< of its ring

  bool isBrought() const {
    return unit == Unit::copies || unit == Unit::helpers;
  }
};

/// What a tile has done in front of its steps, in each of them and behind them.
struct Jobs {
  std::vector<Job> before, inside, behind;
  double steps = 1; ///< of a tile, on average
};

//===----------------------------------------------------------------------===//
// The leaves of a tile, and what they take
//===----------------------------------------------------------------------===//

class Reader {
public:
  Reader(const Grid &grid, const Census &census, size_t number,
         const Problem &problem, const Machine &machine,
         TensorCoreFamily family)
      : counts(census.grids[number]), problem(problem),
        leaves(leafClocks(census, grid, number, problem, machine, family)) {
    bytesPerClock = copyRates(machine).bytesPerClock;
    walk = walkOf(grid.body);
    isWgmma = grid.isPipeline();
  }

  Jobs jobs(const Grid &grid) {
    tile[size_t(grid.axis)] = grid.step;
    if (walk)
      inLoop(*walk, [&] { countRuns(walk->body, 1); });
    tiles = double(counts.blocks) * double(counts.together) *
            double(std::max<int64_t>(1, counts.strips));
    runs = std::max(1.0, runs);
    result.steps = walk ? std::max(1.0, runs / tiles) : 1;
    body(grid.body, 1, 1);
    return std::move(result);
  }

private:
  const GridCensus &counts;
  const Problem &problem;
  std::vector<LeafClocks> leaves;
  double bytesPerClock;
  const verb::Loop *walk; ///< the loop whose turns are steps; null: none
  bool isWgmma;
  double runs = 0, tiles = 1; ///< turns of the walk, and tiles
  int64_t tile[4] = {0, 0, 0, 0};
  Jobs result;
  bool isInside = false, isBehind = false;

  static bool multiplies(const Body &body) {
    return std::any_of(body.begin(), body.end(), [](const Node &node) {
      return node.is<verb::Multiply>() || multiplies(bodyOf(node));
    });
  }

  static bool hasBlocks(const Body &body) {
    return std::any_of(body.begin(), body.end(), [](const Node &node) {
      auto *loop = node.as<verb::Loop>();
      return (loop && loop->isParallel) || hasBlocks(bodyOf(node));
    });
  }

  /// The outermost loop that multiplies and that one block goes through.
  static const verb::Loop *walkOf(const Body &body) {
    for (const Node &node : body) {
      if (!multiplies(bodyOf(node)))
        continue;
      auto *loop = node.as<verb::Loop>();
      bool isOwn = loop && !loop->isParallel && !hasBlocks(loop->body);
      return isOwn ? loop : walkOf(bodyOf(node));
    }
    return nullptr;
  }

  int64_t tileOf(Axis axis) const {
    int64_t step = tile[size_t(axis)];
    return step ? step : extent(problem, axis);
  }
  int64_t turnsOf(const verb::Loop &loop) const {
    return loop.step ? ceilDiv(tileOf(loop.axis), loop.step) : 1;
  }
  /// Goes through the body of a loop, with its tile.
  template <typename Visit> void inLoop(const verb::Loop &loop, Visit visit) {
    int64_t outer = tile[size_t(loop.axis)];
    tile[size_t(loop.axis)] = loop.step;
    visit();
    tile[size_t(loop.axis)] = outer;
  }

  const LeafClocks *clocksOf(const Node &node) const {
    for (const LeafClocks &leaf : leaves)
      if (leaf.use->node == &node)
        return &leaf;
    return nullptr;
  }

  /// How often the first leaf that comes from slow memory runs; of a loop in
  /// the walk once for all its turns.
  void countRuns(const Body &body, int64_t repeats) {
    for (const Node &node : body) {
      if (auto *loop = node.as<verb::Loop>()) {
        int64_t turns = turnsOf(*loop);
        inLoop(*loop, [&] { countRuns(loop->body, repeats * turns); });
      } else if (auto *share = node.as<verb::Share>()) {
        countRuns(share->body, repeats);
      }
      const LeafClocks *leaf = clocksOf(node);
      bool isOften = leaf && leaf->use->count > 0 && !isBetween(node);
      if (runs == 0 && isOften && moveOf(node) == Move::down)
        runs = double(leaf->use->count) / double(repeats);
    }
  }

  void body(const Body &nodes, int64_t stages, int64_t repeats) {
    for (const Node &node : nodes)
      if (auto *loop = node.as<verb::Loop>())
        this->loop(*loop, stages, repeats);
      else if (auto *share = node.as<verb::Share>())
        body(share->body, stages, repeats);
      else if (const LeafClocks *leaf = clocksOf(node))
        add(node, *leaf, stages, repeats);
  }

  /// The turns of a loop in the walk are one behind the other.
  void loop(const verb::Loop &loop, int64_t stages, int64_t repeats) {
    bool isWalk = &loop == walk;
    int64_t turns = isInside ? turnsOf(loop) : 1;
    isInside |= isWalk;
    inLoop(loop, [&] {
      for (int64_t turn = 0; turn < turns; ++turn)
        body(loop.body, std::max(stages, loop.stages), repeats * turns);
    });
    if (isWalk)
      isInside = false, isBehind = true;
  }

  static std::optional<Unit> unitOf(const Node &node) {
    using namespace verb;
    return node.match(
        [](OneOf<Load, Stream, Absorb>) { return std::optional(Unit::copies); },
        [](OneOf<Transpose, Widen, Split>) {
          return std::optional(Unit::helpers);
        },
        [](const Multiply &) { return std::optional(Unit::products); },
        [](OneOf<Softmax, Weigh, Differentiate, Rescale>) {
          return std::optional(Unit::arithmetic);
        },
        [](OneOf<Spill, Reduce, Store>) {
          return std::optional(Unit::results);
        },
        [](OneOf<Loop, Share, Hold>) { return std::optional<Unit>(); });
  }

  /// In all executions.  Like warps load fragments by instructions, beside the
  /// tensor cores.
  double clocksOf(Unit unit, const LeafClocks &leaf) const {
    double bytes = double(slowBytes(*leaf.use, problem));
    switch (unit) {
    case Unit::copies:
      return bytes / bytesPerClock;
    case Unit::helpers:
      return leaf.helpers * (isInside ? runs : tiles);
    case Unit::products:
      return isWgmma ? leaf.tensor
                     : std::max({leaf.tensor, leaf.smem, leaf.issue});
    case Unit::arithmetic:
      return leaf.exp + leaf.issue;
    case Unit::results:
      return bytes / bytesPerClock + leaf.epilogue;
    }
    return 0;
  }

  void add(const Node &node, const LeafClocks &leaf, int64_t stages,
           int64_t repeats) {
    std::optional<Unit> unit = unitOf(node);
    if (!unit)
      return;
    double clocks =
        clocksOf(*unit, leaf) / (isInside ? runs * double(repeats) : tiles);
    auto *stream = node.as<verb::Stream>();
    int64_t depth = stream && stream->buffers ? stream->buffers : stages;
    std::vector<Job> &list = isInside   ? result.inside
                             : isBehind ? result.behind
                                        : result.before;
    if (clocks > 0)
      list.push_back({&node, *unit, clocks, depth});
  }
};

//===----------------------------------------------------------------------===//
// The simulation
//===----------------------------------------------------------------------===//

std::vector<Tensor> tensorsReadBy(const Node &node) {
  if (auto *product = node.as<verb::Multiply>())
    return {product->a, product->b};
  if (node.is<verb::Differentiate>())
    return {Tensor::P, tensorOf(node)};
  bool isBrought = moveOf(node) == Move::down;
  return isBrought ? std::vector<Tensor>{}
                   : std::vector<Tensor>{tensorOf(node)};
}

/// What comes to be.
Tensor madeBy(const Node &node) {
  if (node.is<verb::Softmax>() || node.is<verb::Weigh>())
    return Tensor::P;
  if (node.is<verb::Differentiate>())
    return Tensor::GradS;
  return tensorOf(node);
}

class Simulation {
public:
  Simulation(const Grid &grid, Jobs jobs, int64_t workers, int64_t steps,
             double latency)
      : grid(grid), jobs(std::move(jobs)), workers(size_t(workers)),
        steps(size_t(steps)), latency(latency), queues(size_t(workers)),
        state(size_t(workers)),
        ends(size_t(workers), std::vector<double>(all(), kNever)),
        there(all(), kNever) {}

  std::vector<BusySpan> spans;

  void run() {
    connect();
    for (const Job &job : jobs.before)
      first =
          std::max(first, job.isBrought() ? bring(job, -1, 0)
                                          : put(job, 0, -1, first, job.clocks));
    for (size_t worker = 0; worker < workers; ++worker)
      state[worker].lastEnd = first, queues[worker] = order();
    do
      bringAll();
    while (work());
    for (size_t worker = 0; worker < workers; ++worker)
      for (const Job &job : jobs.behind)
        finish(job, worker);
  }

private:
  static constexpr double kNever = -1;
  /// An execution in a step: step x jobs + number.
  using Place = size_t;
  size_t all() const { return steps * jobs.inside.size(); }
  const Job &jobAt(Place place) const {
    return jobs.inside[place % jobs.inside.size()];
  }
  int64_t stepAt(Place place) const {
    return int64_t(place / jobs.inside.size());
  }

  struct State {
    double lastEnd = 0, lastArithmetic = 0;
  };

  const Grid &grid;
  const Jobs jobs;
  const size_t workers, steps;
  const double latency;
  std::vector<std::deque<Place>> queues; ///< what each has to do
  std::vector<State> state;
  std::vector<std::vector<double>> ends; ///< of what each has done
  std::vector<double> there;             ///< when what is brought has come
  double first = 0;                      ///< when what stays is there
  double free[5] = {0, 0, 0, 0, 0};
  Place nextBrought = 0;
  /// Of a step: what each reads of what was brought or made before it.
  std::vector<std::vector<size_t>> sources, readers;

  void connect() {
    size_t count = jobs.inside.size();
    sources.resize(count), readers.resize(count);
    for (size_t i = 0; i < count; ++i)
      for (Tensor tensor : tensorsReadBy(*jobs.inside[i].node)) {
        bool isMade = false;
        for (size_t j = i; j-- > 0 && !isMade;) {
          const Job &other = jobs.inside[j];
          if (madeBy(*other.node) != tensor)
            continue;
          sources[i].push_back(j), readers[j].push_back(i);
          isMade = other.unit != Unit::helpers; // behind its copy
        }
      }
  }

  double put(const Job &job, size_t worker, int64_t step, double ready,
             double clocks) {
    double &unit = free[size_t(job.unit)];
    double begin = std::max(ready, unit);
    unit = begin + clocks;
    spans.push_back(
        {job.unit, int64_t(worker), step, job.node, begin, begin + clocks});
    return unit;
  }

  /// Copies follow each other; each arrives a latency later.
  double bring(const Job &job, int64_t step, double ready) {
    if (job.unit == Unit::helpers)
      return put(job, 0, step, ready, job.clocks);
    double end = put(job, 0, step, ready, job.clocks) + latency;
    return spans.back().end = end;
  }

  /// With overlap the output of a step comes behind the scores of the next one.
  bool waits(const Job &job) const {
    auto *product = job.node->as<verb::Multiply>();
    return product && product->a == Tensor::P && grid.axis == Axis::Query &&
           grid.order.overlaps;
  }

  std::deque<Place> order() const {
    std::deque<Place> queue;
    std::vector<Place> waiting;
    auto flush = [&] {
      queue.insert(queue.end(), waiting.begin(), waiting.end());
      waiting.clear();
    };
    for (size_t step = 0; step < steps; ++step) {
      std::vector<Place> outputs;
      for (size_t i = 0; i < jobs.inside.size(); ++i) {
        const Job &job = jobs.inside[i];
        Place place = step * jobs.inside.size() + i;
        if (job.isBrought())
          continue;
        if (job.unit == Unit::arithmetic)
          flush();
        if (waits(job))
          outputs.push_back(place);
        else
          queue.push_back(place);
      }
      flush();
      waiting = std::move(outputs);
    }
    flush();
    return queue;
  }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// When all workers have read it; nothing: some have not.
  std::optional<double> released(Place place) const {
    double last = there[place];
    size_t base = place - place % jobs.inside.size();
    for (size_t reader : readers[place - base]) {
      if (jobs.inside[reader].isBrought())
        continue;
      for (const std::vector<double> &own : ends) {
        if (own[base + reader] == kNever)
          return std::nullopt;
        last = std::max(last, own[base + reader]);
      }
    }
    return last;
  }

  /// The execution of the same leaf so many before; nothing: there is none.
  std::optional<Place> before(Place place, int64_t depth) const {
    const Node *node = jobAt(place).node;
    for (Place other = place; other-- > 0;)
      if (jobAt(other).node == node && --depth == 0)
        return other;
    return std::nullopt;
  }

  /// Brings all that have a slot, in order.
  void bringAll() {
    for (; nextBrought < all(); ++nextBrought) {
      const Job &job = jobAt(nextBrought);
      if (!job.isBrought())
        continue;
      double ready = 0;
      if (auto last = before(nextBrought, job.depth)) {
        auto slot = released(*last);
        if (!slot)
          return;
        ready = *slot;
      }
      size_t base = nextBrought - nextBrought % jobs.inside.size();
      if (job.unit == Unit::helpers)
        for (size_t source : sources[nextBrought - base])
          ready = std::max(ready, there[base + source]);
      there[nextBrought] = bring(job, stepAt(nextBrought), ready);
    }
  }

  //===--------------------------------------------------------------------===//
  // Workers
  //===--------------------------------------------------------------------===//

  /// Of dS, which all warpgroups make, each multiplies all.
  bool isOfAll(const Job &job) const {
    auto *product = job.node->as<verb::Multiply>();
    return product && grid.axis == Axis::Key && product->a == Tensor::GradS &&
           product->tensor == Tensor::GradQ;
  }

  /// When a worker may begin with an execution; nothing: others are behind.
  std::optional<double> ready(size_t worker, Place place) const {
    const State &own = state[worker];
    double time =
        std::max(first, grid.order.overlaps ? own.lastArithmetic : own.lastEnd);
    size_t base = place - place % jobs.inside.size();
    for (size_t source : sources[place - base]) {
      const Job &job = jobs.inside[source];
      for (size_t other = 0; other < workers; ++other) {
        if (other != worker && !isOfAll(jobAt(place)))
          continue;
        double end =
            job.isBrought() ? there[base + source] : ends[other][base + source];
        if (end == kNever)
          return std::nullopt;
        time = std::max(time, end);
      }
    }
    return time;
  }

  /// Does what can begin first; false: nothing is left.
  bool work() {
    size_t best = workers;
    double start = 0;
    for (size_t worker = 0; worker < workers; ++worker) {
      if (queues[worker].empty())
        continue;
      Place place = queues[worker].front();
      auto when = ready(worker, place);
      if (!when)
        continue;
      double begin = std::max(*when, free[size_t(jobAt(place).unit)]);
      // Of two that can, who is behind.
      bool isFirst = best == workers || begin < start ||
                     (begin == start && place < queues[best].front());
      if (isFirst)
        best = worker, start = begin;
    }
    if (best == workers)
      return false;
    Place place = queues[best].front();
    queues[best].pop_front();
    const Job &job = jobAt(place);
    double end =
        put(job, best, stepAt(place), start, job.clocks / double(workers));
    ends[best][place] = end;
    State &own = state[best];
    if (job.unit != Unit::results)
      own.lastEnd = std::max(own.lastEnd, end);
    if (job.unit == Unit::arithmetic)
      own.lastArithmetic = end;
    return true;
  }

  /// Behind all steps, one behind the other.
  void finish(const Job &job, size_t worker) {
    double &last = state[worker].lastEnd;
    if (!job.isBrought())
      last = put(job, worker, -1, last, job.clocks / double(workers));
    else if (worker == 0) // for all
      last = bring(job, -1, last);
  }
};

} // namespace

Timeline attn::timeline(const Schedule &schedule, size_t launch,
                        const Problem &problem, const Machine &machine,
                        TensorCoreFamily family, int64_t mostJobs) {
  Census counted = census(schedule, problem);
  size_t number = 0;
  for (size_t i = 0; i < launch; ++i)
    number += schedule.launches[i].size();
  number += schedule.launches[launch].before.size();
  const Grid &grid = schedule.launches[launch].main;
  Jobs jobs =
      Reader(grid, counted, number, problem, machine, family).jobs(grid);
  const Workers &crew = grid.workers;

  Timeline result;
  result.workers = grid.isPipeline()
                       ? std::max<int64_t>(1, crew.warpgroups / crew.across)
                       : 1;
  result.stepsOfTile = jobs.steps;
  int64_t most = mostJobs / std::max<int64_t>(1, int64_t(jobs.inside.size()));
  result.steps = std::clamp<int64_t>(most, 1, std::llround(jobs.steps));
  CopyRates copies = copyRates(machine);
  result.clockHz = copies.clockHz;
  Simulation simulation(grid, std::move(jobs), result.workers, result.steps,
                        copies.latency);
  simulation.run();
  result.spans = std::move(simulation.spans);
  for (const BusySpan &span : result.spans)
    result.clocks = std::max(result.clocks, span.end);
  return result;
}
