//===- AttnTransformOps.cpp - Scripts that decide about attention ---------===//

#include "attn/TransformOps/TransformOps.h"

#include "attn/Machine/MachineText.h"
#include "attn/Transforms/SelectSchedule.h"

#include "mlir/Dialect/Transform/IR/TransformOps.h"

using namespace mlir;
using namespace attn;

#define GET_OP_CLASSES
#include "attn/TransformOps/AttnTransformOps.cpp.inc"

void SelectScheduleOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  transform::onlyReadsHandle(getTargetMutable(), effects);
  transform::producesHandle(getOperation()->getOpResults(), effects);
  transform::modifiesPayload(effects);
}

/// The machine that a script names, or else that of the op's module.
static std::optional<Machine> machineOf(AttentionOpInterface op,
                                        std::optional<StringRef> name,
                                        std::string &error) {
  if (name)
    return parseMachine(std::string_view(*name), error);
  std::optional<Machine> machine = machineFor(op);
  if (!machine)
    error = "expects a machine, or a module with '" + machineAttrName.str() +
            "', but got none";
  return machine;
}

DiagnosedSilenceableFailure
SelectScheduleOp::applyToOne(transform::TransformRewriter &rewriter,
                             Operation *target,
                             transform::ApplyToEachResultList &results,
                             transform::TransformState &state) {
  auto op = dyn_cast<AttentionOpInterface>(target);
  if (!op) {
    DiagnosedSilenceableFailure error =
        emitSilenceableError()
        << "expects attn.forward or attn.backward, but got '"
        << target->getName() << "'";
    error.attachNote(target->getLoc()) << "the target";
    return error;
  }
  std::string error;
  std::optional<Machine> machine = machineOf(op, getMachine(), error);
  if (!machine)
    return emitSilenceableError() << error;
  // What the pass tells as errors a script may get over.
  SmallVector<Diagnostic> told;
  ScheduleAttr chosen;
  {
    ScopedDiagnosticHandler collect(getContext(), [&](Diagnostic &diagnostic) {
      told.push_back(std::move(diagnostic));
    });
    ScheduleAttr given =
        getScheduleAttr() ? getScheduleAttr() : op.getScheduleAttr();
    FailureOr<Plan> plan = choosePlan(op, *machine, given);
    if (succeeded(plan))
      chosen = ScheduleAttr::get(getContext(), plan->schedule, plan->tiles);
  }
  if (!chosen)
    return DiagnosedSilenceableFailure::silenceableFailure(std::move(told));
  rewriter.modifyOpInPlace(op, [&] { op.setScheduleAttr(chosen); });
  results.push_back(rewriter.getStringAttr(textOf(chosen)));
  return DiagnosedSilenceableFailure::success();
}

// Not a `transform::TransformDialectExtension`: with assertions in our code it
// calls what an MLIR without assertions does not have.
void attn::registerTransformDialectExtension(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, transform::TransformDialect *dialect) {
        context->loadDialect<AttnDialect>(); // of the attribute
        RegisteredOperationName::insert<SelectScheduleOp>(*dialect);
      });
}
