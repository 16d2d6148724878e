//===- RandomUnion.cpp - Random regions that show unions of bands ---------===//

#include "Harness/RandomUnion.h"

#include <algorithm>

using namespace attn;

namespace {

class UnionDraws {
public:
  explicit UnionDraws(Draws &draw) : draw(draw) {}

  std::string region(int64_t keys) {
    text = "sees (%b, %h, %i, %j, %nq, %nk) {\n"
           "  %d = arith.subi %j, %i : index\n"
           "  %more = arith.subi %nk, %nq : index\n";
    int64_t most = std::max<int64_t>(keys, 2);
    std::string all;
    for (int64_t band = draw(1, 3); band > 0; --band) {
      std::string one = condition(most);
      for (int64_t more = draw(0, 2); more > 0; --more)
        one = joined("andi", one, condition(most));
      if (draw(0, 5) == 0)
        one = joined("andi", one, even());
      all = all.empty() ? one : joined("ori", all, one);
    }
    return text + "  attn.yield " + all + " : i1\n}";
  }

private:
  std::string define(const std::string &op) {
    std::string name = "%v" + std::to_string(values++);
    text += "  " + name + " = " + op + "\n";
    return name;
  }
  std::string number(int64_t value) {
    return define("arith.constant " + std::to_string(value) + " : index");
  }
  std::string joined(const char *op, const std::string &a,
                     const std::string &b) {
    return define("arith." + std::string(op) + " " + a + ", " + b + " : i1");
  }
  /// Of a value a bound, by a number or by the sizes.
  std::string condition(int64_t most) {
    std::string left = draw(0, 2) ? "%d" : draw(0, 2) ? "%j" : "%i";
    std::string right = number(draw(left == "%d" ? -most / 2 : 0, most));
    if (left == "%d" && draw(0, 2) == 0)
      right = define("arith.addi %more, " + right + " : index");
    return define("arith.cmpi " + std::string(draw(0, 1) ? "sle" : "sge") +
                  ", " + left + ", " + right + " : index");
  }
  std::string even() {
    std::string two = number(2), zero = number(0);
    std::string rest = define("arith.remui %j, " + two + " : index");
    return define("arith.cmpi eq, " + rest + ", " + zero + " : index");
  }

  Draws &draw;
  std::string text;
  int values = 0;
};

} // namespace

std::string attn::drawUnion(Draws &draw, int64_t keys) {
  return UnionDraws(draw).region(keys);
}
