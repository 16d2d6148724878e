//===- Attn.cpp - attn-c/Attn.h: compiling, binding, launching ------------===//

#include "Attention.h"
#include "Boundary.h"
#include "CallerClauses.h"
#include "Executable.h"
#include "Problems.h"
#include "RequestArrays.h"

#include "llvm/ADT/StringExtras.h"

#include <cstddef>

using namespace attn;

struct attn_executable {
  std::unique_ptr<Executable> impl;
};

struct attn_binding {
  std::shared_ptr<const Binding> impl;
};

//===----------------------------------------------------------------------===//
// Executables
//===----------------------------------------------------------------------===//

int32_t attn_compile(const char *text, size_t size, const char *machine,
                     const char *schedule, const char *function,
                     attn_executable **executable, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!text || !executable)
      return invalid("expects a text and a place for the executable");
    *executable = nullptr;
    std::string error;
    std::unique_ptr<Executable> impl =
        Executable::compile({llvm::StringRef(text, size), orEmpty(machine),
                             orEmpty(schedule), orEmpty(function)},
                            error);
    if (!impl)
      return Fault{ATTN_COMPILE_ERROR, error};
    *executable = new attn_executable{std::move(impl)};
    return std::nullopt;
  });
}

void attn_executable_destroy(attn_executable *executable) { delete executable; }

int32_t attn_executable_info(const attn_executable *executable, char **json,
                             attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!executable || !json)
      return invalid("expects an executable and a place for the result");
    return give(executable->impl->info(), json);
  });
}

/// A part of the binary at a position, or nothing behind the last.
static int32_t binaryPart(const attn_executable *executable, size_t index,
                          const char **bytes, size_t *size,
                          std::string Binary::*part, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!executable || !bytes || !size)
      return invalid("expects an executable and places for the results");
    const std::vector<Binary> &binaries = executable->impl->compiled().binaries;
    *bytes = nullptr;
    *size = 0;
    if (index >= binaries.size() || (binaries[index].*part).empty())
      return std::nullopt;
    *bytes = (binaries[index].*part).data();
    *size = (binaries[index].*part).size();
    return std::nullopt;
  });
}

int32_t attn_executable_cubin(const attn_executable *executable, size_t index,
                              const char **bytes, size_t *size,
                              attn_status *status) {
  return binaryPart(executable, index, bytes, size, &Binary::cubin, status);
}

int32_t attn_executable_ptx(const attn_executable *executable, size_t index,
                            const char **text, size_t *size,
                            attn_status *status) {
  return binaryPart(executable, index, text, size, &Binary::ptx, status);
}

int32_t attn_load(attn_executable *executable, int32_t device,
                  attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!executable)
      return invalid("expects an executable");
    return executable->impl->load(device);
  });
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

static Outcome bindFunction(attn_executable *executable,
                            const attn_buffer *buffers, size_t count,
                            std::shared_ptr<const Binding> &binding,
                            llvm::SmallVectorImpl<CallerArray> &arrays) {
  if (!executable || (!buffers && count != 0))
    return invalid("expects an executable and its buffers");
  for (size_t i = 0; i < count; ++i)
    if (Outcome fault = readBuffer(buffers[i], arrays.emplace_back()))
      return fault;
  return executable->impl->bind(arrays, binding);
}

static Outcome launch(const Binding &binding, llvm::ArrayRef<uint64_t> data,
                      void *stream, const ScratchMemory &scratch = {}) {
  if (std::optional<std::string> wrong = binding.check(data))
    return invalid(*wrong);
  runtime::Status launched = binding.launch(data, stream, scratch);
  if (!launched.ok())
    return Fault{ATTN_DEVICE_ERROR, launched.message()};
  return std::nullopt;
}

static llvm::SmallVector<uint64_t, 8>
addressesOf(llvm::ArrayRef<CallerArray> arrays) {
  llvm::SmallVector<uint64_t, 8> addresses;
  for (const CallerArray &array : arrays)
    addresses.push_back(array.address);
  return addresses;
}

int32_t attn_call(attn_executable *executable, const attn_buffer *buffers,
                  size_t count, void *stream, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    llvm::SmallVector<CallerArray> arrays;
    std::shared_ptr<const Binding> binding;
    if (Outcome fault =
            bindFunction(executable, buffers, count, binding, arrays))
      return fault;
    return launch(*binding, addressesOf(arrays), stream);
  });
}

int32_t attn_bind(attn_executable *executable, const attn_buffer *buffers,
                  size_t count, attn_binding **binding, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!binding)
      return invalid("expects a place for the binding");
    *binding = nullptr;
    llvm::SmallVector<CallerArray> arrays;
    std::shared_ptr<const Binding> impl;
    if (Outcome fault = bindFunction(executable, buffers, count, impl, arrays))
      return fault;
    *binding = new attn_binding{std::move(impl)};
    return std::nullopt;
  });
}

/// With the driver's memory, if no scratch is given.
static Outcome launchAt(const attn_binding *binding, void *const *data,
                        size_t count, const ScratchMemory *scratch,
                        void *stream) {
  if (!binding || (!data && count != 0))
    return invalid("expects a binding and its addresses");
  if (scratch)
    if (std::optional<std::string> wrong =
            binding->impl->checkScratch(*scratch))
      return invalid(*wrong);
  llvm::SmallVector<uint64_t, 8> addresses;
  for (size_t i = 0; i < count; ++i)
    addresses.push_back(reinterpret_cast<uint64_t>(data[i]));
  return launch(*binding->impl, addresses, stream,
                scratch ? *scratch : ScratchMemory());
}

int32_t attn_launch(const attn_binding *binding, void *const *data,
                    size_t count, void *stream, attn_status *status) {
  return guardedLaunch(status, [&] {
    return launchAt(binding, data, count, /*scratch=*/nullptr, stream);
  });
}

int32_t attn_binding_scratch_bytes(const attn_binding *binding, int64_t *bytes,
                                   attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!binding || !bytes)
      return invalid("expects a binding and a place for the result");
    *bytes = binding->impl->scratchBytes();
    return std::nullopt;
  });
}

int32_t attn_launch_in_scratch(const attn_binding *binding, void *const *data,
                               size_t count, void *scratch,
                               int64_t scratch_bytes, void *stream,
                               attn_status *status) {
  return guardedLaunch(status, [&] {
    ScratchMemory given{reinterpret_cast<uint64_t>(scratch), scratch_bytes};
    return launchAt(binding, data, count, &given, stream);
  });
}

int32_t attn_binding_info(const attn_binding *binding, char **json,
                          attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!binding || !json)
      return invalid("expects a binding and a place for the result");
    return give(binding->impl->json(), json);
  });
}

void attn_binding_destroy(attn_binding *binding) { delete binding; }

//===----------------------------------------------------------------------===//
// Attention in one call
//===----------------------------------------------------------------------===//

/// What the requests of both directions say in the same words.
template <typename Source>
static Outcome readRequest(const Source &source, AttentionRequest &request) {
  if (std::optional<std::string> wrong =
          readDataType(source.dtype, request.dtype))
    return invalid(*wrong);
  if (std::optional<std::string> wrong =
          readPrecision(source.precision, request.dtype, request.precision))
    return invalid(*wrong);
  if (std::optional<std::string> wrong = readMask(source.mask, request.mask))
    return invalid(*wrong);
  if (source.has_scale)
    request.scale = source.scale;
  request.machine = orEmpty(source.machine);
  request.schedule = orEmpty(source.schedule);
  return std::nullopt;
}

/// A buffer for every place of the direction; NULL where it is optional.
using Buffers = llvm::ArrayRef<const attn_buffer *>;

static Fault missingBuffer(Direction direction) {
  llvm::SmallVector<llvm::StringRef> roles;
  for (const ArrayPlace &place : arraysOf(direction))
    if (!place.isOptional)
      roles.push_back(place.role);
  llvm::StringRef last = roles.pop_back_val();
  return invalid("expects buffers " + llvm::join(roles, ", ") + " and " +
                 last.str());
}

static Outcome readArrays(Direction direction, Buffers buffers,
                          AttentionArrays &arrays) {
  for (auto [place, buffer] : llvm::zip_equal(arraysOf(direction), buffers)) {
    if (!buffer && place.isOptional)
      continue;
    if (!buffer)
      return missingBuffer(direction);
    arrays.all.push_back({place.role, place.isOutput, {}});
    if (Outcome fault = readBuffer(*buffer, arrays.all.back().array))
      return fault;
  }
  return std::nullopt;
}

static llvm::StringRef nameOf(const attn_forward_request *) {
  return "attn_forward_request";
}
static llvm::StringRef nameOf(const attn_backward_request *) {
  return "attn_backward_request";
}

/// What only the requests of one direction say.
static void readDirection(const attn_forward_request &, AttentionRequest &) {}
static void readDirection(const attn_backward_request &source,
                          AttentionRequest &request) {
  request.direction = Direction::backward;
  request.deterministic = source.deterministic != 0;
}

/// The type of k and v, which only forward requests of callers who know of it
/// say.
static Outcome readKvTypeOf(const attn_backward_request &, AttentionRequest &) {
  return std::nullopt;
}
static Outcome readKvTypeOf(const attn_forward_request &source,
                            AttentionRequest &request) {
  constexpr size_t end =
      offsetof(attn_forward_request, kv_dtype) + sizeof(void *);
  if (source.struct_size < end)
    return std::nullopt;
  if (std::optional<std::string> wrong =
          readKvType(source.kv_dtype, request.dtype, request.kvDtype))
    return invalid(*wrong);
  return std::nullopt;
}

/// Of a caller who knows that there is one.
template <typename Source>
static const attn_buffer *lowOf(const Source *source) {
  bool isThere = source && source->struct_size >=
                               offsetof(Source, lse_low) + sizeof(void *);
  return isThere ? source->lse_low : nullptr;
}

/// Where gradients of captures go; forward there are none.
static const attn_buffer *const *gradientsOf(const attn_forward_request &) {
  return nullptr;
}
static const attn_buffer *const *
gradientsOf(const attn_backward_request &source) {
  constexpr size_t end =
      offsetof(attn_backward_request, capture_gradients) + sizeof(void *);
  return source.struct_size >= end ? source.capture_gradients : nullptr;
}

/// Of a caller who knows that there are some.
template <typename Source>
static Outcome readClausesOf(const Source &source, AttentionRequest &request,
                             AttentionArrays &arrays) {
  bool isThere =
      source.struct_size >= offsetof(Source, clauses) + sizeof(void *);
  if (!isThere || !source.clauses)
    return std::nullopt;
  return readCallerClauses(*source.clauses, gradientsOf(source), request,
                           arrays);
}

template <typename Source>
static Outcome readAll(const Source *source, Buffers buffers,
                       AttentionRequest &request, AttentionArrays &arrays) {
  if (!source || source->struct_size < offsetof(Source, lse_low))
    return invalid("expects a request with struct_size = sizeof(" +
                   nameOf(source).str() + ")");
  readDirection(*source, request);
  llvm::SmallVector<const attn_buffer *, 24> all(buffers);
  if (Outcome fault = readOptional(*source, request, all))
    return fault;
  if (Outcome fault = readArrays(request.direction, all, arrays))
    return fault;
  if (Outcome fault = readClausesOf(*source, request, arrays))
    return fault;
  if (Outcome fault = readRequest(*source, request))
    return fault;
  return readKvTypeOf(*source, request);
}

template <typename Source>
static Outcome
bindRequest(const Source *source, int32_t device, Buffers buffers,
            std::shared_ptr<const Binding> &binding, AttentionArrays &arrays) {
  AttentionRequest request;
  if (Outcome fault = readAll(source, buffers, request, arrays))
    return fault;
  return bindAttention(request, device, arrays, binding);
}

/// Binds and launches, or gives the binding.
template <typename Source>
static int32_t callNow(const Source *request, int32_t device, Buffers buffers,
                       void *stream, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    AttentionArrays arrays;
    std::shared_ptr<const Binding> binding;
    if (Outcome fault = bindRequest(request, device, buffers, binding, arrays))
      return fault;
    return launch(*binding, addressesOf(arrays.list()), stream);
  });
}

template <typename Source>
static int32_t callLater(const Source *request, int32_t device, Buffers buffers,
                         attn_binding **binding, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!binding)
      return invalid("expects a place for the binding");
    *binding = nullptr;
    AttentionArrays arrays;
    std::shared_ptr<const Binding> impl;
    if (Outcome fault = bindRequest(request, device, buffers, impl, arrays))
      return fault;
    *binding = new attn_binding{std::move(impl)};
    return std::nullopt;
  });
}

/// Answers into `place` what is asked of a request, without a GPU.
template <typename Source>
static int32_t answer(const Source *source, Buffers buffers, const void *place,
                      attn_status *status,
                      llvm::function_ref<Outcome(const AttentionRequest &,
                                                 const AttentionArrays &)>
                          ask) {
  return guarded(status, [&]() -> Outcome {
    if (!place)
      return invalid("expects a place for the result");
    AttentionRequest request;
    AttentionArrays arrays;
    if (Outcome fault = readAll(source, buffers, request, arrays))
      return fault;
    return ask(request, arrays);
  });
}

template <typename Source>
static int32_t scheduleOf(const Source *source, Buffers buffers, char **text,
                          attn_status *status) {
  return answer(source, buffers, text, status,
                [&](const AttentionRequest &request,
                    const AttentionArrays &arrays) -> Outcome {
                  std::string schedule;
                  if (Outcome fault = chooseSchedule(request, arrays, schedule))
                    return fault;
                  return give(schedule, text);
                });
}

int32_t attn_forward_schedule(const attn_forward_request *request,
                              const attn_buffer *q, const attn_buffer *k,
                              const attn_buffer *v, const attn_buffer *o,
                              const attn_buffer *lse, char **text,
                              attn_status *status) {
  return scheduleOf(request,
                    {q, k, v, o, lse, lowOf(request), nullptr, nullptr}, text,
                    status);
}

int32_t attn_backward_schedule(const attn_backward_request *request,
                               const attn_buffer *d_o, const attn_buffer *q,
                               const attn_buffer *k, const attn_buffer *v,
                               const attn_buffer *o, const attn_buffer *lse,
                               const attn_buffer *dlse, const attn_buffer *dq,
                               const attn_buffer *dk, const attn_buffer *dv,
                               char **text, attn_status *status) {
  return scheduleOf(request,
                    {d_o, q, k, v, o, lse, lowOf(request), dlse, nullptr,
                     nullptr, dq, dk, dv},
                    text, status);
}

template <typename Source>
static int32_t scratchOf(const Source *source, Buffers buffers, int64_t *bytes,
                         attn_status *status) {
  return answer(
      source, buffers, bytes, status,
      [&](const AttentionRequest &request, const AttentionArrays &arrays) {
        return scratchBytesOf(request, arrays, *bytes);
      });
}

int32_t attn_forward_scratch_bytes(const attn_forward_request *request,
                                   const attn_buffer *q, const attn_buffer *k,
                                   const attn_buffer *v, const attn_buffer *o,
                                   const attn_buffer *lse, int64_t *bytes,
                                   attn_status *status) {
  return scratchOf(request, {q, k, v, o, lse, lowOf(request), nullptr, nullptr},
                   bytes, status);
}

int32_t attn_backward_scratch_bytes(
    const attn_backward_request *request, const attn_buffer *d_o,
    const attn_buffer *q, const attn_buffer *k, const attn_buffer *v,
    const attn_buffer *o, const attn_buffer *lse, const attn_buffer *dlse,
    const attn_buffer *dq, const attn_buffer *dk, const attn_buffer *dv,
    int64_t *bytes, attn_status *status) {
  return scratchOf(request,
                   {d_o, q, k, v, o, lse, lowOf(request), dlse, nullptr,
                    nullptr, dq, dk, dv},
                   bytes, status);
}

int32_t attn_forward(const attn_forward_request *request, int32_t device,
                     const attn_buffer *q, const attn_buffer *k,
                     const attn_buffer *v, const attn_buffer *o,
                     const attn_buffer *lse, void *stream,
                     attn_status *status) {
  return callNow(request, device,
                 {q, k, v, o, lse, lowOf(request), nullptr, nullptr}, stream,
                 status);
}

int32_t attn_forward_bind(const attn_forward_request *request, int32_t device,
                          const attn_buffer *q, const attn_buffer *k,
                          const attn_buffer *v, const attn_buffer *o,
                          const attn_buffer *lse, attn_binding **binding,
                          attn_status *status) {
  return callLater(request, device,
                   {q, k, v, o, lse, lowOf(request), nullptr, nullptr}, binding,
                   status);
}

int32_t attn_forward_kept(const attn_forward_request *request, int32_t device,
                          const attn_buffer *q, const attn_buffer *k,
                          const attn_buffer *v, const attn_buffer *o,
                          const attn_buffer *lse, const attn_buffer *weights,
                          const attn_buffer *block_rows, void *stream,
                          attn_status *status) {
  return callNow(request, device,
                 {q, k, v, o, lse, lowOf(request), weights, block_rows}, stream,
                 status);
}

int32_t attn_forward_kept_bind(const attn_forward_request *request,
                               int32_t device, const attn_buffer *q,
                               const attn_buffer *k, const attn_buffer *v,
                               const attn_buffer *o, const attn_buffer *lse,
                               const attn_buffer *weights,
                               const attn_buffer *block_rows,
                               attn_binding **binding, attn_status *status) {
  return callLater(request, device,
                   {q, k, v, o, lse, lowOf(request), weights, block_rows},
                   binding, status);
}

int32_t attn_backward(const attn_backward_request *request, int32_t device,
                      const attn_buffer *d_o, const attn_buffer *q,
                      const attn_buffer *k, const attn_buffer *v,
                      const attn_buffer *o, const attn_buffer *lse,
                      const attn_buffer *dlse, const attn_buffer *dq,
                      const attn_buffer *dk, const attn_buffer *dv,
                      void *stream, attn_status *status) {
  return callNow(request, device,
                 {d_o, q, k, v, o, lse, lowOf(request), dlse, nullptr, nullptr,
                  dq, dk, dv},
                 stream, status);
}

int32_t attn_backward_bind(const attn_backward_request *request, int32_t device,
                           const attn_buffer *d_o, const attn_buffer *q,
                           const attn_buffer *k, const attn_buffer *v,
                           const attn_buffer *o, const attn_buffer *lse,
                           const attn_buffer *dlse, const attn_buffer *dq,
                           const attn_buffer *dk, const attn_buffer *dv,
                           attn_binding **binding, attn_status *status) {
  return callLater(request, device,
                   {d_o, q, k, v, o, lse, lowOf(request), dlse, nullptr,
                    nullptr, dq, dk, dv},
                   binding, status);
}

int32_t attn_backward_kept(const attn_backward_request *request, int32_t device,
                           const attn_buffer *d_o, const attn_buffer *q,
                           const attn_buffer *k, const attn_buffer *v,
                           const attn_buffer *o, const attn_buffer *lse,
                           const attn_buffer *dlse, const attn_buffer *weights,
                           const attn_buffer *block_rows, const attn_buffer *dq,
                           const attn_buffer *dk, const attn_buffer *dv,
                           void *stream, attn_status *status) {
  return callNow(request, device,
                 {d_o, q, k, v, o, lse, lowOf(request), dlse, weights,
                  block_rows, dq, dk, dv},
                 stream, status);
}

int32_t attn_backward_kept_bind(
    const attn_backward_request *request, int32_t device,
    const attn_buffer *d_o, const attn_buffer *q, const attn_buffer *k,
    const attn_buffer *v, const attn_buffer *o, const attn_buffer *lse,
    const attn_buffer *dlse, const attn_buffer *weights,
    const attn_buffer *block_rows, const attn_buffer *dq, const attn_buffer *dk,
    const attn_buffer *dv, attn_binding **binding, attn_status *status) {
  return callLater(request, device,
                   {d_o, q, k, v, o, lse, lowOf(request), dlse, weights,
                    block_rows, dq, dk, dv},
                   binding, status);
}
