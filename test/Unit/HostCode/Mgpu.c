/*===- Mgpu.c - What MLIR's host code calls on CUDA -----------------------===*\
|* The functions of upstream's mlir_cuda_runtime that gpu-to-llvm calls, over
|* the driver that the loader finds: the fake one in tests, the true one on a
|* GPU.  Debian's MLIR comes without upstream's library.
|*
|*   ATTN_MGPU_LOG   a file; every call becomes a line of it, and an address the
|*                   number of its allocation: "#2" is the second, "#2+64" is
|*                   within it, "host" is none
\*===----------------------------------------------------------------------===*/

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

/*===-- The driver --------------------------------------------------------===*/

/* An entry of the driver; the process ends if there is none. */
static void *entry(const char *name) {
  static void *driver;
  void *found;
  if (!driver)
    driver = dlopen("libcuda.so.1", RTLD_NOW);
  found = driver ? dlsym(driver, name) : NULL;
  if (!found) {
    fprintf(stderr, "mgpu: %s\n", dlerror());
    exit(1);
  }
  return found;
}

static void check(const char *name, int code) {
  const char *text = NULL;
  if (code == 0)
    return;
  ((int (*)(int, const char **))entry("cuGetErrorName"))(code, &text);
  fprintf(stderr, "mgpu: %s failed with %s\n", name, text ? text : "?");
  exit(1);
}

/* Calls cuNAME with the primary context of GPU 0, as upstream does: it is
   nobody's current context otherwise. */
#define CALL(name, types, ...)                                                 \
  do {                                                                         \
    enter();                                                                   \
    check(#name, ((int(*) types)entry(#name))(__VA_ARGS__));                   \
    leave();                                                                   \
  } while (0)

static void enter(void) {
  static void *context;
  int device = 0;
  if (!context) {
    check("cuInit", ((int (*)(unsigned))entry("cuInit"))(0));
    check("cuDeviceGet",
          ((int (*)(int *, int))entry("cuDeviceGet"))(&device, 0));
    check("cuDevicePrimaryCtxRetain",
          ((int (*)(void **, int))entry("cuDevicePrimaryCtxRetain"))(&context,
                                                                     device));
  }
  check("cuCtxPushCurrent",
        ((int (*)(void *))entry("cuCtxPushCurrent_v2"))(context));
}

static void leave(void) {
  void *context;
  check("cuCtxPopCurrent",
        ((int (*)(void **))entry("cuCtxPopCurrent_v2"))(&context));
}

/*===-- The log -----------------------------------------------------------===*/

static struct {
  uintptr_t address;
  size_t bytes;
} pieces[1024];
static int pieceCount;

static void note(const char *format, ...) {
  const char *path = getenv("ATTN_MGPU_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  va_list arguments;
  if (!file)
    return;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
}

/* The piece that holds an address; one that is freed has no bytes. */
static int pieceOf(uintptr_t address) {
  int i;
  for (i = pieceCount - 1; i >= 0; --i)
    if (address >= pieces[i].address &&
        address < pieces[i].address + pieces[i].bytes)
      break;
  return i;
}

static const char *say(char *text, size_t size, uintptr_t address) {
  int piece = pieceOf(address);
  if (piece < 0)
    snprintf(text, size, "host");
  else if (address == pieces[piece].address)
    snprintf(text, size, "#%d", piece + 1);
  else
    snprintf(text, size, "#%d+%zu", piece + 1,
             (size_t)(address - pieces[piece].address));
  return text;
}

/* Parameters that are arrays; all lie in one struct, one behind the other, so
   the next one says how long each is.  A tensor map has its array's address
   somewhere in its 128 bytes, which only the fake driver puts first. */
static void noteParameters(void **parameters, size_t count) {
  char text[64];
  size_t i;
  for (i = 0; i < count; ++i) {
    size_t room =
        i + 1 < count
            ? (size_t)((char *)parameters[i + 1] - (char *)parameters[i])
            : sizeof(uintptr_t);
    uintptr_t word;
    if (room < sizeof(word))
      continue;
    memcpy(&word, parameters[i], sizeof(word));
    if (pieceOf(word) >= 0)
      note(" %zu: %s%s", i, room == 128 ? "map of " : "",
           say(text, sizeof(text), word));
  }
  note("\n");
}

/*===-- What gpu-to-llvm calls --------------------------------------------===*/

/* Names are upstream's. */
/* NOLINTBEGIN(readability-identifier-naming) */
SHOWN void *mgpuModuleLoad(void *image, size_t bytes) {
  void *module = NULL;
  note("load %s\n", memcmp(image, "\177ELF", 4) == 0 ? "cubin" : "image");
  (void)bytes;
  CALL(cuModuleLoadDataEx, (void **, void *, unsigned, int *, void **), &module,
       image, 0, NULL, NULL);
  return module;
}

SHOWN void *mgpuModuleLoadJIT(void *text, int level) {
  void *module = NULL;
  note("load ptx\n");
  (void)level;
  CALL(cuModuleLoadDataEx, (void **, void *, unsigned, int *, void **), &module,
       text, 0, NULL, NULL);
  return module;
}

SHOWN void mgpuModuleUnload(void *module) {
  note("unload\n");
  CALL(cuModuleUnload, (void *), module);
}

SHOWN void *mgpuModuleGetFunction(void *module, const char *name) {
  void *function = NULL;
  note("function %s\n", name);
  CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module,
       name);
  return function;
}

SHOWN void *mgpuStreamCreate(void) {
  void *stream = NULL;
  CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
  return stream;
}

SHOWN void mgpuStreamSynchronize(void *stream) {
  note("wait\n");
  CALL(cuStreamSynchronize, (void *), stream);
}

SHOWN void mgpuStreamDestroy(void *stream) {
  CALL(cuStreamDestroy_v2, (void *), stream);
}

SHOWN void *mgpuEventCreate(void) {
  void *event = NULL;
  CALL(cuEventCreate, (void **, unsigned), &event, 2); /* without times */
  return event;
}

SHOWN void mgpuEventDestroy(void *event) {
  CALL(cuEventDestroy_v2, (void *), event);
}

SHOWN void mgpuEventRecord(void *event, void *stream) {
  CALL(cuEventRecord, (void *, void *), event, stream);
}

SHOWN void mgpuEventSynchronize(void *event) {
  CALL(cuEventSynchronize, (void *), event);
}

SHOWN void mgpuStreamWaitEvent(void *stream, void *event) {
  CALL(cuStreamWaitEvent, (void *, void *, unsigned), stream, event, 0);
}

SHOWN void *mgpuMemAlloc(uint64_t bytes, void *stream, int8_t isShared) {
  uint64_t address = 0;
  (void)stream;
  if (isShared || pieceCount == sizeof(pieces) / sizeof(pieces[0])) {
    fprintf(stderr,
            "mgpu: expects memory of the GPU, and at most 1024 pieces\n");
    exit(1);
  }
  if (bytes)
    CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, bytes);
  pieces[pieceCount].address = address;
  pieces[pieceCount++].bytes = bytes;
  note("allocate #%d %llu bytes\n", pieceCount, (unsigned long long)bytes);
  return (void *)(uintptr_t)address;
}

SHOWN void mgpuMemFree(void *memory, void *stream) {
  char text[64];
  (void)stream;
  if (!memory) /* of no bytes */
    return;
  note("free %s\n", say(text, sizeof(text), (uintptr_t)memory));
  if (pieceOf((uintptr_t)memory) >= 0)
    pieces[pieceOf((uintptr_t)memory)].bytes = 0;
  CALL(cuMemFree_v2, (uint64_t), (uint64_t)(uintptr_t)memory);
}

SHOWN void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream) {
  char text[2][64];
  note("copy %s <- %s %zu bytes\n", say(text[0], 64, (uintptr_t)to),
       say(text[1], 64, (uintptr_t)from), bytes);
  CALL(cuMemcpyAsync, (uint64_t, uint64_t, size_t, void *),
       (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, stream);
}

SHOWN void mgpuMemset32(void *to, unsigned value, size_t count, void *stream) {
  char text[64];
  note("fill %s with %u, %zu words\n", say(text, sizeof(text), (uintptr_t)to),
       value, count);
  CALL(cuMemsetD32Async, (uint64_t, unsigned, size_t, void *),
       (uint64_t)(uintptr_t)to, value, count, stream);
}

SHOWN void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                            intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                            intptr_t blockZ, int32_t smemBytes, void *stream,
                            void **parameters, void **extra, size_t count) {
  note("launch grid %ld %ld %ld threads %ld %ld %ld shared %d arrays",
       (long)gridX, (long)gridY, (long)gridZ, (long)blockX, (long)blockY,
       (long)blockZ, smemBytes);
  noteParameters(parameters, count);
  /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  CALL(cuFuncSetAttribute, (void *, int, int), function, 8, smemBytes);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
        unsigned, void *, void **, void **),
       function, (unsigned)gridX, (unsigned)gridY, (unsigned)gridZ,
       (unsigned)blockX, (unsigned)blockY, (unsigned)blockZ,
       (unsigned)smemBytes, stream, parameters, extra);
}

/* CUlaunchConfig with its only attribute. */
struct Attribute {
  int id;
  union {
    long long alignment[8];
    unsigned cluster[3];
  } value;
};
struct Config {
  unsigned grid[3], block[3], smemBytes;
  void *stream;
  struct Attribute *attributes;
  unsigned attributeCount;
};

SHOWN void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                                   intptr_t clusterY, intptr_t clusterZ,
                                   intptr_t gridX, intptr_t gridY,
                                   intptr_t gridZ, intptr_t blockX,
                                   intptr_t blockY, intptr_t blockZ,
                                   int32_t smemBytes, void *stream,
                                   void **parameters, void **extra) {
  struct Attribute attribute = {4, {{0}}}; /* a cluster's dimensions */
  struct Config config = {
      {(unsigned)gridX, (unsigned)gridY, (unsigned)gridZ},
      {(unsigned)blockX, (unsigned)blockY, (unsigned)blockZ},
      (unsigned)smemBytes,
      stream,
      &attribute,
      1};
  attribute.value.cluster[0] = (unsigned)clusterX;
  attribute.value.cluster[1] = (unsigned)clusterY;
  attribute.value.cluster[2] = (unsigned)clusterZ;
  note("launch clusters %ld %ld %ld grid %ld %ld %ld threads %ld %ld %ld "
       "shared %d\n",
       (long)clusterX, (long)clusterY, (long)clusterZ, (long)gridX, (long)gridY,
       (long)gridZ, (long)blockX, (long)blockY, (long)blockZ, smemBytes);
  CALL(cuFuncSetAttribute, (void *, int, int), function, 8, smemBytes);
  CALL(cuLaunchKernelEx, (struct Config *, void *, void **, void **), &config,
       function, parameters, extra);
}
/* NOLINTEND(readability-identifier-naming) */
