//===- Diagram.cpp - What a picture of a schedule shows -------------------===//

#include "attn/Schedule/Diagram.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/SharedTiles.h"
#include <algorithm>

using namespace attn;

//===----------------------------------------------------------------------===//
// What a verb looks like
//===----------------------------------------------------------------------===//

std::string attn::captionOf(const Node &node, const Problem &problem) {
  using namespace verb;
  auto own = [&] { return std::string(name(tensorOf(node))); };
  auto scratch = [&] { return scratchOf(node); };
  return node.match(
      [](OneOf<Loop, Share>) { return std::string(); },
      [](const Hold &) { return std::string("held"); },
      [](const Load &) { return std::string("stays"); },
      [](const Stream &) { return std::string("streams"); },
      [&](const Absorb &) {
        return std::string(scratch().isKept                   ? "was kept"
                           : isInput(tensorOf(node), problem) ? "is read"
                                                              : "read back");
      },
      [&](const Transpose &) { return "transpose " + own(); },
      [&](const Widen &) { return "widen " + own(); },
      [&](const Split &) { return "split " + own(); },
      [](const Multiply &product) { return formulaOf(product); },
      [&](const Softmax &) { return "P = exp(" + own() + " - max)"; },
      [&](const Weigh &) { return "P = exp(" + own() + " - LSE)"; },
      [&](const Differentiate &) { return "dS = P (" + own() + " - D)"; },
      [&](const Rescale &) { return "rescale " + own(); },
      [&](const Spill &) {
        return std::string(scratch().isKept                   ? "kept"
                           : isInput(tensorOf(node), problem) ? "in parts"
                                                              : "spilled");
      },
      [](const Reduce &) { return std::string("added"); },
      [](const Store &) { return std::string("stored"); });
}

//===----------------------------------------------------------------------===//
// Marks and frames
//===----------------------------------------------------------------------===//

namespace {

std::string counted(int64_t count, const std::string &what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

class Walker {
public:
  Walker(const Schedule &schedule, const Problem &problem)
      : problem(problem), counts(census(schedule, problem)),
        held(heldWords(schedule, problem)) {}
  Diagram result;

  void launches(const Schedule &schedule) {
    size_t around = kNone;
    for (const Schedule::Launch &launch : schedule.launches) {
      size_t number = result.launches++;
      if (schedule.rounds && number == schedule.rounds.first)
        around = open(FrameKind::rounds, kNone, roundsText(schedule.rounds),
                      "one launch after the other");
      for (const Grid *grid : launch.grids())
        this->grid(*grid, around, number, grid == &launch.main);
    }
    if (around != kNone)
      close(around);
  }

private:
  static constexpr size_t kNone = ~size_t(0);

  const Problem &problem;
  Census counts;
  std::vector<HeldWords> held;
  size_t nextUse = 0, nextLeaf = 0;
  int64_t step[4] = {0, 0, 0, 0};
  int64_t group = 1, keyParts = 1;

  int64_t cutOr(Axis axis, int64_t whole) const {
    int64_t cut = step[size_t(axis)];
    return cut > 0 ? cut : whole;
  }
  int64_t tileOf(Axis axis) const { return cutOr(axis, extent(problem, axis)); }

  size_t open(FrameKind kind, size_t parent, std::string what,
              std::string how) {
    size_t frame = result.frames.size();
    bool isOutermost = parent == kNone;
    result.frames.push_back({kind, isOutermost ? frame : parent,
                             result.marks.size(), 0,
                             isOutermost ? 0 : result.frames[parent].depth + 1,
                             std::move(what), std::move(how), ""});
    return frame;
  }

  /// A frame around nothing is none.
  void close(size_t frame) {
    if (result.frames[frame].first == result.marks.size())
      result.frames.resize(frame);
    else
      result.frames[frame].last = result.marks.size() - 1;
  }

  std::string roundsText(const Rounds &rounds) const {
    int64_t heads = problem.batch * problem.kvHeads;
    int64_t rows = extent(problem, rounds.axis);
    return "every " + counted(rounds.heads, "key head") + " (" +
           counted(ceilDiv(heads, rounds.heads), "time") +
           "), every strip of " + std::to_string(rounds.strip) +
           (rounds.axis == Axis::Key ? " keys (" : " queries (") +
           std::to_string(ceilDiv(rows, rounds.strip)) + " of them)";
  }

  template <typename Walk> int64_t stepOf(const Walk &node) const {
    return node.step ? node.step : tileOf(node.axis);
  }
  template <typename Walk> std::string whatOf(const Walk &node) const {
    return std::string(name(node.axis)) + " tile of " +
           std::to_string(stepOf(node));
  }
  template <typename Walk> std::string oftenOf(const Walk &node) const {
    return std::to_string(ceilDiv(tileOf(node.axis), stepOf(node)));
  }

  void grid(const Grid &node, size_t around, size_t launch, bool isMain) {
    bool isOverKeys = node.axis == Axis::Key;
    int64_t heads =
        problem.batch * (isOverKeys ? problem.kvHeads : problem.heads);
    std::string headName = isOverKeys ? "key head" : "head";
    std::string how = oftenOf(node) + " of each of " + counted(heads, headName);
    keyParts = node.sharing.keyParts;
    if (keyParts > 1)
      how += ", by " + counted(keyParts, "block");
    size_t frame =
        open(FrameKind::grid, around, "every " + whatOf(node), std::move(how));
    result.frames[frame].more = crewText(node);
    std::fill(std::begin(step), std::end(step), 0);
    step[size_t(node.axis)] = node.step;
    group = node.sharing.group;
    body(node.body, frame, 1);
    step[size_t(node.axis)] = 0;
    close(frame);
    if (frame < result.frames.size())
      result.grids.push_back({frame, launch, isMain});
  }

  void body(const Body &nodes, size_t frame, int64_t stages) {
    for (const Node &node : nodes)
      if (auto *loop = node.as<verb::Loop>())
        this->loop(*loop, frame);
      else if (auto *share = node.as<verb::Share>())
        this->share(*share, frame);
      else
        leaf(node, frame, stages);
  }

  void inside(Axis axis, int64_t extent, const Body &nodes, size_t frame,
              int64_t stages) {
    int64_t outer = step[size_t(axis)];
    step[size_t(axis)] = extent;
    body(nodes, frame, stages);
    step[size_t(axis)] = outer;
    close(frame);
  }

  bool isMasked(const verb::Loop &loop) const {
    bool isRow = loop.axis == Axis::Query || loop.axis == Axis::Key;
    return isRow && !problem.isOpen() &&
           (step[size_t(loop.axis)] == 0 || loop.seeks);
  }

  void loop(const verb::Loop &loop, size_t frame) {
    std::string how = isMasked(loop) ? "that " + whatShows(problem) + " shows"
                                     : oftenOf(loop) + " of them";
    if (loop.axis == Axis::Key && keyParts > 1)
      how += ", dealt out to " + counted(keyParts, "part");
    if (loop.isHalved)
      how += ", or half of one";
    if (loop.stages > 1)
      how += ", " + std::to_string(loop.stages) + " in flight";
    size_t inner =
        open(loop.isParallel ? FrameKind::blocks : FrameKind::loop, frame,
             (loop.isParallel ? "at once every " : "every ") + whatOf(loop),
             std::move(how));
    inside(loop.axis, loop.step, loop.body, inner, loop.stages);
  }

  void share(const verb::Share &share, size_t frame) {
    int64_t part =
        share.step ? share.step : equalPart(problem, share.axis, group);
    size_t inner =
        open(FrameKind::share, frame,
             std::string(name(share.axis)) + " tile of " + std::to_string(part),
             "one for each block of the group");
    inside(share.axis, part, share.body, inner, 1);
  }

  /// The census leaves out what does nothing; so is what moves nothing.
  void leaf(const Node &node, size_t frame, int64_t stages) {
    const HeldWords &here = held[nextLeaf++];
    if (nextUse == counts.uses.size() || counts.uses[nextUse].node != &node)
      return;
    const Use &use = counts.uses[nextUse++];
    Shape shape = shapeOf(tensorOf(node));
    int64_t cols = shape.cols ? columnsOf(node).of(tileOf(*shape.cols)) : 0;
    bool isNever = isBetween(node) && use.moved == 0; // there is one step
    if ((shape.cols && cols == 0) || isNever)
      return;
    int64_t heads = counts.grids[use.grid].heads;
    result.marks.push_back({use, frame, use.count * heads,
                            slowBytes(use, problem) * heads,
                            smemBytes(use, problem) * heads, here,
                            tileOf(shape.rows), cols, stages});
  }
};

} // namespace

Diagram attn::diagram(const Schedule &schedule, const Problem &asked) {
  const Problem problem = withSharedRows(asked, schedule);
  Walker walker(schedule, problem);
  walker.launches(schedule);
  return std::move(walker.result);
}

//===----------------------------------------------------------------------===//
// The op as it is written
//===----------------------------------------------------------------------===//

std::vector<Operation> attn::operationsOf(const Problem &problem) {
  using T = Tensor;
  if (problem.direction == Direction::forward)
    return {{"S = Q . K^T", {T::Q, T::K}, T::S},
            {"P = softmax(S)", {T::S}, T::P},
            {"O = P . V", {T::P, T::V}, T::O}};
  return {{"S = Q . K^T", {T::Q, T::K}, T::S},
          {"P = exp(S - LSE)", {T::S, T::Lse}, T::P},
          {"dP = dO . V^T", {T::GradO, T::V}, T::GradP},
          {"dS = P (dP - D)", {T::P, T::GradP, T::O, T::GradO}, T::GradS},
          {"dV = P^T . dO", {T::P, T::GradO}, T::GradV},
          {"dK = dS^T . Q", {T::GradS, T::Q}, T::GradK},
          {"dQ = dS . K", {T::GradS, T::K}, T::GradQ}};
}

int64_t attn::wholeBytes(Tensor tensor, const Problem &problem) {
  Shape shape = shapeOf(tensor);
  bool isOfKeys = shape.rows == Axis::Key;
  int64_t heads = isOfKeys ? problem.kvHeads : problem.heads;
  return problem.batch * heads * extent(problem, shape.rows) *
         (shape.cols ? extent(problem, *shape.cols) : 1) *
         bytesPerElement(tensor, problem);
}
