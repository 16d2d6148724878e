//===- XlaFfi.h - XLA's foreign function interface, as we use it -*- C++ -*-==//
//
// Our own declarations of the part of XLA's stable C ABI for custom calls that
// the handler touches, so that neither jaxlib nor its headers are needed to
// build.  Layouts are those of xla/ffi/api/c_api.h of XLA, versions 0.0 to 0.3;
// every structure begins with its size, and what lies behind the size is not
// read.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_XLAFFI_H
#define ATTN_LIB_CAPI_XLAFFI_H

#include <cstddef>
#include <cstdint>

namespace attn::xla {

struct Extension {
  size_t structSize;
  int32_t type;
  Extension *next;
};
/// The extension by which a handler is asked what it is.
inline constexpr int32_t kMetadata = 1;

struct ApiVersion {
  size_t structSize;
  Extension *extensions;
  int32_t major, minor;
};
/// The oldest version with everything below: XLA takes handlers of its own
/// version and, since 0.3, of older ones.
inline constexpr int32_t kMajor = 0;
inline constexpr int32_t kMinor = 1;

struct Metadata {
  size_t structSize;
  ApiVersion version;
  uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};
/// What is launched may be captured in a CUDA graph and replayed.
inline constexpr uint32_t kCommandBufferCompatible = 1;

struct Error;
enum class ErrorCode : int32_t {
  invalidArgument = 3,
  unimplemented = 12,
  internal = 13
};
struct ErrorCreateArgs {
  size_t structSize;
  Extension *extensions;
  const char *message;
  ErrorCode code;
};

struct ErrorDestroyArgs {
  size_t structSize;
  Extension *extensions;
  Error *error;
};

struct Context;
struct StreamGetArgs {
  size_t structSize;
  Extension *extensions;
  Context *context;
  void *stream;
};

struct Api {
  size_t structSize;
  Extension *extensions;
  ApiVersion version;
  const void *internal;
  Error *(*errorCreate)(ErrorCreateArgs *);
  void (*errorGetMessage)(void *);
  void (*errorDestroy)(ErrorDestroyArgs *);
  Error *(*handlerRegister)(void *);
  Error *(*streamGet)(StreamGetArgs *);
};

/// xla::PrimitiveType.
enum class DataType : int32_t {
  pred = 1,
  s8 = 2,
  s16 = 3,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  f16 = 10,
  f32 = 11,
  bf16 = 16,
  f8e4m3fn = 20
};

struct Buffer {
  size_t structSize;
  Extension *extensions;
  DataType type;
  void *data;
  int64_t rank;
  int64_t *dims;
};

/// Arguments, and in the same form results.
struct Values {
  size_t structSize;
  Extension *extensions;
  int64_t size;
  int32_t *types;
  void **values;
};
inline constexpr int32_t kBufferValue = 1;

struct Span {
  const char *data;
  size_t size;
};
struct Attributes {
  size_t structSize;
  Extension *extensions;
  int64_t size;
  int32_t *types;
  Span **names;
  void **values;
};
inline constexpr int32_t kStringAttribute = 4;

enum class Stage : int32_t { execute = 3 };

struct CallFrame {
  size_t structSize;
  Extension *extensions;
  const Api *api;
  Context *context;
  Stage stage;
  Values arguments;
  Values results;
  Attributes attributes;
};

// The places of XLA's fields, by its header.
static_assert(offsetof(Api, errorCreate) == 48);
static_assert(offsetof(Api, streamGet) == 80);
static_assert(offsetof(Buffer, data) == 24 && sizeof(Buffer) == 48);
static_assert(offsetof(CallFrame, arguments) == 40);
static_assert(offsetof(CallFrame, attributes) == 120);
static_assert(offsetof(Metadata, traits) == 32);

} // namespace attn::xla

#endif
