//===- Sides.h - Which half of L2 a multiprocessor is next to ---*- C++ -*-===//
//
// L2 of an A100, an H100 and their kin is two halves, each next to half of the
// multiprocessors and of the memory.  What the other half has comes through a
// link between them, and of kernels whose blocks everywhere read the same that
// link is what they wait for (H100, score_spill with 512 rows: 86 % busy,
// device memory 73 %, all else of L2 at most two thirds; 2026-11-25).  A kernel
// that asks for its side (`tile.side`) can have what blocks share stay on one.
//
// No register tells.  So a module with such a kernel has a table that its
// loader may fill in (Runtime/Sides.cpp times it): bit m % 32 of word m / 32 is
// the side of multiprocessor m, as %smid numbers them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_MACHINE_SIDES_H
#define ATTN_MACHINE_SIDES_H

#include <array>
#include <cstdint>

namespace attn {

/// The table's name in a module.
inline constexpr char kSidesSymbol[] = "attn_sides";
inline constexpr int kSidesWords = 8;
using Sides = std::array<uint32_t, kSidesWords>;
/// What it has while nobody knows: every other one.
inline constexpr uint32_t kUnknownSides = 0xaaaaaaaa;

} // namespace attn

#endif // ATTN_MACHINE_SIDES_H
