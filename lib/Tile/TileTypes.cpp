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
static bool isElement(Type type) { return isHalf(type) || type.isF32(); }

static LogicalResult verifyElement(EmitError emitError, Type type) {
  if (isElement(type))
    return success();
  return emitError() << "expects element type bf16, f16 or f32, but got "
                     << type;
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
  if (parseShaped(parser, dims, element) || parser.parseGreater())
    return {};
  if (dims.size() != 2 && dims.size() != 3) {
    parser.emitError(parser.getNameLoc())
        << "expects a buffer of rows x columns or stages x rows x columns, "
           "but got "
        << dims.size() << " extents";
    return {};
  }
  int64_t stages = dims.size() == 3 ? dims[0] : 1;
  return parser.getChecked<SmemType>(
      parser.getContext(), stages, dims[dims.size() - 2], dims.back(), element);
}

void SmemType::print(AsmPrinter &printer) const {
  printer << '<';
  if (getStages() != 1)
    printer << getStages() << 'x';
  printer << getRows() << 'x' << getColumns() << 'x' << getElementType() << '>';
}

LogicalResult SmemType::verify(EmitError emitError, int64_t stages,
                               int64_t rows, int64_t columns,
                               Type elementType) {
  if (!isHalf(elementType))
    return emitError() << "expects element type bf16 or f16, but got "
                       << elementType;
  // The limit keeps every byte count far inside 64 bits.
  constexpr int64_t limit = 1 << 16;
  if (stages < 1 || rows < 1 || columns < 1 || stages > limit || rows > limit ||
      columns > limit)
    return emitError() << "expects extents from 1 to " << limit << ", but got "
                       << stages << " x " << rows << " x " << columns;
  if (rows % 16 != 0 || columns % 16 != 0)
    return emitError()
           << "expects rows and columns in multiples of 16, but got " << rows
           << " x " << columns;
  return success();
}

int64_t SmemType::elementBytes() const {
  return getElementType().getIntOrFloatBitWidth() / 8;
}

int64_t SmemType::pitchBytes() const {
  int64_t pieces = (getColumns() * elementBytes() + 15) / 16;
  return 16 * (pieces | 1);
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
        << "expects rows x columns x type and one of acc, lhs, rhs";
    return {};
  }
  return parser.getChecked<FragType>(parser.getContext(), dims[0], dims[1],
                                     element, *layout);
}

void FragType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getColumns() << 'x' << getElementType()
          << ", " << stringifyFragmentLayout(getLayout()) << '>';
}

LogicalResult FragType::verify(EmitError emitError, int64_t rows,
                               int64_t columns, Type elementType,
                               FragmentLayout layout) {
  bool accumulator = layout == FragmentLayout::acc;
  if (accumulator ? !elementType.isF32() : !isHalf(elementType))
    return emitError() << "expects element type "
                       << (accumulator ? "f32" : "bf16 or f16") << " in layout "
                       << stringifyFragmentLayout(layout) << ", but got "
                       << elementType;
  int64_t columnStep = accumulator ? 8 : 16;
  constexpr int64_t limit = 4096;
  if (rows < 1 || columns < 1 || rows > limit || columns > limit ||
      rows % 16 != 0 || columns % columnStep != 0)
    return emitError() << "expects rows in multiples of 16 and columns in "
                          "multiples of "
                       << columnStep << " up to " << limit << ", but got "
                       << rows << " x " << columns;
  return success();
}

int64_t FragType::registers() const { return bytes() / 4 / 32; }

int64_t FragType::bytes() const {
  return getRows() * getColumns() * getElementType().getIntOrFloatBitWidth() /
         8;
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
