//===- TileRoleOps.td - Roles and what goes between them ---*- tablegen -*-===//
//
// Warps with different work, the barriers and queues through which they hand
// each other data, and the copy engine that feeds them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TILEROLEOPS_TD
#define ATTN_TILE_TILEROLEOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "attn/Tile/TrafficInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

def Tile_RolesOp : Tile_Op<"roles", [SingleBlock, NoTerminator, NoRegionArguments,
    HasParent<"KernelOp">]> {
  let summary = "deals the warps of a block out to different work";
  let description = [{
    Holds `tile.role` ops only, which take the warps in order.  A role has whole
    warpgroups (4 warps), or shares one with its neighbours, which fill it and
    ask for as many registers.  All warps meet before the roles begin; at the
    end every warp goes on behind the op by itself.  In a kernel of clusters the
    warps of all blocks of a cluster meet, before the roles begin and when they
    have ended.

    ```mlir
    tile.roles {
      tile.role "producer" warps 1 registers 24 single_lane { ... }
      tile.role "helper" warps 3 registers 24 { ... }
      tile.role "consumer" warps 8 registers 240 { ... }
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasVerifier = 1;
}

def Tile_RoleOp : Tile_Op<"role", [SingleBlock, NoTerminator, NoRegionArguments,
    HasParent<"RolesOp">]> {
  let summary = "what some warps of a block do";
  let description = [{
    `registers` is what a thread may use while it has the role: the
    multiprocessor's registers move between warpgroups (setmaxnreg).
    `single_lane`: only one lane of the role's first
    warp executes the region, which then has scalars, copies and barriers only.
  }];
  let arguments = (ins StrAttr:$name,
    ConfinedAttr<I32Attr, [IntPositive]>:$warps,
    ConfinedAttr<I32Attr, [IntMinValue<24>, IntMaxValue<256>]>:$registers,
    UnitAttr:$single_lane);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `warps` $warps `registers` $registers
    (`single_lane` $single_lane^)? $body attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kWarpsPerGroup = 4;
    /// Number of the role's first warp in the block.
    int64_t firstWarp();
    /// Whether the role has a part of a warpgroup only.
    bool sharesWarpgroup() { return getWarps() % kWarpsPerGroup != 0; }
    /// The role that an op stands in, or null.
    static RoleOp of(mlir::Operation *op);
  }];
}

//===----------------------------------------------------------------------===//
// Barriers between roles
//===----------------------------------------------------------------------===//

def Tile_MbarrierOp : Tile_Op<"mbarrier", [MemoryEffects<[MemAlloc]>]> {
  let summary = "reserves and initialises a ring of mbarriers";
  let description = "Every phase of each barrier takes `arrivals` arrivals.  "
                    "Ready for use inside `tile.roles`.";
  let arguments = (ins StrAttr:$name,
    ConfinedAttr<I32Attr, [IntPositive]>:$arrivals);
  let results = (outs Tile_Mbarrier:$result);
  let assemblyFormat = "$name `arrivals` $arrivals attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_MbarrierWaitOp : Tile_Op<"mbarrier_wait",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for the end of a phase";
  let description = [{
    Goes on when the last phase of that parity has ended: with parity 1 a fresh
    barrier lets pass, with parity 0 the first phase must end.  Whoever waits
    must do so before the phase after the next one can end, or it waits for
    ever.
  }];
  let arguments = (ins Tile_Mbarrier:$barrier, I32:$slot, I32:$parity);
  let assemblyFormat = [{
    $barrier `[` $slot `]` `parity` $parity attr-dict `:` type($barrier)
  }];
}

def Tile_MbarrierArriveOp : Tile_Op<"mbarrier_arrive",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "one arrival, for the whole warp";
  let description = [{
    What the warp did before is done for whoever waits for the phase.  With a
    condition, arrives only if it holds; `cluster`: at the barrier of that place
    in every block of the cluster.
  }];
  let arguments = (ins Tile_Mbarrier:$barrier, I32:$slot,
                       Optional<I1>:$condition, UnitAttr:$cluster);
  let assemblyFormat = [{
    $barrier `[` $slot `]` (`if` $condition^)? (`cluster` $cluster^)? attr-dict
    `:` type($barrier)
  }];
}

def Tile_BarSyncOp : Tile_Op<"bar_sync", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits at a named barrier for `warps` warps";
  let description = [{
    Barriers 1 to 15 of the block (`tile.barrier` is barrier 0).  It opens when
    `warps` warps have come to it, through `bar_sync` or `bar_arrive`.
  }];
  let arguments = (ins I32:$id, ConfinedAttr<I32Attr, [IntPositive]>:$warps);
  let assemblyFormat = "$id `warps` $warps attr-dict";
}

def Tile_BarArriveOp : Tile_Op<"bar_arrive",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "comes to a named barrier without waiting";
  let arguments = (ins I32:$id, ConfinedAttr<I32Attr, [IntPositive]>:$warps);
  let assemblyFormat = "$id `warps` $warps attr-dict";
}

def Tile_FenceAsyncOp : Tile_Op<"fence_async",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "proxy fence: stores before reads by TMA, wgmma";
  let description = [{
    Between a store to shared memory and an asynchronous read of the same bytes
    somebody fences (fence.proxy.async.shared::cta): the warp that stored,
    before the barrier that the reader waits at; or a warp that knows of the
    store by a barrier, such as the reader itself.

    With `global` the same holds of global memory (fence.proxy.async.global):
    between a write, by a store or by another block's copy engine, and a load by
    TMA of the same bytes in the same launch.  Neither form stands for the
    other.
  }];
  let arguments = (ins UnitAttr:$global);
  let assemblyFormat = "(`global` $global^)? attr-dict";
}

def Tile_QueueOp : Tile_Op<"queue", [MemoryEffects<[MemAlloc]>]> {
  let summary = "reserves a queue that `readers` warps read";
  let description = [{
    With `rings` there are several queues, which share its slots: the first has
    as many from slot 0 on, the next one those behind.  Each has a warp that
    pushes, and so many readers.
  }];
  let arguments = (ins StrAttr:$name,
    ConfinedAttr<I32Attr, [IntPositive]>:$readers,
    DefaultValuedAttr<ConfinedAttr<I32Attr, [IntPositive]>, "1">:$rings);
  let results = (outs Tile_Queue:$result);
  let assemblyFormat = [{
    $name `readers` $readers (`rings` $rings^)? attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    /// Slots of each of the queues.
    int64_t slotsOfRing() {
      return getResult().getType().getSlots() / getRings();
    }
  }];
  let hasVerifier = 1;
}

def Tile_PushOp : Tile_Op<"push", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sends a message to all readers";
  let description = [{
    Waits until all readers have popped what was in the slot.  The k-th message
    of the kernel goes to slot k % slots; `parity` is (k / slots) % 2.  Where
    several queues share the slots, both are counted in each.
  }];
  let arguments = (ins Tile_Queue:$queue, I32:$slot, I32:$parity,
                       Variadic<I32>:$values);
  let assemblyFormat = [{
    $queue `[` $slot `]` `parity` $parity `,` $values attr-dict
    `:` type($queue)
  }];
  let hasVerifier = 1;
}

def Tile_PopOp : Tile_Op<"pop", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "receives a message";
  let description = "Waits for the message; slots and parities as for "
                    "`tile.push`.";
  let arguments = (ins Tile_Queue:$queue, I32:$slot, I32:$parity);
  let results = (outs Variadic<I32>:$values);
  let assemblyFormat = [{
    $queue `[` $slot `]` `parity` $parity attr-dict `:` type($queue)
    `->` type($values)
  }];
  let hasVerifier = 1;
}

def Tile_DrawOp : Tile_Op<"draw", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "draws the next number of a counter that the grid shares";
  let description = [{
    The counter, of several the one with that `index`, runs 0, 1, .. `below` - 1
    and then 0 again; the result is what it was.  After `below` draws it is 0 as
    before the launch.
  }];
  let arguments = (ins Tile_Ptr:$counter, Optional<I32>:$index, I32:$below);
  let results = (outs I32:$result);
  let assemblyFormat = [{
    $counter (`[` $index^ `]`)? `below` $below attr-dict `:` type($counter)
  }];
  let builders = [OpBuilder<(ins "mlir::Value":$counter, "mlir::Value":$below),
    [{
      build($_builder, $_state, $_builder.getI32Type(), counter,
            /*index=*/mlir::Value(), below);
    }]>];
  let hasVerifier = 1;
}

def Tile_PutDrawOp : Tile_Op<"put_draw", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "draws a number for a block whose warps are alike";
  let description = [{
    The first warp draws as `tile.draw` does and stores the number in the first
    four bytes of the buffer; the others go on.  What lay there is lost.
  }];
  let arguments = (ins Tile_Ptr:$counter, I32:$below, Tile_Smem:$buffer);
  let assemblyFormat = [{
    $counter `below` $below `to` $buffer attr-dict
    `:` type($counter) `to` type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_GetDrawOp : Tile_Op<"get_draw", [MemoryEffects<[MemRead]>]> {
  let summary = "loads what `tile.put_draw` stored";
  let arguments = (ins Tile_Smem:$buffer);
  let results = (outs I32:$result);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer)";
}

//===----------------------------------------------------------------------===//
// TMA
//===----------------------------------------------------------------------===//

def Tile_TmaLoadOp : Tile_Op<"tma_load", [MemoryEffects<[MemRead, MemWrite]>,
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "starts copying a box of an array into a stage of a buffer";
  let description = [{
    One lane.  Rows `row ..` of a head come to the stage, all its bytes (zeros
    for what the array has not).  Arrives at the barrier and announces the
    bytes; the phase ends when they have landed.  `row` may be negative.  A
    stage of more rows than a box takes several, one below the other.

    With a `column` the columns from there on come, as many as the buffer has or
    as `columns` says (whole panels; the others stay as they are).

    `multicast(%rank)`: the blocks of the cluster load together, each its part
    into the buffers of all, and each announces all the bytes at its own
    barrier.  `rank` is `tile.cluster_rank`.  Where boxes have as many rows as
    the stage a part is a run of panels, else of rows: `box_rows`, from
    `row + rank * box_rows` on, to as many rows of the stage.
  }];
  let arguments = (ins Tile_TensorMap:$map, I32:$batch, I32:$head, I32:$row,
                       Tile_Smem:$buffer, I32:$stage,
                       Tile_Mbarrier:$barrier, I32:$slot,
                       Optional<I32>:$column, Optional<I32>:$rank,
                       OptionalAttr<I64Attr>:$columns);
  let assemblyFormat = [{
    $map `[` $batch `,` $head `,` $row (`,` $column^)? `]`
    `to` $buffer `[` $stage `]` (`columns` $columns^)?
    (`multicast` `(` $rank^ `)`)? `arrive` $barrier `[` $slot `]` attr-dict
    `:` type($map) `to` type($buffer) `,` type($barrier)
  }];
  let builders = [OpBuilder<(ins "mlir::Value":$map, "mlir::Value":$batch,
      "mlir::Value":$head, "mlir::Value":$row, "mlir::Value":$buffer,
      "mlir::Value":$stage, "mlir::Value":$barrier, "mlir::Value":$slot), [{
    build($_builder, $_state, map, batch, head, row, buffer, stage, barrier,
          slot, /*column=*/mlir::Value(), /*rank=*/mlir::Value(),
          /*columns=*/mlir::IntegerAttr());
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Panels of the stage that are filled.
    int64_t panels();
    /// Whether what blocks load together is dealt out by panels, not by rows.
    bool hasPartsOfPanels();
    /// Panels that one of so many blocks loads.
    int64_t ownPanels(int64_t blocks);
    /// Rows that one block loads, boxes of them.
    int64_t ownRows();
    int64_t boxes();
  }];
}

def Tile_MbarrierExpectOp : Tile_Op<"mbarrier_expect",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "arrives at a barrier and announces what boxes will bring";
  let description = [{
    One lane, in front of the `tile.tma_load_rows` that fill the stage: the
    phase ends when all bytes of a stage of the buffer have landed, or of so
    many `columns` (whole panels).
  }];
  let arguments = (ins Tile_Mbarrier:$barrier, I32:$slot, Tile_Smem:$buffer,
                       OptionalAttr<I64Attr>:$columns);
  let assemblyFormat = [{
    $barrier `[` $slot `]` `bytes` `of` $buffer (`columns` $columns^)? attr-dict
    `:` type($barrier) `,` type($buffer)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Panels of the stage whose bytes are announced.
    int64_t panels();
  }];
}

def Tile_TmaLoadRowsOp : Tile_Op<"tma_load_rows",
    [MemoryEffects<[MemRead, MemWrite]>,
     DeclareOpInterfaceMethods<Tile_TrafficInterface,
       ["getTrafficOperands"]>]> {
  let summary = "starts copying a box to some rows of a stage of a buffer";
  let description = [{
    One lane.  The rows `row ..` of a head, as many as a box has, come to those
    from `target_row` on, which is a multiple of as many; zeros for what the
    array has not.  The bytes count at the barrier, where
    `tile.mbarrier_expect` has announced them.

    With a `column` the columns from there on come, as many as the buffer has or
    as `columns` says (whole panels; the others stay as they are).
  }];
  let arguments = (ins Tile_TensorMap:$map, I32:$batch, I32:$head, I32:$row,
                       Tile_Smem:$buffer, I32:$stage, I32:$target_row,
                       Tile_Mbarrier:$barrier, I32:$slot,
                       Optional<I32>:$column, OptionalAttr<I64Attr>:$columns);
  let assemblyFormat = [{
    $map `[` $batch `,` $head `,` $row (`,` $column^)? `]`
    `to` $buffer `[` $stage `,` $target_row `]` (`columns` $columns^)?
    `at` $barrier `[` $slot `]`
    attr-dict `:` type($map) `to` type($buffer) `,` type($barrier)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Panels of the stage that are filled.
    int64_t panels();
  }];
}

def Tile_TmaPrefetchOp : Tile_Op<"tma_prefetch",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "asks that a box of an array come to L2, for a later load";
  let description = [{
    One lane.  The rows `row ..` of a head, as many as a box has, and `columns`
    of its columns from `column` on (whole panels).  What the array has not is
    left out, and nothing waits for the others: a hint, without which results
    are the same.
  }];
  let arguments = (ins Tile_TensorMap:$map, I32:$batch, I32:$head, I32:$row,
                       I32:$column, I64Attr:$columns);
  let assemblyFormat = [{
    $map `[` $batch `,` $head `,` $row `,` $column `]` `columns` $columns
    attr-dict `:` type($map)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Panels that come.
    int64_t panels();
    int64_t panelColumns();
  }];
}

def Tile_TmaStoreOp : Tile_Op<"tma_store", [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "starts copying rows of a buffer to a box of an array";
  let description = [{
    Per warp, by its first lane.  Rows `source_row ..` of a stage of the buffer,
    the first one if none is named, go to the box at (`row`, `column`) of a
    head; what lies outside the array is dropped.  A column is a multiple of a
    panel's 64.  The buffer may be written
    again after `tile.tma_store_wait`.
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$source_row, Tile_TensorMap:$map,
                       I32:$batch, I32:$head, I32:$row, I32:$column,
                       Optional<I32>:$stage);
  let assemblyFormat = [{
    $buffer `[` $source_row `]` (`stage` `(` $stage^ `)`)? `to` $map
    `[` $batch `,` $head `,` $row `,` $column `]` attr-dict
    `:` type($buffer) `to` type($map)
  }];
  let builders = [OpBuilder<(ins "mlir::Value":$buffer,
      "mlir::Value":$sourceRow, "mlir::Value":$map, "mlir::Value":$batch,
      "mlir::Value":$head, "mlir::Value":$row, "mlir::Value":$column), [{
    build($_builder, $_state, buffer, sourceRow, map, batch, head, row, column,
          /*stage=*/mlir::Value());
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Columns of the buffer that go, as far as is known without the column.
    int64_t columns();
  }];
}

def Tile_TmaStoreWaitOp : Tile_Op<"tma_store_wait",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until the warp's stores have read their buffers";
  let description = [{
    All but the last `in_flight` of them (`tile.tma_store`, `tile.add_words`),
    in the order in which they began.  `complete` waits until they have arrived
    in memory as well, as if the warp had written or added there itself.
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>]>:$in_flight,
                       UnitAttr:$complete);
  let assemblyFormat = "$in_flight (`complete` $complete^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Words in one piece
//===----------------------------------------------------------------------===//

def Tile_LoadWordsOp : Tile_Op<"load_words",
    [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "starts copying a run of f32 into a stage of a buffer";
  let description = [{
    One lane.  The array is one of runs as long as the buffer's only row; run
    number `index` becomes the row of the stage.  Arrives at the barrier and
    announces the bytes, as `tile.tma_load` does.  The array begins at a
    multiple of 16 bytes.
  }];
  let arguments = (ins Tile_Ptr:$base, I32:$index, Tile_Smem:$buffer,
                       I32:$stage, Tile_Mbarrier:$barrier, I32:$slot);
  let assemblyFormat = [{
    $base `[` $index `]` `to` $buffer `[` $stage `]`
    `arrive` $barrier `[` $slot `]` attr-dict
    `:` type($base) `to` type($buffer) `,` type($barrier)
  }];
  let hasVerifier = 1;
}

def Tile_AddWordsOp : Tile_Op<"add_words",
    [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "starts adding the words of a stage to global memory";
  let description = [{
    Per warp, by its first lane.  The first `count` words of the stage, as they
    lie there, are f32 and are added one by one to run number `index` of an
    array of such runs, which begins at a multiple of 16 bytes.  In which order
    words are added up is open.  Who reads or writes them otherwise in the same
    launch comes behind all that is added there: behind the `complete`
    `tile.tma_store_wait` of every warp that adds.  The buffer may be written
    again after `tile.tma_store_wait`.

    With `in_order` the program says in which order: whoever adds comes behind
    the `complete` wait of all who have added to the same words before, but for
    zeros, which change nothing.  What adds there all has it.
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$stage, Tile_Ptr:$base,
                       I32:$index, I32Attr:$count);
  let assemblyFormat = [{
    $buffer `[` $stage `]` `to` $base `[` $index `]` `count` $count attr-dict
    `:` type($buffer) `to` type($base)
  }];
  let hasVerifier = 1;
}

def Tile_StoreWordsOp : Tile_Op<"store_words",
    [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "starts storing the words of a stage to global memory";
  let description = [{
    As `tile.add_words`, but what was there is gone: sums begin with the words
    that are stored.  So it comes before all that is added to them: whoever adds
    comes behind the `complete` `tile.tma_store_wait` of who stored, and so does
    who reads or writes them otherwise.
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$stage, Tile_Ptr:$base,
                       I32:$index, I32Attr:$count);
  let assemblyFormat = [{
    $buffer `[` $stage `]` `to` $base `[` $index `]` `count` $count attr-dict
    `:` type($buffer) `to` type($base)
  }];
  let hasVerifier = 1;
}

#endif
