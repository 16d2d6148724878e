/*===- backward.c - attn_backward, binding and launching from C -----------===*\
|* Runs on any driver, the fake one of test/Unit/Runtime included: addresses are
|* made up where nothing is launched on them for real.  Prints for FileCheck.
\*===----------------------------------------------------------------------===*/

#include "calls.h"

#include <stddef.h>

static attn_buffer statistic(uintptr_t address, int64_t batch, int64_t heads,
                             int64_t rows) {
  attn_buffer buffer = array(address, 1, batch, heads, rows);
  buffer.rank = 3;
  memmove(buffer.sizes, buffer.sizes + 1, 3 * sizeof(int64_t));
  memmove(buffer.strides, buffer.strides + 1, 3 * sizeof(int64_t));
  return buffer;
}

static attn_backward_request request(const char *mask) {
  attn_backward_request result;
  memset(&result, 0, sizeof(result));
  result.struct_size = sizeof(result);
  result.dtype = "bf16";
  result.mask = mask;
  return result;
}

/* By the schedule that every GPU here has, in the form for all of them. */
static attn_backward_request inOrder(void) {
  attn_backward_request result = request("causal");
  result.schedule = "split_backward, query_warps = 4, key_warps = 4";
  return result;
}

/* The arrays of one attention; heads of V have a dimension of their own. */
enum { DO, Q, K, V, O, LSE, DLSE, DQ, DK, DV, COUNT };
typedef struct arrays {
  attn_buffer at[COUNT];
} arrays;

static arrays arraysOf(int64_t queries, int64_t keys) {
  arrays all;
  all.at[DO] = array(0x10000, 2, 8, queries, 48);
  all.at[Q] = array(0x110000, 2, 8, queries, 64);
  all.at[K] = array(0x210000, 2, 2, keys, 64);
  all.at[V] = array(0x310000, 2, 2, keys, 48);
  all.at[O] = array(0x410000, 2, 8, queries, 48);
  all.at[LSE] = statistic(0x510000, 2, 8, queries);
  all.at[DLSE] = statistic(0x610000, 2, 8, queries);
  all.at[DQ] = array(0x710000, 2, 8, queries, 64);
  all.at[DK] = array(0x810000, 2, 2, keys, 64);
  all.at[DV] = array(0x910000, 2, 2, keys, 48);
  return all;
}

static void call(const char *what, const attn_backward_request *request,
                 const arrays *all, int withDlse) {
  attn_status status = {0, NULL};
  const attn_buffer *at = all->at;
  attn_backward(request, 0, &at[DO], &at[Q], &at[K], &at[V], &at[O], &at[LSE],
                withDlse ? &at[DLSE] : NULL, &at[DQ], &at[DK], &at[DV],
                (void *)7, &status);
  show(what, &status);
}

/* Several launches, with memory of the launch's own between them. */
static void bound(void) {
  attn_status status = {0, NULL};
  attn_backward_request causal = inOrder();
  arrays all = arraysOf(100, 130);
  const attn_buffer *at = all.at;
  attn_binding *binding = NULL;
  char *json = NULL;
  void *data[COUNT] = {NULL};
  int i, next = 0;
  attn_backward_bind(&causal, 0, &at[DO], &at[Q], &at[K], &at[V], &at[O],
                     &at[LSE], NULL, &at[DQ], &at[DK], &at[DV], &binding,
                     &status);
  show("bind", &status);
  attn_binding_info(binding, &json, &status);
  showText("binding", json);
  for (i = 0; i < COUNT; ++i)
    if (i != DLSE)
      data[next++] = at[i].data;
  attn_launch(binding, data, COUNT - 1, NULL, &status);
  show("launch", &status);
  attn_launch(binding, data, COUNT, NULL, &status);
  show("launch with dlse", &status);
  attn_binding_destroy(binding);
}

static void classes(void) {
  attn_backward_request causal = inOrder();
  arrays all = arraysOf(100, 130);
  call("backward", &causal, &all, 0);
  showCache("backward");
  call("with dlse", &causal, &all, 1);
  causal.deterministic = 1;
  call("deterministic", &causal, &all, 0);
  all = arraysOf(0, 130);
  call("no queries", &causal, &all, 0);
  all = arraysOf(100, 0);
  call("no keys", &causal, &all, 0);
}

/* The low word of LSE, which a request has or a caller does not know of. */
static void lowWord(void) {
  attn_status status = {0, NULL};
  attn_forward_request forward;
  attn_backward_request causal = inOrder();
  arrays all = arraysOf(100, 130);
  attn_buffer low = statistic(0xa10000, 2, 8, 100), *at = all.at;
  attn_binding *binding = NULL;
  void *data[5];
  causal.lse_low = &low;
  call("low word", &causal, &all, 0);
  call("low word and dlse", &causal, &all, 1);
  low.sizes[2] = 99;
  call("low word of 99", &causal, &all, 0);
  causal.struct_size = offsetof(attn_backward_request, lse_low);
  call("low word of nobody", &causal, &all, 0);
  low.sizes[2] = 100;

  memset(&forward, 0, sizeof(forward));
  forward.struct_size = sizeof(forward);
  forward.dtype = "bf16";
  forward.lse_low = &low;
  attn_forward(&forward, 0, &at[Q], &at[K], &at[V], &at[O], &at[LSE], NULL,
               &status);
  show("forward with low word", &status);
  attn_forward(&forward, 0, &at[Q], &at[K], &at[V], &at[O], NULL, NULL,
               &status);
  show("low word without lse", &status);
  attn_forward_bind(&forward, 0, &at[Q], &at[K], &at[V], &at[O], &at[LSE],
                    &binding, &status);
  show("bind with low word", &status);
  attn_launch(binding, data, 5, NULL, &status);
  show("launch without low word", &status);
  attn_binding_destroy(binding);
  forward.struct_size = offsetof(attn_forward_request, lse_low);
  attn_forward(&forward, 0, &at[Q], &at[K], &at[V], &at[O], NULL, NULL,
               &status);
  show("forward of old", &status);
}

/* Lists of blocks, of 2 of queries and 3 of keys, and the same transposed. */
static void lists(void) {
  attn_status status = {0, NULL};
  attn_backward_request sparse = inOrder();
  arrays all = arraysOf(100, 130);
  const attn_buffer *at = all.at;
  attn_buffer counts = statistic(0xb10000, 1, 8, 2),
              blocks = array(0xb20000, 1, 8, 2, 3);
  attn_buffer others = statistic(0xb30000, 1, 1, 3),
              transposed = array(0xb40000, 1, 1, 3, 2);
  attn_binding *binding = NULL;
  void *data[COUNT + 3];
  int i, next = 0;
  sparse.block_queries = sparse.block_keys = 64;
  sparse.partial_counts = &counts;
  sparse.partial_blocks = &blocks;
  call("not transposed", &sparse, &all, 0);
  sparse.transposed_full_counts = &others;
  sparse.transposed_full_blocks = &transposed;
  call("others transposed", &sparse, &all, 0);
  sparse.transposed_full_counts = sparse.transposed_full_blocks = NULL;
  sparse.transposed_partial_counts = &others;
  call("counts alone", &sparse, &all, 0);
  sparse.transposed_partial_blocks = &blocks;
  call("as it was", &sparse, &all, 0);
  sparse.transposed_partial_blocks = &transposed;
  sparse.block_keys = 100;
  call("odd blocks", &sparse, &all, 0);
  sparse.block_keys = 64;
  call("lists", &sparse, &all, 0);
  showCache("lists");
  attn_backward_bind(&sparse, 0, &at[DO], &at[Q], &at[K], &at[V], &at[O],
                     &at[LSE], NULL, &at[DQ], &at[DK], &at[DV], &binding,
                     &status);
  show("bind lists", &status);
  for (i = 0; i < COUNT; ++i)
    if (i != DLSE)
      data[next++] = at[i].data;
  attn_launch(binding, data, COUNT - 1, NULL, &status);
  show("launch without lists", &status);
  data[next++] = counts.data, data[next++] = blocks.data;
  data[next++] = others.data, data[next++] = transposed.data;
  attn_launch(binding, data, COUNT + 3, NULL, &status);
  show("launch lists", &status);
  attn_binding_destroy(binding);
  sparse.struct_size = offsetof(attn_backward_request, partial_counts);
  counts.sizes[1] = 5;
  call("lists of nobody", &sparse, &all, 0);
}

/* Where gradients of captures go, behind the captures. */
static void captured(void) {
  attn_status status = {0, NULL};
  attn_backward_request own = inOrder();
  arrays all = arraysOf(100, 130);
  const attn_buffer *at = all.at, *gradients[2] = {NULL, NULL};
  attn_capture captures[2];
  attn_clauses text;
  attn_buffer slopes = statistic(0xb10000, 1, 1, 8), sinks, gradient;
  attn_binding *binding = NULL;
  void *data[COUNT + 2];
  int i, next = 0;
  memset(captures, 0, sizeof(captures));
  memset(&text, 0, sizeof(text));
  slopes.rank = 1, slopes.sizes[0] = 8, slopes.strides[0] = 1;
  sinks = gradient = slopes;
  sinks.data = (void *)0xb20000, gradient.data = (void *)0xb30000;
  text.struct_size = sizeof(text);
  text.text = "alibi(%slopes : !slopes) sinks(%sinks : !sinks)";
  text.captures = captures;
  text.capture_count = 2;
  captures[0].name = "slopes", captures[0].buffer = slopes;
  captures[1].name = "sinks", captures[1].buffer = sinks;
  captures[0].type = captures[1].type = "f32";
  own.clauses = &text;
  own.capture_gradients = gradients;
  call("no gradients", &own, &all, 0);
  gradients[1] = &gradient;
  gradient.sizes[0] = 7;
  call("shape of a gradient", &own, &all, 0);
  gradient.sizes[0] = 8, gradient.strides[0] = 2;
  call("gaps", &own, &all, 0);
  gradient.strides[0] = 1, gradient.rank = 9;
  call("dimensions of a gradient", &own, &all, 0);
  gradient.rank = 1, gradient.data = sinks.data;
  call("gradient on sinks", &own, &all, 0);
  gradient.data = (void *)0xb30000;
  own.deterministic = 1;
  attn_backward_bind(&own, 0, &at[DO], &at[Q], &at[K], &at[V], &at[O], &at[LSE],
                     NULL, &at[DQ], &at[DK], &at[DV], &binding, &status);
  show("bind captures", &status);
  for (i = 0; i < COUNT; ++i)
    if (i != DLSE)
      data[next++] = at[i].data;
  data[next++] = slopes.data, data[next++] = sinks.data;
  attn_launch(binding, data, COUNT + 1, NULL, &status);
  show("launch without gradient", &status);
  data[next++] = gradient.data;
  attn_launch(binding, data, COUNT + 2, NULL, &status);
  show("launch captures", &status);
  attn_binding_destroy(binding);
  /* Callers from before there were gradients have none. */
  own.struct_size = offsetof(attn_backward_request, capture_gradients);
  gradient.sizes[0] = 7;
  call("gradients of nobody", &own, &all, 0);
}

/* The first word of the derived schedule. */
static void derived(const char *what, const attn_backward_request *request,
                    const arrays *all) {
  attn_status status = {0, NULL};
  const attn_buffer *at = all->at;
  char *text = NULL;
  attn_backward_schedule(request, &at[DO], &at[Q], &at[K], &at[V], &at[O],
                         &at[LSE], NULL, &at[DQ], &at[DK], &at[DV], &text,
                         &status);
  printf("%s: %.*s\n", what, text ? (int)strcspn(text, ",") : 0,
         text ? text : "");
  attn_free(text);
  show(what, &status);
}

/* A choice is known by what gets gradients too, whatever was asked before. */
static void chosen(void) {
  attn_backward_request own = request(NULL);
  arrays all = arraysOf(8192, 8192);
  attn_buffer slopes = statistic(0xb10000, 1, 1, 8), gradient;
  const attn_buffer *gradients[1] = {NULL};
  attn_capture capture;
  attn_clauses text;
  memset(&capture, 0, sizeof(capture));
  memset(&text, 0, sizeof(text));
  slopes.rank = 1, slopes.sizes[0] = 8, slopes.strides[0] = 1;
  gradient = slopes, gradient.data = (void *)0xb30000;
  capture.name = "slopes", capture.type = "f32", capture.buffer = slopes;
  text.struct_size = sizeof(text), text.text = "alibi(%slopes : !slopes)";
  text.captures = &capture, text.capture_count = 1;
  own.machine = "h100_sxm";
  own.clauses = &text;
  own.capture_gradients = gradients;
  derived("without gradients of captures", &own, &all);
  gradients[0] = &gradient;
  derived("with them", &own, &all);
  gradients[0] = NULL;
  derived("and without", &own, &all);
}

static void wrong(void) {
  attn_status status = {0, NULL};
  attn_backward_request plain = request(NULL);
  const arrays right = arraysOf(100, 130);
  arrays all = right;
  all.at[DO].sizes[3] = 64;
  call("gradient of the output", &plain, &all, 0);
  all = right;
  all.at[DK].sizes[1] = 8;
  call("gradient of k", &plain, &all, 0);
  all = right;
  all.at[DLSE].rank = 2;
  call("gradient of lse", &plain, &all, 1);
  all = right;
  all.at[DV].strides[2] = 0;
  call("overlap", &plain, &all, 0);
  all = right;
  all.at[DV].strides[2] = 40;
  call("rows 40 apart", &plain, &all, 0);
  all = right;
  all.at[DQ].data = all.at[Q].data;
  call("dq on q", &plain, &all, 0);
  all = right;
  all.at[DK].data = all.at[DV].data;
  call("dk on dv", &plain, &all, 0);
  all = right;
  all.at[LSE].data = (char *)all.at[LSE].data + 2;
  call("half a statistic", &plain, &all, 0);
  all = right;
  plain.dtype = "f8e4m3";
  call("dtype", &plain, &all, 0);
  plain.dtype = "bf16";
  plain.schedule = "flash, query = 128";
  call("schedule", &plain, &all, 0);
  plain.schedule = NULL;
  plain.machine = "gtx_1060";
  call("no kernel", &plain, &all, 0);
  plain.machine = NULL;
  attn_backward(&plain, 0, NULL, &all.at[Q], &all.at[K], &all.at[V], &all.at[O],
                &all.at[LSE], NULL, &all.at[DQ], &all.at[DK], &all.at[DV], NULL,
                &status);
  show("no do", &status);
  plain.struct_size = offsetof(attn_backward_request, deterministic);
  call("size", &plain, &all, 0);
}

int main(void) {
  bound();
  classes();
  lowWord();
  lists();
  captured();
  chosen();
  wrong();
  return 0;
}
