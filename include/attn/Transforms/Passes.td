//===- Passes.td - Decide and check ------------------------*- tablegen -*-===//

#ifndef ATTN_TRANSFORMS_PASSES_TD
#define ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Decide
//===----------------------------------------------------------------------===//

def AttachMachinePass : Pass<"attn-attach-machine", "mlir::ModuleOp"> {
  let summary = "say which GPU a module is compiled for";
  let description = [{
    Before: any module.  After: the module has the attribute `attn.machine`.  A
    module that already names a machine keeps it.
  }];
  let options = [Option<"machine", "machine", "std::string", "\"h100_sxm\"",
                        "name of a machine, or a name and fields">];
  let dependentDialects = ["::attn::AttnDialect"];
}

def SelectSchedulePass : Pass<"attn-select-schedule", "mlir::ModuleOp"> {
  let summary = "choose how each attn op is computed";
  let description = [{
    Before: attn ops in a module with `attn.machine`.  After: each op has a
    `schedule` that is legal on that machine and that a kernel exists for.

    The choice is the plan with the least predicted time (`attn::plans`).  An
    op that has a schedule keeps it, if it is legal.  An op for which nothing
    fits is an error with the reasons, numbers and limits.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"\"",
           "schedule to use instead of the best: \"flash, query = 128, ...\"">,
    Option<"explain", "explain", "bool", "false",
           "say in remarks what was chosen and why">];
  let dependentDialects = ["::attn::AttnDialect"];
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

def CheckFootprintPass : Pass<"attn-check-footprint", "mlir::ModuleOp"> {
  let summary = "check that kernels fit their machine";
  let description = [{
    Contract: the shared memory that a `tile.kernel` allocates is within what a
    block of its machine may use, and equals what the plan promised.  An error
    names the largest buffer, the bytes and the limit.
  }];
}

def CheckTrafficPass : Pass<"attn-check-traffic", "mlir::ModuleOp"> {
  let summary = "check that kernels move the bytes that their plans promise";
  let description = [{
    Contract: for the problem that a `tile.kernel` was built for, and for
    ragged ones beside it, the bytes counted in its IR (`tile::countTraffic`)
    equal the plan's prediction at every level, to the byte.
  }];
}

def AttachNVVMTargetPass : Pass<"attn-attach-nvvm-target", "mlir::ModuleOp"> {
  let summary = "say which chip the gpu.modules are compiled for";
  let description = [{
    Before: `gpu.module`s in a module with `attn.machine`.  After: each has the
    `#nvvm.target` of the machine's chip.
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

#endif
