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

#include "attn-c/Executables.h"
#include "attn-c/Requests.h"

#endif
