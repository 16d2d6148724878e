//===- Arguments.h - What a function asks of its arrays ---------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_ARGUMENTS_H
#define ATTN_LIB_CAPI_ARGUMENTS_H

#include "attn/Interpreter/Host.h"
#include "attn/Schedule/Problem.h"

#include <optional>
#include <string>
#include <vector>

namespace attn {

/// An array of a caller: an address and a shape, in elements.
struct CallerArray {
  uint64_t address = 0;
  llvm::SmallVector<int64_t> sizes, strides;
};

/// What must divide addresses in an array, in bytes.
struct Alignment {
  /// Of the element with index zero.
  int64_t base = kMaxAlignment;
  /// Of every stride that the type leaves open.
  int64_t strides = 1;
};

/// For each argument of a function with attn ops: what their alignment promises
/// and, without a promise, what the compiler takes for granted.
std::vector<Alignment> alignmentsOf(mlir::func::FuncOp function);

/// Checks an array against the type of an argument; describes it for the host
/// function, or says what is wrong.
std::optional<std::string> checkArray(const CallerArray &array,
                                      mlir::MemRefType type,
                                      const Alignment &alignment,
                                      HostArray &argument);

/// "[2, 8, 100, 64]".
std::string show(llvm::ArrayRef<int64_t> numbers);

} // namespace attn

#endif
