//===- NumpyFiles.h - Arrays of the caller's --------------------*- C++ -*-===//
//
// With --arrays a function runs on arrays that somebody else has made, and may
// compute more than attention: argument i is FOLDER/argument<i>.npy, and result
// i is written to FOLDER/result<i>.npy.  Nothing is compared.
//
// The files are NumPy's, row-major.  NumPy has no bf16 and no f8: those are
// bytes to it (`|V2`, `|V1`), or unsigned integers.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_NUMPYFILES_H
#define ATTN_TOOLS_RUN_NUMPYFILES_H

#include "Execution.h"

namespace attn::run {

/// An array as a file has it.
struct NumpyArray {
  /// "<f4".
  std::string dtype;
  llvm::SmallVector<int64_t> sizes;
  std::vector<char> bytes;
};

/// Reads a file's text; says what is wrong with it in `error`.
std::optional<NumpyArray> parseNumpy(llvm::StringRef text, std::string &error);

/// The text of a file.
std::string printNumpy(const NumpyArray &array);

/// The arrays of all arguments, which must fit the function's types.
mlir::FailureOr<std::vector<NumpyArray>>
readArguments(mlir::func::FuncOp function, llvm::StringRef folder);

/// A function on these arguments, of which only sizes are known.
mlir::FailureOr<Function> functionOn(mlir::func::FuncOp function,
                                     llvm::ArrayRef<NumpyArray> arguments);

/// Puts the arguments into place.
void fillArguments(Execution &execution, llvm::ArrayRef<NumpyArray> arguments);

/// Writes the results to the folder.
mlir::LogicalResult writeResults(const Execution &execution,
                                 mlir::func::FuncOp function,
                                 llvm::StringRef folder);

} // namespace attn::run

#endif
