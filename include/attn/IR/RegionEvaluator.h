//===- RegionEvaluator.h - Regions of attention as functions ----*- C++ -*-===//
//
// The reference for `sees` and `score`: a region becomes a list of steps, which
// are taken one after the other for a pair of rows.  Floats are fp64, and
// rounded only where the region says so (arith.truncf); integers have the bits
// of their types.  What MLIR leaves open, division by zero and shifts beyond
// the width, gives 0.  An element outside of its array is NaN, or 0 of
// integers: that there is none was the promise of whoever wrote the region, and
// the first that breaks it is remembered.
//
// Derivatives come forward with the values: each step has those of its result
// in the score and in every element that is read.
//
// Example: z + s[h] * (j - i) at z = 2, s[h] = 0.5, i = 1, j = 4 is 3.5, its
// derivative in z is 1 and in the element h of capture 0 it is 3.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_REGIONEVALUATOR_H
#define ATTN_IR_REGIONEVALUATOR_H

#include "attn/IR/ScalarOps.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// A captured array, row-major: one of both vectors has its elements.
struct CapturedArray {
  std::vector<int64_t> sizes;
  std::vector<double> reals;
  std::vector<int64_t> wholes;
};

/// A pair of rows, and how many there are.
struct PairOfRows {
  int64_t batch, head, query, key, queries, keys;
};

/// A read of an element that an array does not have.
struct OutsideRead {
  unsigned capture, dimension;
  int64_t index, size;
  PairOfRows pair;
};
/// "reads element 200 of 200 in dimension 0 of capture 1 for batch entry 0,
/// head 2, query 3 and key 200".
std::string str(const OutsideRead &read);

class RegionEvaluator {
public:
  /// Of a region that the verifier has seen.
  explicit RegionEvaluator(mlir::Region &region);

  bool sees(const PairOfRows &pair,
            const std::vector<CapturedArray> &captures) const;
  double score(double z, const PairOfRows &pair,
               const std::vector<CapturedArray> &captures) const;

  /// A derivative in an element of a capture.
  struct OfElement {
    unsigned capture;
    int64_t offset;
    double derivative;
  };
  struct Slope {
    double value;
    double ofScore;
    llvm::SmallVector<OfElement, 4> ofElements;
  };
  Slope slope(double z, const PairOfRows &pair,
              const std::vector<CapturedArray> &captures) const;

  /// The first read outside of an array; one thread at a time evaluates.
  const std::optional<OutsideRead> &outsideRead() const { return outside; }

private:
  /// An integer or a float; the other one is 0.
  struct Number {
    double real = 0;
    int64_t whole = 0;
  };
  struct Step {
    ScalarKind op;
    llvm::SmallVector<unsigned, 3> operands; ///< numbers of steps
    unsigned width = 64;                     ///< bits of an integer result
    unsigned operandWidth = 64;
    bool isReal = false;
    int predicate = 0;
    Number constant;
    const llvm::fltSemantics *rounding = nullptr;
    unsigned capture = 0;
    int tangent = -1; ///< of a read of floats
  };
  /// Values of all steps, and their derivatives, `tangents` for each.
  struct State {
    llvm::SmallVector<Number, 32> values;
    llvm::SmallVector<double, 64> tangents;
    llvm::SmallVector<OfElement, 4> elements;
  };

  void addStep(mlir::Operation &op);
  void run(State &state, double z, const PairOfRows &pair,
           const std::vector<CapturedArray> &captures, bool derives) const;
  Number valueOf(const Step &step, State &state,
                 const std::vector<CapturedArray> &captures) const;
  Number read(const Step &step, State &state,
              const std::vector<CapturedArray> &captures) const;
  void noteOutside(const Step &step, unsigned dimension, int64_t index,
                   int64_t size, const State &state) const;
  void derive(const Step &step, unsigned number, State &state) const;

  bool isScore;
  unsigned arguments; ///< steps that are arguments
  unsigned tangents = 1;
  unsigned result = 0;
  std::vector<Step> steps;
  llvm::SmallVector<mlir::Value> values; ///< of which a step is
  mutable std::optional<OutsideRead> outside;
};

} // namespace attn

#endif
