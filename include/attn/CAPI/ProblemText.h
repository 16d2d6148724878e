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
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_PROBLEMTEXT_H
#define ATTN_CAPI_PROBLEMTEXT_H

#include "attn/Schedule/Problem.h"

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

/// A module with one function over arrays q, k, v, o and, with LSE, lse, of any
/// strides but an innermost of 1.
std::string textOf(const KernelClass &kernelClass);

/// Why there is no such class: what `check` says, free sizes aside, and about
/// the scale.
std::optional<std::string> check(const KernelClass &kernelClass);

} // namespace attn

#endif
