//===- ParsedOp.cpp - An op of attention from text ------------------------===//

#include "ParsedOp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace attn;

ParsedOp::ParsedOp(const std::string &text) {
  context.loadDialect<AttnDialect, arith::ArithDialect, func::FuncDialect,
                      index::IndexDialect, math::MathDialect>();
  module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  if (module)
    module->walk([&](AttentionOpInterface found) { op = found; });
  EXPECT_TRUE(op) << text;
}

std::string attn::forwardText(const std::string &clauses,
                              const std::vector<std::string> &captures) {
  std::string arguments;
  for (size_t i = 0; i < captures.size(); ++i)
    arguments += ", %x" + std::to_string(i) + ": " + captures[i];
  return "!t = tensor<?x4x?x8xf32>\n"
         "!k = tensor<?x2x?x8xf32>\n"
         "func.func @f(%q: !t, %k: !k" +
         arguments + ") -> !t {\n  %o = attn.forward %q, %k, %k " + clauses +
         " : !t, !k, !k -> !t\n  return %o : !t\n}\n";
}
