/*===- forward.c - attn_forward, binding and launching from C -------------===*\
|* Runs on any driver, the fake one of test/Unit/Runtime included: addresses are
|* made up where nothing is launched on them for real.  Prints for FileCheck.
\*===----------------------------------------------------------------------===*/

#include "calls.h"

#include <pthread.h>

static attn_forward_request request(const char *mask) {
  attn_forward_request result;
  memset(&result, 0, sizeof(result));
  result.struct_size = sizeof(result);
  result.dtype = "bf16";
  result.mask = mask;
  return result;
}

/* Sizes, strides and alignment: what compiles again, and what does not. */
static void classes(void) {
  attn_status status = {0, NULL};
  attn_forward_request causal = request("causal");
  attn_buffer q = array(0x10000, 4, 8, 1400, 64),
              o = array(0x3010000, 4, 8, 1400, 64);
  attn_buffer k = array(0x1010000, 4, 2, 1100, 64),
              v = array(0x2010000, 4, 2, 1100, 64);
  attn_binding *binding = NULL;
  char *json = NULL;
  void *data[4];
  attn_forward(&causal, 0, &q, &k, &v, &o, NULL, (void *)7, &status);
  show("forward", &status);
  showCache("first");
  q = array(0x10000, 3, 8, 1397, 64), o = array(0x3010000, 3, 8, 1397, 64);
  k = array(0x1010000, 3, 2, 1110, 64), v = array(0x2010000, 3, 2, 1110, 64);
  attn_forward(&causal, 0, &q, &k, &v, &o, NULL, NULL, &status);
  show("other sizes", &status);
  showCache("other sizes");

  attn_forward_bind(&causal, 0, &q, &k, &v, &o, NULL, &binding, &status);
  show("bind", &status);
  attn_binding_info(binding, &json, &status);
  showText("binding", json);
  data[0] = q.data, data[1] = k.data, data[2] = v.data, data[3] = o.data;
  attn_launch(binding, data, 4, NULL, &status);
  show("launch", &status);
  data[1] = (char *)data[1] + 2;
  attn_launch(binding, data, 4, NULL, &status);
  show("launch askew", &status);
  data[1] = NULL;
  attn_launch(binding, data, 4, NULL, &status);
  show("launch null", &status);
  attn_launch(binding, data, 3, NULL, &status);
  show("launch three", &status);
  attn_binding_destroy(binding);

  k.data = (char *)k.data + 2;
  attn_forward(&causal, 0, &q, &k, &v, &o, NULL, NULL, &status);
  show("askew", &status);
  showCache("askew");
  q = array(0x10000, 0, 8, 1000, 64), o = array(0x3010000, 0, 8, 1000, 64);
  k = array(0x1010000, 0, 2, 77, 64), v = array(0x2010000, 0, 2, 77, 64);
  attn_forward(&causal, 0, &q, &k, &v, &o, NULL, NULL, &status);
  show("no batch", &status);
}

/* Scratch of the caller's. */
static void scratch(void) {
  attn_status status = {0, NULL};
  attn_forward_request spill = request(NULL);
  attn_buffer q = array(0x10000, 1, 2, 100, 64), k = q, v = q,
              o = array(0x40000, 1, 2, 100, 64);
  attn_binding *binding = NULL;
  int64_t bytes = -1;
  void *data[4], *place = (void *)0x100000;
  spill.schedule = "score_spill, query = 64, key = 64, column = 64, slice = "
                   "32, warps = 4, strip = 256, stages = 2";
  attn_forward_bind(&spill, 0, &q, &k, &v, &o, NULL, &binding, &status);
  show("bind spill", &status);
  attn_binding_scratch_bytes(binding, &bytes, &status);
  printf("scratch: %lld\n", (long long)bytes);
  data[0] = q.data, data[1] = k.data, data[2] = v.data, data[3] = o.data;
  attn_launch_in_scratch(binding, data, 4, place, bytes, NULL, &status);
  show("in scratch", &status);
  attn_launch_in_scratch(binding, data, 4, place, bytes - 1, NULL, &status);
  show("less scratch", &status);
  attn_launch_in_scratch(binding, data, 4, (char *)place + 16, bytes, NULL,
                         &status);
  show("scratch askew", &status);
  attn_launch_in_scratch(binding, data, 4, NULL, bytes, NULL, &status);
  show("no scratch", &status);
  attn_launch(binding, data, 4, NULL, &status);
  show("scratch of the pool", &status);
  attn_binding_destroy(binding);
}

static void wrong(void) {
  attn_status status = {0, NULL};
  attn_forward_request plain = request(NULL);
  attn_buffer q = array(0x10000, 2, 8, 100, 64), k = q, v = q, o = q, lse = q;
#define CALL(what)                                                             \
  attn_forward(&plain, 0, &q, &k, &v, &o, NULL, NULL, &status);                \
  show(what, &status)
  k.sizes[1] = v.sizes[1] = 3;
  CALL("heads");
  k = v = q;
  k.sizes[3] = 32;
  CALL("head dim");
  k = q;
  v.sizes[2] = 7;
  CALL("keys");
  v = q;
  o.sizes[2] = 7;
  CALL("output");
  o = q;
  q.rank = 3;
  CALL("rank");
  q.rank = 9;
  CALL("rank 9");
  q = o;
  q.strides[3] = 2;
  CALL("innermost");
  q = o;
  q.strides[2] = -64;
  CALL("negative");
  q = o;
  o.strides[0] = 0;
  CALL("overlap");
  o = q;
  o.strides[2] = 8;
  CALL("rows 8 apart");
  o = q;
  o.strides[1] = 64;
  CALL("heads on rows");
  o = q;
  k.strides[1] = INT64_MAX / 2 + 1;
  CALL("far");
  k.strides[1] = INT64_MAX;
  CALL("farthest");
  k = q;
  q.data = (char *)q.data + 1;
  CALL("half an element");
  q = o;
  lse.rank = 3;
  lse.sizes[2] = 3;
  attn_forward(&plain, 0, &q, &k, &v, &o, &lse, NULL, &status);
  show("lse", &status);
  plain.dtype = "f64";
  CALL("dtype");
  plain.dtype = "bf16";
  plain.precision = "tf32";
  CALL("precision");
  plain.dtype = "f32";
  plain.precision = "bf16x3";
  CALL("name of a precision");
  plain.precision = NULL;
  plain.dtype = "f8e4m3";
  plain.machine = "a100_80g";
  CALL("no kernel");
  plain.machine = NULL;
  plain.dtype = "bf16";
  plain.schedule = "flash, query = 7";
  CALL("schedule");
  plain.schedule = NULL;
  plain.machine = "h1000";
  CALL("machine");
  plain.machine = NULL;
  attn_forward(&plain, 9, &q, &k, &v, &o, NULL, NULL, &status);
  show("device", &status);
  attn_forward(&plain, 0, &q, NULL, &v, &o, NULL, NULL, &status);
  show("no k", &status);
  plain.struct_size = 8;
  CALL("size");
#undef CALL
}

/* What is written lies in memory of its own, by elements and not by bytes. */
static void apart(void) {
  attn_status status = {0, NULL};
  attn_forward_request plain = request(NULL);
  attn_buffer q = array(0x10000, 2, 8, 100, 64), k = q, v = q, o = q, lse;
  attn_buffer *slices[4];
  attn_binding *binding = NULL;
  void *data[4] = {q.data, q.data, q.data, (void *)0x1010000};
  int i;
#define CALL(what)                                                             \
  attn_forward(&plain, 0, &q, &k, &v, &o, NULL, NULL, &status);                \
  show(what, &status)
  CALL("in place");
  k.data = (void *)0x1010000;
  o.data = (void *)(0x1010000 + 2 * 8 * 100 * 64 * 2 - 16);
  CALL("the end of k");
  o.data = (void *)(0x1010000 + 2 * 8 * 100 * 64 * 2);
  CALL("behind k");
  lse = o;
  lse.rank = 3;
  memmove(lse.strides, lse.strides + 1, 3 * sizeof(int64_t));
  lse.strides[0] = 800, lse.strides[1] = 100, lse.strides[2] = 1;
  lse.data = (char *)o.data + 4096;
  attn_forward(&plain, 0, &q, &k, &v, &o, &lse, NULL, &status);
  show("lse in o", &status);
  /* [batch, rows, 4, heads, d]: four slices of one array, and two alike. */
  slices[0] = &q, slices[1] = &k, slices[2] = &v, slices[3] = &o;
  for (i = 0; i < 4; ++i) {
    slices[i]->data = (void *)(uintptr_t)(0x10000 + i * 8 * 64 * 2);
    slices[i]->strides[0] = 100 * 4 * 8 * 64;
    slices[i]->strides[1] = 64;
    slices[i]->strides[2] = 4 * 8 * 64;
  }
  CALL("slices");
  o.data = v.data;
  CALL("one slice twice");
#undef CALL
  /* A binding asks for addresses at a launch only. */
  q = k = v = o = array(0x10000, 2, 8, 100, 64);
  attn_forward_bind(&plain, 0, &q, &k, &v, &o, NULL, &binding, &status);
  show("bind in place", &status);
  attn_launch(binding, data, 4, NULL, &status);
  show("launch apart", &status);
  data[3] = (char *)data[0] + 512;
  attn_launch(binding, data, 4, NULL, &status);
  show("launch on q", &status);
  attn_binding_destroy(binding);
}

/* Lists of blocks belong together, and to the arrays. */
static void lists(void) {
  attn_status status = {0, NULL};
  attn_forward_request sparse = request(NULL);
  attn_buffer q = array(0x10000, 2, 8, 1400, 64),
              o = array(0x3010000, 2, 8, 1400, 64);
  attn_buffer k = array(0x1010000, 2, 2, 1100, 64),
              v = array(0x2010000, 2, 2, 1100, 64);
  /* Of 11 blocks of queries and 9 of keys; one list for all heads. */
  attn_buffer counts = array(0x4010000, 2, 1, 11, 1),
              blocks = array(0x4020000, 2, 1, 11, 9);
  attn_binding *binding = NULL;
  char *json = NULL;
  void *data[8];
  int i;
  counts.rank = 3;
  sparse.partial_counts = &counts;
#define CALL(what)                                                             \
  attn_forward(&sparse, 0, &q, &k, &v, &o, NULL, NULL, &status);               \
  show(what, &status)
  CALL("no block size");
  sparse.block_queries = 128, sparse.block_keys = 100;
  CALL("odd blocks");
  sparse.block_keys = 128;
  CALL("counts alone");
  sparse.partial_blocks = &blocks;
  sparse.full_blocks = &blocks;
  CALL("full alone");
  sparse.full_blocks = NULL;
  sparse.block_keys = 64;
  CALL("other blocks");
  sparse.block_keys = 128;
  counts.sizes[0] = 3;
  CALL("other batch");
  counts.sizes[0] = 2;
  counts.rank = 4;
  CALL("rank of counts");
  counts.rank = 3;
  blocks.strides[3] = 2;
  CALL("every other block");
  blocks.strides[3] = 1;
  blocks.data = (char *)blocks.data + 2;
  CALL("blocks askew");
  blocks.data = (char *)blocks.data - 2;
  CALL("partial lists");
  sparse.full_counts = &counts, sparse.full_blocks = &blocks;
  CALL("both lists");
  showCache("lists");
  counts.sizes[0] = blocks.sizes[0] = 1;
  counts.strides[0] = blocks.strides[0] = 5;
  CALL("one for all");
  showCache("one for all");
  attn_forward_bind(&sparse, 0, &q, &k, &v, &o, NULL, &binding, &status);
  show("bind lists", &status);
  attn_binding_info(binding, &json, &status);
  showText("lists", json);
  for (i = 0; i < 8; ++i)
    data[i] = (char *)q.data + (intptr_t)i * 0x1000000;
  attn_launch(binding, data, 8, NULL, &status);
  show("launch lists", &status);
  attn_launch(binding, data, 4, NULL, &status);
  show("launch without lists", &status);
  data[6] = (char *)data[6] + 2;
  attn_launch(binding, data, 8, NULL, &status);
  show("launch lists askew", &status);
  data[6] = data[3];
  attn_launch(binding, data, 8, NULL, &status);
  show("launch on lists", &status);
  attn_binding_destroy(binding);
  /* Callers from before there were lists have none. */
  sparse.struct_size = offsetof(attn_forward_request, partial_counts);
  counts.sizes[0] = 3;
  CALL("no lists");
#undef CALL
}

/* Clauses are checked before anything is compiled. */
static void clauses(void) {
  attn_status status = {0, NULL};
  attn_forward_request own = request("causal");
  attn_buffer q = array(0x10000, 2, 8, 1400, 64),
              o = array(0x3010000, 2, 8, 1400, 64);
  attn_buffer k = array(0x1010000, 2, 2, 1100, 64),
              v = array(0x2010000, 2, 2, 1100, 64);
  attn_capture captures[2];
  attn_clauses text;
  memset(captures, 0, sizeof(captures));
  memset(&text, 0, sizeof(text));
  text.captures = captures;
  own.clauses = &text;
#define CALL(what)                                                             \
  attn_forward(&own, 0, &q, &k, &v, &o, NULL, NULL, &status);                  \
  show(what, &status)
#define TEXT(what, words)                                                      \
  text.text = words;                                                           \
  CALL(what)
  CALL("size of clauses");
  text.struct_size = sizeof(text);
  CALL("no text");
  TEXT("no clause", "softcap(30.0)\n  mask(causal)");
  TEXT("end of clauses", "softcap(30.0) : tensor<1xf32>");
  TEXT("open bracket", "softcap(30.0");
  TEXT("brackets of two kinds", "softcap(30.0}");
  TEXT("no region", "sees (%b, %h, %i, %j, %nq, %nk)");
  TEXT("no captures", "alibi(%slopes : !slopes)");
  text.capture_count = 2;
  captures[0].name = "slopes";
  captures[0].type = "f32";
  captures[0].buffer = array(0x4010000, 8, 1, 1, 1);
  captures[0].buffer.rank = 1;
  captures[0].buffer.strides[0] = 1;
  captures[1].name = "q";
  captures[1].type = "u8";
  captures[1].buffer = captures[0].buffer;
  CALL("name of an array");
  captures[1].name = "1st";
  CALL("name of a number");
  captures[1].name = "slopes";
  CALL("name twice");
  captures[1].name = "ids";
  CALL("type");
  captures[1].type = "i32";
  CALL("not named");
  text.capture_count = 1;
  TEXT("other value", "// of heads\nalibi(%slope : !slopes)");
  TEXT("other type", "alibi(%slopes : !slope)");
  TEXT("syntax", "softcap(30.0)\nalibi(%slopes)");
  captures[0].type = "i32";
  TEXT("integers", "softcap(30.0)\n  alibi(%slopes : !slopes)");
  captures[0].type = "f32";
  captures[0].buffer.rank = 3;
  CALL("rank");
  captures[0].buffer.rank = 9;
  CALL("too many dimensions");
  captures[0].buffer.rank = 1;
  TEXT("twice", "softcap(3.0) alibi(%slopes : !slopes) softcap(30.0)");
  TEXT("body", "alibi(%slopes : !slopes)\nsees (%b, %h, %i, %j, %nq, %nk) {\n"
               "  %r = arith.cmpi sge, %i, %k : index\n  attn.yield %r : i1 }");
  TEXT("op",
       "captures(%slopes : !slopes)\nsees (%b, %h, %i, %j, %nq, %nk, %s) {\n"
       "  %r = arith.cmpi sge, %i, %j : index\n"
       "  %m = memref.alloc() : memref<4xf32>\n  attn.yield %r : i1 }");
  /* What is well formed is compiled, or refused by name. */
  own.schedule = "score_spill";
  TEXT("no kernel of spills", "alibi(%slopes : !slopes)");
  /* Callers from before there were clauses have none. */
  own.schedule = NULL;
  own.struct_size = offsetof(attn_forward_request, clauses);
  TEXT("no clauses", "nonsense");
#undef TEXT
#undef CALL
}

/* Lists that the GPU makes, and turns around. */
static void madeLists(void) {
  attn_status status = {0, NULL};
  attn_block_lists_request made;
  attn_capture ids;
  attn_clauses text;
  attn_buffer counts[2], blocks[2], turned[4];
  const attn_buffer *in[4], *out[4];
  int i;
  memset(&made, 0, sizeof(made));
  memset(&ids, 0, sizeof(ids));
  memset(&text, 0, sizeof(text));
  for (i = 0; i < 2; ++i) { /* 11 blocks of queries and 9 of keys */
    counts[i] = array(0x4010000 + i * 0x1000, 2, 1, 11, 1);
    counts[i].rank = 3;
    blocks[i] = array(0x4020000 + i * 0x1000, 2, 1, 11, 9);
    turned[2 * i] = array(0x4030000 + i * 0x2000, 2, 1, 9, 1);
    turned[2 * i].rank = 3;
    turned[2 * i + 1] = array(0x4031000 + i * 0x2000, 2, 1, 9, 11);
    in[2 * i] = &counts[i], in[2 * i + 1] = &blocks[i];
    out[2 * i] = &turned[2 * i], out[2 * i + 1] = &turned[2 * i + 1];
  }
#define CALL(what)                                                             \
  attn_block_lists(&made, 0, &counts[0], &blocks[0], &counts[1], &blocks[1],   \
                   NULL, &status);                                             \
  show(what, &status)
  CALL("size of lists");
  made.struct_size = sizeof(made);
  made.queries = 1400, made.keys = 1100;
  CALL("blocks of lists");
  made.block_queries = made.block_keys = 128;
  CALL("clauses of lists");
  made.clauses = &text;
  text.struct_size = sizeof(text);
  text.captures = &ids;
  text.capture_count = 1;
  ids.name = "ids";
  ids.type = "i32";
  ids.buffer = array(0x4040000, 2, 1400, 1, 1);
  ids.buffer.rank = 2;
  ids.buffer.strides[0] = 1400, ids.buffer.strides[1] = 1;
  text.text = "document(%ids : !ids)";
  CALL("short form of lists");
  text.text = "captures(%ids : !ids)\n  sees (%b, %h, %i, %j, %nq, %nk, %x) {\n"
              "  %u = attn.read %x[%b, %i] : !ids\n"
              "  %v = attn.read %x[%b, %j] : !ids\n"
              "  %r = arith.cmpi eq, %u, %w : i32\n  attn.yield %r : i1 }";
  CALL("region of lists");
  text.text = "captures(%ids : !ids)\n  sees (%b, %h, %i, %j, %nq, %nk, %x) {\n"
              "  %u = attn.read %x[%b, %i] : !ids\n"
              "  %v = attn.read %x[%b, %j] : !ids\n"
              "  %r = arith.cmpi eq, %u, %v : i32\n  attn.yield %r : i1 }";
  CALL("make lists");
  showCache("make lists");
  made.queries = 1200;
  CALL("other blocks of lists");
  made.queries = 1399;
  CALL("other sizes of lists");
  showCache("other sizes of lists");
  blocks[1].strides[2] = 10;
  CALL("gaps in lists");
  blocks[1].strides[2] = 9;
  attn_transpose_blocks(NULL, 0, in, out, NULL, &status);
  show("turn lists", &status);
  out[3] = in[3];
  attn_transpose_blocks(NULL, 0, in, out, NULL, &status);
  show("turn to lists", &status);
  out[3] = NULL;
  attn_transpose_blocks(NULL, 0, in, out, NULL, &status);
  show("turn to none", &status);
#undef CALL
}

static void *work(void *argument) {
  attn_forward_request plain = request("window<64, 0>");
  int failures = 0, i;
  (void)argument;
  for (i = 0; i < 200; ++i) {
    int64_t rows = 2001 + i % 40;
    attn_buffer q = array(0x10000, 1, 4, rows, 32), k = q, v = q,
                o = array(0x1010000, 1, 4, rows, 32);
    failures += attn_forward(&plain, 0, &q, &k, &v, &o, NULL, NULL, NULL) != 0;
  }
  return (void *)(intptr_t)failures;
}

static void threads(void) {
  pthread_t thread[8];
  intptr_t failures = 0;
  int i;
  for (i = 0; i < 8; ++i)
    pthread_create(&thread[i], NULL, work, NULL);
  for (i = 0; i < 8; ++i) {
    void *failed = NULL;
    pthread_join(thread[i], &failed);
    failures += (intptr_t)failed;
  }
  printf("threads: %d failures\n", (int)failures);
  showCache("threads");
}

int main(int count, char **arguments) {
  attn_status status = {0, NULL};
  int32_t devices = -1;
  char *json = NULL;
  if (count > 1) {
    attn_cache_open(arguments[1], 1 << 24, &status);
    show("cache", &status);
  }
  attn_device_count(&devices, &status);
  printf("devices: %d\n", (int)devices);
  show("count", &status);
  attn_device_json(0, &json, &status);
  showText("device", json);
  show("device", &status);
  classes();
  if (count > 2)
    return 0;
  scratch();
  wrong();
  threads();
  apart();
  lists();
  clauses();
  madeLists();
  return 0;
}
