//===- Elements.cpp - Elements of matrices, as bytes and as floats --------===//

#include "Memory/Elements.h"

#include "attn/Host/Rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

void attn::interpreter::roundTo(Type type, MutableArrayRef<float> values) {
  if (type.isF32())
    return;
  auto round = type.isBF16()              ? roundToBf16
               : isa<FloatTF32Type>(type) ? roundToTf32
               : type.isF16()             ? roundToF16
                                          : roundToE4m3;
  for (float &value : values)
    value = round(value);
}

void attn::interpreter::decode(Type type, const uint8_t *bytes,
                               MutableArrayRef<float> values) {
  if (type.getIntOrFloatBitWidth() == 8) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = floatFromE4m3(bytes[i]);
    return;
  }
  if (type.isF32()) {
    std::memcpy(values.data(), bytes, 4 * values.size());
    return;
  }
  bool bf16 = type.isBF16();
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, 2);
    values[i] = bf16 ? floatFromBf16(bits) : floatFromF16(bits);
  }
}

void attn::interpreter::encode(Type type, ArrayRef<float> values,
                               uint8_t *bytes) {
  if (type.getIntOrFloatBitWidth() == 8) {
    for (size_t i = 0; i < values.size(); ++i)
      bytes[i] = e4m3FromFloat(values[i]);
    return;
  }
  if (type.isF32()) {
    std::memcpy(bytes, values.data(), 4 * values.size());
    return;
  }
  bool bf16 = type.isBF16();
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = bf16 ? bf16FromFloat(values[i]) : f16FromFloat(values[i]);
    std::memcpy(bytes + 2 * i, &bits, 2);
  }
}

/// A sum as the tensor cores keep it: what f32 has no bits for is dropped.
static float cutOff(double sum) {
  auto nearest = float(sum);
  bool isBeyond = std::fabs(double(nearest)) > std::fabs(sum);
  return isBeyond ? std::nextafterf(nearest, 0.0f) : nearest;
}

void attn::interpreter::multiplyTf32(const Matrix &lhs, const Matrix &rhs,
                                     Matrix &acc) {
  constexpr int64_t depth = 8;
  std::vector<double> sums(acc.columns);
  for (int64_t i = 0; i < acc.rows; ++i)
    for (int64_t first = 0; first < lhs.columns; first += depth) {
      float *__restrict out = acc.row(i);
      std::copy_n(out, acc.columns, sums.begin());
      for (int64_t k = first; k < first + depth; ++k) {
        const double factor = lhs.row(i)[k];
        const float *__restrict b = rhs.row(k);
        for (int64_t j = 0; j < acc.columns; ++j)
          sums[j] += factor * b[j];
      }
      for (int64_t j = 0; j < acc.columns; ++j)
        out[j] = cutOff(sums[j]);
    }
}

/// Sums stay in registers, each in the order of `k`.  Accumulators have whole
/// tiles (FragType::verify).
static inline __attribute__((always_inline)) void
multiplyTiles(const Matrix &lhs, const Matrix &rhs, Matrix &acc) {
  constexpr int64_t rows = 8, columns = 8;
  for (int64_t i = 0; i < acc.rows; i += rows)
    for (int64_t j = 0; j < acc.columns; j += columns) {
      float sum[rows][columns];
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(acc.row(i + r) + j, columns, sum[r]);
      for (int64_t k = 0; k < lhs.columns; ++k)
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t s = 0; s < columns; ++s)
            sum[r][s] += lhs.row(i + r)[k] * rhs.row(k)[j + s];
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(sum[r], columns, acc.row(i + r) + j);
    }
}

#if defined(__x86_64__)
// Products are rounded before they are added, everywhere: no fma.
static __attribute__((target("avx2"))) void
multiplyAvx2(const Matrix &lhs, const Matrix &rhs, Matrix &acc) {
  multiplyTiles(lhs, rhs, acc);
}
#endif

void attn::interpreter::multiply(const Matrix &lhs, const Matrix &rhs,
                                 Matrix &acc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    return multiplyAvx2(lhs, rhs, acc);
#endif
  multiplyTiles(lhs, rhs, acc);
}
