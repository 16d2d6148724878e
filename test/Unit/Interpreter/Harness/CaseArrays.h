//===- CaseArrays.h - The arrays of a kernel under test ---------*- C++ -*-===//
//
// Row-major arrays of a problem by the role that a kernel's arguments give them
// (Roles.h), as numbers here and as bytes in the interpreter's memory.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_CASEARRAYS_H
#define ATTN_TEST_UNIT_INTERPRETER_CASEARRAYS_H

#include "attn/Interpreter/Interpreter.h"
#include "attn/Interpreter/Oracle.h"
#include "attn/Kernels/Kernels.h"

#include "llvm/ADT/StringMap.h"

#include <vector>

namespace attn {

/// One of every kind, and windows that end on the diagonal or behind it.
inline constexpr Mask kMasks[] = {{},
                                  {MaskKind::causal},
                                  {MaskKind::causalBottomRight},
                                  {MaskKind::window, 7, 12},
                                  {MaskKind::window, 40, 0},
                                  {MaskKind::prefix, 0, 0, 90}};

/// The launches of a kernel's schedule: of `flash_wgmma` those of `flash`.
Launches launchesOfKernel(llvm::StringRef kernel, const Tiles &tiles);

/// A problem of one head.
Problem oneHead(int64_t queries, int64_t keys, int64_t headDim,
                int64_t headDimV, Mask mask = {},
                DataType type = DataType::bf16);

/// The extents of an array ("q", "dk", "lse"); a statistic has one column.
/// Rows begin `pitch` elements apart, the multiple of 8 that weights need.
struct ArrayShape {
  int64_t batch, heads, rows, columns, padding = 0;
  int64_t pitch() const { return columns + padding; }
  int64_t elements() const { return batch * heads * rows * pitch(); }
};
ArrayShape shapeOfArray(Role array, const Problem &problem);
ArrayShape shapeOfArray(llvm::StringRef array, const Problem &problem);

/// Bytes that divide the address of every row of such an array, at most 16.
int64_t alignmentOfRows(int64_t columns, DataType type);

/// The nearest value of a type.
float rounded(DataType type, float value);
/// Copies an array to the interpreter's memory; where it lies.
uint64_t upload(GlobalMemory &memory, llvm::ArrayRef<float> values,
                DataType type);
/// Copies one back, or nothing where some of it was never written.
std::optional<std::vector<float>> download(GlobalMemory &memory,
                                           uint64_t address, int64_t elements,
                                           DataType type);

/// |values - truth| beside the larger of |truth| and the size of what it is
/// summed from (Oracle.h); infinite where one is NaN and the other is not.
double relativeError(llvm::ArrayRef<float> values, llvm::ArrayRef<double> truth,
                     double size);

oracle::Problem oracleProblem(const Problem &problem, double scale);
oracle::Array oracleArray(const std::vector<float> &data,
                          const ArrayShape &shape);

/// An integer argument of a kernel, by its role.
int64_t integerOf(const ArgumentRole &role, const Problem &problem,
                  const Round &round = {});
/// Any argument; `addresses` are those of arrays and of a launch's own memory.
KernelArgument argumentOf(const ArgumentRole &role, mlir::Type type,
                          const Problem &problem, double scale,
                          const llvm::StringMap<uint64_t> &addresses,
                          const Round &round = {});
/// The scalar arguments of a kernel as the traffic analysis wants them.
llvm::SmallVector<int64_t> scalarsOf(tile::KernelOp kernel,
                                     const Problem &problem,
                                     const Round &round = {});

} // namespace attn

#endif
