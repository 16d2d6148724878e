//===- Driver.h - The driver's entry points ---------------------*- C++ -*-===//
//
// Our own declarations of the part of libcuda.so.1 that we call, so that no
// CUDA header is needed.  Names are those of the library's symbols, with the
// suffix _v2 where the ABI has one; types are those of the driver's ABI.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_DRIVER_H
#define ATTN_LIB_RUNTIME_DRIVER_H

#include "attn/Runtime/Cuda.h"

namespace attn::runtime {

/// CUresult; zero is success.
using Result = int;
/// Results that deserve a sentence of their own.
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNoBinaryForGpu = 209;

/// CUdevice_attribute.
enum class DeviceAttribute : int {
  clockKilohertz = 13,
  multiprocessors = 16,
  l2Bytes = 38,
  computeCapabilityMajor = 75,
  computeCapabilityMinor = 76,
  smemBytesPerSm = 81,
  registersPerSm = 82,
  smemBytesPerBlock = 97
};

/// CUfunction_attribute.
enum class FunctionAttribute : int {
  maxThreadsPerBlock = 0,
  staticSmemBytes = 1,
  localBytes = 3,
  registers = 4,
  maxDynamicSmemBytes = 8
};

/// CUpointer_attribute.
enum class PointerAttribute : int { deviceOrdinal = 9 };

/// CUlaunchAttributeID.
enum class LaunchAttributeId : int {
  cooperative = 2,
  clusterDimension = 4,
  programmaticSerialization = 6
};
/// CUlaunchAttribute, which has room for more than we ask for.
// NOLINTNEXTLINE(bugprone-tagged-union-member-count)
struct LaunchAttribute {
  LaunchAttributeId id;
  union alignas(8) {
    char bytes[64];
    int cooperative;
    int programmaticSerialization;
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};
/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, dynamicSmemBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};

/// CUstreamCaptureMode.
enum class CaptureMode : int { relaxed = 2 };

/// CUstreamCaptureStatus.
enum class CaptureStatus : int { none = 0 };

/// CUstream_flags: not ordered with the default stream, which cannot be used
/// while another stream captures.
inline constexpr unsigned kNonBlockingStream = 1;

/// CUtensorMapDataType.
enum class MapDataType : int { u8 = 0, f16 = 6, f32 = 7, bf16 = 9 };
/// CUtensorMapInterleave.
enum class MapInterleave : int { none = 0 };
/// CUtensorMapSwizzle.
enum class MapSwizzle : int { bytes128 = 3 };
/// CUtensorMapL2promotion.
enum class MapPromotion : int { bytes128 = 2 };
/// CUtensorMapFloatOOBfill: zeros.
enum class MapFill : int { none = 0 };

/// CUjit_option.
enum class LoadOption : int { errorLog = 5, errorLogBytes = 6 };

// ENTRY(symbol, member, parameters...)
#define ATTN_DRIVER_ENTRIES(ENTRY)                                             \
  ENTRY(cuInit, init, unsigned flags)                                          \
  ENTRY(cuDriverGetVersion, driverVersion, int *version)                       \
  ENTRY(cuGetErrorName, errorName, Result result, const char **text)           \
  ENTRY(cuGetErrorString, errorString, Result result, const char **text)       \
  ENTRY(cuDeviceGetCount, deviceCount, int *count)                             \
  ENTRY(cuDeviceGet, deviceGet, int *device, int ordinal)                      \
  ENTRY(cuDeviceGetName, deviceName, char *name, int size, int device)         \
  ENTRY(cuDeviceGetAttribute, deviceAttribute, int *value,                     \
        DeviceAttribute attribute, int device)                                 \
  ENTRY(cuDeviceTotalMem_v2, deviceMemory, size_t *bytes, int device)          \
  ENTRY(cuDevicePrimaryCtxRetain, contextRetain, void **context, int device)   \
  ENTRY(cuDevicePrimaryCtxRelease_v2, contextRelease, int device)              \
  ENTRY(cuCtxPushCurrent_v2, contextPush, void *context)                       \
  ENTRY(cuCtxPopCurrent_v2, contextPop, void **context)                        \
  ENTRY(cuCtxGetCurrent, contextCurrent, void **context)                       \
  ENTRY(cuCtxGetDevice, currentDevice, int *device)                            \
  ENTRY(cuModuleLoadDataEx, moduleLoad, void **module, const void *image,      \
        unsigned count, LoadOption *options, void **values)                    \
  ENTRY(cuModuleUnload, moduleUnload, void *module)                            \
  ENTRY(cuModuleGetFunction, moduleFunction, void **function, void *module,    \
        const char *name)                                                      \
  ENTRY(cuModuleGetGlobal_v2, moduleGlobal, DeviceAddress *address,            \
        size_t *bytes, void *module, const char *name)                         \
  ENTRY(cuFuncGetAttribute, functionAttribute, int *value,                     \
        FunctionAttribute attribute, void *function)                           \
  ENTRY(cuFuncSetAttribute, setFunctionAttribute, void *function,              \
        FunctionAttribute attribute, int value)                                \
  ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocksPerSm, int *blocks, \
        void *function, int threads, size_t dynamicSmemBytes)                  \
  ENTRY(cuLaunchKernel, launchKernel, void *function, unsigned gridX,          \
        unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,      \
        unsigned blockZ, unsigned dynamicSmemBytes, Stream stream,             \
        void **arguments, void **extra)                                        \
  ENTRY(cuMemAlloc_v2, allocate, DeviceAddress *address, size_t bytes)         \
  ENTRY(cuMemFree_v2, free, DeviceAddress address)                             \
  ENTRY(cuMemAllocAsync, allocateInOrder, DeviceAddress *address,              \
        size_t bytes, Stream stream)                                           \
  ENTRY(cuMemFreeAsync, freeInOrder, DeviceAddress address, Stream stream)     \
  ENTRY(cuPointerGetAttribute, pointerAttribute, void *value,                  \
        PointerAttribute attribute, DeviceAddress address)                     \
  ENTRY(cuThreadExchangeStreamCaptureMode, exchangeCaptureMode,                \
        CaptureMode *mode)                                                     \
  ENTRY(cuMemcpyHtoDAsync_v2, copyToDevice, DeviceAddress to,                  \
        const void *from, size_t bytes, Stream stream)                         \
  ENTRY(cuMemcpyDtoHAsync_v2, copyToHost, void *to, DeviceAddress from,        \
        size_t bytes, Stream stream)                                           \
  ENTRY(cuMemcpyDtoDAsync_v2, copyOnDevice, DeviceAddress to,                  \
        DeviceAddress from, size_t bytes, Stream stream)                       \
  ENTRY(cuMemsetD8Async, fill, DeviceAddress to, unsigned char value,          \
        size_t bytes, Stream stream)                                           \
  ENTRY(cuStreamCreate, streamCreate, Stream *stream, unsigned flags)          \
  ENTRY(cuStreamDestroy_v2, streamDestroy, Stream stream)                      \
  ENTRY(cuStreamIsCapturing, streamIsCapturing, Stream stream,                 \
        CaptureStatus *status)                                                 \
  ENTRY(cuStreamSynchronize, streamSynchronize, Stream stream)                 \
  ENTRY(cuEventCreate, eventCreate, void **event, unsigned flags)              \
  ENTRY(cuEventDestroy_v2, eventDestroy, void *event)                          \
  ENTRY(cuEventRecord, eventRecord, void *event, Stream stream)                \
  ENTRY(cuEventSynchronize, eventSynchronize, void *event)                     \
  ENTRY(cuEventElapsedTime, eventElapsed, float *milliseconds, void *first,    \
        void *last)

// What drivers before CUDA 12 do not have: null there.
#define ATTN_OPTIONAL_DRIVER_ENTRIES(ENTRY)                                    \
  ENTRY(cuStreamGetId, streamId, Stream stream, unsigned long long *id)        \
  ENTRY(cuLaunchKernelEx, launchKernelEx, const LaunchConfig *config,          \
        void *function, void **arguments, void **extra)                        \
  ENTRY(cuOccupancyMaxActiveClusters, mostClusters, int *clusters,             \
        void *function, const LaunchConfig *config)                            \
  ENTRY(cuTensorMapEncodeTiled, encodeMap, void *map, MapDataType type,        \
        uint32_t rank, void *address, const uint64_t *extents,                 \
        const uint64_t *strides, const uint32_t *box,                          \
        const uint32_t *elementStrides, MapInterleave interleave,              \
        MapSwizzle swizzle, MapPromotion promotion, MapFill fill)              \
  ENTRY(cuTensorMapReplaceAddress, replaceMapAddress, void *map, void *address)

/// The opened driver.
struct Driver {
#define ATTN_ENTRY(symbol, member, ...) Result (*member)(__VA_ARGS__) = nullptr;
  ATTN_DRIVER_ENTRIES(ATTN_ENTRY)
  ATTN_OPTIONAL_DRIVER_ENTRIES(ATTN_ENTRY)
#undef ATTN_ENTRY

  /// Opens and initialises the driver once per process.
  static Expected<const Driver *> get();

  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory", in the driver's own words.
  std::string text(Result result) const;
  /// Success, or the driver's words after what was being done.
  Status check(Result result, const char *during) const;
};

} // namespace attn::runtime

#endif
