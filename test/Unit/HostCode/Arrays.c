/*===- Arrays.c - Arrays of a program in MLIR from and to files -----------===*\
|*   func.func private @read_bf16(%number: index, %array: memref<*xbf16>)
|*       attributes {llvm.emit_c_interface}
|* fills an array of the host, without gaps, from NUMBER.in in the folder
|* ATTN_ARRAYS; @write_bf16 writes it to NUMBER.out.  There are the same for f16
|* and f32.
\*===----------------------------------------------------------------------===*/

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN __attribute__((visibility("default")))

/* MLIR's descriptors of a memref<*x...>, and of what it stands for. */
struct Unranked {
  int64_t rank;
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[];
  } *array;
};

static void fail(const char *what, const char *path) {
  fprintf(stderr, "arrays: cannot %s %s\n", what, path);
  exit(1);
}

static void move(int64_t number, const struct Unranked *memref, size_t bytes,
                 int writes) {
  const char *folder = getenv("ATTN_ARRAYS");
  char path[4096];
  char *start = (char *)memref->array->aligned;
  size_t count = 1, moved;
  int64_t i;
  FILE *file;
  for (i = 0; i < memref->rank; ++i)
    count *= (size_t)memref->array->sizes[i];
  start += (size_t)memref->array->offset * bytes;
  snprintf(path, sizeof(path), "%s/%lld.%s", folder ? folder : ".",
           (long long)number, writes ? "out" : "in");
  file = fopen(path, writes ? "wb" : "rb");
  if (!file)
    fail("open", path);
  moved = writes ? fwrite(start, bytes, count, file)
                 : fread(start, bytes, count, file);
  if (fclose(file) != 0 || moved != count)
    fail(writes ? "write" : "read", path);
}

/* Names are MLIR's. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
#define ARRAYS_OF(type, bytes)                                                 \
  SHOWN void _mlir_ciface_read_##type(int64_t number,                          \
                                      const struct Unranked *memref) {         \
    move(number, memref, bytes, 0);                                            \
  }                                                                            \
  SHOWN void _mlir_ciface_write_##type(int64_t number,                         \
                                       const struct Unranked *memref) {        \
    move(number, memref, bytes, 1);                                            \
  }
ARRAYS_OF(bf16, 2)
ARRAYS_OF(f16, 2)
ARRAYS_OF(f32, 4)
/* NOLINTEND(bugprone-reserved-identifier) */
