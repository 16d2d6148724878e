//===- KeptWeights.cpp - Weights that are kept, as they should be ---------===//

#include "Harness/KeptWeights.h"

#include "Harness/SpecialValues.h"
#include "attn/Host/Rounding.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace attn;

static constexpr int64_t kTileRows = 128;
/// What rows stand at that see nothing of a block: docs/using.md.
static constexpr double kNothing = std::numeric_limits<float>::lowest();

KeptWeights::KeptWeights(const Problem &p, double scale,
                         const std::vector<float> &q,
                         const std::vector<float> &k)
    : problem(p) {
  auto isSeen = [seen = visible(p)](int64_t query, int64_t key) {
    return seen.sees(query, key);
  };
  auto tileSees = [&](int64_t query, int64_t firstKey, int64_t endOfKeys) {
    int64_t first = query / kTileRows * kTileRows;
    for (int64_t i = first; i < std::min(first + kTileRows, p.queries); ++i)
      for (int64_t key = firstKey; key < endOfKeys; ++key)
        if (isSeen(i, key))
          return true;
    return false;
  };
  int64_t group = p.heads / p.kvHeads;
  // As kernels have it (ScoreScale.h).
  const float bits = float(scale) * float(std::log2(std::exp(1.0)));
  for (int64_t block = 0; block * kKeptKeys < p.keys; ++block) {
    int64_t first = block * kKeptKeys;
    int64_t end = std::min(first + kKeptKeys, p.keys);
    for (int64_t query = 0; query < p.queries; ++query) {
      bool isThere = tileSees(query, first, end);
      for (int64_t head = 0; head < p.batch * p.heads; ++head) {
        Row row{head, query, block, end - first, -kInfinity, {}};
        const float *own = &q[(head * p.queries + query) * p.headDim];
        int64_t keyHead = head / group;
        for (int64_t key = first; isThere && key < end; ++key) {
          const float *other = &k[(keyHead * p.keys + key) * p.headDim];
          double score = 0;
          for (int64_t c = 0; c < p.headDim; ++c)
            score += double(own[c]) * other[c];
          double exponent = isSeen(query, key) ? score * bits : -kInfinity;
          row.exponents.push_back(exponent);
          row.max = std::max(row.max, exponent);
        }
        (isThere ? written : unwritten).push_back(std::move(row));
      }
    }
  }
}

void KeptWeights::allocate(const Problem &p, GlobalMemory &memory,
                           llvm::StringMap<uint64_t> &addresses) {
  addresses["weights"] =
      memory.allocate(shapeOfArray("weights", p).elements() * bytesOf(p.dtype));
  addresses["block_rows"] =
      memory.allocate(shapeOfArray("block_rows", p).elements() * 4);
}

uint64_t KeptWeights::weightsAt(uint64_t base, const Row &row) const {
  int64_t pitch = shapeOfArray("weights", problem).pitch();
  return base + uint64_t((row.head * problem.queries + row.query) * pitch +
                         row.block * kKeptKeys) *
                    uint64_t(bytesOf(problem.dtype));
}

uint64_t KeptWeights::numberAt(uint64_t base, const Row &row,
                               int64_t which) const {
  int64_t rows = keptRows(problem.keys);
  return base +
         uint64_t((row.head * rows + 2 * row.block + which) * problem.queries +
                  row.query) *
             4;
}

void KeptWeights::upload(GlobalMemory &memory,
                         const llvm::StringMap<uint64_t> &addresses) const {
  for (const Row &row : written) {
    double max = std::max(std::ceil(row.max), kNothing), sum = 0;
    std::vector<uint16_t> weights;
    for (double exponent : row.exponents) {
      double weight = std::exp2(exponent - max);
      sum += weight;
      weights.push_back(problem.dtype == DataType::bf16
                            ? bf16FromFloat(float(weight))
                            : f16FromFloat(float(weight)));
    }
    memory.write(weightsAt(addresses.lookup("weights"), row), weights.data(),
                 int64_t(weights.size()) * 2);
    const float numbers[] = {float(max), float(sum)};
    for (int64_t which : {0, 1})
      memory.write(numberAt(addresses.lookup("block_rows"), row, which),
                   &numbers[which], 4);
  }
}

void KeptWeights::compare(const Row &row, GlobalMemory &memory,
                          const llvm::StringMap<uint64_t> &addresses) const {
  float max = 0, sum = 0;
  std::vector<uint16_t> bits(row.keys);
  uint64_t numbers = addresses.lookup("block_rows");
  ASSERT_FALSE(memory.read(numberAt(numbers, row, 0), &max, 4));
  ASSERT_FALSE(memory.read(numberAt(numbers, row, 1), &sum, 4));
  ASSERT_FALSE(memory.read(weightsAt(addresses.lookup("weights"), row),
                           bits.data(), row.keys * 2));
  bool isBlind = row.max == -kInfinity;
  constexpr double ofScores = 1e-3;
  if (isBlind) {
    EXPECT_EQ(max, float(kNothing));
  } else {
    EXPECT_EQ(max, std::floor(max));
    EXPECT_GE(max, row.max - ofScores);
    EXPECT_LT(max, row.max + 1 + ofScores);
  }
  double exactSum = 0;
  for (int64_t key = 0; key < row.keys; ++key) {
    double exact = std::exp2(row.exponents[key] - max);
    float weight = problem.dtype == DataType::bf16 ? floatFromBf16(bits[key])
                                                   : floatFromF16(bits[key]);
    exactSum += exact;
    if (row.exponents[key] == -kInfinity)
      ASSERT_EQ(weight, 0) << "key " << key;
    else
      ASSERT_NEAR(weight, exact, exact * 8e-3 + 1e-6) << "key " << key;
  }
  EXPECT_NEAR(sum, exactSum, exactSum * 2e-3);
}

void KeptWeights::compare(GlobalMemory &memory,
                          const llvm::StringMap<uint64_t> &addresses) const {
  for (const Row &row : written) {
    SCOPED_TRACE("head " + std::to_string(row.head) + ", query " +
                 std::to_string(row.query) + ", block " +
                 std::to_string(row.block));
    compare(row, memory, addresses);
    if (testing::Test::HasFatalFailure())
      return;
  }
  for (const Row &row : unwritten) {
    uint16_t weight;
    float number;
    EXPECT_TRUE(
        memory.read(weightsAt(addresses.lookup("weights"), row), &weight, 2));
    EXPECT_TRUE(memory.read(numberAt(addresses.lookup("block_rows"), row, 0),
                            &number, 4));
  }
}
