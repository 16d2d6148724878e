// Ops of the attn dialect.
#ifndef ATTN_IR_ATTNOPS_TD
#define ATTN_IR_ATTNOPS_TD

include "attn/IR/AttentionOp.td"
include "attn/IR/AttnAttrs.td"

def Attn_ForwardOp : Attn_AttentionOp<"forward"> {
  let summary = "attention, forward: softmax(scale Q K^T + mask) V";
  let description = [{
    For each batch entry and head,

    ```
    S   = scale * Q K^T            where the mask lets query i see key j, else -inf
    O   = softmax(S) V             rows of the softmax over the keys
    LSE = log(sum_j exp(S_ij))     natural logarithm
    ```

    ```mlir
    %o, %lse = attn.forward %q, %k, %v mask(causal) scale(0.125)
        : tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
       -> tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>

    attn.forward %q, %k, %v mask(window<1024, 0>) outs(%o : memref<1x8x?x64xf16>)
        : memref<1x8x?x64xf16>, memref<1x8x?x64xf16>, memref<1x8x?x64xf16>
    ```

    **Shapes.** Q is `[batch, heads, queries, d]`, K `[batch, kv_heads, keys, d]`,
    V `[batch, kv_heads, keys, e]`, O `[batch, heads, queries, e]` and LSE
    `[batch, heads, queries]`. Head `h` of Q reads head
    `h / (heads / kv_heads)` of K and V: multi-head, grouped-query and
    multi-query attention are the same op. Batch, queries and keys may be
    dynamic; sizes that a constraint calls equal but that are not both static
    must be equal at run time.

    **Mask.** Absent is `none`; see `#attn.mask`. A query that sees no key,
    which includes every query when there are no keys, gives O = 0 and
    LSE = -inf.

    **Scale.** Absent is `1/sqrt(d)`. It is held as f32, the precision in which
    scores are scaled. Zero and negative scales are ordinary mathematics.

    **Precision.** Scores, softmax statistics and sums are f32. The element type
    of the operands is the precision of both products; nothing is computed in
    less unasked. Of f32 the products are those of `precision`, see
    `#attn.precision`: absent is `tf32x3`, whose error is about that of f32
    arithmetic. O has the element type of Q, but for f8E4M3FN it is bf16: without
    a scale of its own an f8 result would keep three bits of the mantissa.

    **Outputs.** On tensors the results are O and, if a second one is asked for,
    LSE. `outs` may name a destination for each result; its contents are never
    read. On memrefs `outs` are the outputs, and there are no results.

    **The low word of LSE.** With three outputs, or five, the third is what LSE
    lacks as an f32: both together are the log-sum-exp to about 2^-44 of itself,
    of the scores as f32 has them. It is for an `attn.backward` of large scores,
    whose weights come from LSE. A query that sees no key has 0.

    ```mlir
    %o, %lse, %low = attn.forward %q, %k, %v
        : tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
       -> tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>, tensor<4x32x4096xf32>
    ```

    **Alignment.** The optional attribute `alignment` is a promise of the
    caller, in bytes: every row of Q, K, V and O begins at a multiple of it.
    Without it an array is taken to begin at a multiple of 16, and a row at what
    the strides in its type then tell; a stride that is dynamic tells nothing,
    and its array moves element by element. The promise speaks for dynamic
    strides, and for arrays that begin anywhere.

    **Schedule.** The optional attribute `schedule` records how the op is to be
    computed. It does not change what is computed.

    **Regions.** What a band and a scale cannot say are functions of numbers.
    `sees` tells whether query `i` sees key `j`, besides the mask; `score` tells
    what becomes of a scaled score `z` before masks and the softmax. Indices are
    those of the arrays, `h` is the query head, `nq` and `nk` are the numbers of
    queries and keys. What regions read are `captures`, whose places in the
    regions are behind these.

    ```mlir
    %o, %lse = attn.forward %q, %k, %v mask(causal) scale(0.125)
        captures(%doc, %slope : tensor<?xi32>, tensor<32xf32>)
        sees (%b, %h, %i, %j, %nq, %nk, %d, %s) {
          %x = attn.read %d[%i] : tensor<?xi32>
          %y = attn.read %d[%j] : tensor<?xi32>
          %r = arith.cmpi eq, %x, %y : i32
          attn.yield %r : i1
        }
        score (%z : f32, %b, %h, %i, %j, %nq, %nk, %d, %s) {
          %a = attn.read %s[%h] : tensor<32xf32>
          %n = arith.mulf %z, %a : f32
          attn.yield %n : f32
        }
        : tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
       -> tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>
    ```

    Of some regions there is a short form, which is printed wherever a region
    has the structure of one. Those of scores follow each other as they are
    written.

    | form | region |
    |---|---|
    | `document(%ids : type)` | sees: `ids[i] == ids[j]`, or `ids[b, i] == ids[b, j]` |
    | `softcap(50.0)` | score: `50 tanh(z / 50)` |
    | `alibi(%slopes : type)` | score: `z + slopes[h] (j - i)`, or with `slopes[b, h]` |
    | `bias(%x : type)` | score: `z + x[b, h, i, j]`, or without the first one or two; a size of 1 is for all |

    **Blocks.** `blocks` lists which blocks of queries and keys are looked at:
    for each batch entry, head and block of queries a count, and the numbers of
    so many blocks of keys, in any order, each once in one of both lists. In a
    full block every pair is seen, and nobody asks the mask or `sees`; in a
    partial one, those that both show. All other pairs are hidden. Batch entries and heads of the
    lists may be 1, which then stand for all.

    ```mlir
    %o = attn.forward %q, %k, %v
        blocks(partial %pc, %pi, full %fc, %fi, size 128 x 128
               : tensor<1x1x32xi32>, tensor<1x1x32x32xi32>, tensor<1x1x32xi32>, tensor<1x1x32x32xi32>)
        sinks(%sink : tensor<32xf32>)
        : tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
       -> tensor<4x32x4096x128xbf16>
    ```

    **Sinks.** `sinks` has a score for each head that is in the sum of every row
    and has no value: LSE includes it. A query that sees no key gives O = 0 and
    LSE = the sink.

    **Lengths.** `lengths(k %n)` has for each batch entry how many of its keys
    are used, the first ones. The entry is computed as if it had no others: what
    counts from the bottom-right corner, `causal_bottom_right`, windows and
    prefixes, counts from its last used key, and regions see its number as `nk`.
    Rows behind may hold anything, NaN too. A number below 0 is 0, and one beyond
    the keys that there are is as many. Plans count all keys.

    **Pages.** With `pages(%t)` K and V are `[pages, heads, rows, head_dim]`: a
    pool of pages of so many keys. The table `[batch, pages of an entry]` names
    the pages of each entry in order, and an entry has as many keys as they hold,
    of which `lengths` tells those that are used. Table entries behind the used
    keys may have any numbers; others are promised to be pages.

    ```mlir
    %o = attn.forward %q, %k, %v mask(causal_bottom_right)
        lengths(k %used : memref<64xi32>) pages(%table : memref<64x2048xi32>)
        outs(%out : memref<64x32x1x128xbf16>)
        : memref<64x32x1x128xbf16>, memref<?x8x16x128xbf16>, memref<?x8x16x128xbf16>
    ```

    **Scales of operands.** `scales(q %a, k %b, v %c)`, each of them optional, are
    what Q, K and V were divided by when they were rounded to few bits: a number
    for each batch entry and key head, `[batch, kv_heads]` of f32, either of
    which may be a static 1 for all. They are read on the device, so nothing is compiled
    anew for others:

    ```
    S = scale a b Q K^T     O = c softmax(S) V     LSE is that of S
    ```

    Regions see these S. Scales of Q and K are promised to be finite and not
    negative, that of V to be finite. An O of f16 that overflows is the largest
    f16 where V has a scale.

    ```mlir
    %o = attn.forward %q, %k, %v
        scales(q %a, k %b, v %c : tensor<1x1xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
        : tensor<4x32x4096x128xf8E4M3FN>, tensor<4x8x4096x128xf8E4M3FN>, tensor<4x8x4096x128xf8E4M3FN>
       -> tensor<4x32x4096x128xbf16>
    ```

    **Values of keys.** With `values(keys, first n)` there is no V: it is the
    first `n` columns of K, as in latent attention, where both are made of one
    vector. All clauses hold as for two arrays, and plans count that device
    memory is read once. Weights are not kept, and there are no gradients.

    ```mlir
    %o = attn.forward %q, %k values(keys, first 512)
        : tensor<64x128x1x576xbf16>, tensor<64x1x8192x576xbf16>
       -> tensor<64x128x1x512xbf16>
    ```

    **Clauses in kernels.** `flash` takes regions and sinks forward,
    `flash_backward` and `split_backward` backward, on mma.sync and wgmma as far
    as they have kernels there; other schedules refuse them by name. Floats of a
    region are f32 there. Sums and products may be contracted, and a quotient by
    a constant is a product. tanh of a score is `tanh.approx.f32` where Q and K
    have types of 8 or 16 bits, within 2^-11 of its result; where they are f32,
    and in `sees`, it is within a few units of the last place, as exp, log, sqrt
    and rsqrt are everywhere.
    Differences of positions are exact as floats up to 2^24. What depends on the
    batch entry, the head and the query is computed once for a tile. A block of
    keys that a band or a list says to be open has no code of the band; `sees`
    is computed in every block but the full ones of lists, so a pattern that
    hides much belongs in lists. Elements of captures are read where they are
    needed, through the caches: bytes of plans, which the IR of kernels is held
    to, do not count them, nor sinks, scales, lists of blocks, lengths and tables
    of pages. `flash` takes lengths in bf16 and f16, on mma.sync in f32 too, and
    pages on wgmma. `column_split` takes both, in clusters of one block. `flash`
    takes scales of operands of all types.

    **Ragged sequences.** With `ragged` the rows of all sequences lie one behind
    the other, and sequence `n` has those from `cu_q[n]` to `cu_q[n + 1]`, and
    the keys from `cu_k[n]` to `cu_k[n + 1]`. Offsets are on the device; the
    first is 0, they do not fall, and what lies behind the last one is neither
    read nor written. The longest are upper bounds of what a sequence has.

    ```mlir
    %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right)
        ragged(%cu_q, %cu_k, longest 4000, 4000 : tensor<65xi32>, tensor<65xi32>)
        : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>
       -> tensor<?x32x128xbf16>, tensor<32x?xf32>
    ```

    Every sequence is attention of its own: masks are those of its queries and
    keys, `i`, `j`, `nq` and `nk` of regions count in it, and `b` is its number. It
    may have no queries or no keys; of such a one all rows have gradients of 0.

    **Ragged queries on a cache.** Beside `lengths` only queries are ragged, and
    `ragged` has their offsets alone: sequence `n` has the used keys of batch
    entry `n`, in order or in pages. So sequences with one new query and with
    thousands of them are one op.

    ```mlir
    %o = attn.forward %q, %k, %v mask(causal_bottom_right)
        ragged(%cu_q, longest 512 : tensor<129xi32>)
        lengths(k %used : tensor<128xi32>) pages(%table : tensor<128x2048xi32>)
        : tensor<?x32x128xbf16>, tensor<?x8x16x128xbf16>, tensor<?x8x16x128xbf16>
       -> tensor<?x32x128xbf16>
    ```

    **Text.** Clauses (`mask`, `scale`, `precision`, `outs` and those of above)
    come in any order, each once, but `captures` in front of the regions. An attribute that the op does not know and that names no dialect
    is ignored with a warning.

    **Outputs that nobody uses.** On tensors `-canonicalize` drops an LSE, its
    low word or weights without a use, and an op without any.

    **Weights that are kept.** With four outputs, or five, the last two are
    weights W and what they stand at, R, for an `attn.backward` that then need not multiply
    scores again. They grow with the square of the rows, so nobody gets them
    unasked. Keys are in blocks of 256, and each block has for every query a
    maximum m of its own, a whole number:

    ```
    W_ij = 2^(scale log2(e) (Q K^T)_ij - m_i)     [batch, heads, queries, keys]
    R    = m_i and sum_j W_ij of every block      [batch, heads, 2 ceil(keys / 256), queries]
    P_ij = W_ij 2^(m_i - log2(e) LSE_i)
    ```

    ```mlir
    %o, %lse, %w, %r = attn.forward %q, %k, %v
        : tensor<4x32x1024x512xbf16>, tensor<4x32x1024x512xbf16>, tensor<4x32x1024x512xbf16>
       -> tensor<4x32x1024x512xbf16>, tensor<4x32x1024xf32>, tensor<4x32x1024x1024xbf16>, tensor<4x32x8x1024xf32>
    ```

    W has the element type of Q, and rows of R are those of m and of the sum in
    turn. What the mask hides of a tile of 128 queries and a block has W = 0; of
    a tile that sees nothing of a block neither W nor R is written.

    #### Constraints

    - (C1) Operands are all tensors without encoding, or all memrefs.
    - (C2) There are one to five outputs: O; O and LSE; O, LSE and its low word;
      O, LSE, W and R; or all of them, in the order O, LSE, its low word, W and
      R. On tensors they are results, and `outs` is absent or has one
      destination of the same type for each. On memrefs they are `outs`, and
      there are no results.
    - (C3) Q, K, V, O, W and R have rank 4, LSE and its low word have rank 3.
      Ragged, one less.
    - (C4) A memref has a strided layout whose innermost stride is 1.
    - (C5) Q, K and V have one element type: bf16, f16, f32 or f8E4M3FN; or K
      and V, as those of a cache, have f8E4M3FN under a Q of bf16 or f16.
    - (C6) O has the element type of Q, or bf16 if that is f8E4M3FN; W has that
      of Q, LSE, its low word and R have f32.
    - (C7) Q, K and V have the same batch size, unless they are ragged.
    - (C8) Head counts are static and positive, also in the outputs; K and V
      have the same, and that of Q is a multiple of it.
    - (C9) K and V have the same number of rows.
    - (C10) Head dimensions are static and positive, also in O; those of Q and
      K agree.
    - (C11) The shape of O is `[batch, heads, queries, e]`, that of W
      `[batch, heads, queries, keys]`.
    - (C12) The shape of LSE and its low word is `[batch, heads, queries]`, that
      of R `[batch, heads, 2 ceil(keys / 256), queries]`. Ragged, Q and O are
      `[queries, heads, d]` and `[queries, heads, e]`, K and V `[keys, kv_heads,
      d]` and `[keys, kv_heads, e]`, but beside `lengths`, LSE and its low word
      `[heads, queries]`.
    - (C13) Sizes stay where the cost model is exact (`attn::check`): rows below
      2^30, batch and heads up to 2^20, head dimensions up to 65536,
      batch x heads x queries x keys x head dimension up to 2^58, and
      batch x heads x tiles of 16 rows up to 2^30 (Schedule/Limits.h). Batch,
      queries and keys may be 0. Where arrays end is C20.
    - (C14) The numbers of a mask are between 0 and 2^30.
    - (C15) The scale is finite.
    - (C16) An output memref is none of Q, K and V.
    - (C17) The alignment is a power of two, at least the bytes of an element
      of K and at most 16.
    - (C18) A precision is given for operands of f32 only.
    - (C19) Weights are kept of bf16 and f16 only, and of operands of one type.
    - (C20) Offsets and strides of a memref are 0 or more, and it ends within
      2^44 bytes of its beginning. Elements of an output lie apart: sorted by
      size, each stride is beyond all that the smaller ones reach.
    - (C21) A memref is in global memory: memory space 0 or 1, or
      `#gpu.address_space<global>`.
    - (C22) Captures have elements of i1, i8, i16, i32, i64, bf16, f16 or f32.
    - (C23) A region has one block, whose arguments are the score (of `score`
      only), `b`, `h`, `i`, `j`, `nq`, `nk` and the captures. `sees` yields an
      i1, `score` an f32.
    - (C24) Ops of regions are those of arith, math and index that
      `ScalarOps.def` lists, and `attn.read`, on index, integers of up to 64
      bits, bf16, f16 and f32.
    - (C25) Lists of blocks are i32: counts `[1 or batch, 1 or heads,
      ceil(queries / block)]`, indices for the same batch entries and heads
      with `ceil(keys / block)` columns or fewer.
    - (C26) The sizes of a block are positive multiples of 64.
    - (C27) Sinks are f32, one for each head.
    - (C28) No weights are kept with clauses that take regions or arrays.
    - (C33) Offsets of `ragged` are i32 or i64, both of them, and
      `[sequences + 1]`; the longest are between 0 and 2^30. Beside `lengths`
      they are those of queries alone.
    - (C34) Ragged are no blocks and no weights that are kept; and `causal`
      only if the offsets of queries and keys are one value, for else it is not
      told where the diagonal of a sequence ends: `causal_bottom_right` is.
    - (C35) Used keys are i32 or i64, a number for each batch entry, or ragged
      sequence, and the mask is not `causal`, unless queries and keys are static
      and equal, and not ragged. They come without lists of blocks and weights
      that are kept.
    - (C36) A table of pages is i32, `[batch, pages]`, beside `lengths`; pages
      have a static multiple of 8 keys. Then C7 and C9 hold for K and V alone.
    - (C37) Arrays of `document`, `alibi` and `bias` have, in each dimension, 1
      element for all, or at least as many as there are batch entries, heads,
      queries or keys to read them; ragged sequences count their own rows.
    - (C38) Scales of Q, K and V are f32, `[1 or batch, 1 or kv_heads]`. They
      come without weights that are kept.
    - (C39) Beside `values(keys, first n)` the operand V is K, `n` is between 1
      and the columns of K, and O has `n` columns. In the text V is left out.

    #### Rationale: not a `DestinationStyleOpInterface`

    The op is in destination style by form, and bufferizes in place into its
    `outs`. But upstream's interface demands a destination for every result,
    and whoever writes attention as mathematics has none to name. Without the
    interface, upstream treats the op like any that can reify its result
    shapes, and creates destinations where it needs them.

    #### Rationale: what upstream tiles

    On tensors the op has upstream's `TilingInterface`, over batch entries, heads
    in multiples of the group that shares a key head, queries and keys; a tile is
    the op on slices. Keys are a reduction: a tile of them is a part, and
    `PartialReductionOpInterface` makes the whole by `attn.merge`. A mask tells
    queries and keys by their place in the whole, so with one they are not tiled.
    What is refused says why in a remark.

    #### Rationale: a mask beside `sees`

    A band gives counts of visible pairs, blocks to skip and a lower bound by
    arithmetic alone, and is how most attention is masked. A region can say all
    that a band says, but then somebody has to find that out again.

    #### Rationale: no softmax statistics as inputs

    Attention that resumes from a partial result (split keys, ring attention)
    is a matter of how. Partial results combine through O and LSE alone, by
    `attn.merge`.
  }];
  let arguments = (ins Attn_Shaped:$q, Attn_Shaped:$k, Attn_Shaped:$v,
                       Variadic<Attn_Shaped>:$rest,
                       OptionalAttr<Attn_MaskAttr>:$mask,
                       OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<Attn_PrecisionAttr>:$precision,
                       OptionalAttr<I64Attr>:$alignment,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule,
                       OptionalAttr<DenseI32ArrayAttr>:$operandClauseSizes,
                       OptionalAttr<DenseI64ArrayAttr>:$blocks,
                       OptionalAttr<DenseI64ArrayAttr>:$longest,
                       OptionalAttr<I64Attr>:$values);
  let builders = [OpBuilder<(ins
      "::mlir::TypeRange":$results, "::mlir::Value":$q, "::mlir::Value":$k,
      "::mlir::Value":$v, "::mlir::ValueRange":$outs,
      "::attn::MaskAttr":$mask, "::mlir::FloatAttr":$scale,
      "::attn::PrecisionAttr":$precision, "::mlir::IntegerAttr":$alignment,
      "::attn::ScheduleAttr":$schedule), [{
    build($_builder, $_state, results, q, k, v, outs, mask, scale, precision,
          alignment, schedule, /*operandClauseSizes=*/nullptr,
          /*blocks=*/nullptr, /*longest=*/nullptr, /*values=*/nullptr,
          /*functionsCount=*/0);
  }]>];
  let extraClassDeclaration = attentionMethods # [{
    static ::llvm::SmallVector<::llvm::StringLiteral>
    rolesOfOutputs(size_t count);
  }];
}

def Attn_BackwardOp : Attn_AttentionOp<"backward", [AttrSizedOperandSegments]> {
  let summary = "attention, backward: the gradients of Q, K and V";
  let description = [{
    The gradients of a loss in Q, K and V, from that in O, of
    `O, LSE = attn.forward Q, K, V` with the same mask and scale. For each batch
    entry and head,

    ```
    P  = exp(scale * Q K^T - LSE)     where the mask lets query i see key j, else 0
    dV = P^T dO
    dP = dO V^T
    D  = rowsum(dO * O) - dLSE        one number for each query
    dS = P * (dP - D)
    dQ = scale * dS K
    dK = scale * dS^T Q
    ```

    ```mlir
    %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
        : tensor<4x32x4096x128xbf16>, tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>,
          tensor<4x8x4096x128xbf16>, tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>
       -> tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>

    attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : memref<1x8x?xf32>)
        outs(%dq, %dk, %dv : memref<1x8x?x64xf16>, memref<1x8x?x64xf16>, memref<1x8x?x64xf16>) {deterministic}
        : memref<1x8x?x64xf16>, memref<1x8x?x64xf16>, memref<1x8x?x64xf16>,
          memref<1x8x?x64xf16>, memref<1x8x?x64xf16>, memref<1x8x?xf32>
    ```

    **Shapes.** Those of `attn.forward`; a gradient has the shape of what it is
    the gradient of. Where a head of K and V serves several heads of Q, its dK
    and dV are their sums. The head dimension of V, O, dO and dV may differ from
    that of the others.

    **Statistics.** O and LSE are results of the forward op and not checked to
    be: P comes from LSE alone, without a maximum or a sum of its own. `dlse` is
    the gradient in LSE, where the loss depends on it; absent is 0. `lse_low` is
    the low word of LSE, which large scores need (**Precision**):

    ```mlir
    %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse lse_low(%low : tensor<4x32x4096xf32>)
        : tensor<4x32x4096x128xbf16>, tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>,
          tensor<4x8x4096x128xbf16>, tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>
       -> tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
    ```

    **Weights that were kept.** `weights` takes W and R of a forward op with four
    outputs or five, of the same mask and scale: P comes from them and LSE, and four
    products are left of five.

    ```mlir
    attn.backward %do, %q, %k, %v, %o, %lse
        weights(%w, %r : memref<1x8x1024x1024xf16>, memref<1x8x8x1024xf32>)
        outs(%dq, %dk, %dv : memref<1x8x1024x512xf16>, memref<1x8x1024x512xf16>, memref<1x8x1024x512xf16>)
        : memref<1x8x1024x512xf16>, memref<1x8x1024x512xf16>, memref<1x8x1024x512xf16>,
          memref<1x8x1024x512xf16>, memref<1x8x1024x512xf16>, memref<1x8x1024xf32>
    ```

    **Clauses.** Regions, blocks and sinks are those of the forward op, and LSE
    includes the sinks. With `s = score(z)`, a gradient passes through the region:
    dS above is that in `s`, and dQ and dK have the factor `ds/dz`. `gradients`
    asks for those of captures and of sinks, which are sums over all that read
    them; `transposed` has the lists of blocks by keys, for who sums over
    queries. What only `sees` reads has a gradient of 0.

    ```mlir
    %dq, %dk, %dv, %dslopes = attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
        alibi(%slopes : tensor<32xf32>) gradients(%slopes)
        : tensor<4x32x4096x128xbf16>, tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>,
          tensor<4x8x4096x128xbf16>, tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>
       -> tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<32xf32>
    ```

    **Gradients of captures in kernels.** Where the indices of a read depend on
    neither query nor key, as those of slopes, warps sum up their rows, and a
    launch behind sums up what they left, in one order; so it is with sinks.
    `split_backward` has such sums of captures. To what other indices say, as
    those of a bias or a table, it and `flash_backward` add pair by pair in global
    memory, in any order. So `deterministic` needs elements that one pair reads
    for itself, with the indices `b`, `h`, `i` and `j`, of which `b` and `h` may
    be left out where there is one; others are refused. Arrays of these gradients
    have no gaps. Plans count a word for each element of a block that adds, and
    for each sum of 16 rows; not what launches before and behind move.

    **Mask, scale, outputs, alignment, schedule.** As for `attn.forward`; the
    alignment also speaks for the gradients. A query that sees no key has
    LSE = -inf: it gets dQ = 0 and adds nothing to dK and dV, and a key that no
    query sees gets dK = dV = 0. A NaN or infinity in Q, K or dO can also reach
    gradients of hidden pairs of the same tile, whose factor there is 0.

    **Precision.** LSE, D and sums are f32. P and dS are rounded to the element
    type as factors of products, like the operands; of f32 the products are
    those of `precision`. The gradients have the element type of Q.

    P comes from LSE, whose roundings to f32 are in the exponent of a whole row:
    P is off by about 2^-24 |LSE| of itself, and by three times that at most.
    That is less than the rounding of P to bf16 up to |LSE| = 2^15, and 1 % of
    P near 2^18. The forward op has no such limit, and with `lse_low` neither has
    this one, as long as its scores have the bits of those of the forward op.
    Where they are summed up in another order, and of weights that are kept
    beyond |log2(e) LSE| = 2^23, there remains what scores are rounded by, about
    2^-24 of the largest of them for each by itself.

    **Determinism.** With the unit attribute `deterministic` every run takes
    sums in the same order, so that the same inputs give the same bits. Without
    it, sums of several blocks may be taken in the order in which they come.

    #### Constraints

    - (C1) Operands are all tensors without encoding, or all memrefs.
    - (C2) There are three outputs, and one for each of `gradients`. On tensors
      they are results, and `outs` is absent or has one destination of the same
      type for each. On memrefs they are `outs`, and there are no results.
    - (C3) Q, K, V, O, their gradients, W and R have rank 4, LSE, its low word
      and dLSE have rank 3. Ragged, one less.
    - (C4) A memref has a strided layout whose innermost stride is 1.
    - (C5) Q, K and V have one element type: bf16, f16 or f32.
    - (C6) O, the gradients of Q, K, V and O, and W have the element type of Q;
      LSE, its low word, dLSE and R have f32.
    - (C7) Q, K and V have the same batch size, unless they are ragged.
    - (C8) Head counts are static and positive, also in the other arrays; K and
      V have the same, and that of Q is a multiple of it.
    - (C9) K and V have the same number of rows.
    - (C10) Head dimensions are static and positive, also in the other arrays;
      those of Q and K agree.
    - (C11) The shape of O and dO is `[batch, heads, queries, e]`, and those of
      dQ, dK and dV are those of Q, K and V, and that of W is
      `[batch, heads, queries, keys]`.
    - (C12) The shape of LSE, its low word and dLSE is `[batch, heads,
      queries]`, that of R `[batch, heads, 2 ceil(keys / 256), queries]`.
    - (C13) Ragged shapes, and limits of sizes, are as for `attn.forward`.
    - (C14) The numbers of a mask are between 0 and 2^30.
    - (C15) The scale is finite.
    - (C16) An output memref is none of the operands that come in, and no two
      are the same.
    - (C17) The alignment is a power of two, at least the bytes of an element
      and at most 16.
    - (C18) A precision is given for operands of f32 only.
    - (C19) W and R come together, of bf16 and f16 only.
    - (C20) Layouts of memrefs are as for `attn.forward`.
    - (C21) A memref is in global memory, as for `attn.forward`.
    - (C22) Captures are as for `attn.forward`.
    - (C23) Regions have the form of those of `attn.forward`.
    - (C24) Their ops are those of `attn.forward`.
    - (C25) Lists of blocks are as for `attn.forward`.
    - (C26) The sizes of a block are positive multiples of 64.
    - (C27) Sinks are f32, one for each head.
    - (C28) No weights come in with regions, captures, blocks or sinks.
    - (C29) `gradients` names captures and sinks of floats, each once. Their
      gradients are outputs behind dV, in that order, of the same shape and f32.
    - (C30) In `score` every op between `z`, or a capture with a gradient, and
      the result has a derivative, or is a comparison.
    - (C31) `transposed` has a list for each list of `blocks`, with blocks of
      keys for rows and blocks of queries for columns.
    - (C33) Offsets of `ragged` are as for `attn.forward`.
    - (C34) So is what goes with them, without `gradients` of captures and sinks.
    - (C37) Arrays of short forms are as large as for `attn.forward`.

    #### Rationale: O and LSE are operands

    Whoever differentiates has them or can ask the forward op for them. An op
    that computed them again would hide a third of its arithmetic; holding or
    computing again is a choice, and belongs where it can be seen.

    #### Rationale: `deterministic` is not the schedule's

    Whether bits repeat is a promise to the user and restricts which schedules
    may be chosen. So it is stated on the op, and the schedule obeys it.
  }];
  let arguments = (ins Attn_Shaped:$d_o, Attn_Shaped:$q, Attn_Shaped:$k,
                       Attn_Shaped:$v, Attn_Shaped:$o, Attn_Shaped:$lse,
                       Optional<Attn_Shaped>:$lse_low,
                       Optional<Attn_Shaped>:$dlse,
                       Variadic<Attn_Shaped>:$kept,
                       Variadic<Attn_Shaped>:$rest,
                       OptionalAttr<Attn_MaskAttr>:$mask,
                       OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<Attn_PrecisionAttr>:$precision,
                       OptionalAttr<I64Attr>:$alignment,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule,
                       UnitAttr:$deterministic,
                       OptionalAttr<DenseI32ArrayAttr>:$operandClauseSizes,
                       OptionalAttr<DenseI64ArrayAttr>:$blocks,
                       OptionalAttr<DenseI64ArrayAttr>:$gradients,
                       OptionalAttr<DenseI64ArrayAttr>:$longest);
  let extraClassDeclaration = attentionMethods # [{
    bool isDeterministic() { return getDeterministic(); }
    ::llvm::SmallVector<::llvm::StringLiteral> givenInputs();
  }];
}

include "attn/IR/RegionOps.td"
include "attn/IR/BlockOps.td"
include "attn/IR/MergeOps.td"

#endif // ATTN_IR_ATTNOPS_TD
