//===- TileExchangeOps.td - Blocks that work on one tile ---*- tablegen -*-===//
//
// Blocks of a grid that share a tile hand each other data through global
// memory, in the form in which registers hold it:
//
//   writers   store_registers    every warp its own piece
//             mbarrier_arrive    so that the block's publisher knows
//   publisher mbarrier_wait, publish          (one lane)
//   publisher await, mbarrier_arrive          (one lane, of another block)
//   readers   mbarrier_wait, load_registers   every warp its own piece
//
// `tile.publish`, `tile.count` and `tile.await` are the only ops that order
// memory between blocks: what happened before a publish or a count has happened
// for whoever awaited its value, and for whoever that one told through a
// barrier.
//
// Blocks that wait for one another must all run: their kernel is `cooperative`.
// Or they wait for what others have drawn before, with `tile.draw`, and count or
// publish when it is done: who has drawn it runs, and waits for nobody behind.
// Flags are 0 when a kernel begins and when it ends, but for what is published
// `kept`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TILEEXCHANGEOPS_TD
#define ATTN_TILE_TILEEXCHANGEOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "attn/Tile/TrafficInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Registers as they are
//===----------------------------------------------------------------------===//

def Tile_StoreRegistersOp : Tile_Op<"store_registers",
    [MemoryEffects<[MemWrite]>,
     DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "stores the registers of fragments and rows as they are";
  let description = [{
    Per warp.  The registers of all values make an image, whose size is that of
    all lanes' registers; it goes to place number `place` of an array of such
    images.  `tile.load_registers` with the same types gives the same values, to
    any warp.  A partial row stays partial.  Only `tile.add_words` changes an
    image, number by number, and nothing else reads one.

    Lane l keeps the k-th four registers (of all values, one behind the other)
    in the 16 bytes from `512 k + 16 l` on, and two that are left in the 8 bytes
    from `512 k + 8 l` on; so their number is a multiple of 2.

    The array may have any size, or, if it is `near`, less than 32 GiB: then
    addresses take fewer registers.
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Tile_Frag, Tile_Row]>>:$values,
                       Tile_Ptr:$base, I32:$place, UnitAttr:$near);
  let assemblyFormat = [{
    $values `to` $base `[` $place `]` attr-dict
    `:` type($values) `to` type($base)
  }];
  let hasVerifier = 1;
}

def Tile_LoadRegistersOp : Tile_Op<"load_registers",
    [MemoryEffects<[MemRead]>,
     DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "loads what `tile.store_registers` stored";
  let description = [{
    Per warp.  The image comes from the memory that all blocks share (L2), not
    from a copy that the multiprocessor may still hold.
  }];
  let arguments = (ins Tile_Ptr:$base, I32:$place, UnitAttr:$near);
  let results = (outs Variadic<AnyTypeOf<[Tile_Frag, Tile_Row]>>:$values);
  let assemblyFormat = [{
    $base `[` $place `]` attr-dict `:` type($base) `->` type($values)
  }];
  let hasVerifier = 1;
}

def Tile_PutRegistersOp : Tile_Op<"put_registers",
    [MemoryEffects<[MemWrite]>,
     DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "stores registers as they are to shared memory";
  let description = [{
    Per warp.  The image that `tile.store_registers` makes of the values goes to
    place number `place` of the bytes of a stage, whatever its layout.
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Tile_Frag, Tile_Row]>>:$values,
                       Tile_Smem:$buffer, I32:$stage, I32:$place);
  let assemblyFormat = [{
    $values `to` $buffer `[` $stage `,` $place `]` attr-dict
    `:` type($values) `to` type($buffer)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of the image.
    int64_t bytes();
  }];
}

def Tile_GetRegistersOp : Tile_Op<"get_registers",
    [MemoryEffects<[MemRead]>,
     DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "loads what `tile.put_registers` stored";
  let description = [{
    Per warp.  With the same types, buffer, stage and place it gives the same
    values, to any warp of the block.
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$stage, I32:$place);
  let results = (outs Variadic<AnyTypeOf<[Tile_Frag, Tile_Row]>>:$values);
  let assemblyFormat = [{
    $buffer `[` $stage `,` $place `]` attr-dict
    `:` type($buffer) `->` type($values)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes of the image.
    int64_t bytes();
  }];
}

def Tile_ScaleRowsOp : Tile_Op<"scale_rows",
    [Pure, AllTypesMatch<["fragment", "result"]>]> {
  let summary = "times powers of two, one per row";
  let description = [{
    Element x of a row becomes x * 2^e, in the arithmetic of its type: 2^e is
    rounded to it and then the product, so both are exact unless they leave its
    range.  `exponents` are f32 with whole numbers.
  }];
  let arguments = (ins Tile_Frag:$fragment, Tile_Row:$exponents);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $fragment `by` $exponents attr-dict
    `:` type($fragment) `,` type($exponents)
  }];
  let hasVerifier = 1;
}

def Tile_StoreFragmentOp : Tile_Op<"store_fragment",
    [MemoryEffects<[MemWrite]>,
     DeclareOpInterfaceMethods<Tile_TrafficInterface,
       ["getTrafficOperands"]>]> {
  let summary = "rounds an accumulator and stores it to a view";
  let description = [{
    Per warp, at (`row`, `column`) of the view, a multiple of 8; rows and columns
    behind the view's are dropped.  Elements leave by eights or in pairs where
    the view's rows allow it.
  }];
  let arguments = (ins Tile_Frag:$fragment, Tile_View:$view, I32:$row,
                       I32:$column);
  let assemblyFormat = [{
    $fragment `to` $view `[` $row `,` $column `]` attr-dict
    `:` type($fragment) `to` type($view)
  }];
  let hasVerifier = 1;
}

def Tile_LoadFragmentOp : Tile_Op<"load_fragment",
    [MemoryEffects<[MemRead]>,
     DeclareOpInterfaceMethods<Tile_TrafficInterface,
       ["getTrafficOperands"]>]> {
  let summary = "loads an accumulator from a view";
  let description = [{
    Per warp: in f32, what lies where `tile.store_fragment` stores to; 0 behind
    the rows and columns of the view, which has a row at least.
  }];
  let arguments = (ins Tile_View:$view, I32:$row, I32:$column);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $view `[` $row `,` $column `]` attr-dict
    `:` type($view) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

def Tile_PublishOp : Tile_Op<"publish", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sets a flag for all blocks, behind all that came before";
  let description = [{
    One lane, or all of a warp alike.  Whoever sees the value in `tile.await`
    also sees what the lane did before, and what others did before they arrived
    at a barrier that the lane has waited for.

    What is `kept` stays when the kernel ends.  A flag that held anything
    `begins` so: the publish lies before all else that is done with it.
  }];
  let arguments = (ins Tile_Ptr:$flags, I32:$index, I32:$value);
  let assemblyFormat = [{
    $flags `[` $index `]` `,` $value attr-dict `:` type($flags)
  }];
  let hasVerifier = 1;
}

def Tile_CountOp : Tile_Op<"count", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds 1 to a flag for all blocks, behind all that came before";
  let description = [{
    Per warp.  As `tile.publish` of the next value, of what all lanes of the
    warp did before and, besides, of what was counted and published before.
    The flag runs 0, 1, .. `below` - 1 and then 0 again.
  }];
  let arguments = (ins Tile_Ptr:$flags, I32:$index, I32:$below);
  let assemblyFormat = [{
    $flags `[` $index `]` `below` $below attr-dict `:` type($flags)
  }];
  let hasVerifier = 1;
}

def Tile_AwaitOp : Tile_Op<"await", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until a flag is at least a value";
  let description = [{
    One lane, or all of a warp alike.  Gives the flag's value, compared as
    signed.  What is `mostly_set` when it is asked for takes one look.
  }];
  let arguments = (ins Tile_Ptr:$flags, I32:$index, I32:$value);
  let results = (outs I32:$result);
  let assemblyFormat = [{
    $flags `[` $index `]` `at_least` $value attr-dict `:` type($flags)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Launches that overlap
//===----------------------------------------------------------------------===//

def Tile_AwaitLaunchOp : Tile_Op<"await_launch", [HasParent<"KernelOp">,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for the launch before, which may still run";
  let description = [{
    All warps.  Behind this the launch before has ended, and all that it wrote
    is in sight; and so for those before that one, which waited likewise.  A
    kernel that says so may be launched ahead of time (programmatic stream
    serialization); launched as usual it waits for nothing.  Nothing before it
    touches global memory.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_ReleaseLaunchOp : Tile_Op<"release_launch", [HasParent<"KernelOp">,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "lets the launch behind begin";
  let description = [{
    It begins when all blocks have come here or have ended, if it is launched
    ahead of time.  A kernel's own wait comes before; so when a launch begins,
    only the one before it may still run.
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

def Tile_ClusterRankOp : Tile_Op<"cluster_rank", [Pure]> {
  let summary = "the block's position in its cluster";
  let description = "`tile.program_id 0` modulo the kernel's `cluster`.";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Halves of L2
//===----------------------------------------------------------------------===//

def Tile_SideOp : Tile_Op<"side", [MemoryEffects<[MemRead]>]> {
  let summary = "the half of L2 that the block's multiprocessor is next to";
  let description = [{
    0 or 1, the same for all warps of a block, as the module's table has it
    (`attn/Machine/Sides.h`), which is true only if whoever loads the module
    writes there what is.  So it is a hint: no result may depend on it.
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

#endif
