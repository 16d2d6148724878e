//===- Schedule.cpp - The vocabulary --------------------------------------===//

#include "attn/Schedule/Schedule.h"
#include <algorithm>
#include <iterator>

using namespace attn;

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

verb::Loop attn::loop(Axis axis, int64_t step, int64_t stages, Body body) {
  verb::Loop loop{axis, step};
  loop.stages = stages;
  loop.body = std::move(body);
  return loop;
}
verb::Share attn::share(Axis axis, int64_t step, Body body) {
  return {axis, step, std::move(body)};
}

verb::Hold attn::hold(Tensor tensor, Level level, int64_t buffers) {
  return {tensor, level, buffers};
}
verb::Load attn::load(Tensor tensor, Level level, int64_t buffers) {
  return {tensor, level, buffers};
}
verb::Stream attn::stream(Tensor tensor, Level level) {
  return {tensor, level};
}
verb::Absorb attn::absorb(Tensor tensor, int64_t slots) {
  return {tensor, {slots}};
}
verb::Transpose attn::transpose(Tensor tensor) { return {tensor}; }
verb::Widen attn::widen(Tensor tensor) { return {tensor}; }
verb::Split attn::split(Tensor tensor) { return {tensor}; }
verb::Multiply attn::multiply(Tensor out, Tensor a, Tensor b) {
  return {out, a, b};
}
verb::Softmax attn::softmax(Tensor scores) { return {scores}; }
verb::Weigh attn::weigh(Tensor scores) { return {scores}; }
verb::Differentiate attn::differentiate(Tensor gradient) { return {gradient}; }
verb::Rescale attn::rescale(Tensor tensor) { return {tensor}; }
verb::Rescale attn::rescaleStaged(Tensor tensor) {
  return {tensor, /*isStaged=*/true};
}
verb::Spill attn::spill(Tensor tensor, int64_t slots) {
  return {tensor, {slots}};
}
verb::Spill attn::spillStaged(Tensor tensor) {
  return {tensor, {}, /*isStaged=*/true};
}
verb::Reduce attn::reduce(Tensor tensor, int64_t slots) {
  return {tensor, {slots}};
}
verb::Store attn::store(Tensor tensor, int64_t columns) {
  return {tensor, columns};
}
verb::Store attn::storeDirectly(Tensor tensor) {
  return {tensor, 0, /*isDirect=*/true};
}

verb::Hold attn::byColumns(int64_t warpgroups, verb::Hold result) {
  result.columnGroups = warpgroups;
  return result;
}
verb::Multiply attn::byColumns(int64_t warpgroups, verb::Multiply result) {
  result.columnGroups = warpgroups;
  return result;
}
verb::Stream attn::deep(int64_t buffers, verb::Stream stream) {
  stream.buffers = buffers;
  return stream;
}

verb::Loop attn::seek(Axis axis, int64_t step, int64_t stages, Body body) {
  verb::Loop whole = loop(axis, step, stages, std::move(body));
  whole.seeks = true;
  return whole;
}
verb::Loop attn::parallel(Axis axis, int64_t step, Body body) {
  verb::Loop whole = loop(axis, step, 1, std::move(body));
  whole.isParallel = true;
  return whole;
}
verb::Loop attn::halved(verb::Loop loop) {
  loop.isHalved = true;
  return loop;
}

verb::Loop attn::gathered(int64_t rows, verb::Loop loop) {
  loop.gathers = rows;
  return loop;
}

Grid attn::ofProducts(Grid grid) {
  grid.workers.isOfProducts = true;
  return grid;
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

std::vector<const Grid *> Schedule::Launch::grids() const {
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
  for (const Schedule::Launch &launch : launches)
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
