//===- Masks.h - The band that a mask is ------------------------*- C++ -*-===//
//
// attn.forward has masks that are bands: query i sees the keys from i + first
// to i + last.  Others have tensors: of booleans, or of numbers that are added
// to the scores.  Such a tensor is a band if it is made of row numbers or is a
// constant, and is found here:
//
//   j <= i                          first = -inf, last = 0
//   j - i < 3 and i - j <= 2        first = -2,   last = 2
//   constant, every row looked at
//
// A number that is added hides a key if it is -inf.  A finite one that is so
// low that exp gives 0 stands for -inf, which `isExact` tells.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_RAISE_MASKS_H
#define ATTN_LIB_CONVERSION_RAISE_MASKS_H

#include "Numbers.h"

#include "attn/IR/Attn.h"

namespace attn::raise {

/// The row numbers of queries and keys, and how many there are.
struct Rows {
  Index query, key;
  int64_t queries, keys;
};

/// Query i sees key j iff i + first <= j <= i + last.
struct Band {
  int64_t first = -kUnbounded, last = kUnbounded;
};

/// What masks leave of the keys that a query sees.
struct VisibleBand {
  Band band;
  /// Whether everything that hides is -inf or a boolean.
  bool isExact = true;

  void narrow(int64_t first, int64_t last);
};

/// Reads masks of one attention.
class MaskReader {
public:
  MaskReader(Numbers &numbers, const Rows &rows)
      : numbers(numbers), rows(rows) {}

  /// Narrows to what a boolean that is `wanted` leaves, or says why it cannot
  /// be known.
  std::optional<std::string> readCondition(const Number &condition, bool wanted,
                                           VisibleBand &visible);
  /// The same of a number that is added to scores.
  std::optional<std::string> readAddend(const Number &addend,
                                        VisibleBand &visible);

  /// Whether this constant, as a score, hides its key; narrows `isExact`.
  static bool hides(double value, mlir::Type type, VisibleBand &visible);

private:
  std::optional<Index> integer(Number number);
  std::optional<std::string> compare(const Maker &made, bool wanted,
                                     VisibleBand &visible);
  std::optional<std::string> readConstant(const Number &number, bool wanted,
                                          VisibleBand &visible);
  std::optional<std::string> narrow(Index atLeastZero, VisibleBand &visible);

  Numbers &numbers;
  const Rows &rows;
};

/// The mask of attn.forward for a band, and how many keys there must be for it:
/// the last ones are cut off where no query sees them.
struct NamedMask {
  MaskAttr mask;
  int64_t keys;
};

/// Says why there is none in `reason`.
std::optional<NamedMask> nameMask(mlir::MLIRContext *context, const Band &band,
                                  const Rows &rows, std::string &reason);

/// Whether some query may see no key.
bool mayHideAll(const Band &band, const Rows &rows);

} // namespace attn::raise

#endif
