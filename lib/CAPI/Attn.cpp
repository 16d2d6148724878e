//===- Attn.cpp - The functions of attn-c/Attn.h --------------------------===//

#include "attn-c/Attn.h"

#include "Executable.h"
#include "Render.h"

#include "attn/Schedule/Plan.h"

#include <cstdlib>
#include <cstring>

using namespace attn;

struct attn_executable {
  std::unique_ptr<Executable> impl;
};

/// A copy that `free` may free; null when there is no memory for it.
static char *copyText(llvm::StringRef text) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

static int32_t finish(attn_status *status, attn_code code,
                      llvm::StringRef message = "") {
  if (status) {
    status->code = code;
    status->message = code == ATTN_OK ? nullptr : copyText(message.rtrim());
  }
  return code;
}

static llvm::StringRef orEmpty(const char *text) { return text ? text : ""; }

/// Hands a string to the caller.
static int32_t give(const std::string &text, char **place,
                    attn_status *status) {
  *place = copyText(text);
  if (!*place)
    return finish(status, ATTN_INVALID_ARGUMENT, "out of memory");
  return finish(status, ATTN_OK);
}

void attn_status_clear(attn_status *status) {
  if (!status)
    return;
  std::free(status->message);
  *status = {ATTN_OK, nullptr};
}

void attn_free(char *text) { std::free(text); }

const char *attn_version(void) { return ATTN_VERSION; }

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// The problem of the caller; a sentence when it is none.
static std::optional<std::string> readProblem(const attn_problem &source,
                                              Problem &problem) {
  std::optional<DataType> dtype = parseDataType(orEmpty(source.dtype).str());
  if (!dtype)
    return "expects a dtype of bf16, f16, f32, f8e4m3, but got '" +
           orEmpty(source.dtype).str() + "'";
  if (source.mask) {
    std::optional<Mask> mask = parseMask(source.mask);
    if (!mask)
      return "expects a mask of none, causal, causal_bottom_right, "
             "window<L, R>, but got '" +
             std::string(source.mask) + "'";
    problem.mask = *mask;
  }
  problem.dtype = *dtype;
  problem.batch = source.batch;
  problem.heads = source.heads;
  problem.kvHeads = source.kv_heads;
  problem.queries = source.queries;
  problem.keys = source.keys;
  problem.headDim = source.head_dim;
  problem.headDimV = source.head_dim_v;
  problem.lse = source.with_lse != 0;
  return check(problem);
}

int32_t attn_plan_json(const attn_problem *problem, const char *machine,
                       char **json, attn_status *status) {
  if (!problem || !machine || !json)
    return finish(status, ATTN_INVALID_ARGUMENT,
                  "expects a problem, a machine and a place for the result");
  if (problem->struct_size < sizeof(attn_problem))
    return finish(status, ATTN_INVALID_ARGUMENT,
                  "expects struct_size = sizeof(attn_problem)");
  Problem read;
  if (std::optional<std::string> wrong = readProblem(*problem, read))
    return finish(status, ATTN_INVALID_ARGUMENT, *wrong);
  const Machine *row = findMachine(machine);
  if (!row)
    return finish(status, ATTN_INVALID_ARGUMENT,
                  "expects a known machine, but got '" + std::string(machine) +
                      "'; known machines: " + machineNames());
  std::string text;
  llvm::raw_string_ostream stream(text);
  renderJson(stream, plans(read, *row));
  return give(text, json, status);
}

//===----------------------------------------------------------------------===//
// Executables
//===----------------------------------------------------------------------===//

int32_t attn_compile(const char *text, size_t size, const char *machine,
                     const char *schedule, const char *function,
                     attn_executable **executable, attn_status *status) {
  if (!text || !executable)
    return finish(status, ATTN_INVALID_ARGUMENT,
                  "expects a text and a place for the executable");
  *executable = nullptr;
  std::string error;
  std::unique_ptr<Executable> impl =
      Executable::compile({llvm::StringRef(text, size), orEmpty(machine),
                           orEmpty(schedule), orEmpty(function)},
                          error);
  if (!impl)
    return finish(status, ATTN_COMPILE_ERROR, error);
  *executable = new attn_executable{std::move(impl)};
  return finish(status, ATTN_OK);
}

void attn_executable_destroy(attn_executable *executable) { delete executable; }

int32_t attn_executable_info(const attn_executable *executable, char **json,
                             attn_status *status) {
  if (!executable || !json)
    return finish(status, ATTN_INVALID_ARGUMENT,
                  "expects an executable and a place for the result");
  return give(executable->impl->info(), json, status);
}

int32_t attn_executable_cubin(const attn_executable *executable, size_t index,
                              const char **bytes, size_t *size,
                              attn_status *status) {
  if (!executable || !bytes || !size)
    return finish(status, ATTN_INVALID_ARGUMENT,
                  "expects an executable and places for the results");
  const std::vector<Binary> &binaries = executable->impl->compiled().binaries;
  *bytes = nullptr;
  *size = 0;
  if (index < binaries.size()) {
    *bytes = binaries[index].cubin.data();
    *size = binaries[index].cubin.size();
  }
  return finish(status, ATTN_OK);
}

int32_t attn_load(attn_executable *executable, int32_t device,
                  attn_status *status) {
  if (!executable)
    return finish(status, ATTN_INVALID_ARGUMENT, "expects an executable");
  runtime::Status loaded = executable->impl->load(device);
  if (!loaded.ok())
    return finish(status, ATTN_DEVICE_ERROR, loaded.message());
  return finish(status, ATTN_OK);
}

int32_t attn_call(attn_executable *executable, const attn_buffer *buffers,
                  size_t count, void *stream, attn_status *status) {
  if (!executable || (!buffers && count != 0))
    return finish(status, ATTN_INVALID_ARGUMENT,
                  "expects an executable and its buffers");
  llvm::SmallVector<CallerArray> arrays;
  for (size_t i = 0; i < count; ++i) {
    const attn_buffer &buffer = buffers[i];
    if (buffer.rank < 0 || buffer.rank > ATTN_MAX_RANK)
      return finish(status, ATTN_INVALID_ARGUMENT,
                    "expects a rank of 0 to 8, but got " +
                        std::to_string(buffer.rank));
    CallerArray array;
    array.address = reinterpret_cast<uint64_t>(buffer.data);
    array.sizes.assign(buffer.sizes, buffer.sizes + buffer.rank);
    array.strides.assign(buffer.strides, buffer.strides + buffer.rank);
    arrays.push_back(array);
  }
  std::optional<Executable::CallError> error =
      executable->impl->call(arrays, stream);
  if (error)
    return finish(status,
                  error->isCallers ? ATTN_INVALID_ARGUMENT : ATTN_DEVICE_ERROR,
                  error->message);
  return finish(status, ATTN_OK);
}
