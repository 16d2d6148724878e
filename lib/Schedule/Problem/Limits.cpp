//===- Limits.cpp - The sizes that are counted exactly --------------------===//

#include "attn/Schedule/Limits.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace attn;

int64_t attn::valueOf(Size size, const Problem &problem) {
  switch (size) {
  case Size::batch:
    return problem.batch;
  case Size::heads:
    return problem.heads;
  case Size::kvHeads:
    return problem.kvHeads;
  case Size::group:
    return problem.heads / std::max<int64_t>(problem.kvHeads, 1);
  case Size::queries:
    return problem.queries;
  case Size::keys:
    return problem.keys;
  case Size::headDim:
    return problem.headDim;
  case Size::headDimV:
    return problem.headDimV;
  }
  return 0;
}

int64_t Factor::of(const Problem &problem) const {
  int64_t value = std::max(valueOf(size, problem), least);
  return value / unit + (value % unit != 0);
}

/// `2^30` where that is shorter.
static std::string text(int64_t number) {
  bool isPower = number > 1 && (number & (number - 1)) == 0;
  if (!isPower || number < kMaxHeads * 2)
    return std::to_string(number);
  return "2^" + std::to_string(std::lround(std::log2(double(number))));
}

std::string Limit::sentence() const {
  if (isProduct())
    return "expects at most " + text(most) + " " + what;
  return "expects " + what + " between " + std::to_string(least) + " and " +
         std::to_string(most);
}

static std::vector<Limit> makeLimits() {
  auto range = [](const char *what, Size size, int64_t least, int64_t most) {
    return Limit{what, {{size, /*least=*/0}}, least, most};
  };
  auto tiles = [](const char *rows, const char *heads, Size ofRows,
                  Size ofHeads) {
    std::string unit = std::to_string(kLeastTileRows);
    return Limit{"tiles of " + unit + " " + rows + " (batch x " + heads +
                     " x " + rows + " / " + unit + ")",
                 {{Size::batch}, {ofHeads}, {ofRows, 1, kLeastTileRows}},
                 0,
                 kMostTiles};
  };
  // Small sizes still take whole tiles; with room for bytes that are read
  // again.
  auto products = [](const char *what, Size dim) {
    return Limit{std::string("products (batch x heads x queries x keys x ") +
                     what + ", in whole tiles)",
                 {{Size::batch},
                  {Size::heads},
                  {Size::queries, 256},
                  {dim, 16},
                  {Size::keys, 256}},
                 0,
                 static_cast<int64_t>(kMostProducts)};
  };
  return {range("batch", Size::batch, 0, kMaxHeads),
          range("heads", Size::heads, 1, kMaxHeads),
          range("kv heads", Size::kvHeads, 1, kMaxHeads),
          range("queries", Size::queries, 0, kMaxRows),
          range("keys", Size::keys, 0, kMaxRows),
          range("head dim", Size::headDim, 1, kMaxHeadDim),
          range("head dim of v", Size::headDimV, 1, kMaxHeadDim),
          products("head dim", Size::headDim),
          products("head dim of v", Size::headDimV),
          tiles("queries", "heads", Size::queries, Size::heads),
          tiles("keys", "kv heads", Size::keys, Size::kvHeads),
          Limit{"queries of all heads that share a kv head (heads / kv heads x "
                "queries)",
                {{Size::group}, {Size::queries}},
                0,
                std::numeric_limits<int32_t>::max()}};
}

const std::vector<Limit> &attn::limits() {
  static const std::vector<Limit> *const table =
      new std::vector<Limit>(makeLimits()); // threads may outlive statics
  return *table;
}

bool attn::isEmpty(const Problem &problem) {
  return problem.batch == 0 || problem.queries == 0 || problem.keys == 0;
}

Problem attn::atLeastOne(Problem problem) {
  if (isEmpty(problem)) // lists have rows for what there is
    problem.pattern.reset();
  for (int64_t *size : {&problem.batch, &problem.queries, &problem.keys})
    *size = std::max<int64_t>(*size, 1);
  problem.keys = std::max(problem.keys, problem.place.pageRows);
  return problem;
}

Machine attn::withAnyMemory(Machine machine) {
  machine.hbmBytes = std::numeric_limits<int64_t>::max();
  return machine;
}
