//===- Problems.cpp - Problems in the words of the C interface ------------===//

#include "Problems.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace attn;

std::optional<std::string> attn::readDataType(const char *text,
                                              DataType &type) {
  std::string name = text ? text : "";
  std::optional<DataType> found = parseDataType(name);
  if (!found)
    return "expects a dtype of bf16, f16, f32, f8e4m3, but got '" + name + "'";
  type = *found;
  return std::nullopt;
}

std::optional<std::string> attn::readPrecision(const char *text, DataType type,
                                               Precision &precision) {
  if (!text)
    return std::nullopt;
  std::optional<Precision> found = parsePrecision(text);
  if (!found)
    return "expects a precision of tf32x3, tf32, but got '" +
           std::string(text) + "'";
  if (type != DataType::f32)
    return "expects a precision only for f32, but got '" + std::string(text) +
           "' for " + std::string(name(type));
  precision = *found;
  return std::nullopt;
}

std::optional<std::string> attn::readKvType(const char *text, DataType type,
                                            std::optional<DataType> &ofKeys) {
  if (!text)
    return std::nullopt;
  DataType found;
  if (std::optional<std::string> wrong = readDataType(text, found))
    return wrong;
  if (found != type)
    ofKeys = found;
  return std::nullopt;
}

std::optional<std::string> attn::readMask(const char *text, Mask &mask) {
  if (!text)
    return std::nullopt;
  std::optional<Mask> found = parseMask(text);
  if (!found)
    return "expects a mask of " + std::string(kMaskNames) + ", but got '" +
           std::string(text) + "'";
  mask = *found;
  return std::nullopt;
}

/// What is computed; all of it is absent in callers from before there was a
/// direction.
static std::optional<std::string> readDirection(const attn_problem &source,
                                                Problem &problem) {
  if (source.direction) {
    std::optional<Direction> found = parseDirection(source.direction);
    if (!found)
      return "expects a direction of forward, backward, but got '" +
             std::string(source.direction) + "'";
    problem.direction = *found;
  }
  problem.deterministic = source.deterministic != 0;
  problem.dlse = source.with_dlse != 0;
  if (problem.direction == Direction::forward &&
      (problem.deterministic || problem.dlse))
    return "expects deterministic and with_dlse only for the direction "
           "backward, but got forward";
  return std::nullopt;
}

std::optional<std::string> attn::readProblem(const attn_problem &given,
                                             KernelClass &kernelClass) {
  if (given.struct_size < offsetof(attn_problem, direction))
    return "expects struct_size = sizeof(attn_problem)";
  attn_problem source = {};
  std::memcpy(&source, &given, std::min(given.struct_size, sizeof(source)));
  Problem &problem = kernelClass.problem;
  if (std::optional<std::string> wrong = readDirection(source, problem))
    return wrong;
  if (std::optional<std::string> wrong =
          readDataType(source.dtype, problem.dtype))
    return wrong;
  if (std::optional<std::string> wrong =
          readPrecision(source.precision, problem.dtype, problem.precision))
    return wrong;
  if (std::optional<std::string> wrong =
          readKvType(source.kv_dtype, problem.dtype, problem.kvDtype))
    return wrong;
  if (std::optional<std::string> wrong = readMask(source.mask, problem.mask))
    return wrong;
  problem.lseLow = source.with_lse_low != 0;
  problem.keepsWeights = source.keeps_weights != 0;
  problem.batch = source.batch;
  problem.heads = source.heads;
  problem.kvHeads = source.kv_heads;
  problem.queries = source.queries;
  problem.keys = source.keys;
  problem.headDim = source.head_dim;
  problem.headDimV = source.head_dim_v;
  // Backward the LSE comes in.
  problem.lse =
      source.with_lse != 0 || problem.direction == Direction::backward;
  if (source.has_scale)
    kernelClass.scale = source.scale;
  if (source.alignment)
    kernelClass.problem.alignment = source.alignment;
  return std::nullopt;
}
