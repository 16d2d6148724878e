//===- Form.h - What an op of somebody else computes ------------*- C++ -*-===//
//
// A form is a way to write attention down: a named op of some dialect, or a
// pattern of linalg ops.  Its reader says of one op which numbers it
// multiplies,
//
//   score(i, j) = scale * sum over d of Q[...i...d...] K[...j...d...]
//   O(..i..e..) = sum over j of softmax(masked score)(j) V[...j...e...]
//
// as elements of tensors, and `build` makes an attn.forward of that, with the
// reshapes and transposes that it takes.  All that is common to the forms is
// there: heads, groups, masks, the constraints of attn.forward.
//
// A reader and `build` return the reason for which an op is not raised, or
// nothing.  They add ops with the form's builder only, so that who called them
// can take back what they added.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_RAISE_FORM_H
#define ATTN_LIB_CONVERSION_RAISE_FORM_H

#include "Masks.h"
#include "Numbers.h"

#include "mlir/IR/Builders.h"

namespace attn::raise {

using Reason = std::optional<std::string>;

/// What somebody wants of the pairs of a query and a key.
enum class ScoresAt { scaled, capped, masked, weights };
struct ScoresResult {
  mlir::Value result; ///< [batch, heads, queries, keys]
  ScoresAt at;
};

struct Form {
  Form(mlir::Operation *op, mlir::OpBuilder &builder)
      : op(op), builder(builder), numbers(op->getContext()) {}

  /// Where remarks stand, and the attention.
  mlir::Operation *op;
  mlir::OpBuilder &builder;
  Numbers numbers;

  /// What is multiplied, by the loops of the form.
  Number q, k, v;
  /// Rows of Q, rows of K, head dimensions of Q and V.
  Index i, j, d, e;
  Rows rows = {};
  /// The result, and the indices of its element.
  mlir::Value o;
  Indices oAt;
  /// A second result, [batch, heads, queries] of f32.
  mlir::Value lse;
  /// Further results, and what takes their places.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 2> others;

  /// 1/sqrt(d) if absent.
  std::optional<double> scale;
  VisibleBand visible;
  /// What becomes of scaled scores, in this order: a cap, if it is not 0;
  /// numbers that are added, and truths that show a key, as tensors of rank 2
  /// to 4 whose sizes are those of [batch, heads, queries, keys], from the
  /// last, or 1.
  double softcap = 0;
  mlir::Value bias, seen;
  /// How many keys each batch entry uses, [batch] of i32 or i64.
  mlir::Value usedKeys;
  /// Keys behind these are hidden from all, if it is not all that there are.
  std::optional<int64_t> seenKeys;
  /// A result with an element for each pair.
  std::optional<ScoresResult> scores;
  /// The mask, where the form has it by its name.
  std::optional<Mask> named;
  /// What the remark adds: how numbers change.
  llvm::SmallVector<std::string> notes;

  /// Enters the loops of rows and head dimensions, of these sizes.
  void setSizes(int64_t queries, int64_t keys, int64_t headDim,
                int64_t headDimV);
};

/// What takes the places of results.
struct Built {
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 3> replacements;
  /// "mask causal, scale 0.125, 32 heads over 8".
  std::string summary;
};

/// Makes the attn.forward of a form in front of its op.
Reason build(Form &form, Built &built);

/// Adds the clauses for what becomes of scores to an attn.forward of q, k, v.
void addClauses(Form &form, mlir::OperationState &state);

/// The scores that a form asks for, of q and k [batch, heads, rows, head
/// dimension].
mlir::Value buildScores(Form &form, mlir::Value q, mlir::Value k);

/// The tensor of a number with a dimension for each of these indices.
mlir::Value arrange(Form &form, const Number &number,
                    llvm::ArrayRef<Index> dims);

//===----------------------------------------------------------------------===//
// The forms
//===----------------------------------------------------------------------===//

/// Named ops; which, their files say.
Reason readTmTensor(Form &form);
Reason readIree(Form &form);
Reason readOnnx(Form &form);
Reason readComposite(Form &form);
Reason readCustomCall(Form &form);

/// softmax(Q K^T) V of linalg ops, at the second product.  Nothing if the op
/// is no such product.
std::optional<Reason> readSoftmax(Form &form);

} // namespace attn::raise

#endif
