//===- OracleProducts.h - Products of the oracle, in fp64 -------*- C++ -*-===//
//
// Fast enough to check long sequences: registers full of sums, wide
// instructions where the processor has them, and all processors.  Standard
// library only, as the oracle.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_ORACLE_ORACLEPRODUCTS_H
#define ATTN_LIB_INTERPRETER_ORACLE_ORACLEPRODUCTS_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace attn::oracle {

/// C += A * B for row-major doubles.
struct Product {
  const double *a, *b;
  double *c;
  int64_t strideA, strideB, strideC;
  int64_t rows, inner, columns;
};

/// A register's worth of C at (i, j).
template <int64_t Rows, int64_t Columns>
inline __attribute__((always_inline)) void multiplyTile(const Product &p,
                                                        int64_t i, int64_t j) {
  double sum[Rows][Columns] = {};
  for (int64_t k = 0; k < p.inner; ++k)
    for (int64_t r = 0; r < Rows; ++r)
      for (int64_t s = 0; s < Columns; ++s)
        sum[r][s] += p.a[(i + r) * p.strideA + k] * p.b[k * p.strideB + j + s];
  for (int64_t r = 0; r < Rows; ++r)
    for (int64_t s = 0; s < Columns; ++s)
      p.c[(i + r) * p.strideC + j + s] += sum[r][s];
}

inline __attribute__((always_inline)) void multiplyAll(const Product &p) {
  int64_t i = 0;
  for (; i + 4 <= p.rows; i += 4) {
    int64_t j = 0;
    for (; j + 8 <= p.columns; j += 8)
      multiplyTile<4, 8>(p, i, j);
    for (; j < p.columns; ++j)
      multiplyTile<4, 1>(p, i, j);
  }
  for (; i < p.rows; ++i) {
    int64_t j = 0;
    for (; j + 8 <= p.columns; j += 8)
      multiplyTile<1, 8>(p, i, j);
    for (; j < p.columns; ++j)
      multiplyTile<1, 1>(p, i, j);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) inline void multiplyAvx2(const Product &p) {
  multiplyAll(p);
}
#endif

inline void multiply(const Product &p) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return multiplyAvx2(p);
#endif
  multiplyAll(p);
}

/// Calls `body` with every number below `tasks`, on so many threads; 0 means
/// all processors.
template <typename Body>
void forEachTask(int64_t tasks, unsigned threads, Body body) {
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t task = next++; task < tasks; task = next++)
      body(task);
  };
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (int64_t i = 1; i < std::min<int64_t>(threads, tasks); ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}

} // namespace attn::oracle

#endif
