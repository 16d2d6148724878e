//===- Schedule.cpp - The vocabulary --------------------------------------===//

#include "attn/Schedule/Schedule.h"
#include <algorithm>
#include <iterator>

using namespace attn;

static Node leaf(Verb verb, Tensor tensor, Level level = Level::Registers) {
  Node node{verb};
  node.tensor = tensor;
  node.level = level;
  return node;
}

static Node over(Verb verb, Axis axis, int64_t step, Body body) {
  Node node{verb};
  node.axis = axis;
  node.step = step;
  node.body = std::move(body);
  return node;
}

Grid attn::grid(Axis axis, int64_t step, Crew crew, Body body) {
  if (crew.isPipeline())
    crew.workers.warps = 4 * crew.workers.warpgroups;
  return {crew, axis, step, std::move(body)};
}

Grid attn::grid(Axis axis, int64_t step, int64_t warps, Body body) {
  Crew alike;
  alike.workers.warps = warps;
  return grid(axis, step, alike, std::move(body));
}

Node attn::loop(Axis axis, int64_t step, int64_t stages, Body body) {
  Node node = over(Verb::loop, axis, step, std::move(body));
  node.stages = stages;
  return node;
}

Node attn::hold(Tensor tensor, Level level, int64_t stages) {
  Node node = leaf(Verb::hold, tensor, level);
  node.stages = stages;
  return node;
}
Node attn::load(Tensor tensor, Level level, int64_t stages) {
  Node node = leaf(Verb::load, tensor, level);
  node.stages = stages;
  return node;
}
Node attn::stream(Tensor tensor, Level level) {
  return leaf(Verb::stream, tensor, level);
}
Node attn::absorb(Tensor tensor, int64_t slots) {
  Node node = leaf(Verb::absorb, tensor);
  node.slots = slots;
  return node;
}
Node attn::transpose(Tensor tensor) {
  return leaf(Verb::transpose, tensor, Level::Smem);
}
Node attn::split(Tensor tensor) {
  return leaf(Verb::split, tensor, Level::Smem);
}
Node attn::softmax(Tensor scores) { return leaf(Verb::softmax, scores); }
Node attn::weigh(Tensor scores) { return leaf(Verb::weigh, scores); }
Node attn::differentiate(Tensor gradient) {
  return leaf(Verb::differentiate, gradient);
}
Node attn::rescale(Tensor tensor) { return leaf(Verb::rescale, tensor); }
Node attn::rescaleStaged(Tensor tensor) {
  return leaf(Verb::rescale, tensor, Level::Smem);
}

Node attn::spill(Tensor tensor, int64_t slots) {
  Node node = leaf(Verb::spill, tensor);
  node.slots = slots;
  return node;
}

Node attn::spillStaged(Tensor tensor) {
  return leaf(Verb::spill, tensor, Level::Smem);
}

Node attn::store(Tensor tensor, int64_t columns) {
  Node node = leaf(Verb::store, tensor);
  node.step = columns;
  return node;
}

Node attn::storeDirectly(Tensor tensor) {
  Node node = store(tensor);
  node.isDirect = true;
  return node;
}

Node attn::share(Axis axis, int64_t step, Body body) {
  return over(Verb::share, axis, step, std::move(body));
}

Node attn::reduce(Tensor tensor, int64_t slots) {
  Node node = leaf(Verb::reduce, tensor);
  node.slots = slots;
  return node;
}

Node attn::always(Node node) {
  node.isAlways = true;
  return node;
}

Node attn::between(Node node) {
  node.isBetween = true;
  return node;
}

Node attn::inTilesOf(int64_t rows, Node node) {
  node.wholeRows = rows;
  return node;
}

Node attn::byColumns(int64_t warpgroups, Node node) {
  node.columnGroups = warpgroups;
  return node;
}

Node attn::seek(Axis axis, int64_t step, int64_t stages, Body body) {
  Node node = loop(axis, step, stages, std::move(body));
  node.seeks = true;
  return node;
}

Node attn::halved(Node loop) {
  loop.isHalved = true;
  return loop;
}

Node attn::parallel(Axis axis, int64_t step, Body body) {
  Node node = loop(axis, step, 1, std::move(body));
  node.isParallel = true;
  return node;
}

Node attn::deep(int64_t buffers, Node node) {
  node.depth = buffers;
  return node;
}

Grid attn::ofProducts(Grid grid) {
  grid.workers.isOfProducts = true;
  return grid;
}

Node attn::columnsOf(Node node, int64_t first, int64_t columns) {
  node.first = first;
  node.columns = columns;
  return node;
}

Node attn::inParts(int64_t columns, Node node) {
  node.partColumns = columns;
  return node;
}

Node attn::kept(Node node) {
  node.isKept = true;
  return node;
}

Node attn::multiply(Tensor out, Tensor a, Tensor b) {
  Node node = leaf(Verb::multiply, out);
  node.a = a;
  node.b = b;
  return node;
}

Body attn::slices(Axis axis, int64_t step, int64_t stages, Body body) {
  if (step == 0)
    return body;
  return {loop(axis, step, stages, std::move(body))};
}

Body attn::scoresBySlices(int64_t slice, int64_t stages) {
  return sequence(
      {{hold(Tensor::S)},
       slices(Axis::HeadDim, slice, stages,
              {stream(Tensor::Q, Level::Smem), stream(Tensor::K, Level::Smem),
               multiply(Tensor::S, Tensor::Q, Tensor::K)})});
}

std::vector<const Grid *> Launch::grids() const {
  std::vector<const Grid *> all;
  for (const Grid &grid : before)
    all.push_back(&grid);
  all.push_back(&main);
  for (const Grid &grid : beside)
    all.push_back(&grid);
  return all;
}

std::vector<const Grid *> Schedule::grids() const {
  std::vector<const Grid *> all;
  for (const Launch &launch : launches)
    for (const Grid *grid : launch.grids())
      all.push_back(grid);
  return all;
}

Grid attn::statisticsGrid(int64_t block, Body more) {
  constexpr int64_t rows = 64, warps = 4;
  return grid(Axis::Query, rows, warps,
              sequence({{hold(Tensor::Stats), always(absorb(Tensor::O)),
                         always(absorb(Tensor::GradO)),
                         always(load(Tensor::Lse, Level::Registers)),
                         always(load(Tensor::GradLse, Level::Registers)),
                         always(inTilesOf(block, spill(Tensor::Stats)))},
                        std::move(more)}));
}

Grid attn::partsGrid(Axis rows,
                     std::vector<std::pair<Tensor, int64_t>> inputs) {
  constexpr int64_t warps = kScaledRows / 16;
  Body body;
  for (auto [input, columns] : inputs) {
    body.push_back(always(absorb(input)));
    body.push_back(always(inParts(columns, spill(input))));
  }
  return grid(rows, kScaledRows, warps, std::move(body));
}

Body attn::sequence(std::vector<Body> parts) {
  Body whole;
  for (Body &part : parts)
    std::move(part.begin(), part.end(), std::back_inserter(whole));
  return whole;
}

//===----------------------------------------------------------------------===//
// What tensors are
//===----------------------------------------------------------------------===//

std::string_view attn::name(Tensor tensor) {
  switch (tensor) {
  case Tensor::Q:
    return "Q";
  case Tensor::K:
    return "K";
  case Tensor::V:
    return "V";
  case Tensor::O:
    return "O";
  case Tensor::Lse:
    return "LSE";
  case Tensor::S:
    return "S";
  case Tensor::P:
    return "P";
  case Tensor::Stats:
    return "stats";
  case Tensor::TileMax:
    return "tile max";
  case Tensor::GradO:
    return "dO";
  case Tensor::GradLse:
    return "dLSE";
  case Tensor::GradQ:
    return "dQ";
  case Tensor::GradK:
    return "dK";
  case Tensor::GradV:
    return "dV";
  case Tensor::GradP:
    return "dP";
  case Tensor::GradS:
    return "dS";
  case Tensor::Delta:
    return "D";
  }
  return "";
}

std::string_view attn::name(Axis axis) {
  switch (axis) {
  case Axis::Query:
    return "query";
  case Axis::Key:
    return "key";
  case Axis::HeadDim:
    return "head dim";
  case Axis::HeadDimV:
    return "head dim of V";
  }
  return "";
}

std::string_view attn::name(Level level) {
  switch (level) {
  case Level::Registers:
    return "registers";
  case Level::Smem:
    return "smem";
  }
  return "";
}

Shape attn::shapeOf(Tensor tensor) {
  switch (tensor) {
  case Tensor::Q:
  case Tensor::GradQ:
    return {Axis::Query, Axis::HeadDim};
  case Tensor::K:
  case Tensor::GradK:
    return {Axis::Key, Axis::HeadDim};
  case Tensor::V:
  case Tensor::GradV:
    return {Axis::Key, Axis::HeadDimV};
  case Tensor::O:
  case Tensor::GradO:
    return {Axis::Query, Axis::HeadDimV};
  case Tensor::S:
  case Tensor::P:
  case Tensor::GradP:
  case Tensor::GradS:
    return {Axis::Query, Axis::Key};
  case Tensor::Lse:
  case Tensor::GradLse:
  case Tensor::Delta:
  case Tensor::Stats:
  case Tensor::TileMax:
    return {Axis::Query, std::nullopt};
  }
  return {Axis::Query, std::nullopt};
}

bool attn::hasAxis(Tensor tensor, Axis axis) {
  Shape shape = shapeOf(tensor);
  return shape.rows == axis || shape.cols == axis;
}

int64_t attn::extent(const Problem &problem, Axis axis) {
  switch (axis) {
  case Axis::Query:
    return problem.queries;
  case Axis::Key:
    return problem.keys;
  case Axis::HeadDim:
    return problem.headDim;
  case Axis::HeadDimV:
    return problem.headDimV;
  }
  return 0;
}

int64_t attn::equalPart(const Problem &problem, Axis axis, int64_t group) {
  int64_t panels = (extent(problem, axis) + kPanelColumns - 1) / kPanelColumns;
  return (panels + group - 1) / group * kPanelColumns;
}

int64_t attn::columnsOf(const Node &node, int64_t whole) {
  int64_t left = std::max<int64_t>(0, whole - node.first);
  return node.columns ? std::min(node.columns, left) : left;
}

int64_t attn::wordsPerElement(Tensor tensor, const Problem &problem) {
  int64_t ofLse = problem.lseLow ? 2 : 1;
  bool isBackward = problem.direction == Direction::backward;
  if (tensor == Tensor::Stats)
    return 1 + (isBackward ? ofLse : 1);
  return tensor == Tensor::Lse ? ofLse : 1;
}

int64_t attn::bytesPerElement(Tensor tensor, const Problem &problem) {
  switch (tensor) {
  case Tensor::Q:
  case Tensor::K:
  case Tensor::V:
  case Tensor::P:
  case Tensor::GradQ:
  case Tensor::GradK:
  case Tensor::GradV:
  case Tensor::GradS:
    return bytesOf(problem.dtype);
  case Tensor::O:
  case Tensor::GradO:
    return bytesOf(resultType(problem));
  case Tensor::S:
  case Tensor::GradP:
  case Tensor::Lse:
  case Tensor::GradLse:
  case Tensor::Delta:
  case Tensor::TileMax:
  case Tensor::Stats:
    return 4 * wordsPerElement(tensor, problem);
  }
  return 0;
}

int64_t attn::bytesMoved(const Node &node, const Problem &problem) {
  if (node.partColumns > 0)
    return kScaledParts * kPartBytes;
  bool isForward = problem.direction == Direction::forward;
  bool isSum =
      node.tensor == Tensor::GradQ || (node.tensor == Tensor::O && isForward);
  if (isSum && node.verb != Verb::store)
    return 4;
  return bytesPerElement(node.tensor, problem);
}

int64_t attn::columnsMoved(const Node &node, int64_t columns) {
  int64_t step = node.partColumns;
  return step > 0 ? (columns + step - 1) / step * step : columns;
}

bool attn::isInput(Tensor tensor, const Problem &problem) {
  bool isBackward = problem.direction == Direction::backward;
  return tensor == Tensor::Q || tensor == Tensor::K || tensor == Tensor::V ||
         (isBackward && (tensor == Tensor::O || tensor == Tensor::GradO));
}

DataType attn::resultType(const Problem &problem) {
  return problem.dtype == DataType::f8e4m3 ? DataType::bf16 : problem.dtype;
}

bool attn::needsTranspose(const Problem &problem) {
  return bytesOf(problem.dtype) == 1;
}

bool attn::needsSplit(const Problem &problem) {
  return problem.dtype == DataType::f32;
}
