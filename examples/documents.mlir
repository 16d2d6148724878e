// Attention within documents: a token sees what is before it in its own one.
// The lists say which blocks have visible pairs, and `sees` which in partial
// blocks.
!q = tensor<1x16x4096x128xbf16>
!ids = tensor<4096xi32>
!counts = tensor<1x1x32xi32>
!blocks = tensor<1x1x32x32xi32>

func.func @documents(%q: !q, %k: !q, %v: !q, %ids: !ids) -> !q {
  %rows = arith.constant 4096 : index
  %pc, %pb, %fc, %fb = attn.block_lists queries(%rows) keys(%rows)
      batch(1) heads(1) size 128 x 128 captures(%ids : !ids)
      sees (%b, %h, %i, %j, %nq, %nk, %x) {
        %own = attn.read %x[%i] : !ids
        %other = attn.read %x[%j] : !ids
        %same = arith.cmpi eq, %own, %other : i32
        %before = arith.cmpi sle, %j, %i : index
        %sees = arith.andi %before, %same : i1
        attn.yield %sees : i1
      } : !counts, !blocks, !counts, !blocks
  %o = attn.forward %q, %k, %v captures(%ids : !ids)
      sees (%b, %h, %i, %j, %nq, %nk, %x) {
        %own = attn.read %x[%i] : !ids
        %other = attn.read %x[%j] : !ids
        %same = arith.cmpi eq, %own, %other : i32
        %before = arith.cmpi sle, %j, %i : index
        %sees = arith.andi %before, %same : i1
        attn.yield %sees : i1
      }
      blocks(partial %pc, %pb, full %fc, %fb, size 128 x 128
             : !counts, !blocks, !counts, !blocks)
      : !q, !q, !q -> !q
  return %o : !q
}
