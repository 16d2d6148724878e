//===- XlaAttention.cpp - attn-c/Attn.h: attention as a call of XLA's -----===//

#include "Attention.h"
#include "Boundary.h"
#include "Problems.h"
#include "XlaFfi.h"

#include "attn/CAPI/ProblemText.h"
#include "attn/IR/Attn.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;

/// Answers what the handler is, if that is the question.
static bool describeItself(const xla::CallFrame &frame) {
  for (xla::Extension *each = frame.extensions; each; each = each->next) {
    if (each->type != xla::kMetadata)
      continue;
    auto *extension = reinterpret_cast<xla::MetadataExtension *>(each);
    xla::Metadata &metadata = *extension->metadata;
    metadata.version.major = xla::kMajor;
    metadata.version.minor = xla::kMinor;
    metadata.traits = xla::kCommandBufferCompatible;
    return true;
  }
  return false;
}

static xla::Error *makeError(const xla::CallFrame &frame, int32_t code,
                             const char *message) {
  xla::ErrorCode translated = xla::ErrorCode::internal;
  if (code == ATTN_INVALID_ARGUMENT)
    translated = xla::ErrorCode::invalidArgument;
  if (code == ATTN_UNSUPPORTED)
    translated = xla::ErrorCode::unimplemented;
  xla::ErrorCreateArgs arguments = {sizeof(arguments), nullptr,
                                    message ? message : "out of memory",
                                    translated};
  return frame.api->errorCreate(&arguments);
}

static std::string attribute(const xla::CallFrame &frame,
                             llvm::StringRef name) {
  const xla::Attributes &attributes = frame.attributes;
  for (int64_t i = 0; i < attributes.size; ++i) {
    const xla::Span &key = *attributes.names[i];
    if (llvm::StringRef(key.data, key.size) != name ||
        attributes.types[i] != xla::kStringAttribute)
      continue;
    const auto *text = static_cast<const xla::Span *>(attributes.values[i]);
    return std::string(text->data, text->size);
  }
  return "";
}

static std::optional<DataType> elementOf(xla::DataType type) {
  switch (type) {
  case xla::DataType::f16:
    return DataType::f16;
  case xla::DataType::f32:
    return DataType::f32;
  case xla::DataType::bf16:
    return DataType::bf16;
  case xla::DataType::f8e4m3fn:
    return DataType::f8e4m3;
  }
  return std::nullopt;
}

/// A row-major array; dimensions before the last `rank` are batch too.
static Outcome readBuffer(const xla::Buffer &buffer, int64_t rank,
                          CallerArray &array) {
  if (buffer.rank < rank)
    return invalid("expects an array of rank " + std::to_string(rank) +
                   " or more, but got " + std::to_string(buffer.rank));
  llvm::ArrayRef<int64_t> dims(buffer.dims, buffer.rank);
  array.address = reinterpret_cast<uint64_t>(buffer.data);
  array.sizes.assign(dims.end() - rank, dims.end());
  for (int64_t leading : dims.drop_back(rank))
    array.sizes[0] *= leading;
  array.strides.assign(rank, 1);
  for (int64_t dim = rank - 1; dim > 0; --dim)
    array.strides[dim - 1] = array.strides[dim] * array.sizes[dim];
  return std::nullopt;
}

/// The places that a handler has: weights are not kept here, lists of blocks
/// and offsets of sequences do not come in, and whether there is a low word of
/// lse is said, since operands and results have no names.
static auto placesOf(Direction direction, bool hasLow) {
  auto places = arraysOf(direction);
  llvm::erase_if(places, [&](ArrayPlace place) {
    return isKept(place.role) || isOfBlocks(place.role) ||
           isOfOffsets(place.role) || isOfPlace(place.role) ||
           (place.role == "lse_low" && !hasLow);
  });
  for (ArrayPlace &place : places)
    if (hasLow && (place.role == "lse" || place.role == "lse_low"))
      place.isOptional = false;
  return places;
}

/// What the handler of a direction takes, in words.
static std::string signature(Direction direction, bool hasLow) {
  std::string operands, results;
  for (const ArrayPlace &place : placesOf(direction, hasLow)) {
    std::string &list = place.isOutput ? results : operands;
    list += (list.empty() ? "" : ", ") + place.role.str() +
            (place.isOptional ? " (optional)" : "");
  }
  return "expects operands " + operands + " and results " + results;
}

/// Reads the buffers, and the type that q has.
static Outcome readArrays(const xla::CallFrame &frame, Direction direction,
                          AttentionArrays &arrays,
                          llvm::SmallVectorImpl<xla::DataType> &types) {
  bool hasLow = attribute(frame, "lse_low") == "true";
  int64_t next[2] = {0, 0}; // of operands, of results
  for (const ArrayPlace &place : placesOf(direction, hasLow)) {
    const xla::Values &values =
        place.isOutput ? frame.results : frame.arguments;
    int64_t position = next[place.isOutput]++;
    if (position >= values.size && place.isOptional)
      continue;
    if (position >= values.size || values.types[position] != xla::kBufferValue)
      return invalid(signature(direction, hasLow));
    const auto &buffer = *static_cast<xla::Buffer *>(values.values[position]);
    types.push_back(buffer.type);
    arrays.all.push_back({place.role, place.isOutput, {}});
    int64_t rank = shapeOf(place.role).size();
    if (Outcome fault = readBuffer(buffer, rank, arrays.all.back().array))
      return fault;
  }
  return std::nullopt;
}

static Outcome readRequest(const xla::CallFrame &frame, xla::DataType q,
                           AttentionRequest &request) {
  std::optional<DataType> type = elementOf(q);
  if (!type)
    return invalid("expects bf16, f16, f32 or f8e4m3fn, but got XLA's type " +
                   std::to_string(static_cast<int32_t>(q)));
  request.dtype = *type;
  std::string precision = attribute(frame, "precision");
  if (std::optional<std::string> wrong =
          readPrecision(precision.empty() ? nullptr : precision.c_str(),
                        request.dtype, request.precision))
    return invalid(*wrong);
  std::string mask = attribute(frame, "mask");
  if (std::optional<std::string> wrong =
          readMask(mask.empty() ? nullptr : mask.c_str(), request.mask))
    return invalid(*wrong);
  std::string scale = attribute(frame, "scale");
  double value = 0;
  if (!scale.empty() && !llvm::to_float(scale, value))
    return invalid("expects a scale that is a number, but got '" + scale + "'");
  if (!scale.empty())
    request.scale = value;
  request.machine = attribute(frame, "machine");
  request.schedule = attribute(frame, "schedule");
  request.deterministic = attribute(frame, "deterministic") == "true";
  return std::nullopt;
}

static Outcome checkTypes(const AttentionRequest &request,
                          const AttentionArrays &arrays,
                          llvm::ArrayRef<xla::DataType> types) {
  Problem problem;
  problem.dtype = request.dtype;
  for (auto [array, type] : llvm::zip_equal(arrays.all, types)) {
    DataType expected =
        elementOf(*findArray(std::string_view(array.role)), problem);
    if (elementOf(type) != expected)
      return invalid(
          "expects " + array.role.str() + " of " + std::string(name(expected)) +
          " for q of " + std::string(name(request.dtype)) +
          ", but got XLA's type " + std::to_string(static_cast<int32_t>(type)));
  }
  return std::nullopt;
}

static Outcome execute(const xla::CallFrame &frame, Direction direction) {
  AttentionArrays arrays;
  llvm::SmallVector<xla::DataType> types;
  if (Outcome fault = readArrays(frame, direction, arrays, types))
    return fault;
  AttentionRequest request;
  request.direction = direction;
  bool isForward = direction == Direction::forward;
  if (Outcome fault = readRequest(frame, types[isForward ? 0 : 1], request))
    return fault;
  if (Outcome fault = checkTypes(request, arrays, types))
    return fault;
  const auto *written = llvm::find_if(arrays.all, [](const auto &each) {
    return each.isOutput && !llvm::is_contained(each.array.sizes, 0);
  });
  if (written == arrays.all.end())
    return std::nullopt; // nothing to write, and no address to ask about

  xla::StreamGetArgs stream = {sizeof(stream), nullptr, frame.context, nullptr};
  if (xla::Error *error = frame.api->streamGet(&stream)) {
    xla::ErrorDestroyArgs arguments = {sizeof(arguments), nullptr, error};
    frame.api->errorDestroy(&arguments);
    return Fault{ATTN_INTERNAL_ERROR,
                 "expects to run on a GPU, but XLA gave no stream"};
  }
  // XLA's own numbers of GPUs need not be the driver's.
  runtime::Expected<int> device =
      runtime::Gpu::ordinalOf(written->array.address);
  if (!device)
    return Fault{ATTN_DEVICE_ERROR, device.message()};
  std::shared_ptr<const Binding> binding;
  if (Outcome fault = bindAttention(request, *device, arrays, binding))
    return fault;
  llvm::SmallVector<uint64_t, 10> addresses;
  for (const auto &each : arrays.all)
    addresses.push_back(each.array.address);
  if (std::optional<std::string> wrong = binding->check(addresses))
    return invalid(*wrong);
  runtime::Status launched = binding->launch(addresses, stream.stream);
  if (!launched.ok())
    return Fault{ATTN_DEVICE_ERROR, launched.message()};
  return std::nullopt;
}

static xla::Error *handle(void *callFrame, Direction direction) {
  if (!callFrame) // nobody asks, and without a frame there is no error to make
    return nullptr;
  const auto &frame = *static_cast<xla::CallFrame *>(callFrame);
  if (describeItself(frame) || frame.stage != xla::Stage::execute)
    return nullptr;
  attn_status status = {ATTN_OK, nullptr};
  int32_t code = guarded(&status, [&] { return execute(frame, direction); });
  xla::Error *error =
      code == ATTN_OK ? nullptr : makeError(frame, code, status.message);
  attn_status_clear(&status);
  return error;
}

void *attn_xla_forward(void *callFrame) {
  return handle(callFrame, Direction::forward);
}

void *attn_xla_backward(void *callFrame) {
  return handle(callFrame, Direction::backward);
}
