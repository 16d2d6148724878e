//===- Clauses.h - What clauses add to an op of attention -------*- C++ -*-===//
//
// A mask that is a band and a scale are attributes.  What is more general comes
// in clauses, each of which may be absent:
//
//   captures(%x : type)          arrays that the regions read
//   sees  (%b, %h, %i, %j, %nq, %nk, %x) {..}          which keys a query sees
//   score (%z : f32, %b, .., %nk, %x) {..}             what becomes of a score
//   blocks(partial .., full .., size 128 x 128 : ..)   which pairs are there
//   sinks(%s : type)             a score of each head that has no value
//   lengths(k %n : type)         how many keys each batch entry uses
//   pages(%t : type)             the pages in which they lie
//   scales(q %a, k %b, v %c : types)
//                                what Q, K and V are to be multiplied by
//   values(keys, first 512)      V is so many columns of K, and no operand
//   ragged(%cu_q, %cu_k, longest 4000, 4000 : types)
//                                sequences one behind the other, by offsets
//
// Their operands follow the op's inputs in groups, whose sizes are an attribute
// that is absent with them.  Regions are pure functions of numbers, isolated:
// what they read comes in as arguments, in the order of the captures.
//
// Some regions have a short form: `softcap(50.0)`, `alibi(%slopes : type)`,
// `bias(%b : type)` and `document(%ids : type)`.  Underneath they are regions
// like any other; an op has a short form when its region has the structure that
// one function here writes (shortFormsOf), whoever wrote it.
//
// Example: `softcap(50.0) alibi(%s : tensor<32xf32>)` captures %s and has
//
//   score (%z : f32, %b, %h, %i, %j, %nq, %nk, %s) {
//     50 * tanh(z / 50) + s[h] * (j - i)
//   }
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_CLAUSES_H
#define ATTN_IR_CLAUSES_H

#include "attn/Schedule/Problem.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace attn {

/// Groups of operands that clauses take, in the order of the operands.  A list
/// of blocks is two arrays, counts and indices.
enum class ClauseGroup {
  captures,
  partial,           ///< blocks in which some pairs are seen
  full,              ///< blocks in which all are
  transposedPartial, ///< the same by blocks of keys, of gradients
  transposedFull,
  sinks,
  offsets,   ///< of queries and of keys
  usedKeys,  ///< how many keys each batch entry uses
  pageTable, ///< the pages in which they lie
  scaleQ,    ///< what Q, K and V are to be multiplied by
  scaleK,
  scaleV
};
inline constexpr unsigned kClauseGroups = unsigned(ClauseGroup::scaleV) + 1;
inline constexpr ClauseGroup kScaleGroups[] = {
    ClauseGroup::scaleQ, ClauseGroup::scaleK, ClauseGroup::scaleV};

/// The attributes of clauses.
inline constexpr llvm::StringLiteral kClauseSizesAttr = "operandClauseSizes",
                                     kBlocksAttr = "blocks",
                                     kGradientsAttr = "gradients",
                                     kLongestAttr = "longest",
                                     kValuesAttr = "values";

/// What divides the queries and keys of a block.
inline constexpr int64_t kBlockMultiple = 64;

/// Arguments of a region in front of the captures, without the score.
inline constexpr llvm::StringLiteral kPositions[] = {"b", "h",  "i",
                                                     "j", "nq", "nk"};
inline constexpr unsigned kPositionCount = std::size(kPositions);

/// The sizes of the groups; zeros where there are none.
llvm::SmallVector<int32_t, kClauseGroups> clauseSizes(mlir::Operation *op);
size_t clauseOperandCount(mlir::Operation *op);
/// Of operands that what clauses take is the first of, the others.
mlir::OperandRange behindClauses(mlir::Operation *op, mlir::OperandRange rest);
/// Of inputs that what clauses take is the last of, these, and a group of them.
mlir::OperandRange clauseInputs(mlir::Operation *op, mlir::OperandRange inputs);
mlir::OperandRange clauseOperands(mlir::Operation *op,
                                  mlir::OperandRange inputs, ClauseGroup group);

mlir::Region *seesOf(mlir::Operation *op);
mlir::Region *scoreOf(mlir::Operation *op);
/// Whether a region is of scores.
bool isScore(mlir::Region &region);
/// The types of a region's arguments.
llvm::SmallVector<mlir::Type> argumentTypes(mlir::MLIRContext *context,
                                            bool isScore,
                                            mlir::TypeRange captures);
/// The arguments of a region that stand for captures.
llvm::ArrayRef<mlir::BlockArgument> capturesIn(mlir::Region &region);
/// Gives regions the arguments that follow from the types of the captures.
void retypeCaptures(mlir::Operation *op);
void nameArguments(mlir::Region &region, mlir::OpAsmSetValueNameFn name);

/// The keyword of the first clause that is there, as it is printed; empty if
/// there is none.
std::string firstClause(mlir::Operation *op);
/// An error that names it, and why there is no kernel, if there is one.
llvm::LogicalResult refuseClauses(mlir::Operation *op);

std::optional<BlockSize> blockSizeOf(mlir::Operation *op);
/// Whether sequences lie one behind the other.
bool isRagged(mlir::Operation *op);
/// The columns of K that V is, or 0 if it is an array of its own.
int64_t valueColumns(mlir::Operation *op);
llvm::SmallVector<mlir::Value> gradientTargetsOf(mlir::Operation *op,
                                                 mlir::OperandRange inputs);

/// A region, or a part of one, that has a short form.
struct ShortForm {
  enum Kind { document, softcap, alibi, bias };
  Kind kind;
  unsigned capture = 0; ///< its number, but of softcap
  double cap = 0;       ///< of softcap
};
llvm::StringRef keywordOf(ShortForm::Kind kind);
std::optional<ShortForm::Kind> shortFormOf(llvm::StringRef keyword);

/// Why the array cannot be captured by such a form, or nothing.
std::optional<std::string> wrongCapture(ShortForm::Kind kind,
                                        mlir::ShapedType type);
/// Writes the region of such forms, one after the other: of `document` alone
/// one of `sees`, of the others one of `score`.
void buildRegion(mlir::Region &region, mlir::Location loc,
                 llvm::ArrayRef<ShortForm> forms, mlir::TypeRange captures);
/// The forms of which a region is exactly what `buildRegion` writes; none if
/// there are no such forms.
llvm::SmallVector<ShortForm> shortFormsOf(mlir::Region &region);

/// Where the device says that the rows of these inputs lie.
Placement placeOf(mlir::Operation *op, mlir::OperandRange inputs);

/// The op with other operands and results: with its attributes, and its regions
/// on the captures among the operands.
mlir::Operation *cloneWith(mlir::OpBuilder &b, mlir::Operation *op,
                           mlir::ValueRange operands, mlir::TypeRange results,
                           llvm::ArrayRef<mlir::NamedAttribute> attributes);

} // namespace attn

#endif
