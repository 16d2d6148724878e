//===- Raise.cpp - attn.forward from the forms of others ------------------===//
//
// A table of forms: the name of an op and who reads it.  Every op that a form
// may be is tried once; it becomes an attn.forward, or stays with a remark that
// says why.  Whatever was added for one that stays is taken back.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Form.h"

#include "attn/Conversion/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn {
#define GEN_PASS_DEF_RAISEPASS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace attn;
using namespace attn::raise;
using namespace mlir;

namespace {

/// Ops that are added to a block, so that they can be taken back.
class Added : public OpBuilder::Listener {
public:
  explicit Added(Block *block) : block(block) {}

  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    // What is inside of others goes with them.
    if (op->getBlock() == block)
      ops.push_back(op);
  }
  void takeBack() {
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    ops.clear();
  }

private:
  Block *block;
  SmallVector<Operation *> ops;
};

struct NamedForm {
  StringLiteral name;
  Reason (*read)(Form &);
};

} // namespace

static constexpr NamedForm namedForms[] = {
    {"tm_tensor.attention", readTmTensor},
    {"iree_linalg_ext.attention", readIree},
    {"onnx.Attention", readOnnx},
    {"stablehlo.composite", readComposite},
    {"stablehlo.custom_call", readCustomCall},
};

/// Who reads an op of that name; null if nobody does.
static const NamedForm *formOf(Operation *op) {
  const auto *found = llvm::find_if(namedForms, [&](const NamedForm &form) {
    return form.name == op->getName().getStringRef();
  });
  if (found == std::end(namedForms))
    return nullptr;
  // StableHLO wraps anything.
  if (found->name.starts_with("stablehlo.") && wrappedName(op).empty())
    return nullptr;
  return found;
}

/// What somebody else's op or pattern is called in remarks.
static std::string titleOf(Operation *op) {
  if (formOf(op))
    return ("'" + op->getName().getStringRef() + "'").str();
  return "softmax(Q K^T) V";
}

namespace {

class RaisePass : public attn::impl::RaisePassBase<RaisePass> {
public:
  using RaisePassBase::RaisePassBase;
  void runOnOperation() override;

private:
  void tryOne(Operation *op);
  std::optional<Reason> read(Form &form);
  void replace(Form &form, const Built &built);
  void eraseFrom(Operation *last);
  void eraseDecomposition(FlatSymbolRefAttr name);

  /// Candidates that have gone with another.
  llvm::SmallPtrSet<Operation *, 8> erased;
};

} // namespace

/// Reads an op by its form; nothing if it has none.
std::optional<Reason> RaisePass::read(Form &form) {
  if (const NamedForm *named = formOf(form.op))
    return named->read(form);
  return readSoftmax(form);
}

/// Erases an op whose results nobody uses, and what only it used.
void RaisePass::eraseFrom(Operation *last) {
  // In reverse order of the block, an op comes behind all of its users.
  llvm::SmallPtrSet<Operation *, 16> used = {last};
  Operation *before = nullptr;
  for (Operation *op = last; op; op = before) {
    before = op->getPrevNode();
    bool isDead = isOpTriviallyDead(op) ||
                  op->getName().getStringRef() == "onnx.NoValue" ||
                  (op == last && formOf(op));
    if (!used.contains(op) || !op->use_empty() || !isDead)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        used.insert(maker);
    erased.insert(op);
    op->erase();
  }
}

/// Whether anything in the module names the symbol.  An op that is not
/// registered may do so in its properties.
static bool isNamed(ModuleOp module, StringAttr symbol) {
  auto names = [&](Attribute attributes) {
    return attributes && attributes
                             .walk([&](SymbolRefAttr reference) {
                               return reference.getRootReference() == symbol
                                          ? WalkResult::interrupt()
                                          : WalkResult::advance();
                             })
                             .wasInterrupted();
  };
  return module
      .walk([&](Operation *op) {
        return names(op->getAttrDictionary()) ||
                       names(op->getPropertiesAsAttribute())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Erases the private function that a composite stood for, once nobody refers
/// to it.
void RaisePass::eraseDecomposition(FlatSymbolRefAttr name) {
  if (!name)
    return;
  Operation *function =
      SymbolTable::lookupSymbolIn(getOperation(), name.getAttr());
  if (!isa_and_nonnull<FunctionOpInterface>(function) ||
      SymbolTable::getSymbolVisibility(function) !=
          SymbolTable::Visibility::Private ||
      isNamed(getOperation(), name.getAttr()))
    return;
  function->walk([&](Operation *op) { erased.insert(op); });
  function->erase();
}

void RaisePass::replace(Form &form, const Built &built) {
  for (auto [result, value] : built.replacements)
    result.replaceAllUsesWith(value);
  Operation *last = form.o.getDefiningOp();
  auto decomposition =
      dyn_cast_or_null<FlatSymbolRefAttr>(attributeOf(last, "decomposition"));
  eraseFrom(last);
  eraseDecomposition(decomposition);
}

void RaisePass::tryOne(Operation *op) {
  Added added(op->getBlock());
  OpBuilder builder(op);
  builder.setListener(&added);
  Form form(op, builder);
  std::optional<Reason> found = read(form);
  if (!found)
    return;
  Reason reason = *found;
  Built built;
  if (!reason)
    reason = build(form, built);
  std::string title = titleOf(op);
  if (reason) {
    added.takeBack();
    op->emitRemark() << title
                     << (reportOnly ? " is left as it is, and -attn-raise "
                                      "does not take it: "
                                    : " is not raised: ")
                     << *reason;
    return;
  }
  bool isPattern = !formOf(op);
  if (reportOnly || (isPattern && !linalg)) {
    added.takeBack();
    op->emitRemark() << title << " is left as it is, and "
                     << (isPattern ? "-attn-raise=linalg=1" : "-attn-raise")
                     << " makes it an attn.forward: " << built.summary;
    return;
  }
  op->emitRemark() << title << " becomes an attn.forward: " << built.summary;
  replace(form, built);
}

void RaisePass::runOnOperation() {
  SmallVector<Operation *> candidates;
  getOperation()->walk([&](Operation *op) {
    if (formOf(op) || isa<linalg::LinalgOp>(op))
      candidates.push_back(op);
  });
  erased.clear();
  for (Operation *op : candidates)
    if (!erased.contains(op))
      tryOne(op);
}
