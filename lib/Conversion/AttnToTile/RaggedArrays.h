//===- RaggedArrays.h - Rows of sequences as kernels see them ---*- C++ -*-===//
//
// Kernels address arrays as [batch, heads, rows, columns].  Rows of all
// sequences, [rows, heads, columns], are one batch entry of such an array, and
// numbers of rows, [heads, rows], one of [batch, heads, rows].
//
// The copy engine reads zeros, and writes nothing, outside of an array, but the
// end of a sequence is inside.  So its map is of another array over the same
// memory: of *windows* of as many rows as a box has.  Window w has the rows in
// front of row w of the array:
//
//   windows[w, head, r, column] = rows[w - R + r, head, column]
//
// A box that begins with row i of a sequence that ends before row e is, in
// window w = min(e, i + R), the one that begins with r = i + R - w: where less
// than R rows are left it reaches beyond the window, which ends with the
// sequence.  Nothing else lies outside.
//
// Example: boxes of 64 rows, a sequence of rows 100 to 229.  From row 100 on it
// is window 164, r = 0; from row 228 on window 230, r = 62: two rows, 62 zeros.
//
// A box without rows, as of a sequence without keys, begins behind its window.
// Of such a box the copy engine reads the first bytes of the map's array all
// the same (seen on an H200), and those of windows lie before the array, where
// there need be no memory.  So it is loaded by another map, of windows that
// begin with the array; of an array without rows the runtime makes a map of
// memory of its own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_RAGGEDARRAYS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_RAGGEDARRAYS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// The array of one batch entry.
mlir::Value asOneEntry(mlir::ImplicitLocOpBuilder &b, mlir::Value memref);

/// Windows of so many rows of such an array.
mlir::Value windowsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value entry,
                      int64_t rows);
/// What boxes without rows are of, which begins where the array does: of some
/// of its columns.
mlir::Value emptyWindowsOf(mlir::ImplicitLocOpBuilder &b, mlir::Value entry,
                           int64_t rows, int64_t columns);

} // namespace attn

#endif
