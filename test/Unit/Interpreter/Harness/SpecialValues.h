//===- SpecialValues.h - NaN, infinity and far, for tests -------*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_SPECIALVALUES_H
#define ATTN_TEST_UNIT_INTERPRETER_SPECIALVALUES_H

#include <cstdint>
#include <limits>

namespace attn {

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// A side of a window that no row reaches.
inline constexpr int64_t kFar = 1 << 30;

} // namespace attn

#endif
