//===- ClauseReference.cpp - An op's clauses for the oracle ---------------===//

#include "attn/Interpreter/ClauseReference.h"

#include <cmath>

using namespace attn;

/// Where a group begins among what clauses take.
static size_t beginOf(AttentionOpInterface op, ClauseGroup group) {
  size_t begin = 0;
  for (unsigned before = 0; before < unsigned(group); ++before)
    begin += op.clauseOperands(ClauseGroup(before)).size();
  return begin;
}

ClauseReference::ClauseReference(AttentionOpInterface op,
                                 std::vector<CapturedArray> arrays,
                                 int64_t queries, int64_t keys,
                                 int64_t sequence)
    : queries(queries), keys(keys), sequence(sequence) {
  addLists(op, arrays);
  if (!op.clauseOperands(ClauseGroup::sinks).empty()) {
    sinkScores = arrays[beginOf(op, ClauseGroup::sinks)].reals;
    functions.sinks = sinkScores.data();
  }
  if (!op.clauseOperands(ClauseGroup::usedKeys).empty()) {
    used.counts = arrays[beginOf(op, ClauseGroup::usedKeys)].wholes;
    if (op.isRagged()) // of which one sequence is looked at
      used.counts = {used.counts[size_t(sequence)]};
    used.movesBand = op.maskOrNone().kind != MaskKind::causal;
    functions.used = &used;
  }
  addScales(op, arrays);
  arrays.resize(op.captures().size());
  captures = std::move(arrays);
  clearGradients();
  addFunctions(op);
}

void ClauseReference::clearGradients() {
  gradients.clear();
  for (const CapturedArray &capture : captures)
    gradients.emplace_back(capture.reals.size());
  squares.assign(captures.size(), 0);
}

std::vector<double> ClauseReference::captureSizes() const {
  std::vector<double> sizes;
  for (double square : squares)
    sizes.push_back(std::sqrt(square));
  return sizes;
}

std::optional<OutsideRead> ClauseReference::outsideRead() const {
  for (const RegionEvaluator *region : {sees.get(), score.get()})
    if (region && region->outsideRead())
      return region->outsideRead();
  return std::nullopt;
}

void ClauseReference::addFunctions(AttentionOpInterface op) {
  if (mlir::Region *region = op.sees()) {
    sees = std::make_unique<RegionEvaluator>(*region);
    functions.sees = [this](const oracle::Pair &pair) {
      return sees->sees(rowsOf(pair), captures);
    };
  }
  mlir::Region *region = op.score();
  if (!region)
    return;
  score = std::make_unique<RegionEvaluator>(*region);
  functions.score = [this](double z, const oracle::Pair &pair) {
    return score->score(z, rowsOf(pair), captures);
  };
  functions.pull = [this](double z, const oracle::Pair &pair, double gradient) {
    RegionEvaluator::Slope slope = score->slope(z, rowsOf(pair), captures);
    for (const RegionEvaluator::OfElement &of : slope.ofElements) {
      double term = gradient * of.derivative;
      gradients[of.capture][of.offset] += term;
      squares[of.capture] += std::isfinite(term) ? term * term : 0;
    }
    return gradient * slope.ofScore;
  };
}

/// Of a batch entry and a key head; what is one for all has one.
static double scaleAt(const CapturedArray &scale, int64_t batch, int64_t head) {
  if (scale.sizes.empty())
    return 1;
  int64_t row = scale.sizes[0] == 1 ? 0 : batch,
          column = scale.sizes[1] == 1 ? 0 : head;
  return scale.reals[size_t(row * scale.sizes[1] + column)];
}

void ClauseReference::addScales(AttentionOpInterface op,
                                const std::vector<CapturedArray> &arrays) {
  for (ClauseGroup group : kScaleGroups)
    scales.push_back(op.clauseOperands(group).empty()
                         ? CapturedArray()
                         : arrays[beginOf(op, group)]);
  functions.scaleOfProducts = [this](int64_t batch, int64_t head) {
    return scaleAt(scales[0], batch + sequence, head) *
           scaleAt(scales[1], batch + sequence, head);
  };
  functions.scaleOfValues = [this](int64_t batch, int64_t head) {
    return scaleAt(scales[2], batch + sequence, head);
  };
}

void ClauseReference::addLists(AttentionOpInterface op,
                               std::vector<CapturedArray> &arrays) {
  std::optional<BlockSize> size = op.blockSize();
  if (!size)
    return;
  lists.reserve(4); // which are pointed to
  auto add = [&](ClauseGroup group) -> oracle::BlockLists::List {
    if (op.clauseOperands(group).empty())
      return {};
    size_t begin = beginOf(op, group);
    for (size_t number : {begin, begin + 1})
      lists.emplace_back(arrays[number].wholes.begin(),
                         arrays[number].wholes.end());
    const std::vector<int64_t> &sizes = arrays[begin + 1].sizes;
    return {lists[lists.size() - 2].data(), lists.back().data(), sizes[0],
            sizes[1], sizes[3]};
  };
  blocks = {add(ClauseGroup::partial), add(ClauseGroup::full), size->queries,
            size->keys};
  functions.blocks = &blocks;
}
