//===- Values.h - What an SSA value holds while a warp runs -----*- C++ -*-===//

#ifndef ATTN_LIB_INTERPRETER_MEMORY_VALUES_H
#define ATTN_LIB_INTERPRETER_MEMORY_VALUES_H

#include "attn/Host/Scalars.h"
#include "attn/Interpreter/Interpreter.h"
#include "attn/Tile/Tile.h"

#include <memory>
#include <variant>
#include <vector>

namespace attn::interpreter {

/// Lanes that hold parts of one row's sum.
constexpr int64_t kPartsOfRow = 4;

/// A fragment, or a row: one column, or four in a partial row.  Fragments and
/// f32 rows use `reals`, i32 rows `integers`.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> reals;
  std::vector<int64_t> integers;

  Matrix(int64_t rows, int64_t columns, bool real = true)
      : rows(rows), columns(columns), reals(real ? rows * columns : 0),
        integers(real ? 0 : rows * columns) {}
  float *row(int64_t i) { return &reals[i * columns]; }
  const float *row(int64_t i) const { return &reals[i * columns]; }
};

/// Values never change, so copies share them.
using MatrixRef = std::shared_ptr<const Matrix>;

/// `!tile.view`: `stride` in elements, `base` the address of row 0.
struct View {
  uint64_t base;
  int64_t rows, stride;
  tile::ViewType type;

  uint64_t addressOfRow(int64_t row) const {
    uint64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
    return base + uint64_t(row) * uint64_t(stride) * bytes;
  }
};

/// `!tile.smem`: bytes of the block's shared memory under a shape.
struct Buffer {
  int64_t begin;
  tile::SmemType type;
  mlir::StringRef name;
};

/// `!tile.tensor_map`; the array is the launch's.
struct TensorMap {
  const TensorMapArgument *array;
  tile::TensorMapType type;
};

/// `!tile.mbarrier`, or `!tile.queue`: its barriers are those from `first` on
/// in the program, `slots` of them and for a queue, behind them, as many again.
struct Ring {
  unsigned first, slots;
  mlir::StringRef name;
  unsigned slotsOfQueue = 0; ///< of several that share the slots, of each
};

/// `!tile.pending`: the sum, and the asynchronous read that ends with it.
struct Pending {
  MatrixRef sum;
  unsigned token;
};

using Cell =
    std::variant<Number, MatrixRef, View, Buffer, TensorMap, Ring, Pending>;

} // namespace attn::interpreter

#endif
