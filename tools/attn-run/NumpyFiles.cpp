//===- NumpyFiles.cpp - Arrays of the caller's ----------------------------===//

#include "NumpyFiles.h"

#include "mlir/Support/FileUtilities.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace attn;
using namespace attn::run;
using namespace mlir;

static constexpr StringLiteral magic("\x93NUMPY");

//===----------------------------------------------------------------------===//
// The format
//===----------------------------------------------------------------------===//

/// What follows `'key':` in the header, a dictionary of Python.
static StringRef entryOf(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "':").str());
  return at == StringRef::npos ? StringRef()
                               : header.substr(at + key.size() + 3).ltrim();
}

/// "(2, 3)", "(2,)" or "()".
static bool parseShape(StringRef text, SmallVectorImpl<int64_t> &sizes) {
  if (!text.consume_front("("))
    return false;
  SmallVector<StringRef> words;
  text.take_until([](char c) { return c == ')'; }).split(words, ',');
  for (StringRef word : words) {
    int64_t size;
    word = word.trim();
    if (word.empty())
      continue;
    if (word.getAsInteger(10, size) || size < 0)
      return false;
    sizes.push_back(size);
  }
  return true;
}

/// The header and what is behind it; empty if the text has none.
static std::pair<StringRef, StringRef> splitHeader(StringRef text) {
  if (!text.consume_front(magic) || text.size() < 6)
    return {};
  bool isLong = text[0] != 1;
  size_t size = isLong ? llvm::support::endian::read32le(text.data() + 2)
                       : llvm::support::endian::read16le(text.data() + 2);
  text = text.drop_front(isLong ? 6 : 4);
  if (text.size() < size)
    return {};
  return {text.take_front(size), text.drop_front(size)};
}

/// Bytes of an element: "<f4" has 4.
static int64_t elementBytesOf(StringRef dtype) {
  int64_t bytes = 0;
  if (dtype.size() < 3 || dtype.substr(2).getAsInteger(10, bytes))
    return 0;
  return bytes;
}

std::optional<NumpyArray> run::parseNumpy(StringRef text, std::string &error) {
  auto [header, content] = splitHeader(text);
  NumpyArray array;
  StringRef dtype = entryOf(header, "descr");
  if (dtype.consume_front("'"))
    array.dtype = dtype.take_until([](char c) { return c == '\''; }).str();
  int64_t count = elementBytesOf(array.dtype);
  if (header.empty() || count <= 0 ||
      !parseShape(entryOf(header, "shape"), array.sizes)) {
    error = "expects an array in NumPy's format";
    return std::nullopt;
  }
  if (!entryOf(header, "fortran_order").starts_with("False")) {
    error = "expects a row-major array";
    return std::nullopt;
  }
  for (int64_t size : array.sizes)
    if (llvm::MulOverflow(count, size, count))
      count = -1;
  if (count != int64_t(content.size())) {
    error = ("expects " + llvm::Twine(count) + " bytes, but got " +
             llvm::Twine(content.size()))
                .str();
    return std::nullopt;
  }
  array.bytes.assign(content.begin(), content.end());
  return array;
}

std::string run::printNumpy(const NumpyArray &array) {
  std::string header =
      "{'descr': '" + array.dtype + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : array.sizes)
    header += std::to_string(size) + ",";
  header += "), }";
  // The content begins at a multiple of 64.
  constexpr size_t before = 10;
  while ((before + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  std::string text = magic.str();
  text += {'\1', '\0', char(header.size() & 0xff), char(header.size() >> 8)};
  text += header;
  text.append(array.bytes.begin(), array.bytes.end());
  return text;
}

//===----------------------------------------------------------------------===//
// Arguments and results
//===----------------------------------------------------------------------===//

/// NumPy's name of a type; what NumPy lacks is bytes.
static std::string dtypeOf(Type type) {
  if (type.isF16() || type.isF32() || type.isF64())
    return "<f" + std::to_string(type.getIntOrFloatBitWidth() / 8);
  if (type.isInteger(1))
    return "|b1";
  if (auto integer = dyn_cast<IntegerType>(type))
    return (integer.getWidth() == 8 ? "|i" : "<i") +
           std::to_string(integer.getWidth() / 8);
  return "|V" + std::to_string(type.getIntOrFloatBitWidth() / 8);
}

/// Whether a file's type holds such elements.
static bool fits(StringRef dtype, Type type) {
  std::string own = dtypeOf(type);
  if (dtype == own)
    return true;
  bool isOfBits = own[1] == 'V' || own[1] == 'i';
  return isOfBits && elementBytesOf(dtype) == elementBytesOf(own) &&
         (dtype[1] == 'V' || dtype[1] == 'u') && dtype[0] != '>';
}

static std::string pathOf(StringRef folder, StringRef what, unsigned number) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, what + llvm::Twine(number) + ".npy");
  return path.str().str();
}

static FailureOr<NumpyArray> readArgument(func::FuncOp function,
                                          unsigned number, StringRef folder) {
  auto type =
      dyn_cast<RankedTensorType>(function.getArgument(number).getType());
  if (!type || !type.getElementType().isIntOrFloat())
    return function.emitError("expects tensors as arguments with --arrays, but "
                              "argument ")
           << number << " is " << function.getArgument(number).getType();
  std::string path = pathOf(folder, "argument", number), error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &error);
  if (!file)
    return function.emitError(error);
  std::optional<NumpyArray> array = parseNumpy(file->getBuffer(), error);
  if (!array)
    return function.emitError(path + ": " + error);
  bool sizesFit = array->sizes.size() == size_t(type.getRank());
  for (unsigned i = 0; sizesFit && i < array->sizes.size(); ++i)
    sizesFit = type.isDynamicDim(i) || type.getDimSize(i) == array->sizes[i];
  if (!sizesFit || !fits(array->dtype, type.getElementType()))
    return function.emitError(path + ": expects an array for ")
           << type << ", but got " << array->dtype << " of sizes ("
           << array->sizes << ")";
  return std::move(*array);
}

FailureOr<std::vector<NumpyArray>> run::readArguments(func::FuncOp function,
                                                      StringRef folder) {
  std::vector<NumpyArray> arrays;
  for (unsigned number = 0; number < function.getNumArguments(); ++number) {
    FailureOr<NumpyArray> array = readArgument(function, number, folder);
    if (failed(array))
      return failure();
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

FailureOr<Function> run::functionOn(func::FuncOp function,
                                    ArrayRef<NumpyArray> arguments) {
  Function result;
  result.op = function;
  result.onTensors = true;
  for (const NumpyArray &argument : arguments)
    result.argumentSizes.push_back(argument.sizes);
  for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return function.emitError("expects tensors as results with --arrays, but "
                                "result ")
             << number << " is " << type;
    Output output;
    output.position = number;
    output.sizes = llvm::to_vector(tensor.getShape());
    output.elementType = tensor.getElementType();
    result.outputs.push_back(output);
  }
  return result;
}

void run::fillArguments(Execution &execution, ArrayRef<NumpyArray> arguments) {
  for (auto [array, given] : llvm::zip(execution.arrays, arguments))
    llvm::copy(given.bytes, array.bytes.begin() + array.guardBytes);
}

LogicalResult run::writeResults(const Execution &execution,
                                func::FuncOp function, StringRef folder) {
  for (auto [number, slot] : llvm::enumerate(execution.outputs)) {
    const HostBytes &array = execution.arrays[slot];
    NumpyArray result;
    result.dtype = dtypeOf(array.shape.elementType);
    result.sizes = array.shape.sizes;
    int64_t bytes = array.shape.elementBytes();
    forEachIndex(array.shape.sizes, [&](ArrayRef<int64_t> index) {
      const uint8_t *from = array.bytes.data() + array.position(index);
      result.bytes.insert(result.bytes.end(), from, from + bytes);
    });
    std::string error;
    std::unique_ptr<llvm::ToolOutputFile> file =
        openOutputFile(pathOf(folder, "result", number), &error);
    if (!file)
      return function.emitError(error);
    file->os() << printNumpy(result);
    file->keep();
  }
  return success();
}
