//===- Types.cpp - What elements are --------------------------------------===//

#include "attn/Schedule/Problem.h"
#include <algorithm>

using namespace attn;

std::string_view attn::name(DataType type) {
  switch (type) {
  case DataType::bf16:
    return "bf16";
  case DataType::f16:
    return "f16";
  case DataType::f32:
    return "f32";
  case DataType::f8e4m3:
    return "f8e4m3";
  }
  return "";
}

/// The name that PyTorch, NumPy and JAX have for it.
static std::string_view longName(DataType type) {
  switch (type) {
  case DataType::bf16:
    return "bfloat16";
  case DataType::f16:
    return "float16";
  case DataType::f32:
    return "float32";
  case DataType::f8e4m3:
    return "float8_e4m3fn";
  }
  return "";
}

std::optional<DataType> attn::parseDataType(std::string_view text) {
  for (DataType type : kDataTypes)
    if (name(type) == text || longName(type) == text)
      return type;
  return std::nullopt;
}

int64_t attn::bytesOf(DataType type) {
  switch (type) {
  case DataType::bf16:
  case DataType::f16:
    return 2;
  case DataType::f32:
    return 4;
  case DataType::f8e4m3:
    return 1;
  }
  return 0;
}

DataType attn::kvTypeOf(const Problem &problem) {
  return problem.kvDtype.value_or(problem.dtype);
}

Problem attn::withKvType(const Problem &problem, DataType type) {
  Problem result = problem;
  result.kvDtype.reset();
  if (type != problem.dtype)
    result.kvDtype = type;
  return result;
}

int64_t attn::bytesOfKey(const Problem &problem) {
  int64_t ofValues = problem.valuesOfKeys ? 0 : problem.headDimV;
  return (problem.headDim + ofValues) * bytesOf(kvTypeOf(problem));
}

int64_t attn::leastBytes(const Problem &problem) {
  if (problem.precision == Precision::f8_qk)
    return 1;
  return std::min(bytesOf(problem.dtype), bytesOf(kvTypeOf(problem)));
}

std::optional<std::string> attn::checkKvType(const Problem &p) {
  if (!p.kvDtype)
    return std::nullopt;
  std::string ofKeys(name(*p.kvDtype)), ofQueries(name(p.dtype));
  bool is16Bit = p.dtype == DataType::bf16 || p.dtype == DataType::f16;
  if (!is16Bit || *p.kvDtype != DataType::f8e4m3)
    return "expects k and v in the type of q, or in f8e4m3 where that is bf16 "
           "or f16, but got " +
           ofKeys + " for q in " + ofQueries;
  std::string what = "k and v in " + ofKeys + " and q in " + ofQueries;
  if (p.direction == Direction::backward)
    return "expects operands of one type for gradients, but got " + what;
  if (p.keepsWeights)
    return "expects operands of one type where weights are kept, but got " +
           what;
  if (p.precision == Precision::f8_qk)
    return "expects operands of one type with precision f8_qk, but got " + what;
  return std::nullopt;
}
