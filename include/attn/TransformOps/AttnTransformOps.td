// Transform ops that decide how attention is computed.
#ifndef ATTN_TRANSFORMOPS_ATTNTRANSFORMOPS_TD
#define ATTN_TRANSFORMOPS_ATTNTRANSFORMOPS_TD

include "attn/IR/AttnAttrs.td"
include "mlir/Dialect/Transform/IR/TransformDialect.td"
include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"

def SelectScheduleOp : Op<Transform_Dialect, "attn.select_schedule",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
     TransformEachOpTrait, TransformOpInterface,
     ReportTrackingListenerFailuresOpTrait]> {
  let cppNamespace = "::attn";
  let summary = "decides the schedule of attention, or asks for it";
  let description = [{
    Writes the schedule of each `attn.forward` or `attn.backward`, as
    `-attn-select-schedule` does: the one that is given; or else the one that the
    op has; or else the best by the cost model. The result is what was written,
    as the options `schedule=` of passes and tools take it.

    ```mlir
    %a = transform.structured.match ops{["attn.forward"]} in %m
        : (!transform.any_op) -> !transform.any_op
    %s = transform.attn.select_schedule %a machine = "h100_sxm"
        schedule = <flash, query = 128, key = 128>
        : (!transform.any_op) -> !transform.any_param
    ```

    `machine` is a machine by name, with some facts replaced if need be, as
    `#attn.machine` has it; without one it is the module's. Code that is then
    compiled for another machine may refuse the schedule.

    Tiling first and deciding behind it gives each tile a schedule of its own.

    #### Return modes

    Fails silenceably where an op is not attention, where there is no such
    machine, or where the schedule does not fit the op and the machine; the op
    then stays as it is, and the error says why.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target,
                       OptionalAttr<StrAttr>:$machine,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs TransformParamTypeInterface:$chosen);
  let assemblyFormat = [{
    $target (`machine` `=` $machine^)? (`schedule` `=` $schedule^)? attr-dict
    `:` functional-type($target, $chosen)
  }];
  let extraClassDeclaration = [{
    ::mlir::DiagnosedSilenceableFailure applyToOne(
        ::mlir::transform::TransformRewriter &rewriter,
        ::mlir::Operation *target,
        ::mlir::transform::ApplyToEachResultList &results,
        ::mlir::transform::TransformState &state);
  }];
}

#endif // ATTN_TRANSFORMOPS_ATTNTRANSFORMOPS_TD
