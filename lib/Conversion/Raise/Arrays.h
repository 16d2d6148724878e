//===- Arrays.h - What readers of named ops share ---------------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_RAISE_ARRAYS_H
#define ATTN_LIB_CONVERSION_RAISE_ARRAYS_H

#include "Form.h"
#include "Generic.h"

#include "llvm/Support/FormatVariadic.h"

namespace attn::raise {

/// A reason in the words of formatv.
template <typename... Args> Reason because(const char *format, Args &&...args) {
  return llvm::formatv(format, std::forward<Args>(args)...).str();
}

/// Whether two tensors have the same size there; names are for the reason.
Reason expectSame(llvm::StringRef a, mlir::Value first, llvm::StringRef b,
                  mlir::Value second, int64_t dim);

/// The loops of heads of Q and of K, which serve groups of those.
struct HeadLoops {
  Index ofQ, ofK;
};
Reason readHeads(Form &form, int64_t heads, int64_t kvHeads, HeadLoops &loops);

/// A mask by its element: a boolean that lets see, or a number that is added.
Reason readMask(Form &form, const Number &mask);

/// The name of the attention that a composite or a custom_call wraps; empty if
/// it is something else.
llvm::StringRef wrappedName(mlir::Operation *op);

} // namespace attn::raise

#endif
