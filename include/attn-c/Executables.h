/*===- Executables.h - Planning, compiling, launching -------------*- C -*-===*\
|*
|* Machines and plans; text that becomes an executable, its binding to
|* shapes, and launches on addresses.  Attn.h has the rules that all functions
|* keep.
|*
\*===----------------------------------------------------------------------===*/

#ifndef ATTN_C_EXECUTABLES_H
#define ATTN_C_EXECUTABLES_H

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
  /* Of k and v: that of q (or NULL, the same), or "f8e4m3" where that is "bf16"
     or "f16", forward. */
  const char *kv_dtype;
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

#ifdef __cplusplus
}
#endif

#endif
