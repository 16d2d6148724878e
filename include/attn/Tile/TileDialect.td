//===- TileDialect.td - The dialect of kernels -------------*- tablegen -*-===//

#ifndef ATTN_TILE_TILEDIALECT_TD
#define ATTN_TILE_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::attn::tile";
  let summary = "HOW: one attention kernel, explicit and typed";
  let description = [{
    A `tile.kernel` is one GPU kernel written at the level of tiles: buffers in
    shared memory, fragments in registers, asynchronous copies, tensor-core
    products, barriers.  Every layout is known when the kernel is built, so
    there is no layout inference and no automatic pipelining: what is written
    is what runs.

    **Execution.** A kernel runs as a grid of blocks; a block is `warps` warps
    that all execute the body (single program, several warps).  A scalar (`i32`,
    `i64`, `f32`, `i1`) has one value per warp and must be the same in all
    lanes.  An op on shared or global memory is either *collective* over the
    block (`tile.copy_async`: each warp moves its share) or done *per warp*
    (`tile.load_matrix`, `tile.store_matrix`, `tile.copy_out`).  Control flow
    is `scf`; scalars are `arith`.

    **Time.** An asynchronous copy is in flight until its warp has waited for
    its group, and other warps may look at the data only behind a barrier after
    that.  The dialect states the order; the interpreter checks it.

    **Memory.** `!tile.view` is a matrix of rows in global memory, clipped at
    its row count: reads behind it give zero and move nothing, writes behind
    it are dropped.  Every op that moves bytes implements the traffic
    interface, so a kernel's traffic can be counted from its IR and compared
    with what its plan promised.
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = "void registerTypes();";
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect",
                           "mlir::gpu::GPUDialect"];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif
