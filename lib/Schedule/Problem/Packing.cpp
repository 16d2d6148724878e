//===- Packing.cpp - Query heads as rows of one head ----------------------===//

#include "attn/Schedule/Packing.h"
#include <algorithm>

using namespace attn;

/// Whether a single query sees every key, however many there are.
static bool showsAllKeys(const Mask &mask) {
  Problem problem;
  problem.queries = 1;
  problem.keys = kMaxRows;
  problem.mask = mask;
  return visible(problem).seenBySome({0, 1}, kMaxRows).size() == kMaxRows;
}

/// Whether a single query sees every key up to its own, which is the last one,
/// however many are used.
static bool endsWithKeys(const Mask &mask) {
  return mask.isOpen() || (mask.kind != MaskKind::causal && showsAllKeys(mask));
}

/// Why the heads of a group cannot be rows of one, if they cannot.
static std::string whyNot(const Problem &p, int64_t heads, bool headsAreRows) {
  bool hasMask = !p.mask.isOpen();
  if (p.keepsWeights)
    return "what is kept of the weights has its rows in another order";
  if (p.pattern)
    return "blocks are visible to rows of one head";
  if (!p.bands.isEmpty())
    return "a region shows each query keys of its own";
  if (p.ragged)
    return "tiles are rows of a sequence and of one head";
  if (hasMask && p.queries != 1)
    return "the mask " + str(p.mask) + " moves with each of " +
           std::to_string(p.queries) + " queries";
  if (p.place.usesSome() && !endsWithKeys(p.mask))
    return "the mask " + str(p.mask) +
           " begins where the keys of each batch entry end";
  if (!headsAreRows)
    return "no one stride leads through the rows of all heads of every array";
  if (p.direction == Direction::backward && !showsAllKeys(p.mask))
    return "the mask " + str(p.mask) +
           " hides keys, whose gradients are written too";
  if (p.queries > kMaxRows / heads)
    return std::to_string(heads) + " x " + std::to_string(p.queries) +
           " rows are more than " + std::to_string(kMaxRows);
  return "";
}

Packing attn::packing(const Problem &asked, bool headsAreRows) {
  Packing result;
  result.asked = result.problem = asked;
  int64_t heads = asked.heads / std::max<int64_t>(asked.kvHeads, 1);
  if (heads <= 1)
    return result;
  result.whyNot = whyNot(asked, heads, headsAreRows);
  if (!result.whyNot.empty())
    return result;
  result.heads = heads;
  result.cutsKeys = !showsAllKeys(asked.mask);
  Problem &planned = result.problem;
  planned.heads = asked.kvHeads;
  planned.queries = heads * asked.queries;
  // Keys of which each batch entry uses some end where the only query's do.
  if (asked.place.usesSome())
    result.cutsKeys = false;
  planned.mask = {};
  if (result.cutsKeys) {
    planned.keys = visible(asked).seenBySome({0, 1}, asked.keys).size();
  }
  return result;
}

std::string Packing::str() const {
  std::string number = std::to_string(asked.heads / asked.kvHeads);
  if (!whyNot.empty())
    return "the " + number +
           " query heads of a key head are not rows of one: " + whyNot;
  if (!*this)
    return "";
  std::string text = number + " query heads of a key head are rows of one: " +
                     std::to_string(problem.heads) + " heads x " +
                     std::to_string(problem.queries) + " rows";
  if (!cutsKeys)
    return text;
  return text + ", which see " + std::to_string(problem.keys) + " of " +
         std::to_string(asked.keys) + " keys";
}
