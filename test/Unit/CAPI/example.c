/* The example of docs/using.md: one attention from C. */
#include <attn-c/Attn.h>

#include <stdint.h>
#include <stdio.h>

/* A row-major array of bf16, [batch, heads, rows, head_dim]. */
static attn_buffer array(uintptr_t address, int64_t heads, int64_t rows) {
  attn_buffer buffer = {(void *)address, 4, {1, heads, rows, 64}, {0}};
  buffer.strides[3] = 1;
  buffer.strides[2] = 64;
  buffer.strides[1] = rows * 64;
  buffer.strides[0] = heads * rows * 64;
  return buffer;
}

/* Queues o = attention(q, k, v) on a stream; addresses are the GPU's. */
int attend(uintptr_t q, uintptr_t k, uintptr_t v, uintptr_t o, void *stream) {
  attn_forward_request request = {
      sizeof(request), "bf16", "causal", 0, 0, NULL, NULL, NULL};
  attn_buffer arrays[] = {array(q, 8, 1000), array(k, 2, 1000),
                          array(v, 2, 1000), array(o, 8, 1000)};
  attn_status status = {0, NULL};
  attn_forward(&request, 0, &arrays[0], &arrays[1], &arrays[2], &arrays[3],
               NULL, stream, &status);
  if (status.code)
    fprintf(stderr, "%s\n", status.message);
  int failed = status.code != ATTN_OK;
  attn_status_clear(&status);
  return failed;
}

int main(void) {
  /* Memory from cudaMalloc, cuMemAlloc, or of a framework. */
  return attend(0x10000, 0x200000, 0x400000, 0x600000, NULL);
}
