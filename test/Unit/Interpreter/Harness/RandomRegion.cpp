//===- RandomRegion.cpp - Random regions of clauses as text ---------------===//

#include "Harness/RandomRegion.h"

using namespace attn;

// In the order of the captures: of queries, of keys, of heads, a table of
// differences, of pairs, and numbers of keys and of batch entries and queries.
std::vector<std::string> RandomRegion::types() const {
  const Problem &p = problem;
  auto n = [](int64_t size) { return std::to_string(size); };
  return {"tensor<" + n(p.queries) + "xf32>",
          "tensor<" + n(p.keys) + "xf16>",
          "tensor<" + n(p.batch) + "x" + n(p.heads) + "xbf16>",
          "tensor<" + n(p.heads) + "x" + n(p.queries + p.keys) + "xf32>",
          "tensor<" + n(p.queries) + "x" + n(p.keys) + "xbf16>",
          "tensor<" + n(p.keys) + "xi64>",
          "tensor<" + n(p.batch) + "x" + n(p.queries) + "xi8>",
          "tensor<" + n(p.keys) + "x" + n(p.heads) + "xi1>"};
}

std::string RandomRegion::captures() const {
  std::string names, kinds;
  for (size_t i = 0; i < types().size(); ++i) {
    names += (i ? ", %x" : "%x") + std::to_string(i);
    kinds += (i ? ", " : "") + types()[i];
  }
  return "captures(" + names + " : " + kinds + ") ";
}

std::string RandomRegion::begin(const std::string &keyword,
                                const std::string &first) {
  body.clear();
  count = 0;
  std::string text = keyword + " (" + first + "%b, %h, %i, %j, %nq, %nk";
  for (size_t i = 0; i < types().size(); ++i)
    text += ", %c" + std::to_string(i);
  return text + ") {\n";
}

std::string RandomRegion::add(const std::string &operation) {
  std::string name = "%v" + std::to_string(count++);
  body += "  " + name + " = " + operation + "\n";
  return name;
}

std::string RandomRegion::readReal() {
  std::vector<std::string> all = types();
  auto read = [&](int number, const std::string &indices) {
    return add("attn.read %c" + std::to_string(number) + "[" + indices +
               "] : " + all[number]);
  };
  auto wide = [&](const std::string &value, const std::string &type) {
    return add("arith.extf " + value + " : " + type + " to f32");
  };
  switch (draw(0, 4)) {
  case 0:
    return read(0, "%i");
  case 1:
    return wide(read(1, "%j"), "f16");
  case 2:
    return wide(read(2, "%b, %h"), "bf16");
  case 3: {
    std::string apart = add("arith.subi %i, %j : index");
    return read(3, "%h, " + add("arith.addi " + apart + ", %nk : index"));
  }
  default:
    return wide(read(4, "%i, %j"), "bf16");
  }
}

std::string RandomRegion::readWhole() {
  std::vector<std::string> all = types();
  if (draw(0, 1)) {
    std::string number = add("attn.read %c5[%j] : " + all[5]);
    return add("arith.index_cast " + number + " : i64 to index");
  }
  std::string number = add("attn.read %c6[%b, %i] : " + all[6]);
  return add("arith.index_cast " + number + " : i8 to index");
}

std::string RandomRegion::index(int depth) {
  static const char *positions[] = {"%b", "%h", "%i", "%j", "%nq", "%nk"};
  if (depth == 0) {
    if (draw(0, 3) == 0)
      return readWhole();
    if (draw(0, 3) == 0)
      return add("arith.constant " + std::to_string(draw(-5, 40)) +
                 " : index");
    return positions[draw(0, 5)];
  }
  static const char *ops[] = {"addi",  "subi",  "muli", "minsi",
                              "maxsi", "minui", "andi", "xori"};
  static const char *quotients[] = {"divsi",      "remsi", "floordivsi",
                                    "ceildivsi", "divui", "remui"};
  std::string left = index(depth - 1);
  if (draw(0, 2) == 0) {
    std::string by = add("arith.constant " + std::to_string(draw(1, 9)) +
                         " : index");
    return add(std::string("arith.") + quotients[draw(0, 5)] + " " + left +
               ", " + by + " : index");
  }
  return add(std::string("arith.") + ops[draw(0, 7)] + " " + left + ", " +
             index(depth - 1) + " : index");
}

std::string RandomRegion::truth(int depth) {
  if (depth > 0 && draw(0, 1)) {
    static const char *ops[] = {"andi", "ori", "xori"};
    std::string left = truth(depth - 1);
    return add(std::string("arith.") + ops[draw(0, 2)] + " " + left + ", " +
               truth(depth - 1) + " : i1");
  }
  if (draw(0, 5) == 0)
    return add("attn.read %c7[%j, %h] : " + types()[7]);
  static const char *predicates[] = {"eq",  "ne",  "slt", "sle",
                                     "sgt", "sge", "ult", "uge"};
  std::string left = index(depth);
  return add(std::string("arith.cmpi ") + predicates[draw(0, 7)] + ", " +
             left + ", " + index(1) + " : index");
}

std::string RandomRegion::real(int depth) {
  if (depth == 0) {
    if (hasScore && draw(0, 2) == 0)
      return "%z";
    if (draw(0, 1))
      return readReal();
    std::string whole = add("arith.index_cast " + index(1) +
                            " : index to i32");
    std::string number = add("arith.sitofp " + whole + " : i32 to f32");
    std::string share =
        add("arith.constant 0.0" + std::to_string(draw(1, 9)) + " : f32");
    return add("arith.mulf " + number + ", " + share + " : f32");
  }
  static const char *ops[] = {"arith.addf", "arith.subf", "arith.maximumf",
                              "arith.minnumf"};
  std::string left = real(depth - 1);
  switch (draw(0, 5)) {
  case 0:
    return add("math.tanh " + left + " : f32");
  case 1: {
    std::string seen = truth(1);
    return add("arith.select " + seen + ", " + left + ", " +
               real(depth - 1) + " : f32");
  }
  case 2: {
    std::string by =
        add("arith.constant " + std::to_string(draw(1, 7)) + ".5 : f32");
    return add("arith.divf " + left + ", " + by + " : f32");
  }
  default:
    return add(std::string(ops[draw(0, 3)]) + " " + left + ", " +
               real(depth - 1) + " : f32");
  }
}

std::string RandomRegion::score() {
  std::string text = begin("score", "%z : f32, ");
  hasScore = true;
  std::string bounded = add("math.tanh " + real(int(draw(1, 3))) + " : f32");
  std::string factor = add("arith.constant 2.5 : f32");
  std::string more = add("arith.mulf " + bounded + ", " + factor + " : f32");
  hasScore = false;
  std::string result = more;
  if (draw(0, 1))
    result = add("arith.addf %z, " + more + " : f32");
  return text + body + "  attn.yield " + result + " : f32\n} ";
}

std::string RandomRegion::sees() {
  std::string text = begin("sees", "");
  std::string result = truth(2);
  return text + body + "  attn.yield " + result + " : i1\n} ";
}
