//===- XlaAttention.cpp - attn-c/Attn.h: attention as a call of XLA's -----===//

#include "Attention.h"
#include "Boundary.h"
#include "Clauses.h"
#include "Problems.h"
#include "RequestArrays.h"
#include "XlaFfi.h"

#include "attn/CAPI/ProblemText.h"
#include "attn/IR/Attn.h"

#include "llvm/ADT/STLExtras.h"
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

/// What clauses, lists, sequences and scratch of a call frame are, as its
/// attributes say it.
struct Behind {
  llvm::SmallVector<llvm::StringRef> kinds; ///< of lists: partial, full
  std::vector<AttentionArrays::Capture> captures;
  llvm::SmallVector<llvm::StringRef> gradients; ///< names of captures
  /// Of sequences that lie one behind the other, whose offsets are operands.
  std::optional<Lengths> longest;
  bool hasWorkspace = false; ///< the last result

  bool isAny() const { return !kinds.empty() || !captures.empty() || longest; }
};

static llvm::SmallVector<llvm::StringRef> wordsOf(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString(text, words, ", ");
  return words;
}

/// The texts live as long.
static Outcome readBehind(llvm::StringRef lists, llvm::StringRef captures,
                          llvm::StringRef gradients, Behind &behind) {
  behind.kinds = wordsOf(lists);
  for (llvm::StringRef kind : behind.kinds)
    if (kind != "partial" && kind != "full")
      return invalid("expects lists that are partial or full, but got '" +
                     kind.str() + "'");
  llvm::SmallVector<llvm::StringRef> names = wordsOf(captures);
  if (names.size() % 2)
    return invalid("expects captures as 'c0 i32, c1 f32', but got '" +
                   captures.str() + "'");
  for (size_t at = 0; at < names.size(); at += 2) {
    AttentionArrays::Capture &capture = behind.captures.emplace_back();
    capture.name = names[at].str();
    capture.type = names[at + 1].str();
  }
  behind.gradients = wordsOf(gradients);
  for (llvm::StringRef name : behind.gradients)
    if (llvm::none_of(behind.captures,
                      [&](const auto &each) { return each.name == name; }))
      return invalid("expects gradients of captures, but got '" + name.str() +
                     "'");
  return std::nullopt;
}

/// "200, 400", of queries and keys, where there are offsets.
static Outcome readLongest(llvm::StringRef text, Behind &behind) {
  if (text.empty())
    return std::nullopt;
  llvm::SmallVector<llvm::StringRef> words = wordsOf(text);
  Lengths longest;
  if (words.size() != 2 || words[0].getAsInteger(10, longest.queries) ||
      words[1].getAsInteger(10, longest.keys))
    return invalid("expects the longest sequences as '200, 400', of queries "
                   "and keys, but got '" +
                   text.str() + "'");
  behind.longest = longest;
  return checkLongest(longest);
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
  default:
    return std::nullopt;
  }
}

/// As clauses name the type of an element; empty for what they do not read.
static llvm::StringRef nameOf(xla::DataType type) {
  switch (type) {
  case xla::DataType::pred:
    return "i1";
  case xla::DataType::s8:
  case xla::DataType::u8:
    return "i8";
  case xla::DataType::s16:
    return "i16";
  case xla::DataType::s32:
    return "i32";
  case xla::DataType::s64:
    return "i64";
  case xla::DataType::f16:
    return "f16";
  case xla::DataType::f32:
    return "f32";
  case xla::DataType::bf16:
    return "bf16";
  case xla::DataType::f8e4m3fn:
    return "f8e4m3";
  }
  return "";
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

/// The places that a handler has: weights are not kept here, rows lie as JAX
/// has them, and whether there are lists and a low word of lse is said, since
/// operands and results have no names.
static auto placesOf(Direction direction, bool hasLow, const Behind &behind) {
  auto places = arraysOf(direction);
  llvm::erase_if(places, [&](ArrayPlace place) {
    if (isOfBlocks(place.role))
      return llvm::none_of(behind.kinds, [&](llvm::StringRef kind) {
        return place.role.contains(kind);
      });
    if (isOfOffsets(place.role))
      return !behind.longest;
    return isKept(place.role) || isOfPlace(place.role) ||
           (place.role == "lse_low" && !hasLow);
  });
  for (ArrayPlace &place : places)
    if (isOfBlocks(place.role) || isOfOffsets(place.role) ||
        (hasLow && (place.role == "lse" || place.role == "lse_low")))
      place.isOptional = false;
  return places;
}

/// What the handler of a direction takes, in words.
static std::string signature(Direction direction, bool hasLow,
                             const Behind &behind) {
  std::string lists[2]; // of operands, of results
  auto add = [&](bool isResult, const std::string &name) {
    lists[isResult] += (lists[isResult].empty() ? "" : ", ") + name;
  };
  for (const ArrayPlace &place : placesOf(direction, hasLow, behind))
    add(place.isOutput,
        place.role.str() + (place.isOptional ? " (optional)" : ""));
  for (const AttentionArrays::Capture &capture : behind.captures)
    add(false, "capture " + capture.name);
  for (llvm::StringRef name : behind.gradients)
    add(true, "the gradient of " + name.str());
  if (behind.hasWorkspace)
    add(true, "workspace");
  return "expects operands " + lists[0] + " and results " + lists[1];
}

namespace {

/// Takes operands and results one after the other.
class FrameReader {
public:
  FrameReader(const xla::CallFrame &frame, Direction direction,
              const Behind &behind)
      : frame(frame), direction(direction), behind(behind),
        hasLow(attribute(frame, "lse_low") == "true") {}

  /// The buffers, with the types that these have.
  Outcome read(AttentionArrays &arrays,
               llvm::SmallVectorImpl<xla::DataType> &types);
  /// What is behind them, if that is there.
  Outcome readWorkspace(ScratchMemory &workspace);

private:
  const xla::Values &values(bool isResult) const {
    return isResult ? frame.results : frame.arguments;
  }
  Outcome take(bool isResult, const xla::Buffer *&buffer);
  Outcome readCaptures(AttentionArrays &arrays);

  const xla::CallFrame &frame;
  Direction direction;
  const Behind &behind;
  bool hasLow;
  int64_t next[2] = {0, 0}; ///< of operands, of results
};

} // namespace

Outcome FrameReader::take(bool isResult, const xla::Buffer *&buffer) {
  const xla::Values &all = values(isResult);
  int64_t position = next[isResult]++;
  if (position >= all.size || all.types[position] != xla::kBufferValue)
    return invalid(signature(direction, hasLow, behind));
  buffer = static_cast<xla::Buffer *>(all.values[position]);
  return std::nullopt;
}

Outcome FrameReader::readCaptures(AttentionArrays &arrays) {
  const xla::Buffer *buffer = nullptr;
  for (const AttentionArrays::Capture &capture : behind.captures) {
    if (Outcome fault = take(/*isResult=*/false, buffer))
      return fault;
    if (nameOf(buffer->type) != capture.type)
      return invalid("expects capture " + capture.name + " of " + capture.type +
                     ", but got XLA's type " +
                     std::to_string(static_cast<int32_t>(buffer->type)));
    arrays.captures.push_back(capture);
    if (Outcome fault =
            readBuffer(*buffer, buffer->rank, arrays.captures.back().array))
      return fault;
  }
  for (llvm::StringRef name : behind.gradients) {
    if (Outcome fault = take(/*isResult=*/true, buffer))
      return fault;
    if (buffer->type != xla::DataType::f32)
      return invalid("expects the gradient of " + name.str() +
                     " of f32, but got XLA's type " +
                     std::to_string(static_cast<int32_t>(buffer->type)));
    arrays.gradients.push_back({name.str(), "f32", {}});
    if (Outcome fault =
            readBuffer(*buffer, buffer->rank, arrays.gradients.back().array))
      return fault;
  }
  return std::nullopt;
}

Outcome FrameReader::read(AttentionArrays &arrays,
                          llvm::SmallVectorImpl<xla::DataType> &types) {
  auto places = placesOf(direction, hasLow, behind);
  // What may be left out is in front of lists, offsets and captures.
  int64_t lists = llvm::count_if(places, [](const ArrayPlace &place) {
    return isOfBlocks(place.role) || isOfOffsets(place.role);
  });
  int64_t captures = behind.captures.size(),
          gradients = behind.gradients.size();
  const int64_t ends[2] = {values(false).size - lists - captures,
                           values(true).size - gradients - behind.hasWorkspace};
  for (const ArrayPlace &place : places) {
    if (place.isOptional && next[place.isOutput] >= ends[place.isOutput])
      continue;
    const xla::Buffer *buffer = nullptr;
    if (Outcome fault = take(place.isOutput, buffer))
      return fault;
    types.push_back(buffer->type);
    arrays.all.push_back({place.role, place.isOutput, {}});
    bool isRagged = behind.longest.has_value();
    int64_t rank = shapeOf(place.role, isRagged).size();
    if (behind.isAny() && buffer->rank != rank)
      return invalid(
          "expects " + place.role.str() + " of rank " + std::to_string(rank) +
          " beside " +
          (isRagged ? "offsets of sequences" : "clauses and lists of blocks") +
          ", but got " + std::to_string(buffer->rank));
    if (Outcome fault = readBuffer(*buffer, rank, arrays.all.back().array))
      return fault;
  }
  if (behind.isAny() &&
      (next[false] + captures != values(false).size ||
       next[true] + gradients + behind.hasWorkspace != values(true).size))
    return invalid(signature(direction, hasLow, behind));
  return readCaptures(arrays);
}

Outcome FrameReader::readWorkspace(ScratchMemory &workspace) {
  if (!behind.hasWorkspace)
    return std::nullopt;
  const xla::Buffer *buffer = nullptr;
  if (Outcome fault = take(/*isResult=*/true, buffer))
    return fault;
  if (buffer->type != xla::DataType::u8)
    return invalid("expects a workspace of u8, but got XLA's type " +
                   std::to_string(static_cast<int32_t>(buffer->type)));
  workspace.address = reinterpret_cast<uint64_t>(buffer->data);
  workspace.bytes = 1;
  for (int64_t size : llvm::ArrayRef(buffer->dims, buffer->rank))
    workspace.bytes *= size;
  return std::nullopt;
}

/// "128 x 64", of lists.
static Outcome readBlocks(const xla::CallFrame &frame, const Behind &behind,
                          AttentionRequest &request) {
  if (behind.kinds.empty())
    return std::nullopt;
  std::string text = attribute(frame, "block_size");
  auto [queries, keys] = llvm::StringRef(text).split(" x ");
  BlockSize size;
  if (queries.getAsInteger(10, size.queries) ||
      keys.getAsInteger(10, size.keys))
    return invalid("expects a block_size as '128 x 128', but got '" + text +
                   "'");
  request.blocks = size;
  return checkBlocks(size);
}

/// What offsets say; their type is that of the first ones.
static void readRagged(const Behind &behind, const AttentionArrays &arrays,
                       llvm::ArrayRef<xla::DataType> types,
                       AttentionRequest &request) {
  if (!behind.longest)
    return;
  Ragged ragged;
  ragged.longest = *behind.longest;
  for (auto [array, type] : llvm::zip_equal(arrays.all, types))
    if (array.role == "cu_q")
      ragged.isWide = type == xla::DataType::s64;
  request.ragged = ragged;
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
  request.clauses = attribute(frame, "clauses");
  return std::nullopt;
}

/// As operands and results of that role have it.
static std::string typeOfRole(llvm::StringRef role,
                              const AttentionRequest &request) {
  if (isOfBlocks(role))
    return "i32";
  if (isOfOffsets(role))
    return request.ragged->isWide ? "i64" : "i32";
  Problem problem;
  problem.dtype = request.dtype;
  return std::string(
      name(elementOf(*findArray(std::string_view(role)), problem)));
}

static Outcome checkTypes(const AttentionRequest &request,
                          const AttentionArrays &arrays,
                          llvm::ArrayRef<xla::DataType> types) {
  for (auto [array, type] : llvm::zip_equal(arrays.all, types)) {
    std::string expected = typeOfRole(array.role, request);
    if (nameOf(type) != expected)
      return invalid("expects " + array.role.str() + " of " + expected +
                     " for q of " + std::string(name(request.dtype)) +
                     ", but got XLA's type " +
                     std::to_string(static_cast<int32_t>(type)));
  }
  return std::nullopt;
}

/// An array that is written and has memory, of which one can ask where it is.
static const CallerArray *writtenOf(const AttentionArrays &arrays) {
  auto hasMemory = [](const CallerArray &array) {
    return !llvm::is_contained(array.sizes, 0);
  };
  for (const AttentionArrays::Array &each : arrays.all)
    if (each.isOutput && hasMemory(each.array))
      return &each.array;
  for (const AttentionArrays::Capture &each : arrays.gradients)
    if (hasMemory(each.array))
      return &each.array;
  return nullptr;
}

/// Where a launch takes its scratch: in the workspace, or where that does not
/// do, in the driver's pool.  The pool's memory is nodes of a graph, which the
/// child graphs that XLA makes of captured streams must not have.
static Outcome chooseScratch(const Binding &binding, runtime::Stream stream,
                             const ScratchMemory &workspace,
                             ScratchMemory &scratch) {
  std::optional<std::string> wrong = binding.checkScratch(workspace);
  if (!wrong) {
    scratch = workspace;
    return std::nullopt;
  }
  runtime::Expected<bool> capturing = binding.isCapturing(stream);
  if (!capturing)
    return Fault{ATTN_DEVICE_ERROR, capturing.message()};
  if (!*capturing)
    return std::nullopt;
  return Fault{
      ATTN_UNSUPPORTED,
      "cannot be captured in a command buffer: it needs " +
          std::to_string(binding.scratchBytes()) +
          " bytes of scratch memory, but got a workspace of " +
          std::to_string(workspace.bytes) + " (" + *wrong +
          "); trace the call where the GPUs that run it are, or name their "
          "machine, or keep custom calls out of "
          "--xla_gpu_enable_command_buffer"};
}

static Outcome execute(const xla::CallFrame &frame, Direction direction) {
  std::string lists = attribute(frame, "lists"),
              captures = attribute(frame, "captures"),
              gradients = attribute(frame, "gradients");
  Behind behind;
  if (Outcome fault = readBehind(lists, captures, gradients, behind))
    return fault;
  if (Outcome fault = readLongest(attribute(frame, "longest"), behind))
    return fault;
  behind.hasWorkspace = attribute(frame, "workspace") == "true";
  AttentionArrays arrays;
  llvm::SmallVector<xla::DataType> types;
  FrameReader reader(frame, direction, behind);
  if (Outcome fault = reader.read(arrays, types))
    return fault;
  ScratchMemory workspace, scratch;
  if (Outcome fault = reader.readWorkspace(workspace))
    return fault;
  AttentionRequest request;
  request.direction = direction;
  bool isForward = direction == Direction::forward;
  if (Outcome fault = readRequest(frame, types[isForward ? 0 : 1], request))
    return fault;
  readRagged(behind, arrays, types, request);
  if (Outcome fault = checkTypes(request, arrays, types))
    return fault;
  if (Outcome fault = readBlocks(frame, behind, request))
    return fault;
  if (!request.clauses.empty() || !arrays.captures.empty())
    if (Outcome fault = checkClauses(request, arrays))
      return fault;
  const CallerArray *written = writtenOf(arrays);
  if (!written)
    return std::nullopt; // nothing to write, and no address to ask about

  xla::StreamGetArgs stream = {sizeof(stream), nullptr, frame.context, nullptr};
  if (xla::Error *error = frame.api->streamGet(&stream)) {
    xla::ErrorDestroyArgs arguments = {sizeof(arguments), nullptr, error};
    frame.api->errorDestroy(&arguments);
    return Fault{ATTN_INTERNAL_ERROR,
                 "expects to run on a GPU, but XLA gave no stream"};
  }
  // XLA's own numbers of GPUs need not be the driver's.
  runtime::Expected<int> device = runtime::Gpu::ordinalOf(written->address);
  if (!device)
    return Fault{ATTN_DEVICE_ERROR, device.message()};
  std::shared_ptr<const Binding> binding;
  if (Outcome fault = bindAttention(request, *device, arrays, binding))
    return fault;
  llvm::SmallVector<uint64_t, 10> addresses;
  for (const CallerArray &each : arrays.list())
    addresses.push_back(each.address);
  if (std::optional<std::string> wrong = binding->check(addresses))
    return invalid(*wrong);
  if (Outcome fault =
          chooseScratch(*binding, stream.stream, workspace, scratch))
    return fault;
  runtime::Status launched = binding->launch(addresses, stream.stream, scratch);
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
