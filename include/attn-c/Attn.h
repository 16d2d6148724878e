/*===- Attn.h - The compiler behind a C interface ------------*- C -*-===*\
|*
|* Text goes in, a program comes out that runs attention on a GPU.  Any language
|* that can call C can use it; no CUDA header and no MLIR header is needed.
|*
|*   attn_executable *executable = NULL;
|*   attn_status status = {0};
|*   attn_compile(text, strlen(text), "h100_sxm", NULL, NULL, &executable,
|*                &status);
|*   if (status.code)
|*     puts(status.message);             // "<input>:3:8: error: expects ..."
|*   attn_load(executable, 0, &status);  // on GPU 0
|*   attn_call(executable, buffers, 4, stream, &status);
|*   attn_status_clear(&status);
|*   attn_executable_destroy(executable);
|*
|* Rules.
|* - No function exits, throws or prints.  Each returns its status code and, if
|*   `status` is not NULL, fills it; a message must be cleared by the caller.
|*   The code is ATTN_OK, which is 0, exactly when all went well.
|* - Functions may be called from any thread; calls with one executable take
|*   turns.
|* - `attn_call` queues work on the caller's stream (a CUstream; NULL is the
|*   default stream) and does not wait.  Memory is the caller's, in the primary
|*   context of the GPU: pointers and streams of PyTorch and JAX are fine.
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
  /* The driver or the GPU refused; the message has CUDA's words. */
  ATTN_DEVICE_ERROR = 3
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

/*===-- Plans: which schedule, and why ------------------------------------===*/

/* One attention, forward.  Names are those of attn-plan: dtype "bf16", mask
   NULL, "none", "causal", "causal_bottom_right" or "window<L, R>". */
typedef struct attn_problem {
  size_t struct_size;
  const char *dtype;
  int64_t batch, heads, kv_heads, queries, keys, head_dim, head_dim_v;
  const char *mask;
  int32_t with_lse;
} attn_problem;

/* Every choice for a problem on a machine, priced; the JSON of
   `attn-plan --json`. */
ATTN_EXPORT int32_t attn_plan_json(const attn_problem *problem,
                                   const char *machine, char **json,
                                   attn_status *status);

/*===-- Executables -------------------------------------------------------===*/

typedef struct attn_executable attn_executable;

/* Compiles MLIR text with functions of attn.forward, without a GPU.
   machine   a name, or NULL: the module's own, or h100_sxm
   schedule  overrules the choice ("flash, query = 128, key = 64"), or NULL
   function  which function attn_call runs, or NULL: the only one */
ATTN_EXPORT int32_t attn_compile(const char *text, size_t size,
                                 const char *machine, const char *schedule,
                                 const char *function,
                                 attn_executable **executable,
                                 attn_status *status);

ATTN_EXPORT void attn_executable_destroy(attn_executable *executable);

/* {"function", "machine", "arguments": [types], "results": [types],
   "kernels": [{"name", "chip", "schedule", "threads", "smem_bytes",
   "registers", "stack_bytes", "cubin_bytes"}]}.  A stack of more than zero
   bytes means that registers are spilled. */
ATTN_EXPORT int32_t attn_executable_info(const attn_executable *executable,
                                         char **json, attn_status *status);

/* The cubin of the kernel at that position of the list; *size 0 and *bytes
   NULL behind the last.  The bytes are the executable's. */
ATTN_EXPORT int32_t attn_executable_cubin(const attn_executable *executable,
                                          size_t index, const char **bytes,
                                          size_t *size, attn_status *status);

/* Loads the kernels on a GPU.  Loading again on another moves there. */
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

#ifdef __cplusplus
}
#endif

#endif
