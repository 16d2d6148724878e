//===- DeriveMasks.cpp - Regions of `sees` that are masks become masks ----===//

#include "attn/IR/Attn.h"
#include "attn/IR/RegionBands.h"
#include "attn/IR/RegionMasks.h"
#include "attn/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace attn {
#define GEN_PASS_DEF_DERIVEMASKSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static std::optional<int64_t> rowsOf(AttentionOpInterface op, StringRef role) {
  int64_t rows = cast<ShapedType>(op.array(role).getType()).getDimSize(2);
  return ShapedType::isDynamic(rows) ? std::nullopt : std::optional(rows);
}

/// The op without its region of `sees`, and without captures if no other region
/// reads them.
static void dropSees(AttentionOpInterface op) {
  OpBuilder b(op);
  Operation *old = op;
  SmallVector<Value> operands(old->getOperands());
  SmallVector<int32_t, kClauseGroups> sizes = clauseSizes(old);
  if (!op.score()) {
    // Captures are the first of what clauses take.
    size_t begin = op.inputs().size() - op.clauseInputs().size();
    operands.erase(operands.begin() + begin,
                   operands.begin() + begin + op.captures().size());
    sizes[unsigned(ClauseGroup::captures)] = 0;
  }
  OperationState state(old->getLoc(), old->getName(), operands,
                       old->getResultTypes(), old->getAttrs());
  state.attributes.erase(kClauseSizesAttr);
  if (llvm::any_of(sizes, [](int32_t size) { return size != 0; }))
    state.addAttribute(kClauseSizesAttr, b.getDenseI32ArrayAttr(sizes));
  if (Region *score = op.score()) {
    IRMapping mapping;
    score->cloneInto(state.addRegion(), mapping);
  }
  Operation *clone = b.create(state);
  old->replaceAllUsesWith(clone->getResults());
  old->erase();
}

namespace {
struct DeriveMasksPass : attn::impl::DeriveMasksPassBase<DeriveMasksPass> {
  using DeriveMasksPassBase::DeriveMasksPassBase;

  void runOnOperation() override {
    SmallVector<AttentionOpInterface> ops;
    getOperation()->walk([&](AttentionOpInterface op) {
      if (op.sees())
        ops.push_back(op);
    });
    for (AttentionOpInterface op : ops)
      derive(op);
  }

private:
  void derive(AttentionOpInterface op) {
    RegionMask found =
        maskOfRegion(*op.sees(), rowsOf(op, "q"), rowsOf(op, "k"));
    Mask own = op.maskOrNone();
    Problem problem = problemOf(op);
    bool isMask = found.isExact && (own.isOpen() || own == found.mask);
    if (!isMask && !problem.bands.isEmpty()) {
      report(op, "sees is a union of " + str(problem.bands) +
                     (own.isOpen() ? "" : " of what " + str(own) + " shows") +
                     ": a tile walks the runs of blocks that it sees, and "
                     "sees is asked in those that are not whole");
      return;
    }
    // Of two masks neither says what both hide.
    bool isOnly = own.isOpen() || own == found.mask || found.mask.isOpen();
    if (!isOnly) {
      report(op, "sees is " + std::string(found.isExact ? "" : "within ") +
                     "the mask " + str(found.mask) + " beside " + str(own) +
                     ", and is asked in every tile that " + str(own) +
                     " shows");
      return;
    }
    if (own.isOpen() && !found.mask.isOpen())
      op->setAttr("mask", MaskAttr::get(&getContext(), found.mask));
    // Gradients of captures are counted from the first one.
    bool isDropped = found.isExact && op.gradientTargets().empty();
    if (isDropped) {
      report(op, "sees is the mask " + str(found.mask) +
                     ": tiles that it hides are not loaded, and tiles that it "
                     "does not cut have no code for it");
      return dropSees(op);
    }
    if (!found.mask.isOpen()) {
      report(op, "sees is within the mask " + str(found.mask) +
                     ", whose hidden tiles are not loaded, and is asked in "
                     "every other one" +
                     whyNoRuns(op, own, problem) + hintOf(op));
      return;
    }
    if (op.blockSize())
      report(op, "sees is asked in the partial blocks of the lists");
    else
      report(op, "sees is no mask, and is asked in every tile" +
                     whyNoRuns(op, own, problem) + hintOf(op));
  }

  /// What hides that a region is a union, if it is one.
  static std::string whyNoRuns(AttentionOpInterface op, const Mask &own,
                               const Problem &problem) {
    Bands bands = bandsOfRegion(*op.sees(), own);
    std::optional<std::string> reason = attn::whyNoRuns(problem);
    if (bands.isEmpty() || !reason)
      return "";
    return "; of its union of " + str(bands) + " no runs are walked, since " +
           *reason;
  }

  static std::string hintOf(AttentionOpInterface op) {
    return op.blockSize() ? ""
                          : "; attn.block_lists makes lists of the blocks "
                            "that it shows";
  }

  void report(AttentionOpInterface op, const Twine &sentence) {
    if (explain)
      op->emitRemark(sentence);
  }
};
} // namespace
