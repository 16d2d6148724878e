//===- CaseArrays.cpp - The arrays of a kernel under test -----------------===//

#include "Harness/CaseArrays.h"

#include "attn/Schedule/Registry.h"

#include "attn/Host/Rounding.h"
#include "attn/Schedule/Schedule.h"

#include "llvm/Support/MathExtras.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace attn;

Launches attn::launchesOfKernel(StringRef kernel, const Tiles &tiles) {
  for (StringRef family : {"_mma_sync", "_wgmma"})
    kernel.consume_back(family);
  return launchesOf(kernel.str(), tiles);
}

Problem attn::oneHead(int64_t queries, int64_t keys, int64_t headDim,
                      int64_t headDimV, Mask mask, DataType type) {
  Problem p;
  p.dtype = type;
  p.queries = queries;
  p.keys = keys;
  p.headDim = headDim;
  p.headDimV = headDimV;
  p.mask = mask;
  return p;
}

ArrayShape attn::shapeOfArray(StringRef array, const Problem &p) {
  return shapeOfArray(findArray(std::string_view(array)).value(), p);
}

ArrayShape attn::shapeOfArray(Role array, const Problem &p) {
  std::vector<int64_t> sizes = sizesOf(array, p);
  sizes.resize(4, 1);
  int64_t padding = 0;
  if (array == Role::weights)
    padding = int64_t(llvm::alignTo(p.keys, 8)) - p.keys;
  return {sizes[0], sizes[1], sizes[2], sizes[3], padding};
}

int64_t attn::alignmentOfRows(int64_t columns, DataType type) {
  int64_t bytes = columns * bytesOf(type);
  return std::min(kMaxAlignment, bytes & -bytes);
}

float attn::rounded(DataType type, float value) {
  if (type == DataType::f32)
    return value;
  if (type == DataType::f8e4m3)
    return roundToE4m3(value);
  return type == DataType::bf16 ? roundToBf16(value) : roundToF16(value);
}

uint64_t attn::upload(GlobalMemory &memory, ArrayRef<float> values,
                      DataType type) {
  std::vector<uint8_t> bytes;
  for (float value : values) {
    if (type == DataType::f32) {
      uint32_t bits = bitsOfFloat(value);
      for (int shift : {0, 8, 16, 24})
        bytes.push_back(uint8_t(bits >> shift));
      continue;
    }
    if (type == DataType::f8e4m3) {
      bytes.push_back(e4m3FromFloat(value));
      continue;
    }
    uint16_t bits =
        type == DataType::bf16 ? bf16FromFloat(value) : f16FromFloat(value);
    bytes.insert(bytes.end(), {uint8_t(bits), uint8_t(bits >> 8)});
  }
  uint64_t address = memory.allocate(int64_t(bytes.size()));
  memory.write(address, bytes.data(), int64_t(bytes.size()));
  return address;
}

std::optional<std::vector<float>> attn::download(GlobalMemory &memory,
                                                 uint64_t address,
                                                 int64_t elements,
                                                 DataType type) {
  int64_t step = bytesOf(type);
  std::vector<uint8_t> bytes(elements * step);
  if (memory.read(address, bytes.data(), int64_t(bytes.size())))
    return std::nullopt;
  std::vector<float> values;
  for (size_t i = 0; i < bytes.size(); i += step) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i], step);
    values.push_back(type == DataType::f32    ? floatOfBits(bits)
                     : type == DataType::bf16 ? floatFromBf16(uint16_t(bits))
                                              : floatFromF16(uint16_t(bits)));
  }
  return values;
}

double attn::relativeError(ArrayRef<float> values, ArrayRef<double> truth,
                           double size) {
  const double infinity = std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (auto [value, exact] : llvm::zip_equal(values, truth)) {
    bool isSame = value == exact || (std::isnan(value) && std::isnan(exact));
    if (isSame && !std::isfinite(exact))
      continue;
    difference += (value - exact) * (value - exact);
    norm += std::isnan(exact) ? infinity : exact * exact;
  }
  if (difference == 0)
    return 0;
  norm = std::max(norm, size * size);
  return std::isfinite(difference) && norm > 0 ? std::sqrt(difference / norm)
                                               : infinity;
}

oracle::Problem attn::oracleProblem(const Problem &p, double scale) {
  Visible seen = visible(p);
  return {p.batch,   p.heads,   p.kvHeads,       p.queries,
          p.keys,    p.headDim, p.headDimV,      seen.first,
          seen.last, scale,     seen.openColumns};
}

oracle::Array attn::oracleArray(const std::vector<float> &data,
                                const ArrayShape &s) {
  return {data.data(),
          {s.heads * s.rows * s.columns, s.rows * s.columns, s.columns, 1}};
}

int64_t attn::integerOf(const ArgumentRole &role, const Problem &problem,
                        const Round &round) {
  if (llvm::is_contained(kStrides, role.facet)) {
    ArrayShape s = shapeOfArray(role.role, problem);
    int64_t row = s.pitch(), head = s.rows * row;
    return role.facet == Facet::strideRow    ? row
           : role.facet == Facet::strideHead ? head
                                             : s.heads * head;
  }
  return roleValue(role, problem, round);
}

KernelArgument attn::argumentOf(const ArgumentRole &role, Type type,
                                const Problem &problem, double scale,
                                const llvm::StringMap<uint64_t> &addresses,
                                const Round &round) {
  if (role == Role::scale)
    return float(scale);
  if (isa<tile::PtrType>(type))
    return addresses.lookup(str(role));
  if (isa<tile::TensorMapType>(type)) {
    ArrayShape s = shapeOfArray(role.role, problem);
    int64_t head = s.rows * s.pitch();
    return TensorMapArgument{addresses.lookup(str(role.at(Facet::itself))),
                             {s.batch, s.heads, s.rows, s.columns},
                             {s.heads * head, head, s.pitch(), 1}};
  }
  int64_t value = integerOf(role, problem, round);
  if (type.isInteger(32))
    return int32_t(value);
  return value;
}

SmallVector<int64_t> attn::scalarsOf(tile::KernelOp kernel,
                                     const Problem &problem,
                                     const Round &round) {
  SmallVector<int64_t> values;
  FailureOr<SmallVector<ArgumentRole>> roles = rolesOf(kernel);
  EXPECT_TRUE(succeeded(roles));
  for (const ArgumentRole &role : *roles)
    values.push_back(integerOf(role, problem, round));
  return values;
}
