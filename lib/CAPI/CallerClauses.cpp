//===- CallerClauses.cpp - Clauses of a request in C ----------------------===//

#include "CallerClauses.h"

#include "Clauses.h"

#include "llvm/ADT/STLExtras.h"

using namespace attn;

Outcome attn::readBuffer(const attn_buffer &buffer, CallerArray &array) {
  if (buffer.rank < 0 || buffer.rank > ATTN_MAX_RANK)
    return invalid("expects a rank of 0 to 8, but got " +
                   std::to_string(buffer.rank));
  array.address = reinterpret_cast<uint64_t>(buffer.data);
  array.sizes.assign(buffer.sizes, buffer.sizes + buffer.rank);
  array.strides.assign(buffer.strides, buffer.strides + buffer.rank);
  return std::nullopt;
}

/// A capture or a gradient, with what it is in words.
static Outcome add(const std::string &name, const std::string &type,
                   const attn_buffer &buffer, const char *what,
                   std::vector<AttentionArrays::Capture> &to) {
  AttentionArrays::Capture &each = to.emplace_back();
  each.name = name;
  each.type = type;
  if (Outcome fault = readBuffer(buffer, each.array))
    return Fault{fault->code, what + (" '" + name + "': ") + fault->message};
  return std::nullopt;
}

/// The text and the arrays that it captures.
static Outcome readCaptures(const attn_clauses &clauses,
                            AttentionRequest &request,
                            AttentionArrays &arrays) {
  if (clauses.struct_size < sizeof(clauses))
    return invalid("expects clauses with struct_size = sizeof(attn_clauses)");
  if (!clauses.text)
    return invalid("expects clauses with a text");
  if (clauses.capture_count < 0 ||
      (clauses.capture_count > 0 && !clauses.captures))
    return invalid("expects as many captures as capture_count says, but got " +
                   std::to_string(clauses.capture_count));
  request.clauses = clauses.text;
  auto textOf = [](const char *text) { return std::string(text ? text : ""); };
  for (const attn_capture &capture :
       llvm::ArrayRef(clauses.captures, clauses.capture_count))
    if (Outcome fault = add(textOf(capture.name), textOf(capture.type),
                            capture.buffer, "capture", arrays.captures))
      return fault;
  return std::nullopt;
}

Outcome attn::readListClauses(const attn_clauses &clauses,
                              AttentionRequest &request,
                              AttentionArrays &arrays) {
  if (Outcome fault = readCaptures(clauses, request, arrays))
    return fault;
  return checkListClauses(request, arrays);
}

Outcome attn::readCallerClauses(const attn_clauses &clauses,
                                const attn_buffer *const *gradients,
                                AttentionRequest &request,
                                AttentionArrays &arrays) {
  if (Outcome fault = readCaptures(clauses, request, arrays))
    return fault;
  for (auto [number, capture] : llvm::enumerate(arrays.captures))
    if (const attn_buffer *buffer = gradients ? gradients[number] : nullptr)
      if (Outcome fault = add(capture.name, "f32", *buffer,
                              "gradient of capture", arrays.gradients))
        return fault;
  return checkClauses(request, arrays);
}
