//===- Arrays.h - Arrays of the host, with poison around them ---*- C++ -*-===//
//
// What a function reads and writes, on the host: the bytes of one allocation
// with an array laid into it.  Bytes that belong to no element (the gaps that
// strides leave, and the guards before and behind) hold poison and must hold
// it afterwards; an output holds poison in its elements too.  The poison byte
// is 0xff: in every type that is a NaN, and none that arithmetic produces in an
// output.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_ARRAYS_H
#define ATTN_TOOLS_RUN_ARRAYS_H

#include "attn/Host/Host.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn::run {

inline constexpr uint8_t kPoison = 0xff;
/// Bytes before and behind an array when it is guarded; keeps its alignment.
inline constexpr int64_t kGuardBytes = 4096;

struct HostBytes {
  /// Sizes and strides; the base is where the array lies on the device.
  HostArray shape;
  int64_t guardBytes = 0;
  /// Guard, array, guard.
  std::vector<uint8_t> bytes;

  /// All poison.
  HostBytes(HostArray shape, int64_t guardBytes);

  /// Position of an element in `bytes`.
  int64_t position(llvm::ArrayRef<int64_t> index) const;
  double get(llvm::ArrayRef<int64_t> index) const;
  void set(llvm::ArrayRef<int64_t> index, double value);
  /// The same of integers.
  int64_t getWhole(llvm::ArrayRef<int64_t> index) const;
  void setWhole(llvm::ArrayRef<int64_t> index, int64_t value);

  /// Elements that still hold poison.
  int64_t unwritten() const;
  /// Bytes outside the elements that no longer hold poison.
  int64_t damaged() const;
};

/// Calls `body` with every index of an array of these sizes, last one fastest.
template <typename Body>
void forEachIndex(llvm::ArrayRef<int64_t> sizes, Body body) {
  for (int64_t size : sizes)
    if (size == 0)
      return;
  llvm::SmallVector<int64_t> index(sizes.size(), 0);
  while (true) {
    body(llvm::ArrayRef<int64_t>(index));
    int64_t dim = static_cast<int64_t>(sizes.size()) - 1;
    while (dim >= 0 && ++index[dim] == sizes[dim])
      index[dim--] = 0;
    if (dim < 0)
      return;
  }
}

/// What inputs are drawn from.
enum class Inputs {
  /// Standard normal numbers.
  normal,
  /// Normal, and one key holds a NaN: only rows that see it may become NaN.
  nanKey,
  /// Normal, and one key holds an infinity, or 448 in a type that has none.
  infinity,
  /// Normal times 8: scores so large that exp overflows without a maximum.
  large,
};

/// A well-mixed number for each counter.
uint64_t mixed(uint64_t counter);

/// Fills an array with numbers that depend on the seed alone.
void fillRandom(HostBytes &array, uint64_t seed, double scale);

} // namespace attn::run

#endif
