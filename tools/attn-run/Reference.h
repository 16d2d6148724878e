//===- Reference.h - Compares outputs with fp64 -----------------*- C++ -*-===//
//
// Every output is compared with the oracle in fp64, on the same rounded inputs:
//
//   relative error   ||out - ref|| / max(||ref||, size), over all elements with
//                    finite ref; size is what is summed up (Oracle.h)
//   LSE error        max |lse - ref| / max(1, s / 32), s = scale |q| max |k|;
//                    of a low word with ref less the high one
//
// A sum may cancel whereas the rounding errors of its terms do not: hence size.
//
// A score is a sum in f32 whose rounding errors are in proportion to |q| |k|,
// also where the sum itself is small; s bounds it.  Normal inputs have s near
// sqrt(d), for which the LSE error is the absolute one.
//
// Limits of O are the largest roundings of P and of O itself, half a unit in
// the last place each: 2^-9 and 2^-9 in bf16, and 2^-4 and 2^-9 in f8E4M3FN,
// whose O is bf16.  The tensor cores of 8-bit types add up to that: their sums
// keep 13 bits behind the leading one and drop what is below (DeepSeek-V3,
// arXiv 2412.19437, 3.3.2), 2^-13 at most in each step of 32 keys.  A sum that
// grows step by step loses half of that: keys / 32 * 2^-13 / 2.  A score, of s
// at most, is such a sum of head dimension / 32 steps, and at least of the last
// one whole; in LSE, in units of s / 32, that is 2^-8 max(1, steps / 2).
//
// Of gradients there is a third rounding: P or dS, the result, and O, from
// which D comes.  They take P from LSE, so it also has the errors of a score
// and those of an LSE in f32, 2^-24 s.
//
// Products in tf32 round both factors by 2^-11 at most.  The errors of a score
// are random, 2^-11 s / sqrt(head dimension) in the root mean square; weights,
// and so O and gradients, have them too.  The largest of many, which LSE shows,
// is 4 times that.
//
// No limit is above 0.05: what a wrong kernel leaves must not pass for
// rounding.  Where rounding may leave more, outputs are not comparable, which
// is no success.  P's roundings in e4m3 are 2.7e-2 in the root mean square;
// with what tensor cores drop that is above 0.05 from 22064 keys on.
//
// Beyond numbers: rows that see no key, and gradients of keys that are not
// seen, must be exactly 0 and -infinity; where the reference is NaN the output
// must be NaN, and nowhere else; no element may still hold poison and no byte
// around them may have lost it.
//
// Merges round their results, half a unit in the last place, and their weights,
// which are exponentials: 2^-20 of what is summed up is left for that, and the
// same of LSE.
//
// An infinite score has no softmax: with infinities among the inputs, rows
// whose reference is not finite are asked only to be written.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_REFERENCE_H
#define ATTN_TOOLS_RUN_REFERENCE_H

#include "Arrays.h"
#include "Function.h"

#include <limits>

namespace attn::run {

/// How far an output is from its reference.
struct Comparison {
  std::string name;
  std::string type;
  int64_t rows = 0, checkedRows = 0;
  double maxError = 0;
  /// Of O and gradients.
  double relativeError = 0;
  /// Of LSE.
  double lseError = 0;
  double tolerance = 0;
  /// Whether rounding leaves less than a wrong kernel would.
  bool comparable = true;
  int64_t unwritten = 0, damaged = 0;
  /// NaN where there is none in the reference, or the other way.
  int64_t wrongNan = 0;
  /// Elements of rows that see no key that are not exactly 0 or -infinity.
  int64_t wrongMasked = 0;

  /// Of LSE or its low word, whose errors are measured alike.
  bool isLse() const { return name == "lse" || isLow(); }
  bool isLow() const { return name == "lse_low"; }
  /// Of a row that sees no key.
  double ofNothing() const {
    return isLse() && !isLow() ? -std::numeric_limits<double>::infinity() : 0;
  }
  bool ok() const;
};

/// No relative error above it is accepted.
inline constexpr double kLargestTolerance = 0.05;

/// What roundings may leave of an output's error, where scores are `score` at
/// most: of the relative one of O and of gradients, and of that of LSE.
double toleranceOf(const Problem &problem, double score);
double gradientToleranceOf(const Problem &problem, double score);
double lseToleranceOf(const Problem &problem, double score);

/// The sets of rows, per head, that are compared: all, or evenly spaced runs
/// when there are more than `budget` multiply-adds to do.
struct RowRun {
  int64_t begin, end;
};
std::vector<RowRun> chooseRows(const Problem &problem, double budget);

/// Compares the outputs of one attention.  `arrays` are the function's, and
/// `outputs` the arrays of its outputs.
std::vector<Comparison> compareAll(const Function &function,
                                   const std::vector<HostBytes> &arrays,
                                   const std::vector<size_t> &outputs,
                                   Inputs inputs, double budget,
                                   unsigned threads);

/// The same for the gradients of the attention of that number.
std::vector<Comparison> compareGradients(const Function &function,
                                         size_t number,
                                         const std::vector<HostBytes> &arrays,
                                         const std::vector<size_t> &outputs,
                                         Inputs inputs, double budget,
                                         unsigned threads);

/// The same for the merge of that number, or the gradients of a part.
std::vector<Comparison> compareMerge(const Function &function, size_t number,
                                     const std::vector<HostBytes> &arrays,
                                     const std::vector<size_t> &outputs);

/// Fills the inputs of a merge.  Some parts have seen nothing, and hold NaN
/// there; of some rows no part has seen anything.
void drawParts(const Merging &merging, std::vector<HostBytes> &arrays,
               uint64_t seed);

/// Gives backward ops the O and LSE that they take from arguments, rounded to
/// their types: the oracle's where gradients are compared.
void fillForwardResults(const Function &function,
                        std::vector<HostBytes> &arrays, double budget,
                        unsigned threads);

} // namespace attn::run

#endif
