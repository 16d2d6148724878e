//===- InputParts.h - Inputs of f32 in three parts of bf16 ------*- C++ -*-===//
//
// Products of f32 on wgmma are those of three parts of bf16.  Where factors
// stream again and again, launches before the others write the parts once: of
// an input [batch, heads, rows, d] an array
//
//   scratch_<input>   [batch, heads, rows, 3 x columnsOfPart]
//
// of bf16, first parts first, with zeros behind each d columns.  So the copy
// engine takes rows of any length and at any address, in whole tiles.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_INPUTPARTS_H
#define ATTN_LIB_KERNELS_INPUTPARTS_H

#include "TileBuilder.h"

namespace attn {

/// The launches that split queries, and then keys and values.
inline constexpr int64_t kSplittingLaunches = 2;
/// One of them: a block for each 64 rows of a head.
tile::KernelOp splitInputs(TileBuilder &builder, const KernelRequest &request,
                           bool ownsKeys);

} // namespace attn

#endif
