//===- Tensor.cpp - What tensors are --------------------------------------===//

#include "attn/Schedule/Tensor.h"

using namespace attn;

std::string_view attn::name(Tensor tensor) {
  switch (tensor) {
  case Tensor::Q:
    return "Q";
  case Tensor::K:
    return "K";
  case Tensor::V:
    return "V";
  case Tensor::O:
    return "O";
  case Tensor::Lse:
    return "LSE";
  case Tensor::S:
    return "S";
  case Tensor::P:
    return "P";
  case Tensor::Stats:
    return "stats";
  case Tensor::TileMax:
    return "tile max";
  case Tensor::GradO:
    return "dO";
  case Tensor::GradLse:
    return "dLSE";
  case Tensor::GradQ:
    return "dQ";
  case Tensor::GradK:
    return "dK";
  case Tensor::GradV:
    return "dV";
  case Tensor::GradP:
    return "dP";
  case Tensor::GradS:
    return "dS";
  case Tensor::Delta:
    return "D";
  }
  return "";
}

std::string_view attn::name(Axis axis) {
  switch (axis) {
  case Axis::Query:
    return "query";
  case Axis::Key:
    return "key";
  case Axis::HeadDim:
    return "head dim";
  case Axis::HeadDimV:
    return "head dim of V";
  }
  return "";
}

std::string_view attn::name(Level level) {
  switch (level) {
  case Level::Registers:
    return "registers";
  case Level::Smem:
    return "smem";
  }
  return "";
}

Shape attn::shapeOf(Tensor tensor) {
  switch (tensor) {
  case Tensor::Q:
  case Tensor::GradQ:
    return {Axis::Query, Axis::HeadDim};
  case Tensor::K:
  case Tensor::GradK:
    return {Axis::Key, Axis::HeadDim};
  case Tensor::V:
  case Tensor::GradV:
    return {Axis::Key, Axis::HeadDimV};
  case Tensor::O:
  case Tensor::GradO:
    return {Axis::Query, Axis::HeadDimV};
  case Tensor::S:
  case Tensor::P:
  case Tensor::GradP:
  case Tensor::GradS:
    return {Axis::Query, Axis::Key};
  case Tensor::Lse:
  case Tensor::GradLse:
  case Tensor::Delta:
  case Tensor::Stats:
  case Tensor::TileMax:
    return {Axis::Query, std::nullopt};
  }
  return {Axis::Query, std::nullopt};
}

bool attn::hasAxis(Tensor tensor, Axis axis) {
  Shape shape = shapeOf(tensor);
  return shape.rows == axis || shape.cols == axis;
}

int64_t attn::extent(const Problem &problem, Axis axis) {
  switch (axis) {
  case Axis::Query:
    return problem.queries;
  case Axis::Key:
    return problem.keys;
  case Axis::HeadDim:
    return problem.headDim;
  case Axis::HeadDimV:
    return problem.headDimV;
  }
  return 0;
}

int64_t attn::equalPart(const Problem &problem, Axis axis, int64_t group) {
  int64_t panels = (extent(problem, axis) + kPanelColumns - 1) / kPanelColumns;
  return (panels + group - 1) / group * kPanelColumns;
}

int64_t attn::wordsPerElement(Tensor tensor, const Problem &problem) {
  int64_t ofLse = problem.lseLow ? 2 : 1;
  bool isBackward = problem.direction == Direction::backward;
  if (tensor == Tensor::Stats)
    return 1 + (isBackward ? ofLse : 1);
  return tensor == Tensor::Lse ? ofLse : 1;
}

int64_t attn::bytesPerElement(Tensor tensor, const Problem &problem) {
  bool isPriced = problem.precision == Precision::f8_qk;
  switch (tensor) {
  case Tensor::Q:
    return isPriced ? 1 : bytesOf(problem.dtype);
  case Tensor::K:
    return isPriced ? 1 : bytesOf(kvTypeOf(problem));
  case Tensor::V:
    return bytesOf(kvTypeOf(problem));
  case Tensor::P:
  case Tensor::GradQ:
  case Tensor::GradK:
  case Tensor::GradV:
  case Tensor::GradS:
    return bytesOf(problem.dtype);
  case Tensor::O:
  case Tensor::GradO:
    return bytesOf(resultType(problem));
  case Tensor::S:
  case Tensor::GradP:
  case Tensor::Lse:
  case Tensor::GradLse:
  case Tensor::Delta:
  case Tensor::TileMax:
  case Tensor::Stats:
    return 4 * wordsPerElement(tensor, problem);
  }
  return 0;
}

int64_t attn::bytesAsFactor(Tensor tensor, const Problem &problem) {
  bool isOfKeys = tensor == Tensor::K || tensor == Tensor::V;
  return isOfKeys && needsWidening(problem) ? bytesOf(problem.dtype)
                                            : bytesPerElement(tensor, problem);
}

bool attn::isInput(Tensor tensor, const Problem &problem) {
  bool isBackward = problem.direction == Direction::backward;
  return tensor == Tensor::Q || tensor == Tensor::K || tensor == Tensor::V ||
         (isBackward && (tensor == Tensor::O || tensor == Tensor::GradO));
}

DataType attn::resultType(const Problem &problem) {
  return problem.dtype == DataType::f8e4m3 ? DataType::bf16 : problem.dtype;
}

bool attn::needsTranspose(const Problem &problem) {
  return bytesOf(problem.dtype) == 1;
}

bool attn::needsWidening(const Problem &problem) {
  return kvTypeOf(problem) != problem.dtype;
}

bool attn::needsSplit(const Problem &problem) {
  return problem.dtype == DataType::f32;
}
