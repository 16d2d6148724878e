//===- Arithmetic.h - Sizes as numbers, or as something else ----*- C++ -*-===//
///
/// A formula over sizes that is needed both for numbers and for values of a
/// host function is a template over its arithmetic, a class with
///
///   using Number = ...;
///   Number constant(int64_t);
///   Number times(Number, Number), plus(Number, Number);
///   Number least(Number, Number), most(Number, Number);
///   Number ceilDiv(Number, int64_t divisor), floorDiv(Number, int64_t);
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_ARITHMETIC_H
#define ATTN_SCHEDULE_ARITHMETIC_H

#include <algorithm>
#include <cstdint>

namespace attn {

/// Of b >= 1; a + b may be more than there are numbers for.
inline int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0); }
inline int64_t roundUp(int64_t a, int64_t b) { return ceilDiv(a, b) * b; }

/// The arithmetic of numbers.
struct Integers {
  using Number = int64_t;
  int64_t constant(int64_t value) { return value; }
  int64_t times(int64_t a, int64_t b) { return a * b; }
  int64_t plus(int64_t a, int64_t b) { return a + b; }
  int64_t least(int64_t a, int64_t b) { return std::min(a, b); }
  int64_t most(int64_t a, int64_t b) { return std::max(a, b); }
  int64_t ceilDiv(int64_t a, int64_t divisor) {
    return attn::ceilDiv(a, divisor);
  }
  int64_t floorDiv(int64_t a, int64_t divisor) { return a / divisor; }
};

} // namespace attn

#endif // ATTN_SCHEDULE_ARITHMETIC_H
