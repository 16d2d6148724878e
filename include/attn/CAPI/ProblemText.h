//===- ProblemText.h - A problem as MLIR text -------------------*- C++ -*-===//
//
//   func.func @attention(%q: memref<?x16x?x128xbf16, strided<[?, ?, ?, 1]>>,
//                        %k: ..., %v: ..., %o: ...) {
//     attn.forward %q, %k, %v mask(causal) outs(%o : ...) {alignment = 16 :
//     i64}
//         : ...
//     return
//   }
//
// or, backward, with attn.backward on %do, %q, %k, %v, %o, %lse, %dq, %dk, %dv;
// where weights are kept also on %weights and %block_rows, and with the low
// word of %lse on %lse_low.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_PROBLEMTEXT_H
#define ATTN_CAPI_PROBLEMTEXT_H

#include "attn/Schedule/Problem.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace attn {

/// A problem and what a kernel for it must know besides.  A batch, queries or
/// keys of -1 is any number.
struct KernelClass {
  Problem problem;
  /// 1/sqrt(head dimension) when absent.
  std::optional<double> scale;
};

/// A place for an array among the arguments of a problem's function.
struct ArrayPlace {
  llvm::StringRef role; ///< IR/Attn.h
  bool isOutput = false;
  /// Not every problem has it: lse forward, dlse backward, the low word of lse,
  /// and both arrays of weights that are kept.
  bool isOptional = false;
};

/// Whether a role is of weights that are kept or of what belongs to them, which
/// come together.
bool isKept(llvm::StringRef role);

/// The places of a direction and those that a problem has, in order: inputs,
/// then outputs.
llvm::SmallVector<ArrayPlace, 13> arraysOf(Direction direction);
llvm::SmallVector<ArrayPlace, 13> arraysOf(const Problem &problem);

/// The type of the elements of an array.
DataType elementOf(const Problem &problem, llvm::StringRef role);

/// A module with one function over the arrays of the problem, of any strides
/// but an innermost of 1.
std::string textOf(const KernelClass &kernelClass);

/// Why there is no such class: what `check` says, free sizes aside, and about
/// the scale.
std::optional<std::string> check(const KernelClass &kernelClass);

} // namespace attn

#endif
