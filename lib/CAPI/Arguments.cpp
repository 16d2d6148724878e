//===- Arguments.cpp - Types, strides and alignment of arrays -------------===//

#include "Arguments.h"

#include "attn/IR/Attn.h"

using namespace attn;
using namespace mlir;

std::vector<Alignment> attn::alignmentsOf(func::FuncOp function) {
  std::vector<std::optional<Alignment>> asked(function.getNumArguments());
  auto ask = [&](Value value, Alignment alignment) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &function.front())
      return;
    std::optional<Alignment> &known = asked[argument.getArgNumber()];
    if (!known)
      known = alignment;
    known->base = std::max(known->base, alignment.base);
    known->strides = std::max(known->strides, alignment.strides);
  };
  function.walk([&](AttentionOpInterface op) {
    Alignment rows;
    if (std::optional<int64_t> promised = op.getAlignment())
      rows = {*promised, *promised};
    for (const AttentionArray &array : op.arrays())
      ask(array.value,
          isStatistic(array.role) ? Alignment{sizeof(float), 1} : rows);
  });
  std::vector<Alignment> result;
  for (const std::optional<Alignment> &alignment : asked)
    result.push_back(alignment.value_or(Alignment()));
  return result;
}

/// Whether a run-time number fits the number of a type.
static bool fits(int64_t actual, int64_t expected) {
  return ShapedType::isDynamic(expected) || actual == expected;
}

std::string attn::show(ArrayRef<int64_t> numbers) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(numbers, stream);
  stream << "]";
  return text;
}

std::optional<std::string> attn::checkArray(const CallerArray &array,
                                            MemRefType type,
                                            const Alignment &alignment,
                                            HostArray &argument) {
  auto mismatch = [&](const std::string &got) {
    std::string text;
    llvm::raw_string_ostream(text) << "expects " << type << ", but got " << got;
    return text;
  };
  if (static_cast<int64_t>(array.sizes.size()) != type.getRank())
    return mismatch("rank " + std::to_string(array.sizes.size()));
  for (auto [size, expected] : llvm::zip_equal(array.sizes, type.getShape()))
    if (size < 0 || !fits(size, expected))
      return mismatch("sizes " + show(array.sizes));

  argument.elementType = type.getElementType();
  argument.sizes = array.sizes;
  argument.strides = array.strides;
  int64_t elementBytes = argument.elementBytes();
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return mismatch("strides " + show(array.strides));
  // An identity layout means row-major, also where sizes are dynamic.
  if (type.getLayout().isIdentity())
    strides =
        HostArray::contiguous(0, array.sizes, type.getElementType()).strides;
  for (auto [dim, expected] : llvm::enumerate(strides)) {
    // A stride is free where nothing is strided.
    bool isFree = array.sizes[dim] <= 1;
    bool isOpen = ShapedType::isDynamic(expected);
    if (!isFree &&
        (array.strides[dim] < 0 || !fits(array.strides[dim], expected)))
      return mismatch("strides " + show(array.strides));
    if (!isFree && isOpen &&
        array.strides[dim] * elementBytes % alignment.strides != 0)
      return "expects strides of a multiple of " +
             std::to_string(alignment.strides / elementBytes) +
             " elements, but got " + show(array.strides);
    // Code was made for the strides of the type, so these are what it gets.
    if (!isOpen)
      argument.strides[dim] = expected;
    else if (isFree)
      argument.strides[dim] = 0;
  }
  argument.offset = ShapedType::isDynamic(offset) ? 0 : offset;
  uint64_t base = array.address - argument.offset * elementBytes;
  if (base % alignment.base != 0)
    return "expects memory aligned to " + std::to_string(alignment.base) +
           " bytes, but got an address that is " +
           std::to_string(base % alignment.base) + " bytes off";
  return std::nullopt;
}
