//===- RandomConditions.h - Regions of conditions of positions --*- C++ -*-===//
//
// Regions of `sees` as text: comparisons of sums of positions, some of them of
// what is no such sum, joined in any way.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_IR_RANDOMCONDITIONS_H
#define ATTN_TEST_UNIT_IR_RANDOMCONDITIONS_H

#include "ParsedOp.h"

#include <random>
#include <string>

namespace attn {

/// Ops of a region, with names of their own.
class Body {
public:
  std::string constant(int64_t value) {
    return op("arith.constant " + std::to_string(value) + " : index");
  }
  std::string binary(const char *name, const std::string &a,
                     const std::string &b, const char *type = "index") {
    return op(std::string(name) + " " + a + ", " + b + " : " + type);
  }
  std::string op(const std::string &text) {
    std::string name = "%v" + std::to_string(count++);
    all += "  " + name + " = " + text + "\n";
    return name;
  }
  std::string ending(const std::string &result) {
    return seesOf(all + "  %yes = arith.constant true\n  %r = arith.andi " +
                  result + ", %yes : i1\n");
  }

private:
  std::string all;
  int count = 0;
};

/// A side of a band, by number or by place, or what a side is not.
inline std::string randomCondition(Body &body, std::mt19937 &random) {
  auto below = [&](int n) { return int(random() % unsigned(n)); };
  std::string difference = body.binary("arith.subi", "%j", "%i");
  if (below(2))
    difference = body.binary("arith.subi", difference,
                             body.binary("arith.subi", "%nk", "%nq"));
  static const char *const predicates[] = {"sle", "slt", "sge", "sgt",
                                           "eq",  "ult", "uge"};
  std::string predicate = predicates[below(random() % 4 ? 4 : 7)];
  std::string left = below(4) ? difference : "%j";
  if (!below(8))
    left = body.op("math.absi " + difference + " : index");
  if (!below(8))
    left = body.binary("arith.muli", left, body.constant(1 + below(3)));
  std::string right = body.constant(below(60) - 25);
  if (!below(10))
    right = body.binary("arith.remui", "%i", body.constant(7));
  return body.op("arith.cmpi " + predicate + ", " + left + ", " + right +
                 " : index");
}

inline std::string randomRegion(std::mt19937 &random) {
  Body body;
  std::string result = randomCondition(body, random);
  for (int n = int(random() % 4); n > 0; --n) {
    std::string other = randomCondition(body, random);
    if (random() % 6 == 0)
      result = body.op("arith.select " + other + ", " + result + ", " +
                       randomCondition(body, random) + " : i1");
    else
      result = body.binary(random() % 3   ? "arith.andi"
                           : random() % 4 ? "arith.ori"
                                          : "arith.xori",
                           result, other, "i1");
  }
  return body.ending(result);
}

} // namespace attn

#endif
