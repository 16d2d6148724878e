//===- Function.h - What a function computes, with what ---------*- C++ -*-===//
//
// attn-run computes a reference for a function, so it must know what the
// function computes: it reads functions whose only computations are
// `attn.forward` and `attn.backward` on their arguments, the latter also on the
// O and LSE of a forward op before it, and `attn.merge` and its gradient on
// their arguments.  Here such a function becomes a list of inputs and a list of
// outputs, with all sizes known.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_FUNCTION_H
#define ATTN_TOOLS_RUN_FUNCTION_H

#include "attn/IR/Attn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attn::run {

/// Values for the sizes that types leave open.
struct Extents {
  std::optional<int64_t> batch, queries, keys;
};

/// An array that an op takes: an argument of the function, or a list that the
/// function makes.
struct ArraySource {
  unsigned position = 0;
  std::optional<size_t> listing = std::nullopt;
  unsigned result = 0;
};

/// One attention, or the gradients of one.
struct Attention {
  AttentionOpInterface op;
  Problem problem;
  double scale = 1;
  /// Of each input by its role, its position among the function's arguments;
  /// not of those that an attention before gives.
  std::map<std::string, unsigned> inputs;
  /// The same of what clauses take, in its order and with its name.
  std::vector<std::pair<std::string, ArraySource>> clauseInputs;

  unsigned input(llvm::StringRef role) const { return inputs.at(role.str()); }
  const ArraySource &clauseInput(ClauseGroup group, unsigned number) const;
  bool isBackward() const { return problem.direction == Direction::backward; }
  /// The sizes of the array of a role.
  llvm::SmallVector<int64_t> sizesOf(llvm::StringRef role) const;
};

/// A merge of parts, or the gradients of one.
struct Merging {
  MergeOpInterface op;
  Merge merge;
  /// As in an Attention; all are arguments.
  std::map<std::string, unsigned> inputs;

  unsigned input(llvm::StringRef role) const { return inputs.at(role.str()); }
  llvm::SmallVector<int64_t> sizesOf(llvm::StringRef role) const;
};

/// Lists of blocks of a region, or by keys of others.
struct Listing {
  mlir::Operation *op = nullptr;
  int64_t queries = 0, keys = 0; ///< of a region
  std::vector<ArraySource> inputs;
};

/// Where an output goes.
struct Output {
  /// Which attention it is of, or which merge or listing.
  enum class Of { attention, merge, listing };
  Of of = Of::attention;
  size_t attention = 0;
  unsigned result = 0; ///< of a listing
  std::string role;
  /// Position among the arguments (memrefs) or the results (tensors).
  unsigned position = 0;
  llvm::SmallVector<int64_t> sizes;
  mlir::Type elementType;
};

struct Function {
  /// What is read.
  mlir::func::FuncOp op;
  /// What is compiled: the same, or another that should give the same.
  std::string name;
  bool onTensors = false;
  std::vector<Attention> attentions;
  std::vector<Merging> merges;
  std::vector<Listing> listings;
  std::vector<Output> outputs;
  /// Sizes of the arguments.
  std::vector<llvm::SmallVector<int64_t>> argumentSizes;
};

/// The function of that name, or the only one; fails with a diagnostic.
mlir::FailureOr<mlir::func::FuncOp> findFunction(mlir::ModuleOp module,
                                                 llvm::StringRef name);

/// Reads the function; fails with a diagnostic.
mlir::FailureOr<Function> readFunction(mlir::func::FuncOp function,
                                       const Extents &extents);

} // namespace attn::run

#endif
