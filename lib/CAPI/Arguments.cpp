//===- Arguments.cpp - Types, strides and alignment of arrays -------------===//

#include "Arguments.h"

#include "attn/IR/Attn.h"

using namespace attn;
using namespace mlir;

/// The position of an argument of the function, if the value is one.
static std::optional<size_t> positionOf(Value value, func::FuncOp function) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &function.front())
    return std::nullopt;
  return argument.getArgNumber();
}

std::vector<Demand> attn::demandsOf(func::FuncOp function) {
  std::vector<std::optional<Demand>> asked(function.getNumArguments());
  auto ask = [&](Value value, const Demand &demand) {
    std::optional<size_t> position = positionOf(value, function);
    if (!position)
      return;
    std::optional<Demand> &known = asked[*position];
    if (!known)
      known = demand;
    known->base = std::max(known->base, demand.base);
    known->strides = std::max(known->strides, demand.strides);
    known->isWritten |= demand.isWritten;
  };
  function.walk([&](AttentionOpInterface op) {
    for (const AttentionArray &array : op.arrays()) {
      Demand demand;
      demand.isOfAttention = true;
      demand.isWritten = array.isOutput;
      if (isStatistic(array.role))
        demand.base = sizeof(float);
      else if (std::optional<int64_t> promised = op.getAlignment())
        demand.base = demand.strides = *promised;
      ask(array.value, demand);
    }
    for (const AttentionArray &array : op.clauseArrays()) {
      Demand demand;
      demand.isOfAttention = demand.isOfClauses = true;
      demand.isWritten = array.isOutput;
      constexpr int64_t bitsOfByte = 8;
      demand.base = llvm::divideCeil(
          int64_t(array.type().getElementTypeBitWidth()), bitsOfByte);
      ask(array.value, demand);
    }
  });
  std::vector<Demand> result;
  for (const std::optional<Demand> &demand : asked)
    result.push_back(demand.value_or(Demand()));
  return result;
}

std::vector<Binding::Apart> attn::argumentsApart(func::FuncOp function) {
  struct Use {
    size_t position;
    StringRef role;
    bool isWritten;
  };
  std::vector<Binding::Apart> result;
  function.walk([&](AttentionOpInterface op) {
    SmallVector<Use> uses;
    auto add = [&](Value value, StringRef role, bool isWritten) {
      if (std::optional<size_t> position = positionOf(value, function))
        uses.push_back({*position, role, isWritten});
    };
    for (auto [role, value] : llvm::zip(op.givenInputs(), op.inputs()))
      add(value, role, /*isWritten=*/false);
    for (const AttentionArray &array : op.clauseArrays())
      if (!array.isOutput)
        add(array.value, array.role, /*isWritten=*/false);
    // Destinations on tensors too, which are written in place.
    for (auto [role, value] : llvm::zip(op.givenOutputs(), op.getOuts()))
      add(value, role, /*isWritten=*/true);
    for (const AttentionArray &array : op.clauseArrays())
      if (array.isOutput)
        add(array.value, array.role, /*isWritten=*/true);
    for (auto [number, use] : llvm::enumerate(uses))
      for (const Use &other : ArrayRef(uses).take_front(number))
        if (use.isWritten && use.position != other.position)
          result.push_back(
              {use.position, other.position, use.role.str(), other.role.str()});
  });
  return result;
}

EqualSizes attn::equalSizesOf(func::FuncOp function) {
  EqualSizes result;
  function.walk([&](AttentionOpInterface op) {
    std::vector<std::pair<size_t, size_t>> places[kExtents];
    for (const AttentionArray &array : op.arrays()) {
      auto argument = dyn_cast<BlockArgument>(array.value);
      if (!argument || argument.getOwner() != &function.front())
        continue;
      if (array.columns == 0) // or else it is K, which says all
        for (auto [dim, extent] : llvm::enumerate(op.shapeOf(array.role)))
          places[unsigned(extent)].push_back({argument.getArgNumber(), dim});
    }
    // What tells where rows lie does so for every batch entry.
    for (ClauseGroup group : {ClauseGroup::usedKeys, ClauseGroup::pageTable})
      for (Value array : op.clauseOperands(group))
        if (std::optional<size_t> position = positionOf(array, function))
          places[unsigned(Extent::batch)].push_back({*position, 0});
    // Scales that are not one for all.
    for (ClauseGroup group : kScaleGroups)
      for (Value array : op.clauseOperands(group))
        if (std::optional<size_t> position = positionOf(array, function)) {
          auto type = cast<ShapedType>(array.getType());
          for (auto [dim, extent] :
               {std::pair(0, Extent::batch), std::pair(1, Extent::kvHeads)})
            if (type.getDimSize(dim) != 1 &&
                !(op.isRagged() && extent == Extent::batch))
              places[unsigned(extent)].push_back({*position, size_t(dim)});
        }
    for (const auto &equal : places)
      if (equal.size() > 1)
        result.push_back(equal);
  });
  return result;
}

/// An argument and its dimension that has the size.
static std::optional<std::pair<size_t, size_t>>
argumentOf(AttentionOpInterface op, Extent extent, func::FuncOp function) {
  for (const AttentionArray &array : op.arrays())
    for (auto [dim, each] : llvm::enumerate(op.shapeOf(array.role)))
      if (std::optional<size_t> position = positionOf(array.value, function);
          position && each == extent)
        return std::pair(*position, size_t(dim));
  return std::nullopt;
}

std::vector<LeastSize> attn::leastSizesOf(func::FuncOp function) {
  std::vector<LeastSize> result;
  function.walk([&](AttentionOpInterface op) {
    std::array<int64_t, kExtents> sizes = knownSizes(op);
    bool isPaged = !op.clauseOperands(ClauseGroup::pageTable).empty();
    for (const ReadDimension &read : dimensionsRead(op)) {
      std::optional<size_t> position =
          positionOf(op.captures()[read.capture], function);
      if (!position)
        continue;
      for (Extent extent : read.extents) {
        LeastSize least{read, extent, *position, std::nullopt,
                        sizes[unsigned(extent)]};
        // How many keys pages hold is a matter of the table.
        if (ShapedType::isDynamic(least.size) &&
            !(isPaged && extent == Extent::keys))
          least.place = argumentOf(op, extent, function);
        if (least.place || !ShapedType::isDynamic(least.size))
          result.push_back(least);
      }
    }
  });
  return result;
}

std::optional<std::string> attn::checkSizes(ArrayRef<CallerArray> arrays,
                                            const std::vector<LeastSize> &all) {
  for (const LeastSize &least : all) {
    ArrayRef<int64_t> sizes = arrays[least.position].sizes;
    int64_t wanted = least.place
                         ? arrays[least.place->first].sizes[least.place->second]
                         : least.size;
    if (sizes[least.read.dimension] < wanted)
      return "buffer " + std::to_string(least.position) +
             ": expects an array of " +
             wantedOf(least.read, least.extent, wanted) + ", but got sizes " +
             show(sizes);
  }
  return std::nullopt;
}

Layout attn::layoutOf(const CallerArray &array, int64_t elementBytes) {
  return {{array.sizes.begin(), array.sizes.end()},
          {array.strides.begin(), array.strides.end()},
          /*offset=*/0,
          elementBytes};
}

std::optional<std::string> attn::checkSizes(ArrayRef<CallerArray> arrays,
                                            const EqualSizes &equal) {
  for (const auto &places : equal) {
    auto [first, firstDim] = places.front();
    int64_t size = arrays[first].sizes[firstDim];
    for (auto [other, dim] : places)
      if (arrays[other].sizes[dim] != size)
        return "buffer " + std::to_string(other) + ": expects " +
               std::to_string(size) + " in dimension " + std::to_string(dim) +
               ", as buffer " + std::to_string(first) + " has in dimension " +
               std::to_string(firstDim) + ", but got sizes " +
               show(arrays[other].sizes);
  }
  return std::nullopt;
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
                                            const Demand &demand,
                                            HostArray &argument) {
  auto mismatch = [&](const std::string &got) {
    std::string text;
    llvm::raw_string_ostream(text) << "expects " << type << ", but got " << got;
    return text;
  };
  if (static_cast<int64_t>(array.sizes.size()) != type.getRank())
    return mismatch("rank " + std::to_string(array.sizes.size()));
  for (auto [size, expected] : llvm::zip_equal(array.sizes, type.getShape()))
    if (size < 0 || !::fits(size, expected))
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
        (array.strides[dim] < 0 || !::fits(array.strides[dim], expected)))
      return mismatch("strides " + show(array.strides));
    if (!isFree && isOpen &&
        array.strides[dim] * elementBytes % demand.strides != 0)
      return "expects strides of a multiple of " +
             std::to_string(demand.strides / elementBytes) +
             " elements, but got " + show(array.strides);
    // Code was made for the strides of the type, so these are what it gets.
    if (!isOpen)
      argument.strides[dim] = expected;
    else if (isFree)
      argument.strides[dim] = 0;
  }
  Layout layout = layoutOf(array, elementBytes);
  if (demand.isOfClauses && !demand.isWritten) {
    layout.sizes.push_back(
        1); // no stride is special but where the type says so
    layout.strides.push_back(1);
  }
  if (demand.isOfAttention)
    if (std::optional<std::string> wanted =
            wrongLayout(layout, demand.isWritten))
      return "expects an array with " + *wanted + ", but got strides " +
             show(array.strides) + " for sizes " + show(array.sizes);
  argument.offset = ShapedType::isDynamic(offset) ? 0 : offset;
  uint64_t base = array.address - argument.offset * elementBytes;
  if (base % demand.base != 0)
    return "expects memory aligned to " + std::to_string(demand.base) +
           " bytes, but got an address that is " +
           std::to_string(base % demand.base) + " bytes off";
  return std::nullopt;
}
