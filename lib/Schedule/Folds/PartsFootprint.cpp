//===- PartsFootprint.cpp - What inputs in parts occupy -------------------===//

#include "Folds/PartsFootprint.h"

#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"

#include <algorithm>

using namespace attn;

int64_t attn::partsBytes(const Node &node, const Problem &problem) {
  constexpr int64_t exponentBytes = 4;
  Shape shape = shapeOf(tensorOf(node));
  int64_t heads = shape.rows == Axis::Key ? problem.kvHeads : problem.heads;
  int64_t rows = extent(problem, shape.rows);
  int64_t columns = columnsMoved(node, extent(problem, *shape.cols));
  return heads * (rows * columns * bytesMoved(node, problem) +
                  ceilDiv(rows, kScaledRows) * exponentBytes);
}

/// A warp holds 16 rows of as many columns as there is room for, 32 registers
/// for 64 of them, beside two parts of a piece.
SplittingSpace attn::splittingSpace(const Node &node, const Problem &problem) {
  constexpr int64_t numbers = 16, numberBytes = 4;
  constexpr int64_t mostHeld = 384, columnsOfRegister = 2, pieces = 24;
  int64_t columns =
      columnsMoved(node, extent(problem, *shapeOf(tensorOf(node)).cols));
  return {smemPitch(numbers, numberBytes),
          std::min(columns, mostHeld) / columnsOfRegister + pieces};
}
