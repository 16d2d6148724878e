//===- ClauseText.h - The text of what clauses take -------------*- C++ -*-===//
//
//   captures(%x : type) sees (%b, .., %nk, %x) {..} score (%z : f32, ..) {..}
//   document(%x : type) softcap(50.0) alibi(%x : type) bias(%x : type)
//   blocks(partial %c, %i, full %c, %i, size 128 x 128 : types)
//   transposed(partial %c, %i, full %c, %i : types)
//   sinks(%x : type) gradients(%x, ..)
//   lengths(k %x : type) pages(%x : type)
//   scales(q %x, k %x, v %x : types)
//
// Captures come before the regions that name them.  What a short form captures
// follows the other captures, in the order in which forms are printed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_IR_CLAUSETEXT_H
#define ATTN_LIB_IR_CLAUSETEXT_H

#include "attn/IR/Attn.h"

namespace attn {

/// The operands of a clause, or those without one, before they are resolved.
struct UnresolvedOperands {
  llvm::SMLoc loc;
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> names;
  llvm::SmallVector<mlir::Type> types;
};

class ClauseParser {
public:
  ClauseParser(mlir::OpAsmParser &parser, mlir::OperationState &result);

  /// The clauses that an op of that name has here.
  static llvm::ArrayRef<llvm::StringLiteral> keywords(llvm::StringRef op);
  bool has(llvm::StringRef keyword) const {
    return llvm::is_contained(keywords(result.name.getStringRef()), keyword);
  }
  mlir::ParseResult parse(llvm::SMLoc loc, llvm::StringRef keyword);
  /// Once all are there: regions go into the op, attributes to `said`.
  mlir::ParseResult finish(mlir::NamedAttrList &said);
  /// The operands in groups.
  llvm::ArrayRef<UnresolvedOperands> groups() const { return operands; }

private:
  /// A form, and its array if it has one.
  struct Form {
    ShortForm form;
    llvm::SMLoc loc;
    UnresolvedOperands array;
  };

  UnresolvedOperands &group(ClauseGroup group) {
    return operands[unsigned(group)];
  }
  mlir::ParseResult parseOperands(UnresolvedOperands &operands);
  mlir::ParseResult parseCaptures(llvm::SMLoc loc);
  mlir::ParseResult parseRegion(llvm::SMLoc loc, bool isScore);
  mlir::ParseResult parseShortForm(llvm::SMLoc loc, ShortForm::Kind kind);
  mlir::ParseResult parseLists(ClauseGroup partial, ClauseGroup full,
                               bool hasSize);
  mlir::ParseResult parseSize();
  mlir::ParseResult parseLengths();
  mlir::ParseResult parseScales();
  mlir::ParseResult parseGradients();
  mlir::ParseResult parseRagged();
  mlir::ParseResult parseValues();
  mlir::ParseResult addCaptures();
  mlir::ParseResult addRegions();
  mlir::FailureOr<int64_t>
  numberOf(const mlir::OpAsmParser::UnresolvedOperand &name);

  mlir::OpAsmParser &parser;
  mlir::OperationState &result;
  llvm::SmallVector<UnresolvedOperands> operands;
  std::unique_ptr<mlir::Region> sees, score;
  llvm::SmallVector<Form> forms;
  std::optional<BlockSize> blocks;
  llvm::SmallVector<int64_t> longest;
  std::optional<int64_t> columns; ///< of K, that V is
  llvm::SMLoc gradientsLoc;
  /// Numbers, or names of which each has a number.
  llvm::SmallVector<std::pair<int64_t, mlir::OpAsmParser::UnresolvedOperand>>
      gradients;
};

/// `(%b, .., %nk, %x) {..}`, of a region on captures of these types.
mlir::ParseResult parseFunction(mlir::OpAsmParser &parser, llvm::SMLoc loc,
                                bool isScore, mlir::TypeRange captures,
                                mlir::Region &region);
/// The same behind `sees` or `score`, without some of the last captures.
void printFunction(mlir::OpAsmPrinter &printer, mlir::Region &region,
                   unsigned hidden = 0);

void printClauses(AttentionOpInterface op, mlir::OpAsmPrinter &printer);

/// `keyword(%x, .. : types)`; nothing of no operands.
void printOperands(mlir::OpAsmPrinter &printer, llvm::StringRef keyword,
                   mlir::ValueRange operands);

} // namespace attn

#endif
