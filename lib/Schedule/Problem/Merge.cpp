//===- Merge.cpp - Parts of an attention made whole, as numbers -----------===//

#include "attn/Schedule/Merge.h"

using namespace attn;

Problem attn::limitsOf(const Merge &merge) {
  Problem problem;
  problem.dtype = merge.dtype;
  problem.batch = merge.batch;
  problem.heads = problem.kvHeads = merge.heads;
  problem.queries = merge.queries;
  problem.keys = 1;
  problem.headDim = problem.headDimV = merge.headDim;
  return problem;
}

std::optional<std::string> attn::check(const Merge &merge) {
  if (merge.parts.empty())
    return "expects a part at least, but got none";
  if (int64_t(merge.parts.size()) > kMostParts)
    return "expects at most " + std::to_string(kMostParts) +
           " parts, but got " + std::to_string(merge.parts.size());
  if (merge.direction == Direction::backward && merge.parts.size() != 1)
    return "expects gradients of one part, but got " +
           std::to_string(merge.parts.size());
  auto isPlain = [](DataType type) { return type != DataType::f8e4m3; };
  if (!isPlain(merge.dtype))
    return "expects bf16, f16 or f32, but got " +
           std::string(name(merge.dtype));
  for (DataType part : merge.parts)
    if (!isPlain(part) || (part != merge.dtype && part != DataType::f32 &&
                           merge.dtype != DataType::f32))
      return "expects parts of " + std::string(name(merge.dtype)) +
             " or f32, but got " + std::string(name(part));
  return check(limitsOf(merge));
}

int64_t attn::bytesOf(const Merge &merge) {
  constexpr int64_t statistic = 4;
  int64_t ofRow = 0;
  auto rows = [&](DataType type) { return merge.headDim * bytesOf(type); };
  if (merge.direction == Direction::forward) {
    for (DataType part : merge.parts)
      ofRow += rows(part) + statistic;
    ofRow += rows(merge.dtype) + (merge.lse ? statistic : 0);
  } else {
    // dO, O and O_i come in and dO_i goes out, with LSE, LSE_i and dLSE_i.
    ofRow = 2 * rows(merge.dtype) + 2 * rows(merge.parts.front()) +
            3 * statistic + (merge.dlse ? statistic : 0);
  }
  return merge.batch * merge.heads * merge.queries * ofRow;
}

int64_t attn::blocksOf(const Merge &merge) {
  return merge.batch * merge.heads *
         ((merge.queries + kMergeRows - 1) / kMergeRows);
}
