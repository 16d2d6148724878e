//===- InputParts.h - Inputs of f32 in two parts of f16 ---------*- C++ -*-===//
//
// Products of f32 on wgmma are those of parts.  Where factors stream again and
// again, launches before the others write the parts once, and know how large
// numbers are by then: two parts of f16 do, with three products, where those
// that are split on their way need three of bf16 and six.  Of an input
// [batch, heads, rows, d] there are
//
//   scratch_<input>             [batch, heads, rows, 2 x columnsOfPart], f16,
//                               first parts first, zeros behind each d columns
//   scratch_<input>_exponents   [batch, heads, blocks of 128 rows], i32: parts
//                               are 2^this times the block's numbers
//
// So the copy engine takes rows of any length and at any address, in whole
// tiles.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_ROUNDS_INPUTPARTS_H
#define ATTN_LIB_KERNELS_ROUNDS_INPUTPARTS_H

#include "Build/TileBuilder.h"

namespace attn {

/// The launches that split queries, and then keys and values.
inline constexpr int64_t kSplittingLaunches = 2;
/// One of them: a block for each 128 rows of a head.
tile::KernelOp splitInputs(TileBuilder &builder, const KernelRequest &request,
                           bool ownsKeys);

} // namespace attn

#endif
