//===- TileTypes.cpp - Text, limits and sizes of the tile types -----------===//

#include "attn/Tile/Tile.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

#include "attn/Tile/TileEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Tile/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Tile/TileTypes.cpp.inc"
      >();
}

using EmitError = function_ref<InFlightDiagnostic()>;

static bool isHalf(Type type) { return type.isBF16() || type.isF16(); }
static bool isF8(Type type) { return isa<Float8E4M3FNType>(type); }
static bool isTf32(Type type) { return isa<FloatTF32Type>(type); }
static bool isElement(Type type) {
  return isHalf(type) || isF8(type) || type.isF32();
}

static LogicalResult verifyElement(EmitError emitError, Type type) {
  if (isElement(type))
    return success();
  return emitError()
         << "expects element type bf16, f16, f32 or f8E4M3FN, but got " << type;
}

/// Parses `<` dims x element, leaving what follows to the caller.
static ParseResult parseShaped(AsmParser &parser,
                               SmallVectorImpl<int64_t> &dims, Type &element,
                               bool allowDynamic = false) {
  return failure(parser.parseLess() ||
                 parser.parseDimensionList(dims, allowDynamic) ||
                 parser.parseType(element));
}

//===----------------------------------------------------------------------===//
// !tile.ptr
//===----------------------------------------------------------------------===//

Type PtrType::parse(AsmParser &parser) {
  Type element;
  if (parser.parseLess() || parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<PtrType>(parser.getContext(), element);
}

void PtrType::print(AsmPrinter &printer) const {
  printer << '<' << getElementType() << '>';
}

LogicalResult PtrType::verify(EmitError emitError, Type elementType) {
  // What is read element by element may be any integer.
  if (elementType.isSignlessInteger())
    return success();
  return verifyElement(emitError, elementType);
}

//===----------------------------------------------------------------------===//
// !tile.view
//===----------------------------------------------------------------------===//

Type ViewType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  int64_t align = 0;
  if (parseShaped(parser, dims, element, /*allowDynamic=*/true) ||
      parser.parseComma() || parser.parseKeyword("align") ||
      parser.parseEqual() || parser.parseInteger(align) ||
      parser.parseGreater())
    return {};
  if (dims.empty() || dims.size() > 2 || !ShapedType::isDynamic(dims[0]) ||
      (dims.size() == 2 && dims[1] <= 0)) {
    parser.emitError(parser.getNameLoc())
        << "expects a view of ?xT or ?xCxT with C at least 1";
    return {};
  }
  int64_t columns = dims.size() == 2 ? dims[1] : kVector;
  return parser.getChecked<ViewType>(parser.getContext(), columns, element,
                                     align);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << "<?x";
  if (!isVector())
    printer << getColumns() << 'x';
  printer << getElementType() << ", align = " << getAlign() << '>';
}

LogicalResult ViewType::verify(EmitError emitError, int64_t columns,
                               Type elementType, int64_t align) {
  if (failed(verifyElement(emitError, elementType)))
    return failure();
  int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  if (align < bytes || align > 16 || (align & (align - 1)) != 0)
    return emitError() << "expects an alignment of " << bytes
                       << " to 16 bytes that is a power of two, but got "
                       << align;
  return success();
}

int64_t ViewType::rowBytes() const {
  int64_t columns = isVector() ? 1 : getColumns();
  return columns * getElementType().getIntOrFloatBitWidth() / 8;
}

//===----------------------------------------------------------------------===//
// !tile.smem
//===----------------------------------------------------------------------===//

Type SmemType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  if (parseShaped(parser, dims, element))
    return {};
  SmemLayout layout = SmemLayout::padded;
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return {};
    std::optional<SmemLayout> named = symbolizeSmemLayout(keyword);
    if (!named) {
      parser.emitError(parser.getNameLoc())
          << "expects layout padded, staggered, sw128 or sw128_paired, but got "
          << keyword;
      return {};
    }
    layout = *named;
  }
  if (parser.parseGreater())
    return {};
  if (dims.size() != 2 && dims.size() != 3) {
    parser.emitError(parser.getNameLoc())
        << "expects a buffer of rows x columns or stages x rows x columns, "
           "but got "
        << dims.size() << " extents";
    return {};
  }
  int64_t stages = dims.size() == 3 ? dims[0] : 1;
  return parser.getChecked<SmemType>(parser.getContext(), stages,
                                     dims[dims.size() - 2], dims.back(),
                                     element, layout);
}

void SmemType::print(AsmPrinter &printer) const {
  printer << '<';
  if (getStages() != 1)
    printer << getStages() << 'x';
  printer << getRows() << 'x' << getColumns() << 'x' << getElementType();
  if (getLayout() != SmemLayout::padded)
    printer << ", " << stringifySmemLayout(getLayout());
  printer << '>';
}

LogicalResult SmemType::verify(EmitError emitError, int64_t stages,
                               int64_t rows, int64_t columns, Type elementType,
                               SmemLayout layout) {
  bool paired = layout == SmemLayout::sw128_paired;
  bool swizzled = layout == SmemLayout::sw128;
  bool staggered = layout == SmemLayout::staggered;
  bool isSingle = !paired && !staggered && elementType.isF32();
  if (paired ? !isF8(elementType)
             : !isHalf(elementType) && !isSingle &&
                   !(swizzled && isF8(elementType)))
    return emitError() << "expects element type "
                       << (paired      ? "f8E4M3FN"
                           : staggered ? "bf16 or f16"
                           : swizzled  ? "bf16, f16, f32 or f8E4M3FN"
                                       : "bf16, f16 or f32")
                       << ", but got " << elementType;
  // The limit keeps every byte count far inside 64 bits.
  constexpr int64_t limit = 1 << 16;
  if (stages < 1 || rows < 1 || columns < 1 || stages > limit || rows > limit ||
      columns > limit)
    return emitError() << "expects extents from 1 to " << limit << ", but got "
                       << stages << " x " << rows << " x " << columns;
  if ((rows % 16 != 0 && !isSingle) || columns % 16 != 0)
    return emitError()
           << "expects rows and columns in multiples of 16, but got " << rows
           << " x " << columns;
  if (isSingle && swizzled && rows % 8 != 0)
    return emitError() << "expects rows of f32 in multiples of 8, but got "
                       << rows;
  return success();
}

int64_t SmemType::elementBytes() const {
  return getElementType().getIntOrFloatBitWidth() / 8;
}

int64_t SmemType::pitchBytes() const {
  if (isSwizzled())
    return kPanelBytes;
  int64_t unit = swapsHalves() ? 32 : 16;
  int64_t units = (getColumns() * elementBytes() + unit - 1) / unit;
  return unit * (units | 1);
}

int64_t SmemType::panels() const {
  return (getColumns() + panelColumns() - 1) / panelColumns();
}

int64_t SmemType::stageBytes() const {
  if (!isSwizzled())
    return getRows() * pitchBytes();
  int64_t bytes = panels() * panelBytes();
  return (bytes + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes;
}

//===----------------------------------------------------------------------===//
// !tile.tensor_map
//===----------------------------------------------------------------------===//

Type TensorMapType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  if (parseShaped(parser, dims, element, /*allowDynamic=*/true) ||
      parser.parseGreater())
    return {};
  if (dims.size() != 2) {
    parser.emitError(parser.getNameLoc())
        << "expects rows of a box x columns of the array, but got "
        << dims.size() << " extents";
    return {};
  }
  return parser.getChecked<TensorMapType>(parser.getContext(), dims[0], dims[1],
                                          element);
}

void TensorMapType::print(AsmPrinter &printer) const {
  printer << '<' << getBoxRows() << 'x';
  if (hasAnyColumns())
    printer << '?';
  else
    printer << getColumns();
  printer << 'x' << getElementType() << '>';
}

LogicalResult TensorMapType::verify(EmitError emitError, int64_t boxRows,
                                    int64_t columns, Type elementType) {
  if (failed(verifyElement(emitError, elementType)))
    return failure();
  bool isStep = boxRows >= 8 && boxRows <= kMaxBoxRows && boxRows % 8 == 0;
  if (boxRows != 1 && !isStep)
    return emitError() << "expects boxes of one row, or of 8 to " << kMaxBoxRows
                       << " in steps of 8, but got " << boxRows;
  constexpr int64_t limit = 1 << 16;
  int64_t piece = 128 / elementType.getIntOrFloatBitWidth();
  if (columns != kAnyColumns &&
      (columns < 1 || columns > limit || columns % piece != 0))
    return emitError() << "expects columns in multiples of " << piece
                       << " up to " << limit << ", but got " << columns;
  return success();
}

//===----------------------------------------------------------------------===//
// !tile.mbarrier, !tile.queue
//===----------------------------------------------------------------------===//

/// Rings are as deep as rings of buffers, which shared memory bounds.
static constexpr int64_t kMaxSlots = 64;

static LogicalResult verifySlots(EmitError emitError, int64_t slots) {
  if (slots >= 1 && slots <= kMaxSlots)
    return success();
  return emitError() << "expects 1 to " << kMaxSlots << " slots, but got "
                     << slots;
}

Type MbarrierType::parse(AsmParser &parser) {
  int64_t slots;
  if (parser.parseLess() || parser.parseInteger(slots) || parser.parseGreater())
    return {};
  return parser.getChecked<MbarrierType>(parser.getContext(), slots);
}

void MbarrierType::print(AsmPrinter &printer) const {
  printer << '<' << getSlots() << '>';
}

LogicalResult MbarrierType::verify(EmitError emitError, int64_t slots) {
  return verifySlots(emitError, slots);
}

Type QueueType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  if (parser.parseLess() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/false,
                                /*withTrailingX=*/false) ||
      parser.parseGreater())
    return {};
  if (dims.size() != 2) {
    parser.emitError(parser.getNameLoc())
        << "expects slots x values, but got " << dims.size() << " extents";
    return {};
  }
  return parser.getChecked<QueueType>(parser.getContext(), dims[0], dims[1]);
}

void QueueType::print(AsmPrinter &printer) const {
  printer << '<' << getSlots() << 'x' << getValues() << '>';
}

LogicalResult QueueType::verify(EmitError emitError, int64_t slots,
                                int64_t values) {
  if (values < 1 || values > kMaxValues)
    return emitError() << "expects 1 to " << kMaxValues
                       << " values in a message, but got " << values;
  return verifySlots(emitError, slots);
}

//===----------------------------------------------------------------------===//
// !tile.pending
//===----------------------------------------------------------------------===//

Type PendingType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  if (parseShaped(parser, dims, element) || parser.parseGreater())
    return {};
  if (dims.size() != 2 || !element.isF32()) {
    parser.emitError(parser.getNameLoc()) << "expects rows x columns x f32";
    return {};
  }
  return parser.getChecked<PendingType>(parser.getContext(), dims[0], dims[1]);
}

void PendingType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getColumns() << "xf32>";
}

LogicalResult PendingType::verify(EmitError emitError, int64_t rows,
                                  int64_t columns) {
  constexpr int64_t warpRows = 16, mostColumns = 512;
  if (rows != warpRows)
    return emitError() << "expects the " << warpRows
                       << " rows of a warp, but got " << rows;
  if (columns < 8 || columns > mostColumns || columns % 8 != 0)
    return emitError() << "expects columns in multiples of 8 up to "
                       << mostColumns << ", but got " << columns;
  return success();
}

//===----------------------------------------------------------------------===//
// !tile.frag
//===----------------------------------------------------------------------===//

Type FragType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  StringRef keyword;
  if (parseShaped(parser, dims, element) || parser.parseComma() ||
      parser.parseKeyword(&keyword) || parser.parseGreater())
    return {};
  std::optional<FragmentLayout> layout = symbolizeFragmentLayout(keyword);
  if (dims.size() != 2 || !layout) {
    parser.emitError(parser.getNameLoc())
        << "expects rows x columns x type and one of acc, lhs, rhs, "
           "lhs_paired, rhs_paired";
    return {};
  }
  return parser.getChecked<FragType>(parser.getContext(), dims[0], dims[1],
                                     element, *layout);
}

void FragType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getColumns() << 'x' << getElementType()
          << ", " << stringifyFragmentLayout(getLayout()) << '>';
}

static int64_t registerBytes(Type elementType) {
  return isTf32(elementType) ? 4 : elementType.getIntOrFloatBitWidth() / 8;
}

/// Of both extents the least that a fragment may have.
static std::pair<int64_t, int64_t> extentsOfPiece(Type elementType,
                                                  FragmentLayout layout) {
  if (layout == FragmentLayout::acc)
    return {16, 8};
  bool isRhs =
      layout == FragmentLayout::rhs || layout == FragmentLayout::rhs_paired;
  if (registerBytes(elementType) == 4)
    return isRhs ? std::pair(8, 16) : std::pair(16, 8);
  return {16, isF8(elementType) ? 32 : 16};
}

LogicalResult FragType::verify(EmitError emitError, int64_t rows,
                               int64_t columns, Type elementType,
                               FragmentLayout layout) {
  bool accumulator = layout == FragmentLayout::acc;
  bool paired = layout == FragmentLayout::lhs_paired ||
                layout == FragmentLayout::rhs_paired;
  bool single = elementType.isF32() || isTf32(elementType);
  bool operand =
      single || (!paired && (isHalf(elementType) || isF8(elementType)));
  if (accumulator ? !elementType.isF32() : !operand)
    return emitError() << "expects element type "
                       << (accumulator ? "f32"
                           : paired    ? "f32 or tf32"
                                       : "bf16, f16, f8E4M3FN, f32 or tf32")
                       << " in layout " << stringifyFragmentLayout(layout)
                       << ", but got " << elementType;
  auto [rowStep, columnStep] = extentsOfPiece(elementType, layout);
  constexpr int64_t limit = 4096;
  if (rows < 1 || columns < 1 || rows > limit || columns > limit ||
      rows % rowStep != 0 || columns % columnStep != 0)
    return emitError() << "expects rows in multiples of " << rowStep
                       << " and columns in multiples of " << columnStep
                       << " up to " << limit << ", but got " << rows << " x "
                       << columns;
  return success();
}

int64_t FragType::registers() const { return bytes() / 4 / 32; }

int64_t FragType::columnStep() const {
  return extentsOfPiece(getElementType(), getLayout()).second;
}

int64_t FragType::elementBytes() const {
  return registerBytes(getElementType());
}

int64_t FragType::bytes() const {
  return getRows() * getColumns() * elementBytes();
}

//===----------------------------------------------------------------------===//
// !tile.row
//===----------------------------------------------------------------------===//

Type RowType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  if (parseShaped(parser, dims, element))
    return {};
  bool partial = false;
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("partial"))
      return {};
    partial = true;
  }
  if (parser.parseGreater())
    return {};
  if (dims.size() != 1) {
    parser.emitError(parser.getNameLoc())
        << "expects one extent, but got " << dims.size();
    return {};
  }
  return parser.getChecked<RowType>(parser.getContext(), dims[0], element,
                                    partial);
}

void RowType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getElementType();
  if (getPartial())
    printer << ", partial";
  printer << '>';
}

LogicalResult RowType::verify(EmitError emitError, int64_t rows,
                              Type elementType, bool partial) {
  if (!elementType.isF32() && !elementType.isInteger(32))
    return emitError() << "expects element type f32 or i32, but got "
                       << elementType;
  if (rows < 16 || rows % 16 != 0 || rows > 4096)
    return emitError() << "expects rows in multiples of 16 up to 4096, but got "
                       << rows;
  if (partial && !elementType.isF32())
    return emitError() << "expects f32 in a partial row, but got "
                       << elementType;
  return success();
}
