//===- CaptureGradients.cpp - Who adds to gradients of captures -----------===//

#include "attn/IR/CaptureGradients.h"

#include "attn/IR/ScalarOps.h"

using namespace mlir;
using namespace attn;

ArrayRef<int64_t> attn::gradientNumbers(Operation *op) {
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(kGradientsAttr);
  return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>();
}

/// The values of a region that its result depends on.
static llvm::DenseSet<Value> usedIn(Region &region) {
  llvm::DenseSet<Value> used;
  for (Operation &op : llvm::reverse(region.front())) {
    bool isUsed = isa<YieldOp>(op) ||
                  llvm::any_of(op.getResults(),
                               [&](Value v) { return used.contains(v); });
    if (isUsed)
      used.insert_range(op.getOperands());
  }
  return used;
}

SmallVector<GradientRead> attn::gradientReads(Region &score,
                                              ArrayRef<int64_t> gradients) {
  SmallVector<GradientRead> reads;
  ArrayRef<BlockArgument> captures = capturesIn(score);
  llvm::DenseMap<Value, unsigned> dependences = dependencesIn(score);
  llvm::DenseSet<Value> used = usedIn(score);
  for (auto read : score.front().getOps<ReadOp>()) {
    int64_t number = llvm::find(captures, read.getArray()) - captures.begin();
    const int64_t *asked = llvm::find(gradients, number);
    if (asked == gradients.end() || !used.contains(read.getResult()))
      continue;
    bool isOfHead = llvm::all_of(read.getIndices(), [&](Value index) {
      return dependences.lookup(index) == 0;
    });
    reads.push_back({read, unsigned(asked - gradients.begin()), isOfHead});
  }
  return reads;
}

SmallVector<GradientRead> attn::gradientReads(AttentionOpInterface op) {
  if (Region *score = op.score())
    return gradientReads(*score, gradientNumbers(op));
  return {};
}

void attn::countGradients(AttentionOpInterface op, ScoreClauses &clauses) {
  for (const GradientRead &read : gradientReads(op))
    ++(read.isOfHead ? clauses.headGradients : clauses.pairGradients);
  auto captures = int64_t(op.captures().size());
  clauses.sinkGradients = llvm::is_contained(gradientNumbers(op), captures);
}

/// Whether each pair has an element for itself: its indices are those of the
/// pair, each of which is there or can only be 0.
static bool isOfPair(AttentionOpInterface op, ReadOp read) {
  Region &score = *read->getParentRegion();
  auto isThere = [&](unsigned position) {
    Value wanted = score.getArgument(isScore(score) + position);
    return llvm::is_contained(read.getIndices(), wanted);
  };
  auto isOne = [&](unsigned dimension) {
    return cast<ShapedType>(op.array("q").getType()).getDimSize(dimension) == 1;
  };
  enum { batch, head, query, key };
  return (isThere(batch) || isOne(0)) && (isThere(head) || isOne(1)) &&
         isThere(query) && isThere(key);
}

std::optional<GradientRead> attn::sharedByPairs(AttentionOpInterface op) {
  SmallVector<GradientRead> reads = gradientReads(op);
  for (const GradientRead &one : reads) {
    if (one.isOfHead)
      continue;
    // Another pair may read the same by another of them.
    unsigned ofTarget = llvm::count_if(reads, [&](const GradientRead &other) {
      return other.target == one.target && !other.isOfHead;
    });
    if (ofTarget > 1 || !isOfPair(op, one.read))
      return one;
  }
  return std::nullopt;
}
