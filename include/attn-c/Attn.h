/*===- Attn.h - The compiler behind a C interface ------------*- C -*-===*\
|*
|* A program passes attention as arrays or as MLIR text; the library compiles it
|* and launches it on a GPU.  Any language that can call C can use it.  No CUDA
|* header and no MLIR header is needed.  Planning and compiling need no GPU.
|*
|* In one call, on arrays of shape [batch, heads, rows, head_dim]:
|*
|*   attn_forward_request request = {sizeof request, "bf16", "causal"};
|*   attn_buffer q = {pointer, 4, {1, 8, 100, 64}, {51200, 6400, 64, 1}};
|*   ...
|*   attn_status status = {0};
|*   if (attn_forward(&request, 0, &q, &k, &v, &o, NULL, stream, &status))
|*     puts(status.message);  // "q, k and v: expects one head dimension, ..."
|*   attn_status_clear(&status);
|*
|* Step by step, from text:
|*
|*   attn_compile(text, strlen(text), "h100_sxm", NULL, NULL, &executable,
|*                &status);                     // no GPU needed
|*   attn_load(executable, 0, &status);         // on GPU 0
|*   attn_bind(executable, buffers, 4, &binding, &status);  // for these shapes
|*   attn_launch(binding, pointers, 4, stream, &status);    // a microsecond
|*
|* Rules.
|* - No function exits, throws or prints.  Each returns its status code and, if
|*   `status` is not NULL, fills it; a message must be cleared by the caller.
|*   The code is ATTN_OK, which is 0, exactly when all went well.
|* - Functions may be called from any thread.  Launches of one binding do not
|*   wait for each other; other calls with one executable take turns.
|* - A fork waits for calls of other threads that are under way, but not for
|*   ptxas.  The child may do what needs no GPU, and must not touch bindings.
|* - Launches queue work on the caller's stream (a CUstream; NULL is the default
|*   stream) and do not wait.  Memory is the caller's, in the primary context of
|*   the GPU: pointers and streams of PyTorch and JAX are fine.
|* - Sizes and strides are in elements.  A stride of 0 repeats an input.
|* - Strings returned through `char **` are freed with `attn_free`.
|* - Structures begin with their size, so that they can grow: set
|*   `struct_size = sizeof(...)`.  Symbols carry the version attn_1.
|*
\*===----------------------------------------------------------------------===*/

#ifndef ATTN_C_ATTN_H
#define ATTN_C_ATTN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ATTN_EXPORT __attribute__((visibility("default")))
#else
#define ATTN_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum attn_code {
  ATTN_OK = 0,
  /* An argument of the call is wrong. */
  ATTN_INVALID_ARGUMENT = 1,
  /* The text does not compile; the message has MLIR's diagnostics. */
  ATTN_COMPILE_ERROR = 2,
  /* The driver or the GPU refused, or there is none; the message has CUDA's
     words. */
  ATTN_DEVICE_ERROR = 3,
  /* A file or folder of the cache cannot be used. */
  ATTN_FILE_ERROR = 4,
  /* The problem is well formed, but nothing that is built here computes it on
     that machine; the message says why. */
  ATTN_UNSUPPORTED = 5,
  /* A fault of the library.  The call had no effect. */
  ATTN_INTERNAL_ERROR = 6,
  /* Others may write the folder of the cache, so it is not used. */
  ATTN_FOREIGN_FILE = 7
} attn_code;

typedef struct attn_status {
  int32_t code;
  /* NULL, or owned by the status until attn_status_clear. */
  char *message;
} attn_status;

ATTN_EXPORT void attn_status_clear(attn_status *status);
ATTN_EXPORT void attn_free(char *text);

/* The version of the library, "0.1.0".  Not to be freed. */
ATTN_EXPORT const char *attn_version(void);

/* Runs a command as its program does: "attn-opt", "attn-plan" or "attn-run".
   argv[0] is its name, and argv[argc] is NULL.  Returns the exit status, or
   ATTN_NO_COMMAND for another name.  A command writes to the standard streams,
   sets options of LLVM for the whole process, and ends it for --help, --version
   and options that it does not know: give it a process of its own. */
#define ATTN_NO_COMMAND 127
ATTN_EXPORT int32_t attn_main(const char *command, int32_t argc, char **argv);

/*===-- Machines ----------------------------------------------------------===*/

/* The table of GPUs: a JSON list of objects, with units in the names. */
ATTN_EXPORT int32_t attn_machines_json(char **json, attn_status *status);

/* How many GPUs there are; ATTN_DEVICE_ERROR where there is no driver. */
ATTN_EXPORT int32_t attn_device_count(int32_t *count, attn_status *status);

/* {"name", "machine", "compute_capability", "multiprocessors",
   "smem_bytes_per_block", "l2_bytes", "memory_bytes", "driver_version"} of a
   GPU; "machine" is its row of the table, or null. */
ATTN_EXPORT int32_t attn_device_json(int32_t device, char **json,
                                     attn_status *status);

/*===-- Plans: which schedule, and why ------------------------------------===*/

/* One attention, or its gradients.  Names are those of attn-plan: dtype "bf16",
   mask NULL, "none", "causal", "causal_bottom_right", "window<L, R>" or
   "prefix<P>".  To
   compile (not to plan), batch, queries and keys may be -1: any number. */
typedef struct attn_problem {
  size_t struct_size;
  const char *dtype;
  int64_t batch, heads, kv_heads, queries, keys, head_dim, head_dim_v;
  const char *mask;
  int32_t with_lse;
  /* The scale of the scores, 1/sqrt(head_dim) unless has_scale. */
  int32_t has_scale;
  double scale;
  /* Bytes that divide the address of every row: 16 (or 0, the same), 8, 4, 2.
     Arrays that promise less move in smaller pieces. */
  int64_t alignment;
  /* Of f32 only: "tf32x3" (or NULL, the same) or "tf32". */
  const char *precision;
  /* "forward" (or NULL, the same): o; "backward": the gradients of q, k, v. */
  const char *direction;
  /* Backward: sums are taken in the same order in every run. */
  int32_t deterministic;
  /* Backward: a gradient of the log-sum-exp comes in. */
  int32_t with_dlse;
  /* Weights are kept (attn_forward_kept), or backward come in. */
  int32_t keeps_weights;
  /* The low word of the log-sum-exp is a result too, or backward comes in.  Of
     64 bits, so that it lies behind what older callers have. */
  int64_t with_lse_low;
} attn_problem;

/* Every choice for a problem on a machine, priced; what `attn-plan --json`
   prints. */
ATTN_EXPORT int32_t attn_plan_json(const attn_problem *problem,
                                   const char *machine, char **json,
                                   attn_status *status);

/* The same for readers; what `attn-plan --explain` prints. */
ATTN_EXPORT int32_t attn_plan_text(const attn_problem *problem,
                                   const char *machine, char **text,
                                   attn_status *status);

/* A plan as a picture, an SVG file: what stays, streams and is spilled, with
   its bytes, beside the op as it is written; what `attn-plan --diagram` draws.
   schedule  which one ("flash, query = 128"), or NULL: the best; sizes that it
             leaves out are chosen */
ATTN_EXPORT int32_t attn_diagram_svg(const attn_problem *problem,
                                     const char *machine, const char *schedule,
                                     char **svg, attn_status *status);

/* The schedule that attn_forward and attn_backward run for arrays of these
   sizes, with all its tiles: as attn_compile takes it, and as it stands in
   "plans" of attn_plan_json, unless one was given that is not offered there.
   schedule  that of a request, or NULL; sizes that it leaves out are chosen */
ATTN_EXPORT int32_t attn_bound_schedule(const attn_problem *problem,
                                        const char *machine,
                                        const char *schedule, char **text,
                                        attn_status *status);

/*===-- Executables -------------------------------------------------------===*/

typedef struct attn_executable attn_executable;

/* Compiles MLIR text with functions of attn.forward and attn.backward, without
   a GPU.
   machine   a name, which facts may follow ("l4, sms = 40"), or NULL: the
             module's own, or h100_sxm
   schedule  overrules the choice ("flash, query = 128, key = 64"), or NULL
   function  which function attn_call runs, or NULL: the only one */
ATTN_EXPORT int32_t attn_compile(const char *text, size_t size,
                                 const char *machine, const char *schedule,
                                 const char *function,
                                 attn_executable **executable,
                                 attn_status *status);

/* MLIR text of a problem: a function of the arrays q, k, v, o, and lse if
   with_lse.  The backward function takes do, q, k, v, o, lse, dlse if
   with_dlse, dq, dk and dv.  lse_low follows lse if with_lse_low.  If
   keeps_weights, weights and block_rows follow these or dlse.  The innermost
   strides are 1; all others are free. */
ATTN_EXPORT int32_t attn_problem_text(const attn_problem *problem, char **text,
                                      attn_status *status);

/* Runs passes over MLIR text, and gives the module's new text.
   passes       what stands in the brackets of builtin.module(...),
   "attn-to-tile, canonicalize", or all of it; "" only parses and verifies
   allow_unregistered  not 0: ops of dialects that are not known are kept as
                they are
   diagnostics  NULL, or a place for what was said on the way: [{"severity",
                "message", "line", "column"}], the latter two where known
   A text that does not parse, and passes that fail, are ATTN_COMPILE_ERROR. */
ATTN_EXPORT int32_t attn_run_passes(const char *text, size_t size,
                                    const char *passes,
                                    int32_t allow_unregistered, char **result,
                                    char **diagnostics, attn_status *status);

ATTN_EXPORT void attn_executable_destroy(attn_executable *executable);

/* {"function", "machine", "arguments": [types], "results": [types],
   "kernels": [{"name", "machine", "schedule", "threads", "smem_bytes",
   "registers", "stack_bytes", ...}],
   "binaries": [{"chip", "assembler", "bytes"}]}.  A stack of more than zero
   bytes means that registers are spilled.  The assembler is that of the cubin,
   "ptxas 13.0", or null: there is PTX only, which the driver assembles when it
   is loaded, and registers and stack are null as well. */
ATTN_EXPORT int32_t attn_executable_info(const attn_executable *executable,
                                         char **json, attn_status *status);

/* The cubin of that position of "binaries"; *size 0 and *bytes NULL behind the
   last and where there is PTX only.  The bytes are the executable's. */
ATTN_EXPORT int32_t attn_executable_cubin(const attn_executable *executable,
                                          size_t index, const char **bytes,
                                          size_t *size, attn_status *status);

/* The PTX of that position of "binaries", likewise. */
ATTN_EXPORT int32_t attn_executable_ptx(const attn_executable *executable,
                                        size_t index, const char **text,
                                        size_t *size, attn_status *status);

/* Loads the kernels on a GPU.  Loading again on another moves there; bindings
   made before stay where they are. */
ATTN_EXPORT int32_t attn_load(attn_executable *executable, int32_t device,
                              attn_status *status);

/* An array in device memory.  Strides are in elements. */
#define ATTN_MAX_RANK 8
typedef struct attn_buffer {
  /* Address of the element with index zero. */
  void *data;
  int64_t rank;
  int64_t sizes[ATTN_MAX_RANK];
  int64_t strides[ATTN_MAX_RANK];
} attn_buffer;

/* Runs the function: its arguments in order, then its results in order.
   Results are written to the caller's memory; their strides must be those of
   row-major order. */
ATTN_EXPORT int32_t attn_call(attn_executable *executable,
                              const attn_buffer *buffers, size_t count,
                              void *stream, attn_status *status);

/*===-- Bindings: a function, a GPU, and shapes ---------------------------===*/

/* What is left of a call when everything but addresses is known.  It holds what
   it needs: the executable may be destroyed first. */
typedef struct attn_binding attn_binding;

/* Binds a loaded executable to the shapes of these buffers; `data` is read for
   its alignment only.  Strides are 0 or more, and elements of what is written
   lie apart. */
ATTN_EXPORT int32_t attn_bind(attn_executable *executable,
                              const attn_buffer *buffers, size_t count,
                              attn_binding **binding, attn_status *status);

/* Launches on these addresses, in the order of the buffers.  What is written
   must not overlap another array of its call: ATTN_INVALID_ARGUMENT. */
ATTN_EXPORT int32_t attn_launch(const attn_binding *binding, void *const *data,
                                size_t count, void *stream,
                                attn_status *status);

/* The bytes of scratch in device memory that a launch needs, or 0.  attn_launch
   takes scratch from the driver's pool, in the order of the stream;
   attn_launch_in_scratch takes it from the caller. */
ATTN_EXPORT int32_t attn_binding_scratch_bytes(const attn_binding *binding,
                                               int64_t *bytes,
                                               attn_status *status);

/* attn_launch with the caller's scratch, aligned to 256 bytes.  Its contents do
   not matter, and nobody else may use it until the launch has run.  If it is
   too small the call returns ATTN_INVALID_ARGUMENT and launches nothing. */
ATTN_EXPORT int32_t attn_launch_in_scratch(const attn_binding *binding,
                                           void *const *data, size_t count,
                                           void *scratch, int64_t scratch_bytes,
                                           void *stream, attn_status *status);

/* What attn_launch does, for programs that launch the cubin themselves:
   {"device", "alignment", "scratch_bytes": [...], "steps": [{"kernel", "grid":
   [x, y, z], "threads", "smem_bytes", "cooperative", "ahead", "arguments":
   [{"role", "type", "value"} or {"role", "buffer", "offset_bytes"} or {"role",
   "type": "tensor_map", "buffer", "offset_bytes", "element", "sizes",
   "strides", "box_rows"} or {"role", "counter"}]}]}.
   - All blocks of a "cooperative" launch run at once.
   - A launch that is "ahead" may begin before the previous one has ended
     (programmatic stream serialization); its kernel waits by itself.
   - Buffers after those of the call are the pieces of scratch, in order.
   - A tensor map (128 bytes, by value) describes the array at that place:
     strides in elements, boxes of 128 bytes by box_rows, a 128-byte swizzle,
     zeros outside.
   - A counter is the address of i32s that are 0 and that no concurrent call
     uses; the launches leave them at 0. */
ATTN_EXPORT int32_t attn_binding_info(const attn_binding *binding, char **json,
                                      attn_status *status);

ATTN_EXPORT void attn_binding_destroy(attn_binding *binding);

/*===-- Tensor maps -------------------------------------------------------===*/

/* Elements of an array that TMA moves; u8 is any type of a byte. */
typedef enum attn_element {
  ATTN_ELEMENT_BF16 = 0,
  ATTN_ELEMENT_F16 = 1,
  ATTN_ELEMENT_U8 = 2,
  ATTN_ELEMENT_F32 = 3
} attn_element;

/* Writes the tensor map that a kernel takes for an array [batch, heads, rows,
   columns] at an address of the current context's GPU: 128 bytes at `map`, a
   multiple of 64.  Four sizes and four strides, in elements.  Where no context
   is current, the GPU is the one that the address belongs to, or else the
   first. Host code that -convert-tile-to-nvvm makes calls it without a status,
   and stops unless it gives ATTN_OK.  libattn_runtime, which holds no compiler,
   has it too; there the reason goes to stderr if there is no status. */
ATTN_EXPORT int32_t attn_encode_tensor_map(
    void *map, int32_t element, uint64_t address, const int64_t *sizes,
    const int64_t *strides, int32_t box_rows, attn_status *status);

/*===-- Attention in one call ---------------------------------------------===*/

/* A kernel serves one type, precision, head dimensions, head counts, mask,
   scale and alignment of rows.  Batch and rows are free: other sizes compile
   again only if another schedule is faster for them (attn_bound_schedule).
   Compiled kernels stay in memory, and in the cache if one is open. */
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
   document(..), softcap(..), alibi(..), bias(..) and sinks(..), each once, in
   any order:

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
  /* Of q, k and v: "bf16", "f16", ...; o is bf16 for "f8e4m3". */
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
     of it, and of all others nothing.  In a launch their addresses are behind all
     others, in this order.  What they hold may change between launches.  Callers
     whose struct_size ends before them have none. */
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
     read on the device, and may change between launches.  Rows are [rows, heads,
     head dimension], lse [heads, rows]; masks count from each sequence's end.  Both longest bound what a sequence has
     of queries and keys; they choose the schedule.  In a launch the addresses
     of cu_q and cu_k are behind those of lists, in front of captures.  Callers
     whose struct_size ends before wide_offsets have none. */
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
     are behind those of cu_q and cu_k, or of lists, used_keys first. */
  const attn_buffer *used_keys;
  const attn_buffer *page_table;
  int64_t used_keys_bits;
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

/* The same with two more outputs, which save attn_backward_kept one product:
   the weights of each block of 256 keys, weights [batch, heads, queries, keys]
   of dtype, and the blocks' maxima and sums, block_rows [batch, heads,
   2 ceil(keys / 256), queries] of f32.  Weights grow with the square of the
   rows.  For bf16 and f16, on GPUs with wgmma; rows of weights begin at
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
     by blocks of keys: counts [batch or 1, heads or 1, ceil(keys / block_keys)],
     heads those of q, and blocks with ceil(queries / block_queries) columns.
     Both say the same, which is not checked.  In a launch they are behind all
     others, in this order. */
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
     or an array of its shape, of f32, without gaps.  In a launch they are behind
     captures, without those that are NULL.  With deterministic one pair, or all
     of a head, read an element; others are ATTN_UNSUPPORTED. */
  const attn_buffer *const *capture_gradients;
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

/* The same from what attn_forward_kept left, for the same mask and scale. */
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

/*===-- Settings of the process -------------------------------------------===*/

/* Keeps compiled kernels in a folder, which is made if need be.  It takes at
   most max_bytes; the least recently used kernels go first.  Several processes
   of one user may share it.  Damaged entries are made again, and no call fails
   because of an open cache.  The folder holds code that is run, so the call
   fails with ATTN_FOREIGN_FILE if the folder belongs to another user or others
   may write it.  NULL closes it.  None is open at the start. */
ATTN_EXPORT int32_t attn_cache_open(const char *folder, int64_t max_bytes,
                                    attn_status *status);

/* {"folder": or null, "max_bytes", "hits", "misses", "damaged", "compiled",
   "last_failure": or null}: counts of this process; "compiled" counts kernels
   made, cached or not, and "last_failure" says why an entry could not be kept
   or used. */
ATTN_EXPORT int32_t attn_cache_json(char **json, attn_status *status);

/* Sets the ptxas that makes cubins, by its path or by a name in PATH.  NULL,
   the default, takes the first that is new enough of ATTN_PTXAS, PATH,
   CUDA_HOME and /usr/local/cuda.  "" and finding none mean that the driver
   assembles.  A run of ptxas may take ATTN_PTXAS_SECONDS, 120 by default. */
ATTN_EXPORT int32_t attn_assembler_set(const char *ptxas, attn_status *status);

/*===-- JAX ---------------------------------------------------------------===*/

/* A handler of XLA's foreign function interface (XLA_FFI_Handler), to be
   registered for platform CUDA; the call frame is XLA's.  Operands q, k, v;
   results o and, if there is a second, lse; all row-major, with any number of
   leading batch dimensions.  Attributes, all strings: mask, machine, schedule
   ("" is absent), scale (a number or "") and lse_low ("true": lse and behind it
   its low word are results too, or "").  A call frame of NULL asks for nothing
   and gets NULL. */
ATTN_EXPORT void *attn_xla_forward(void *call_frame);

/* The same for gradients.  Operands do, q, k, v, o, lse, with the attribute
   lse_low its low word, and, if there is one more, dlse; results dq, dk, dv.
   One more attribute: deterministic, "true" or "". */
ATTN_EXPORT void *attn_xla_backward(void *call_frame);

#ifdef __cplusplus
}
#endif

#endif
