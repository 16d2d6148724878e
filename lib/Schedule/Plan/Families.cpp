//===- Families.cpp - Which tensor cores can do it ------------------------===//

#include "attn/Schedule/Families.h"
#include "attn/Schedule/Tensor.h"
#include <algorithm>

using namespace attn;

using Sentence = std::optional<std::string>;

static bool is16Bit(DataType type) {
  return type == DataType::bf16 || type == DataType::f16;
}

/// Products of 8 bits that a priced precision needs.
static Sentence checkBytes(const Problem &problem, const Machine &machine) {
  if (problem.precision != Precision::f8_qk ||
      machine.tensor8FlopsPerClockPerSm > 0)
    return std::nullopt;
  return "f8_qk expects a machine with products of 8 bits, but " +
         machine.name + " has none";
}

static std::string typesOf(const Problem &problem) {
  return "k and v in " + std::string(name(kvTypeOf(problem))) + " and q in " +
         std::string(name(problem.dtype));
}

static Sentence checkMmaSync(const Problem &problem, const Machine &machine) {
  if (auto sentence = checkBytes(problem, machine))
    return sentence;
  if (needsWidening(problem))
    return "mma_sync expects q, k and v of one type, but got " +
           typesOf(problem);
  if (machine.computeCapability < 80)
    return "mma_sync expects compute capability 80 or more, but " +
           machine.name + " has " + std::to_string(machine.computeCapability);
  if (!is16Bit(problem.dtype) && problem.dtype != DataType::f32)
    return "mma_sync expects bf16, f16 or f32, but got " +
           std::string(name(problem.dtype));
  return std::nullopt;
}

/// One head dimension: rows are whole 16-byte pieces, unless they are
/// rewritten, and not too wide.
static Sentence checkWgmmaColumns(const char *what, int64_t columns,
                                  int64_t bytesPerElement,
                                  const WgmmaUse &use) {
  int64_t unit = kMaxAlignment / bytesPerElement, most = use.mostHeadDim;
  if (!use.rewrites && columns % unit != 0)
    return std::string("wgmma expects ") + what + " to be a multiple of " +
           std::to_string(unit) + " (16 bytes), but got " +
           std::to_string(columns);
  if (columns > most)
    return std::string("wgmma expects ") + what + " up to " +
           std::to_string(most) + ", but got " + std::to_string(columns);
  return std::nullopt;
}

static Sentence checkWgmma(const Problem &problem, WgmmaUse use) {
  bool isSingle = problem.dtype == DataType::f32;
  if (!is16Bit(problem.dtype) && problem.dtype != DataType::f8e4m3 &&
      !(isSingle && use.splits))
    return "wgmma expects bf16, f16 or f8e4m3, but got " +
           std::string(name(problem.dtype));
  if (isSingle && problem.precision != Precision::tf32x3)
    return "wgmma expects f32 in precision tf32x3, but got " +
           std::string(name(problem.precision));
  if (needsWidening(problem) && !use.widens)
    return "expects q, k and v of one type, or the schedule flash, but got " +
           typesOf(problem);
  int64_t bytes = bytesOf(problem.dtype);
  // Values are transposed, or split, for one product.
  if (bytes != 2 && !use.rewrites)
    use.mostHeadDim = std::min(use.mostHeadDim, kMostWgmmaColumns);
  // Rows of K and V are the shortest.
  bytes = leastBytes(problem);
  if (auto sentence =
          checkWgmmaColumns("head dim", problem.headDim, bytes, use))
    return sentence;
  if (auto sentence =
          checkWgmmaColumns("head dim of v", problem.headDimV, bytes, use))
    return sentence;
  if (!use.rewrites && problem.alignment < kMaxAlignment)
    return "wgmma expects rows aligned to " + std::to_string(kMaxAlignment) +
           " bytes, but got " + std::to_string(problem.alignment);
  return std::nullopt;
}

Sentence attn::checkFamily(TensorCoreFamily family, const Problem &problem,
                           const Machine &machine, const WgmmaUse &use) {
  switch (family) {
  case TensorCoreFamily::none:
    return std::nullopt;
  case TensorCoreFamily::mmaSync:
    return checkMmaSync(problem, machine);
  case TensorCoreFamily::wgmma:
  case TensorCoreFamily::tcgen05:
    if (machine.family != family)
      return std::string(name(family)) +
             " expects a machine that has it, but " + machine.name + " has " +
             std::string(name(machine.family));
    return family == TensorCoreFamily::wgmma ? checkWgmma(problem, use)
                                             : std::nullopt;
  }
  return std::nullopt;
}
