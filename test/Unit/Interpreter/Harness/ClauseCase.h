//===- ClauseCase.h - Clauses of an op, their arrays and truth --*- C++ -*-===//
//
// An op with clauses is parsed from text; what it captures is drawn at random.
// Arrays lie in memory with gaps of poison between rows and in front, and
// nothing behind, so that who reads beside one is found out.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_CLAUSECASE_H
#define ATTN_TEST_UNIT_INTERPRETER_CLAUSECASE_H

#include "Harness/CaseArrays.h"
#include "Harness/Draws.h"

#include "attn/Interpreter/ClauseReference.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace attn {

/// The clauses of a score that reads a table [queries + keys, heads] of that
/// type by distance, behind which is a function.
std::string readByDistance(const std::string &capture, const std::string &type);

class ClauseCase {
public:
  /// `text` is what stands behind the operands of `attn.forward`, with captures
  /// %x0, %x1, .. of these types.  Integers of captures are from 0 to `most`.
  ClauseCase(mlir::MLIRContext &context, const Problem &problem,
             const std::string &text, const std::vector<std::string> &captures,
             uint64_t seed, int64_t most = 3,
             std::vector<int64_t> gradients = {});

  /// Flags of the problem.
  ScoreClauses flags();
  /// The bands that kernels of the problem walk, if its region shows some.
  Bands bandsFor(const Problem &problem);
  OperandScales scales() { return problemOf(op).scales; }
  void addTo(KernelRequest &request);
  const oracle::Clauses &clauses() const { return reference->clauses(); }
  ClauseReference &oracle() { return *reference; }

  /// Captures and behind them sinks, by number, that get gradients; of one the
  /// sizes.
  const std::vector<int64_t> gradients;
  std::vector<int64_t> sizesOfGradient(size_t target) const {
    return arrays[size_t(gradients[target])].sizes;
  }
  bool isOfSinks(size_t target) const {
    return size_t(gradients[target]) == layouts.size();
  }
  /// Numbers in front of a gradient in memory.
  static constexpr int64_t kBeforeGradient = 3;

  /// Writes the arrays; where they are, by role.
  void upload(GlobalMemory &memory, llvm::StringMap<uint64_t> &addresses) const;
  /// What an argument of that role is, if it is of one of the arrays.
  std::optional<int64_t> integerOf(const ArgumentRole &role) const;

  const std::string text;

private:
  /// Of an array as it lies in memory.
  struct Layout {
    mlir::Type element;
    std::vector<int64_t> strides;
    int64_t elements;
  };
  Layout layoutOf(mlir::ShapedType type) const;
  /// Where a group begins among the arrays.
  size_t beginOf(ClauseGroup group) const;
  std::optional<int64_t> integerOfScale(const ArgumentRole &role) const;

  mlir::OwningOpRef<mlir::ModuleOp> module;
  AttentionOpInterface op;
  llvm::SmallVector<int32_t, kClauseGroups> sizes; ///< of its groups
  std::vector<CapturedArray> arrays;
  std::vector<Layout> layouts; ///< of captures
  std::unique_ptr<ClauseReference> reference;
};

} // namespace attn

#endif
