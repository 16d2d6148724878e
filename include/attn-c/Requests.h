/*===- Requests.h - Attention in one call -------------------------*- C -*-===*\
|*
|* Arrays and what is to be computed of them, forward and backward: the library
|* compiles what a request needs and keeps it.  Attn.h has an example, and the
|* rules that all functions keep.
|*
|* A kernel serves one type, precision, head dimensions, head counts, mask,
|* scale and alignment of rows.  Batch and rows are free: other sizes compile
|* again only if another schedule is faster for them (attn_bound_schedule).
|* Compiled kernels stay in memory, and in the cache if one is open.
|*
\*===----------------------------------------------------------------------===*/

#ifndef ATTN_C_REQUESTS_H
#define ATTN_C_REQUESTS_H

#include "attn-c/Executables.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Attention in one call ---------------------------------------------===*/

/* An array that clauses read: %name in their text, of type !name. */
typedef struct attn_capture {
  /* Letters, digits and _; not that of an array of the call ("q"). */
  const char *name;
  /* Of elements: "i1" (a byte each), "i8", "i16", "i32", "i64", "bf16", "f16"
     or "f32". */
  const char *type;
  /* Of any rank and strides.  A dimension of size 1 and an innermost stride of
     1 are part of a kernel; all other sizes and strides are free. */
  attn_buffer buffer;
} attn_capture;

/* What becomes of scores, and which of them are seen, in the words of the
   dialect: the clauses captures(..), sees(..) {..}, score(..) {..},
   document(..), softcap(..), alibi(..), bias(..), sinks(..) and scales(..),
   each once, in any order:

     captures(%near : !near)
     sees (%b, %h, %i, %j, %nq, %nk, %near) {
       %x = attn.read %near[%h] : !near
       %d = arith.subi %i, %j : index
       %y = arith.index_cast %d : index to i32
       %r = arith.cmpi sle, %y, %x : i32
       attn.yield %r : i1
     }
     softcap(30.0)

   An error in the text says its line and column.  The text is part of what a
   kernel is known by: one text, one kernel.  Clauses that no kernel takes are
   ATTN_UNSUPPORTED. */
typedef struct attn_clauses {
  size_t struct_size;
  const char *text;
  /* Each of them is named by the text.  In a launch their addresses are behind
     all others, in this order.  What they hold may change between launches. */
  const attn_capture *captures;
  int64_t capture_count;
} attn_clauses;

typedef struct attn_forward_request {
  size_t struct_size;
  /* Of q, k and v, or of q alone where there is a kv_dtype: "bf16", "f16", ...;
     o is bf16 for "f8e4m3". */
  const char *dtype;
  /* NULL, or as in attn_problem. */
  const char *mask;
  int32_t has_scale;
  double scale;
  /* NULL: the GPU's own row of the table; else as for attn_compile. */
  const char *machine;
  /* NULL: derived.  What it leaves out is chosen for the sizes at hand. */
  const char *schedule;
  /* NULL, or as in attn_problem. */
  const char *precision;
  /* NULL, or where the low word of lse goes, [batch, heads, queries] of f32:
     what it lacks, so that lse + lse_low is the log-sum-exp to about 2^-44 of
     itself.  Gradients at large scores need it.  Its address is behind that of
     lse in a launch.  Callers whose struct_size ends before it have none. */
  const attn_buffer *lse_low;
  /* NULL, or which blocks of block_queries x block_keys are looked at, both
     multiples of 64: for each block of queries a count, and the numbers of so
     many blocks of keys, in any order, each once in one of both lists.  What is
     behind them is not read.  Counts are [batch or 1, heads or 1,
     ceil(queries / block_queries)] and blocks the same with
     ceil(keys / block_keys) columns, all of int32; 1 stands for all.  A list is
     two arrays, and one list may be left out.  Of a partial block a query sees
     what the mask shows, of a full one all, so that the mask must hide nothing
     of it, and of all others nothing.  In a launch their addresses are behind
     all others, in this order.  What they hold may change between launches.
     Callers whose struct_size ends before them have none. */
  const attn_buffer *partial_counts;
  const attn_buffer *partial_blocks;
  const attn_buffer *full_counts;
  const attn_buffer *full_blocks;
  int64_t block_queries;
  int64_t block_keys;
  /* NULL, or clauses.  Callers whose struct_size ends before them have none. */
  const attn_clauses *clauses;
  /* NULL, or sequences that lie one behind the other: sequence n has the rows
     of q and o from cu_q[n] to cu_q[n + 1], and those of k and v from cu_k[n]
     to cu_k[n + 1].  The first offset is 0, none is less than the one before,
     and rows behind the last one are neither read nor written.  Offsets are
     [sequences + 1] of int32, or of int64 if wide_offsets is not 0; they are
     read on the device, and may change between launches.  Rows are [rows,
     heads, head dimension], lse [heads, rows]; masks count from each sequence's
     end.  Both longest bound what a sequence has of queries and keys; they
     choose the schedule.  In a launch the addresses of cu_q and cu_k are behind
     those of lists, in front of captures.  Callers whose struct_size ends
     before wide_offsets have none. */
  const attn_buffer *cu_q;
  const attn_buffer *cu_k;
  int64_t longest_q;
  int64_t longest_k;
  int64_t wide_offsets;
  /* NULL, or how many of its keys each batch entry uses, the first ones:
     [batch] of integers of used_keys_bits, 64 or 32 (or 0, the same), read on
     the device.  Masks count from the last used key, and are not "causal"; rows
     of k and v behind it may hold anything.  With a page_table, [batch, pages
     of an entry] of int32, k is a pool of pages, [pages, kv_heads, keys of a
     page, d], v likewise; keys of a page are a multiple of 8, and entries
     behind the used keys are not read as pages.  In a launch their addresses
     are behind those of cu_q and cu_k, or of lists, used_keys first.  Beside
     cu_q without cu_k sequence n has the rows of q and o of cu_q, and the keys
     of entry n, and the mask is not "causal"; longest_k then bounds used keys
     where the schedule is chosen, and 0 is as many as there are. */
  const attn_buffer *used_keys;
  const attn_buffer *page_table;
  int64_t used_keys_bits;
  /* 1: v is the first columns of k, as where both are one latent vector; its
     address and strides are those of k.  So it is read once.  In a launch its
     address is not looked at.  0, or callers whose struct_size ends before it:
     v is an array of its own. */
  int64_t values_of_keys;
  /* Of k and v: that of q (or NULL, the same), or "f8e4m3" where that is "bf16"
     or "f16".  Callers whose struct_size ends before it have none. */
  const char *kv_dtype;
} attn_forward_request;

/* o = softmax(scale q k^T, masked) v.  Shapes: q [batch, heads, queries, d],
   k [batch, kv_heads, keys, d], v [batch, kv_heads, keys, e], o [batch, heads,
   queries, e], lse [batch, heads, queries] of f32 or NULL.  Innermost strides
   are 1. */
ATTN_EXPORT int32_t attn_forward(const attn_forward_request *request,
                                 int32_t device, const attn_buffer *q,
                                 const attn_buffer *k, const attn_buffer *v,
                                 const attn_buffer *o, const attn_buffer *lse,
                                 void *stream, attn_status *status);

/* The same up to the launch: attn_launch takes the addresses of q, k, v, o and,
   where it was not NULL, lse. */
ATTN_EXPORT int32_t attn_forward_bind(
    const attn_forward_request *request, int32_t device, const attn_buffer *q,
    const attn_buffer *k, const attn_buffer *v, const attn_buffer *o,
    const attn_buffer *lse, attn_binding **binding, attn_status *status);

/* The schedule that these arrays would be bound with, "flash, query = 128, key
   = 64", on the machine of the request, which is not NULL.  Nothing is
   compiled, no GPU is asked, and no address but its alignment matters.
   ATTN_UNSUPPORTED, with the reasons, where no kernel takes them.
   attn_free(*text). */
ATTN_EXPORT int32_t attn_forward_schedule(
    const attn_forward_request *request, const attn_buffer *q,
    const attn_buffer *k, const attn_buffer *v, const attn_buffer *o,
    const attn_buffer *lse, char **text, attn_status *status);

/* The bytes of scratch that attn_binding_scratch_bytes would say of these
   arrays, bound on the machine of the request, which is not NULL; or 0.  No
   kernel is compiled, no GPU is asked, and no address but its alignment
   matters.  ATTN_UNSUPPORTED as from attn_forward_schedule, and where the
   machine has less memory. */
ATTN_EXPORT int32_t attn_forward_scratch_bytes(
    const attn_forward_request *request, const attn_buffer *q,
    const attn_buffer *k, const attn_buffer *v, const attn_buffer *o,
    const attn_buffer *lse, int64_t *bytes, attn_status *status);

/* attn_forward with two more outputs, which save attn_backward_kept one
   product: the weights of each block of 256 keys, weights [batch, heads,
   queries, keys] of dtype, and the blocks' maxima and sums, block_rows [batch,
   heads, 2 ceil(keys / 256), queries] of f32.  Weights grow with the square of
   the rows.  For bf16 and f16, on GPUs with wgmma; rows of weights begin at
   multiples of 16 bytes. */
ATTN_EXPORT int32_t attn_forward_kept(
    const attn_forward_request *request, int32_t device, const attn_buffer *q,
    const attn_buffer *k, const attn_buffer *v, const attn_buffer *o,
    const attn_buffer *lse, const attn_buffer *weights,
    const attn_buffer *block_rows, void *stream, attn_status *status);

ATTN_EXPORT int32_t attn_forward_kept_bind(
    const attn_forward_request *request, int32_t device, const attn_buffer *q,
    const attn_buffer *k, const attn_buffer *v, const attn_buffer *o,
    const attn_buffer *lse, const attn_buffer *weights,
    const attn_buffer *block_rows, attn_binding **binding, attn_status *status);

typedef struct attn_backward_request {
  size_t struct_size;
  /* Of all arrays but lse and dlse: "bf16", "f16" or "f32". */
  const char *dtype;
  /* As in attn_forward_request; those of the forward call. */
  const char *mask;
  int32_t has_scale;
  double scale;
  const char *machine;
  const char *schedule;
  const char *precision;
  /* Sums are taken in the same order in every run: the same inputs give the
     same bits. */
  int32_t deterministic;
  /* NULL, or the low word of lse, which attn_forward gave; as there. */
  const attn_buffer *lse_low;
  /* NULL, or the lists of attn_forward_request; and transposed, the same blocks
     by blocks of keys: counts [batch or 1, heads or 1, ceil(keys /
     block_keys)], heads those of q, and blocks with ceil(queries /
     block_queries) columns. Both say the same, which is not checked.  In a
     launch they are behind all others, in this order. */
  const attn_buffer *partial_counts;
  const attn_buffer *partial_blocks;
  const attn_buffer *full_counts;
  const attn_buffer *full_blocks;
  const attn_buffer *transposed_partial_counts;
  const attn_buffer *transposed_partial_blocks;
  const attn_buffer *transposed_full_counts;
  const attn_buffer *transposed_full_blocks;
  int64_t block_queries;
  int64_t block_keys;
  /* NULL, or the clauses of the forward call; as there. */
  const attn_clauses *clauses;
  /* NULL, or gradients of captures (and sinks), one for each of clauses: NULL,
     or an array of its shape, of f32, without gaps.  In a launch they are
     behind captures, without those that are NULL.  With deterministic one pair,
     or all of a head, read an element; others are ATTN_UNSUPPORTED. */
  const attn_buffer *const *capture_gradients;
  /* NULL, or sequences that lie one behind the other, as in
     attn_forward_request; dq has the rows of q, dk and dv those of k and v, and
     all rows of sequences are written.  In a launch the addresses of cu_q and
     cu_k are behind those of lists, in front of captures.  Callers whose
     struct_size ends before wide_offsets have none. */
  const attn_buffer *cu_q;
  const attn_buffer *cu_k;
  int64_t longest_q;
  int64_t longest_k;
  int64_t wide_offsets;
} attn_backward_request;

/* The gradients of a loss in q, k and v, from that in o, d_o, and the o and lse
   of attn_forward.  dlse is the gradient in lse, where the loss depends on it,
   or NULL.  Gradients have the shape of what they are the gradient of; where a
   head of k and v serves several of q, dk and dv are sums.  Weights come from
   lse and are off by about |lse| 2^-24 of themselves, by three times that at
   most, unless the request has its low word too.  Outputs must not overlap
   other arrays.  Innermost strides are 1. */
ATTN_EXPORT int32_t attn_backward(
    const attn_backward_request *request, int32_t device,
    const attn_buffer *d_o, const attn_buffer *q, const attn_buffer *k,
    const attn_buffer *v, const attn_buffer *o, const attn_buffer *lse,
    const attn_buffer *dlse, const attn_buffer *dq, const attn_buffer *dk,
    const attn_buffer *dv, void *stream, attn_status *status);

/* The same up to the launch: attn_launch takes the addresses in the order of
   the arguments, without dlse if it was NULL. */
ATTN_EXPORT int32_t attn_backward_bind(
    const attn_backward_request *request, int32_t device,
    const attn_buffer *d_o, const attn_buffer *q, const attn_buffer *k,
    const attn_buffer *v, const attn_buffer *o, const attn_buffer *lse,
    const attn_buffer *dlse, const attn_buffer *dq, const attn_buffer *dk,
    const attn_buffer *dv, attn_binding **binding, attn_status *status);

/* As attn_forward_schedule. */
ATTN_EXPORT int32_t attn_backward_schedule(
    const attn_backward_request *request, const attn_buffer *d_o,
    const attn_buffer *q, const attn_buffer *k, const attn_buffer *v,
    const attn_buffer *o, const attn_buffer *lse, const attn_buffer *dlse,
    const attn_buffer *dq, const attn_buffer *dk, const attn_buffer *dv,
    char **text, attn_status *status);

/* As attn_forward_scratch_bytes. */
ATTN_EXPORT int32_t attn_backward_scratch_bytes(
    const attn_backward_request *request, const attn_buffer *d_o,
    const attn_buffer *q, const attn_buffer *k, const attn_buffer *v,
    const attn_buffer *o, const attn_buffer *lse, const attn_buffer *dlse,
    const attn_buffer *dq, const attn_buffer *dk, const attn_buffer *dv,
    int64_t *bytes, attn_status *status);

/* attn_backward from what attn_forward_kept left, for the same mask and scale.
 */
ATTN_EXPORT int32_t attn_backward_kept(
    const attn_backward_request *request, int32_t device,
    const attn_buffer *d_o, const attn_buffer *q, const attn_buffer *k,
    const attn_buffer *v, const attn_buffer *o, const attn_buffer *lse,
    const attn_buffer *dlse, const attn_buffer *weights,
    const attn_buffer *block_rows, const attn_buffer *dq, const attn_buffer *dk,
    const attn_buffer *dv, void *stream, attn_status *status);

ATTN_EXPORT int32_t attn_backward_kept_bind(
    const attn_backward_request *request, int32_t device,
    const attn_buffer *d_o, const attn_buffer *q, const attn_buffer *k,
    const attn_buffer *v, const attn_buffer *o, const attn_buffer *lse,
    const attn_buffer *dlse, const attn_buffer *weights,
    const attn_buffer *block_rows, const attn_buffer *dq, const attn_buffer *dk,
    const attn_buffer *dv, attn_binding **binding, attn_status *status);

/*===-- Lists of blocks ---------------------------------------------------===*/

typedef struct attn_block_lists_request {
  size_t struct_size;
  int64_t queries;
  int64_t keys;
  /* Multiples of 64. */
  int64_t block_queries;
  int64_t block_keys;
  /* captures(..) and sees(..) {..}, as those of attn_forward. */
  const attn_clauses *clauses;
  /* As in attn_forward_request. */
  const char *machine;
} attn_block_lists_request;

/* The lists that attn_forward takes, made on the GPU: the blocks in which sees
   shows some pairs, and those in which it shows all.  Indices rise.  No array
   of queries x keys is made.  Counts are [batch, heads, ceil(queries /
   block_queries)] and blocks the same with ceil(keys / block_keys) columns, of
   int32 in row-major order; batch and heads are those that sees is asked for, 1
   where it reads neither. */
ATTN_EXPORT int32_t attn_block_lists(const attn_block_lists_request *request,
                                     int32_t device,
                                     const attn_buffer *partial_counts,
                                     const attn_buffer *partial_blocks,
                                     const attn_buffer *full_counts,
                                     const attn_buffer *full_blocks,
                                     void *stream, attn_status *status);

/* The transposed lists that attn_backward takes, of lists on the GPU.  Both are
   partial counts, partial blocks, full counts and full blocks, in row-major
   order; machine is NULL, or as in attn_forward_request. */
ATTN_EXPORT int32_t attn_transpose_blocks(
    const char *machine, int32_t device, const attn_buffer *const lists[4],
    const attn_buffer *const transposed[4], void *stream, attn_status *status);

/*===-- JAX ---------------------------------------------------------------===*/

/* A handler of XLA's foreign function interface (XLA_FFI_Handler), to be
   registered for platform CUDA; the call frame is XLA's.  Operands q, k, v;
   results o and, if there is a second, lse; all row-major, with any number of
   leading batch dimensions.  Attributes, all strings: mask, machine, schedule
   ("" is absent), scale (a number or "") and lse_low ("true": lse and behind it
   its low word are results too, or "").  A call frame of NULL asks for nothing
   and gets NULL.

   Four more attributes, which may be missing, say what comes behind: clauses,
   the text of attn_clauses; captures, what they read, "c0 i32, c1 f32"; lists,
   "partial", "full" or "partial, full", and block_size, "128 x 128".  Operands
   are then q, k, v, the arrays of lists in the order of a request, and the
   captures, and arrays have no more batch dimensions than one.

   One more, longest, which may be missing or "", is "200, 400" where sequences
   lie one behind the other: longest_q and longest_k of attn_forward_request.
   cu_q and cu_k, of s32 or s64, are then operands behind lists, in front of
   captures, and shapes are those of attn_forward_request beside cu_q.

   The last one, workspace, which may be missing or "", is "true" where there is
   one result more, behind all others: an array of u8 whose contents do not
   matter, aligned to 256 bytes.  A launch takes its scratch there, if it has
   attn_forward_scratch_bytes or more, and otherwise from the driver's pool.
   XLA adds what it captures to a graph as a child graph, which must not
   allocate: while the stream captures, a launch that needs more than it is
   given is ATTN_UNSUPPORTED, with both numbers of bytes. */
ATTN_EXPORT void *attn_xla_forward(void *call_frame);

/* The same for gradients.  Operands do, q, k, v, o, lse, with the attribute
   lse_low its low word, and, if there is one more, dlse; results dq, dk, dv.
   One more attribute: deterministic, "true" or "".  Lists, with the transposed
   ones, and captures are behind dlse; gradients, "c1, c2", are those of such
   captures, of f32, and results behind dv.  With longest, cu_q and cu_k are
   behind lists, in front of captures.  A workspace is behind gradients. */
ATTN_EXPORT void *attn_xla_backward(void *call_frame);

#ifdef __cplusplus
}
#endif

#endif
