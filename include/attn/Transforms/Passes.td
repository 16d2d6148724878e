//===- Passes.td - Decide and check ------------------------*- tablegen -*-===//

#ifndef ATTN_TRANSFORMS_PASSES_TD
#define ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Derive
//===----------------------------------------------------------------------===//

def DeriveMasksPass : Pass<"attn-derive-masks"> {
  let summary = "regions of sees that are masks become masks";
  let description = [{
    Before: ops of attention, some with `sees`. After: a region that shows what
    a named mask shows, for all rows that there may be, is that mask; one that
    shows less has the mask beside it, whose hidden tiles nobody loads.

    The region's comparisons of affine functions of the positions, and `and`,
    `or` and `select` of these, are brought into disjunctive form. What is not
    affine shows some of what a mask shows.

    ```mlir
    %o = attn.forward %q, %k, %v
        sees (%b, %h, %i, %j, %nq, %nk) {
          %r = arith.cmpi sle, %j, %i : index
          attn.yield %r : i1
        } : !q, !k, !k -> !q
    // becomes
    %o = attn.forward %q, %k, %v mask(causal) : !q, !k, !k -> !q
    ```

    A region that is another union of bands stays as it is where kernels walk
    the runs that tiles see of it (docs/sparse.md).
    A mask that is there already stays; a region that is another one stays too.
    With `explain` a remark says what became of each region, and names
    `attn.block_lists` where it is asked in every tile.
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "say in a remark what each region is">,
  ];
  let dependentDialects = ["::attn::AttnDialect"];
}

def DifferentiatePass : Pass<"attn-differentiate", "mlir::ModuleOp"> {
  let summary = "give functions of attention gradient functions";
  let description = [{
    Before: functions on tensors, some with `attn.forward` or `attn.merge`. After: each of these
    `@f` is followed by `@f_vjp`, its vector-Jacobian product.

    `@f_vjp` takes the arguments of `@f` and, for each result that is a tensor
    of floating-point numbers, the gradient of a loss in it. It returns the
    gradient in each argument that is such a tensor, zeros where no result
    depends on it. What is used several times adds up. O and LSE of every
    `attn.forward` are computed again.

    ```mlir
    func.func @f(%q: !q, %k: !k) -> !q {
      %o = attn.forward %q, %k, %k mask(causal) : !q, !k, !k -> !q
      return %o : !q
    }
    // becomes @f and
    func.func @f_vjp(%q: !q, %k: !k, %do: !q) -> (!q, !k) {
      %o, %lse = attn.forward %q, %k, %k mask(causal) : !q, !k, !k -> !q, !lse
      %dq, %dk, %dv = attn.backward %do, %q, %k, %k, %o, %lse mask(causal)
          : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
      %sum = arith.addf %dk, %dv : !k
      return %dq, %sum : !q, !k
    }
    ```

    Results of these ops may be operands of others of them, and each part of an
    `attn.merge` gets gradients by `attn.merge_backward`. Any other op
    through which a result depends on an argument is an error. Schedules stay on
    the forward ops; those of the backward ops are still to be decided.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Decide
//===----------------------------------------------------------------------===//

def AttachMachinePass : Pass<"attn-attach-machine", "mlir::ModuleOp"> {
  let summary = "say for which GPU the module is compiled";
  let description = [{
    Before: any module. After: the module has an attribute `attn.machine`.

    The machine is written as between the brackets of `#attn.machine`, so facts
    can be overridden: `machine="h100_sxm, smem_bytes_per_block = 65536"`.
    Without the option a machine that the module already names stays, and
    a module that names none is compiled for `h100_sxm`. A module in it that
    names a machine of its own is compiled for that one. No device is asked:
    the same input gives the same code everywhere.
  }];
  let options = [
    Option<"machine", "machine", "std::string", /*default=*/"",
           "name of a machine (attn-plan --machines lists them)">,
  ];
  let dependentDialects = ["::attn::AttnDialect"];
}

def SelectSchedulePass : Pass<"attn-select-schedule", "mlir::ModuleOp"> {
  let summary = "decide how each attn op is computed";
  let description = [{
    Before: ops of the `attn` dialect in a module with `attn.machine`. After:
    each of them has a `schedule` with all its tile sizes, which fits the
    machine and has a kernel.

    The pass asks `plans(problem, machine)` and writes the fastest plan that a
    kernel exists for. It computes nothing itself: what it writes is what
    `attn-plan` prints.

    A schedule that is given is obeyed or refused, never replaced: one on the op
    comes first, then that of the option `schedule`, written as between the
    brackets of `#attn.schedule`. Sizes that it leaves out are completed by the
    best that fit.

    Sizes that are only known at run time are assumed; the choice is correct for
    all sizes and best near these.

    Query heads that share their keys are planned as rows of one head where they
    can be: with one query, which must be static, under any mask; with several
    without a mask, where types say that one stride leads through the rows of
    all heads, as in memrefs without a layout. Gradients of keys that the mask
    hides are written too, so there the mask must hide none.

    With `explain` each op gets a remark: what was chosen, the predicted time,
    what binds it, how many query heads are rows of one or why none are, what
    regions cost, the runner-up and why it lost.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", /*default=*/"",
           "the schedule of every op of its direction that has none, such as "
           "\"flash, query = 128, key = 64\"">,
    Option<"assumeBatch", "assume-batch", "int64_t", /*default=*/"8",
           "batch size where it is dynamic">,
    Option<"assumeRows", "assume-rows", "int64_t", /*default=*/"4096",
           "number of queries and keys where it is dynamic">,
    Option<"explain", "explain", "bool", /*default=*/"false",
           "explain every choice in a remark">,
  ];
  let dependentDialects = ["::attn::AttnDialect"];
}

//===----------------------------------------------------------------------===//
// Place arrays
//===----------------------------------------------------------------------===//

def BufferizePass : Pass<"attn-bufferize", "mlir::ModuleOp"> {
  let summary = "turn tensors into memrefs, in nested modules too";
  let description = [{
    Before: functions on tensors.  After: functions on memrefs without layout,
    in this module and in the modules in it.  What the host computes, such as
    sums of gradients, is in loops.

    It is upstream's `-convert-elementwise-to-linalg`, `-one-shot-bufferize` and
    `-convert-linalg-to-loops` on each module, with `-attn-fold-transposes`
    before the loops.
  }];
}

def DeallocateBuffersPass : Pass<"attn-deallocate-buffers", "mlir::ModuleOp"> {
  let summary = "free the arrays that bufferization allocates";
  let description = [{
    Before: functions on memrefs with `attn` ops, and functions that call them,
    which allocate by `memref.alloc` and free nothing.  After: each array is
    freed where the last owner leaves it.  An array that a function returns is
    the caller's, and an argument stays the caller's, so one that is returned is
    copied.

    It is upstream's `-ownership-based-buffer-deallocation`.  A function that
    frees by itself, allocates otherwise, has several blocks or an op of unknown
    effects stays as it is.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"];
}

def CopyToDevicePass : Pass<"attn-copy-to-device", "mlir::ModuleOp"> {
  let summary = "give attn ops on arrays of the host copies on the GPU";
  let description = [{
    Before: `attn` ops on memrefs in memory of the host.  After: each works on
    memory of the GPU that is allocated before it and freed behind it.  Inputs
    are copied there, outputs back.  An array with gaps between its rows goes
    through one without, which alone can be copied.

    ```mlir
    attn.forward %q, %k, %v outs(%o : !t) : !t, !t, !t
    // becomes, with tokens left out
    %dq = gpu.alloc () : !t
    gpu.memcpy %dq, %q : !t, !t
    ... // and so for %k, %v, and without a copy for %o
    attn.forward %dq, %dk, %dv outs(%do : !t) : !t, !t, !t
    gpu.memcpy %o, %do : !t, !t
    gpu.dealloc %dq : !t
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

def AllocateOnDevicePass : Pass<"attn-allocate-on-device", "mlir::ModuleOp"> {
  let summary = "allocate on the GPU what kernels of tile.launch get";
  let description = [{
    Before: functions with `tile.launch`.  After: every array that a launch may
    get lies in memory of the GPU: `memref.alloc`, `memref.copy` and
    `memref.dealloc` of it are `gpu.alloc`, `gpu.memcpy` and `gpu.dealloc`.
    Arrays are followed through views, loops, branches, and calls within the
    module.

    Arguments of functions that nobody calls here are the caller's to place.
    It is an error if the host reads or writes such an array, or if it lies in a
    global or on the stack.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

//===----------------------------------------------------------------------===//
// Apply
//===----------------------------------------------------------------------===//

def FoldTransposesPass : Pass<"attn-fold-transposes"> {
  let summary = "let attention read and write transposed arrays in place";
  let description = [{
    Before: memrefs, with `linalg.transpose` in front of attn ops or behind
    them, as after `-attn-raise` and bufferization of a model whose arrays are
    `[batch, rows, heads, d]`.  After: views in place of those that only
    attention reads or writes, so that nothing is moved.

    Rows must stay rows, and what a view is of must not be written later.
    Other transposes stay.
  }];
  let dependentDialects = ["mlir::memref::MemRefDialect"];
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

def CheckFencesPass : Pass<"attn-check-fences", "mlir::ModuleOp"> {
  let summary = "check that TMA sees what it loads from global memory";
  let description = [{
    Contract: on every path of a warp through a `tile.kernel`, a
    `tile.fence_async global` lies between a `tile.await`, or a store by the
    warp itself, and a load by TMA of an array that the kernel writes.

    TMA reads through the asynchronous proxy, for which neither an acquire nor a
    store is enough.  What another warp of the block awaited is checked where
    the kernel is executed, by the interpreter.
  }];
}

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

    Counting visits every pair of tiles, so long problems are checked on fewer
    rows.  With `report` the kernel's own problem is counted whole and a remark
    says what it moves.
  }];
  let options = [
    Option<"report", "report", "bool", /*default=*/"false",
           "say in a remark what every kernel moves for its own problem">,
  ];
}

def AttachNVVMTargetPass : Pass<"attn-attach-nvvm-target", "mlir::ModuleOp"> {
  let summary = "say which chip the kernels are compiled for";
  let description = [{
    Before: `gpu.module`s with a `tile.kernel` in a module with `attn.machine`.
    After: each has the `#nvvm.target` of the machine's chip and the attribute
    `tile.kernels`, by which later passes know it when its kernels are lowered.
    Other `gpu.module`s are somebody else's and stay as they are.
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def LowerKernelsPass : Pass<"attn-lower-kernels", "mlir::ModuleOp"> {
  let summary = "lower what is left in our gpu.modules to the LLVM dialect";
  let description = [{
    Before: `gpu.module`s with `tile.kernels`, of `scf`, `arith`, `math` and the
    LLVM dialect.  After: they are of the LLVM dialect alone, their loops
    annotated, canonical.  Other `gpu.module`s stay as they are.  The module no
    longer has `attn.machine`, which compilers without this dialect cannot read.
  }];
}

def SerializeKernelsPass : Pass<"attn-serialize-kernels", "mlir::ModuleOp"> {
  let summary = "make PTX or cubins of our gpu.modules";
  let description = [{
    Before: `gpu.module`s with `tile.kernels` and a target.  After: each is a
    `gpu.binary` of the same name at the same place.  Other `gpu.module`s stay
    as they are.
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"bin\"",
           "isa (PTX) or bin (cubin, needs ptxas)">,
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def AnnotateLoopsPass : Pass<"attn-annotate-loops"> {
  let summary = "put loop annotations where the translation to LLVM IR reads them";
  let description = [{
    Lowering an `scf.for` that carries `llvm.loop_annotation` leaves it on the
    loop's branch as a discardable attribute, which the translation drops.  This
    pass makes it the branch's own.
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_TRANSFORMS_PASSES_TD
