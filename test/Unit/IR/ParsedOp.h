//===- ParsedOp.h - An op of attention from text ----------------*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_IR_PARSEDOP_H
#define ATTN_TEST_UNIT_IR_PARSEDOP_H

#include "attn/IR/Attn.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <string>

namespace attn {

/// The only op of attention in a text, and all that it lives in.  A test fails
/// where the text is wrong.
class ParsedOp {
public:
  explicit ParsedOp(const std::string &text);

  AttentionOpInterface operator*() { return op; }
  AttentionOpInterface *operator->() { return &op; }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  AttentionOpInterface op;
};

/// attn.forward on arrays of some sizes, with these clauses.  Captures are
/// arguments %x0, %x1, .. of these types.
std::string forwardText(const std::string &clauses,
                        const std::vector<std::string> &captures = {});

/// A clause of the pairs that are seen: a body that says %r of them.
inline std::string seesOf(const std::string &body) {
  return "sees (%b, %h, %i, %j, %nq, %nk) {\n" + body +
         "  attn.yield %r : i1\n}";
}

} // namespace attn

#endif
