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
// word of %lse on %lse_low.  Lists of blocks come last: %partial_counts,
// %partial_blocks, %full_counts, %full_blocks.  Behind these is what clauses of
// the caller read, and the clauses stand in lines of their own:
//
//   !near = memref<?xi32, strided<[1]>>
//   func.func @attention(%q: ..., %o: ..., %near: !near) {
//     attn.forward %q, %k, %v
//   captures(%near : !near) sees (%b, ...) {...}
//     outs(%o : ...) ...
//
// What captures get is behind them, `%gradient_near`, and the last of `outs`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_PROBLEMTEXT_H
#define ATTN_CAPI_PROBLEMTEXT_H

#include "attn/Schedule/Problem.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace attn {

/// A problem and what a kernel for it must know besides.  A batch, queries or
/// keys of -1 is any number.
struct KernelClass {
  /// An array that clauses read, and its type in MLIR.
  struct Capture {
    std::string name, type;
  };

  Problem problem;
  /// 1/sqrt(head dimension) when absent.
  std::optional<double> scale;
  /// Of a problem with a pattern: which of its lists there are.
  bool hasPartial = false, hasFull = false;
  /// As the caller wrote them; empty: none.
  std::string clauses = {};
  std::vector<Capture> captures = {};
  /// Of these, those that get gradients, with the types of them.
  std::vector<Capture> gradients = {};
};

/// A place for an array among the arguments of a problem's function.
struct ArrayPlace {
  llvm::StringRef role; ///< IR/Attn.h
  bool isOutput = false;
  /// Not every problem has it: lse forward, dlse backward, the low word of lse,
  /// both arrays of weights that are kept, lists of blocks, and what tells
  /// where rows lie.
  bool isOptional = false;
};

/// Whether a role is of weights that are kept or of what belongs to them, which
/// come together.
bool isKept(llvm::StringRef role);

/// Whether a role is of a list of blocks.
bool isOfBlocks(llvm::StringRef role);

/// Whether a role tells on the device where rows lie.
bool isOfPlace(llvm::StringRef role);
/// Whether it has the offsets of ragged sequences.
bool isOfOffsets(llvm::StringRef role);

/// The places of a direction and those that a class has, in order: inputs,
/// outputs, lists of blocks, and what tells where rows lie.
using ArrayPlaces = llvm::SmallVector<ArrayPlace, 16>;
ArrayPlaces arraysOf(Direction direction);
ArrayPlaces arraysOf(const KernelClass &kernelClass);

/// The bytes of an element of an array.
int64_t elementBytesOf(const Problem &problem, llvm::StringRef role);

/// A module with one function over the arrays of the problem, of any strides
/// but an innermost of 1.
std::string textOf(const KernelClass &kernelClass);

/// The line of that text in which clauses begin, from 1.
size_t lineOfClauses(const KernelClass &kernelClass);

/// Why there is no such class: what `check` says, free sizes aside, and about
/// the scale.
std::optional<std::string> check(const KernelClass &kernelClass);

} // namespace attn

#endif
