//===- PlacementText.cpp - What the device says of a problem, in words ----===//

#include "attn/Schedule/Problem.h"

#include <utility>

using namespace attn;

std::string attn::str(const Placement &place) {
  std::string lengths = place.usesSome() ? "lengths(k)" : "";
  if (!place.isPaged())
    return lengths;
  return "pages of " + std::to_string(place.pageRows) + " keys" +
         (lengths.empty() ? "" : " with " + lengths);
}

std::string attn::str(const OperandScales &scales) {
  std::string text;
  const std::pair<bool, const char *> all[] = {
      {scales.q, "q"}, {scales.k, "k"}, {scales.v, "v"}};
  for (auto [isThere, operand] : all)
    if (isThere)
      text += (text.empty() ? "" : ", ") + std::string(operand);
  return text.empty() ? text : "scales(" + text + ")";
}
