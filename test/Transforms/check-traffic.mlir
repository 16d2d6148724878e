// A kernel as it is built keeps its plan's promise; broken on purpose it does
// not, and the bytes that differ are named.  A row of 16
// columns is 32 bytes.
// RUN: attn-opt %s -attn-attach-machine -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" -convert-attn-to-tile -o %t
// RUN: attn-opt %t -attn-check-traffic -o %t.same
// RUN: FileCheck %s --input-file=%t.same --check-prefix=KEPT
// KEPT: tile.kernel @flash_mma_sync_bf16_16
// KEPT: tile.copy_async

// What it moves can be asked for: Q, K, V and O of 2 heads once, 2048 bytes each.
// RUN: attn-opt %t -attn-check-traffic=report -o %t.same 2>&1 | FileCheck %s --check-prefix=REPORT
// REPORT: remark: moves 16384 bytes at level l2 and {{[0-9]+}} at level smem

// An extra copy of Q: 64 rows of 2 heads.
// RUN: sed '/tile.copy_async.* to <64x16xbf16>$/p' %t > %t.extra
// RUN: not attn-opt %t.extra -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=EXTRA
// EXTRA: error: 'tile.kernel' op expects the 16384 bytes at level l2 of its plan, but moves 20480 (64 queries, 64 keys)

// A warp writes 15 of its 16 rows: 4 warps, 2 heads.
// RUN: sed 's/ count 16 / count 15 /' %t > %t.few
// RUN: not attn-opt %t.few -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: error: 'tile.kernel' op expects the 16384 bytes at level l2 of its plan, but moves 16128 (64 queries, 64 keys)

// Q clipped at the number of keys: the same for the kernel's own problem, which
// is square, so that only a ragged one tells.
// RUN: sed '0,/rows(%%arg20)/s//rows(%%arg21)/' %t > %t.clipped
// RUN: not attn-opt %t.clipped -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=CLIPPED
// CLIPPED: error: 'tile.kernel' op expects the 34432 bytes at level l2 of its plan, but moves 36608 (67 queries, 101 keys)

// A fragment loaded twice in each of the two loops costs shared memory only.
// RUN: sed 's/^ *%%[0-9]* = \(tile.load_matrix .*, lhs>\)$/%%again = \1\n&/' %t > %t.again
// RUN: not attn-opt %t.again -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: 'tile.kernel' op expects the 61440 bytes at level smem of its plan, but moves 69632 (64 queries, 64 keys)

// Rows that hang on the head cannot be counted.
// RUN: sed 's/\(tile.copy_out .*\]\) to \(.*\)\[.*\] count/\1 to \2[%%head] count/; s/^ *%%[0-9]* = tile.program_id 0/&\n%%head = tile.program_id 1/' %t > %t.head
// RUN: not attn-opt %t.head -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=HEAD
// HEAD: error: 'tile.copy_out' op expects its rows to follow from the sizes and the first grid dimension, so that traffic can be counted

// Of a loop whose end nobody would see no step is gone through.
// RUN: sed 's/^\( *%%[a-z0-9:]* = scf.for %%[a-z0-9]* = %%[a-z0-9_]* to \)%%[a-z0-9_]* step /\1%%endless step /; s/^ *%%[0-9]* = tile.program_id 0/&\n%%endless = arith.constant 2147483647 : i32/' %t > %t.endless
// RUN: not attn-opt %t.endless -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=ENDLESS
// ENDLESS: error: 'scf.for' op expects at most 268435456 steps of all loops and blocks, so that traffic can be counted, but got {{[0-9]+}} and {{[0-9]+}} more

// What the kernel says of itself has to make sense.
// RUN: sed 's/dtype = "bf16"/dtype = "bf17"/' %t > %t.problem
// RUN: not attn-opt %t.problem -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=PROBLEM
// PROBLEM: error: 'tile.kernel' op expects a legal problem, but got {{.*}}dtype = "bf17"
// RUN: sed 's/<flash, query = 64/<flash, query = 6400/' %t > %t.schedule
// RUN: not attn-opt %t.schedule -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: error: 'tile.kernel' op expects 16 or 32 rows per warp, but got 6400 rows and 4 warps

// Without a schedule there is no promise, whatever the kernel moves.
// RUN: sed 's/, schedule = #attn.schedule<flash[^>]*>, warps/, warps/' %t.extra > %t.hand
// RUN: attn-opt %t.hand -attn-check-traffic -o %t.same
// RUN: FileCheck %s --input-file=%t.same --check-prefix=HAND
// HAND: tile.kernel
// HAND-NOT: schedule
// HAND: tile.copy_async

func.func @f(%q: tensor<1x2x64x16xbf16>) -> tensor<1x2x64x16xbf16> {
  %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
      : tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16> -> tensor<1x2x64x16xbf16>
  return %o : tensor<1x2x64x16xbf16>
}
