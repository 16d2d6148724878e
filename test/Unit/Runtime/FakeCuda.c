/*===- FakeCuda.c - A libcuda.so.1 that runs nothing ----------------------===*\
|* With this driver everything up to a launch can be tested on a machine without
|* a GPU: what is loaded, with which grid it is launched, how errors come out.
|*
|*   ATTN_FAKE_CUDA_LOG   a file; every load and launch becomes a line of it,
|*                        but those that only find out about the GPU
|*   ATTN_FAKE_CUDA_GPU   "name,compute capability,multiprocessors,GiB"; an H100
|*                        by default
|*   ATTN_FAKE_CUDA_COUNT number of GPUs, 1 by default; 0 is "no device"
|*   ATTN_FAKE_CUDA_VERSION  that of the driver, 13000 by default
|*   ATTN_FAKE_CUDA_FAIL  "cuLaunchKernel=700": what the function returns
|* A test in the same process has FakeCuda.h as well.  Built with FAKE_CUDA_OLD
|* it is a driver from before CUDA 12.
\*===----------------------------------------------------------------------===*/

#include "FakeCuda.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
#define FAKE SHOWN int

/* The kernel that times the halves of L2. */
static const char kProbe[] = "attn_probe_sides";

/* The result that the environment asks of a function. */
static int result(const char *function) {
  const char *wanted = getenv("ATTN_FAKE_CUDA_FAIL");
  size_t length = strlen(function);
  if (!wanted || strncmp(wanted, function, length) != 0 ||
      wanted[length] != '=')
    return 0;
  return (int)strtol(wanted + length + 1, NULL, 10);
}

/* One write for each line, so that threads and processes do not mix them. */
static void note(const char *line) {
  const char *path = getenv("ATTN_FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file)
    return;
  fputs(line, file);
  fclose(file);
}

static int deviceCount(void) {
  const char *text = getenv("ATTN_FAKE_CUDA_COUNT");
  return text ? (int)strtol(text, NULL, 10) : 1;
}

/* A field of ATTN_FAKE_CUDA_GPU. */
static void field(int number, char *text, size_t size) {
  const char *from = getenv("ATTN_FAKE_CUDA_GPU");
  size_t length;
  if (!from)
    from = "NVIDIA H100 80GB HBM3,90,132,80";
  for (; number > 0 && from; --number) {
    from = strchr(from, ',');
    from = from ? from + 1 : NULL;
  }
  length = from ? strcspn(from, ",") : 0;
  if (length >= size)
    length = size - 1;
  memcpy(text, from ? from : "", length);
  text[length] = '\0';
}

static int number(int which) {
  char text[64];
  field(which, text, sizeof(text));
  return (int)strtol(text, NULL, 10);
}

/*===-- Streams -----------------------------------------------------------===*/

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *capturing[8];
static struct {
  void *handle;
  unsigned long long id;
} renewed[8];
static unsigned long long lastId = 1 << 20;
static int pieces;

SHOWN void fakeCudaCapture(void *stream, int on) {
  int i;
  pthread_mutex_lock(&lock);
  for (i = 0; i < 8; ++i)
    if (capturing[i] == (on ? NULL : stream)) {
      capturing[i] = on ? stream : NULL;
      break;
    }
  pthread_mutex_unlock(&lock);
}

static int captures(void *stream) {
  int i, found = 0;
  pthread_mutex_lock(&lock);
  for (i = 0; i < 8; ++i)
    found |= stream && capturing[i] == stream;
  pthread_mutex_unlock(&lock);
  return found;
}

SHOWN void fakeCudaRenew(void *stream) {
  int i;
  pthread_mutex_lock(&lock);
  for (i = 0; i < 8; ++i)
    if (!renewed[i].handle || renewed[i].handle == stream) {
      renewed[i].handle = stream;
      renewed[i].id = ++lastId;
      break;
    }
  pthread_mutex_unlock(&lock);
}

#ifndef FAKE_CUDA_OLD
/* The legacy default stream has two handles, and every thread a default stream
   of its own. */
static unsigned long long idOf(void *stream) {
  static __thread unsigned long long own;
  unsigned long long id = (unsigned long long)(uintptr_t)stream;
  int i;
  if (id <= 1)
    return 7;
  pthread_mutex_lock(&lock);
  if (id == 2)
    id = own ? own : (own = ++lastId);
  for (i = 0; i < 8; ++i)
    if (renewed[i].handle == stream)
      id = renewed[i].id;
  pthread_mutex_unlock(&lock);
  return id;
}

#endif

/*===-- Launches ----------------------------------------------------------===*/

static FakeLaunch *onLaunch;
static void *onLaunchData;

SHOWN void fakeCudaOnLaunch(FakeLaunch *function, void *data) {
  onLaunch = function;
  onLaunchData = data;
}

static int launchedAhead;
SHOWN int fakeCudaAhead(void) { return launchedAhead; }

SHOWN int fakeCudaPieces(void) { return __atomic_load_n(&pieces, 5); }

/*===-- Tensor maps -------------------------------------------------------===*/

static const uint64_t kMagic = 0x70616d20656b6166;
_Static_assert(sizeof(struct FakeMap) <= 128, "a map takes 128 bytes");

SHOWN const struct FakeMap *fakeCudaMap(const void *bytes) {
  const struct FakeMap *map = bytes;
  return map->magic == kMagic ? map : NULL;
}

/* Names are the driver's. */
/* NOLINTBEGIN(readability-identifier-naming) */
FAKE cuInit(unsigned flags) {
  (void)flags;
  return deviceCount() == 0 ? 100 : result("cuInit");
}
FAKE cuDriverGetVersion(int *version) {
  const char *text = getenv("ATTN_FAKE_CUDA_VERSION");
  *version = text ? (int)strtol(text, NULL, 10) : 13000;
  return 0;
}
FAKE cuGetErrorName(int code, const char **text) {
  *text = code == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == 100 ? "CUDA_ERROR_NO_DEVICE"
          : code == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
                        : "CUDA_ERROR_UNKNOWN";
  return 0;
}
FAKE cuGetErrorString(int code, const char **text) {
  *text = code == 700   ? "an illegal memory access was encountered"
          : code == 100 ? "no CUDA-capable device is detected"
          : code == 2   ? "out of memory"
                        : "unknown error";
  return 0;
}
FAKE cuDeviceGetCount(int *count) {
  *count = deviceCount();
  return 0;
}
FAKE cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
FAKE cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  field(0, name, (size_t)size);
  return 0;
}
FAKE cuDeviceGetAttribute(int *value, int attribute, int device) {
  int capability = number(1);
  (void)device;
  switch (attribute) {
  case 13: /* clock, kHz */
    *value = 1980000;
    break;
  case 16: /* multiprocessors */
    *value = number(2);
    break;
  case 38: /* L2 */
    *value = 50 << 20;
    break;
  case 75:
    *value = capability / 10;
    break;
  case 76:
    *value = capability % 10;
    break;
  case 81: /* shared memory of a multiprocessor */
    *value = 233472;
    break;
  case 82: /* registers of a multiprocessor */
    *value = 65536;
    break;
  case 97: /* shared memory of a block */
    *value = 232448;
    break;
  default:
    return 1;
  }
  return 0;
}
FAKE cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)number(3) << 30;
  return 0;
}
FAKE cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = (void *)(intptr_t)(device + 1);
  return result("cuDevicePrimaryCtxRetain");
}
FAKE cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return 0;
}
/* The contexts that a thread has entered, the current one last. */
static __thread void *contexts[16];
static __thread int entered;
static void *current(void) { return entered ? contexts[entered - 1] : NULL; }
FAKE cuCtxPushCurrent_v2(void *context) {
  if (entered == 16)
    return 1;
  contexts[entered++] = context;
  return 0;
}
FAKE cuCtxPopCurrent_v2(void **context) {
  *context = current();
  if (entered == 0)
    return 201;
  --entered;
  return 0;
}
FAKE cuCtxGetCurrent(void **context) {
  *context = current();
  return 0;
}
FAKE cuCtxGetDevice(int *device) {
  *device = (int)(intptr_t)current() - 1;
  return current() ? 0 : 201;
}
FAKE cuModuleLoadDataEx(void **module, const void *image, unsigned count,
                        int *options, void **values) {
  (void)count, (void)options, (void)values;
  *module = strdup("module");
  if (memcmp(image, "\177ELF", 4) == 0)
    note("load cubin\n");
  else if (!strstr((const char *)image, kProbe))
    note("load ptx\n");
  return result("cuModuleLoadDataEx");
}
FAKE cuModuleUnload(void *module) {
  free(module);
  return 0;
}
FAKE cuModuleGetFunction(void **function, void *module, const char *name) {
  (void)module;
  *function = strdup(name); /* lives as long as the process */
  return result("cuModuleGetFunction");
}
static unsigned sides[8];
SHOWN const unsigned *fakeCudaSides(void) { return sides; }
FAKE cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module,
                          const char *name) {
  (void)module;
  if (strcmp(name, "attn_sides") != 0)
    return 500;
  *address = (uint64_t)(uintptr_t)sides;
  *bytes = sizeof(sides);
  return result("cuModuleGetGlobal");
}
FAKE cuFuncGetAttribute(int *value, int attribute, void *function) {
  (void)attribute, (void)function;
  *value = 0;
  return 0;
}
FAKE cuFuncSetAttribute(void *function, int attribute, int value) {
  (void)function, (void)attribute, (void)value;
  return 0;
}
FAKE cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                 int threads, size_t bytes) {
  (void)function, (void)threads, (void)bytes;
  *blocks = 1;
  return 0;
}
/* A launch, with a word behind its line about how its blocks come to run. */
static void noteLaunch(void *function, const unsigned *grid, unsigned threads,
                       unsigned smemBytes, void *stream, void **arguments,
                       const char *mode) {
  char line[512];
  if (getenv("ATTN_FAKE_CUDA_LOG") && strcmp(function, kProbe) != 0) {
    snprintf(line, sizeof(line),
             "launch %s grid %u %u %u threads %u smem %u stream %llu device %d "
             "first 0x%llx%s\n",
             (const char *)function, grid[0], grid[1], grid[2], threads,
             smemBytes, (unsigned long long)(uintptr_t)stream,
             (int)(intptr_t)current() - 1,
             arguments ? *(unsigned long long *)arguments[0] : 0ull, mode);
    note(line);
  }
  if (onLaunch)
    onLaunch((const char *)function, stream, arguments, onLaunchData);
}
FAKE cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                    unsigned gridZ, unsigned blockX, unsigned blockY,
                    unsigned blockZ, unsigned smemBytes, void *stream,
                    void **arguments, void **extra) {
  unsigned grid[] = {gridX, gridY, gridZ};
  (void)blockY, (void)blockZ, (void)extra;
  noteLaunch(function, grid, blockX, smemBytes, stream, arguments, "");
  return result("cuLaunchKernel");
}
#ifndef FAKE_CUDA_OLD
/* CUlaunchConfig, with what it says first of each attribute. */
struct LaunchConfig {
  unsigned grid[3], block[3], smemBytes;
  void *stream;
  struct {
    int id;
    union {
      long long alignment[8];
      int first;
    } value;
  } *attributes;
  unsigned attributeCount;
};
FAKE cuLaunchKernelEx(const struct LaunchConfig *config, void *function,
                      void **arguments, void **extra) {
  const char *mode = "";
  unsigned i;
  (void)extra;
  for (i = 0; i < config->attributeCount; ++i) {
    if (!config->attributes[i].value.first)
      return 1;
    if (config->attributes[i].id == 2)
      mode = " together";
    else if (config->attributes[i].id == 4)
      mode = " in clusters";
    else if (config->attributes[i].id == 6)
      mode = " ahead";
    else
      return 1;
  }
  launchedAhead = strcmp(mode, " ahead") == 0;
  noteLaunch(function, config->grid, config->block[0], config->smemBytes,
             config->stream, arguments, mode);
  launchedAhead = 0;
  return result("cuLaunchKernelEx");
}
#endif
FAKE cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  int code = result("cuMemAlloc");
  __atomic_add_fetch(&pieces, !code, 5);
  *address =
      code ? 0
           : (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return code;
}
FAKE cuMemFree_v2(uint64_t address) {
  __atomic_sub_fetch(&pieces, 1, 5);
  free((void *)(uintptr_t)address);
  return 0;
}
FAKE cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) {
  (void)stream;
  note("allocate\n");
  return cuMemAlloc_v2(address, bytes);
}
FAKE cuMemFreeAsync(uint64_t address, void *stream) {
  (void)stream;
  note("free\n");
  return cuMemFree_v2(address);
}
FAKE cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
  (void)attribute, (void)address;
  *(int *)value = 0;
  return result("cuPointerGetAttribute");
}
FAKE cuThreadExchangeStreamCaptureMode(int *mode) {
  static __thread int known = 0;
  int old = known;
  known = *mode;
  *mode = old;
  return 0;
}
FAKE cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes,
                          void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
FAKE cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  (void)stream;
  memcpy(to, (const void *)(uintptr_t)from, bytes);
  return 0;
}
FAKE cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes,
                          void *stream) {
  (void)to, (void)from, (void)bytes, (void)stream;
  note("copy\n");
  return 0;
}
FAKE cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  (void)stream;
  memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return result("cuMemcpyAsync");
}
FAKE cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
  size_t i;
  (void)stream;
  for (i = 0; i < count; ++i)
    ((unsigned *)(uintptr_t)to)[i] = value;
  return result("cuMemsetD32Async");
}
FAKE cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes,
                     void *stream) {
  (void)stream;
  memset((void *)(uintptr_t)to, value, bytes);
  return result("cuMemsetD8Async");
}
FAKE cuStreamCreate(void **stream, unsigned flags) {
  (void)flags;
  *stream = malloc(1);
  return result("cuStreamCreate");
}
FAKE cuStreamDestroy_v2(void *stream) {
  free(stream);
  return 0;
}
FAKE cuStreamIsCapturing(void *stream, int *status) {
  *status = captures(stream);
  return current() ? result("cuStreamIsCapturing") : 201;
}
FAKE cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  (void)stream, (void)event, (void)flags;
  return result("cuStreamWaitEvent");
}
FAKE cuStreamSynchronize(void *stream) {
  (void)stream;
  return 0;
}
FAKE cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  *event = strdup("event");
  return 0;
}
FAKE cuEventDestroy_v2(void *event) {
  free(event);
  return 0;
}
FAKE cuEventRecord(void *event, void *stream) {
  (void)event, (void)stream;
  return 0;
}
FAKE cuEventSynchronize(void *event) {
  (void)event;
  return 0;
}
FAKE cuEventElapsedTime(float *milliseconds, void *first, void *last) {
  (void)first, (void)last;
  *milliseconds = 1;
  return 0;
}
#ifndef FAKE_CUDA_OLD
/* As the true one it does not like to be asked while the stream captures. */
FAKE cuStreamGetId(void *stream, unsigned long long *id) {
  *id = idOf(stream);
  return captures(stream) ? 900 : result("cuStreamGetId");
}
/* Checks what CUDA's documentation asks for, and that a row of a box is as long
   as the swizzle's period, as ours always is. */
FAKE cuTensorMapEncodeTiled(void *place, int type, uint32_t rank, void *address,
                            const uint64_t *extents, const uint64_t *strides,
                            const uint32_t *box, const uint32_t *elementStrides,
                            int interleave, int swizzle, int promotion,
                            int fill) {
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  struct FakeMap map;
  char line[512];
  int length;
  uint32_t i;
  memset(&map, 0, sizeof(map));
  if ((uintptr_t)place % 64 != 0 || (uintptr_t)address % 16 != 0 || rank < 1 ||
      rank > 5 || type < 0 || type >= (int)sizeof(bytes) || interleave != 0 ||
      swizzle != 3 || promotion < 0 || promotion > 3 || fill != 0 ||
      box[0] * bytes[type] != 128)
    return 1;
  if (!current())
    return 201;
  length = snprintf(line, sizeof(line), "encode type %d promotion %d extents",
                    type, promotion);
  for (i = 0; i < rank; ++i) {
    if (extents[i] < 1 || extents[i] > 1ull << 32 || box[i] < 1 ||
        box[i] > 256 || elementStrides[i] < 1 || elementStrides[i] > 8)
      return 1;
    map.extents[i] = extents[i];
    map.box[i] = (uint16_t)box[i];
    length += snprintf(line + length, sizeof(line) - length, " %llu",
                       (unsigned long long)extents[i]);
  }
  length += snprintf(line + length, sizeof(line) - length, " strides");
  for (i = 0; i + 1 < rank; ++i) {
    if (strides[i] % 16 != 0 || strides[i] >= 1ull << 40)
      return 1;
    map.strides[i] = strides[i];
    length += snprintf(line + length, sizeof(line) - length, " %llu",
                       (unsigned long long)strides[i]);
  }
  length += snprintf(line + length, sizeof(line) - length, " box");
  for (i = 0; i < rank; ++i)
    length += snprintf(line + length, sizeof(line) - length, " %u", box[i]);
  snprintf(line + length, sizeof(line) - length, "\n");
  map.address = (uint64_t)(uintptr_t)address;
  map.magic = kMagic;
  map.type = (uint8_t)type;
  map.rank = (uint8_t)rank;
  map.swizzle = (uint8_t)swizzle;
  map.promotion = (uint8_t)promotion;
  map.fill = (uint8_t)fill;
  memset(place, 0, 128);
  memcpy(place, &map, sizeof(map));
  note(line);
  return result("cuTensorMapEncodeTiled");
}
FAKE cuTensorMapReplaceAddress(void *place, void *address) {
  if ((uintptr_t)place % 64 != 0 || (uintptr_t)address % 16 != 0 ||
      !fakeCudaMap(place))
    return 1;
  if (!current())
    return 201;
  ((struct FakeMap *)place)->address = (uint64_t)(uintptr_t)address;
  return 0; /* to ask the environment would be most of the time */
}
#endif
/* NOLINTEND(readability-identifier-naming) */
