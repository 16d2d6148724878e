//===- BlockLists.cpp - attn-c/Attn.h: lists that the GPU makes -----------===//
//
// attn.block_lists and attn.transpose_blocks as functions of arrays.  How many
// queries and keys there are is the shape of an array that nobody reads, so
// that one text serves all sizes.
//
//===----------------------------------------------------------------------===//

#include "AttentionArrays.h"
#include "Boundary.h"
#include "CallerClauses.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;

static constexpr llvm::StringLiteral kLists[] = {
    "partial_counts", "partial_blocks", "full_counts", "full_blocks"};

static int64_t elementsOf(llvm::ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

/// Row-major strides of these sizes.
static llvm::SmallVector<int64_t> rowMajor(llvm::ArrayRef<int64_t> sizes) {
  llvm::SmallVector<int64_t> strides(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * sizes[dim];
  return strides;
}

/// Four arrays of one batch and heads, for so many blocks.
static Outcome readLists(llvm::ArrayRef<const attn_buffer *> buffers,
                         const std::string &what, int64_t rows, int64_t columns,
                         llvm::SmallVectorImpl<CallerArray> &arrays) {
  llvm::SmallVector<int64_t> wanted;
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    std::string name = what + kLists[number].str();
    if (!buffer)
      return invalid("expects buffers " + what +
                     llvm::join(llvm::ArrayRef(kLists), ", " + what));
    CallerArray &array = arrays.emplace_back();
    if (Outcome fault = readBuffer(*buffer, array))
      return Fault{fault->code, name + ": " + fault->message};
    bool isOfCounts = number % 2 == 0;
    if (array.sizes.size() != (isOfCounts ? 3 : 4))
      return invalid(name + ": expects rank " + (isOfCounts ? "3" : "4") +
                     ", but got " + std::to_string(array.sizes.size()));
    if (number == 0)
      wanted = {std::max<int64_t>(array.sizes[0], 1),
                std::max<int64_t>(array.sizes[1], 1), rows, columns};
    llvm::ArrayRef<int64_t> sizes =
        llvm::ArrayRef(wanted).take_front(array.sizes.size());
    if (llvm::ArrayRef(array.sizes) != sizes)
      return invalid(name + ": expects sizes " + show(sizes) + ", but got " +
                     show(array.sizes));
    if (llvm::SmallVector<int64_t> strides = rowMajor(array.sizes);
        elementsOf(array.sizes) > 0 &&
        llvm::any_of(llvm::seq(strides.size()), [&](size_t dim) {
          return array.sizes[dim] > 1 && array.strides[dim] != strides[dim];
        }))
      return invalid(name + ": expects strides " + show(strides) +
                     " of row-major order, but got " + show(array.strides));
  }
  return std::nullopt;
}

/// Of batch entries and heads, or of any.
static std::string typesOf(const std::string &owners) {
  std::string counts = "memref<" + owners + "?xi32>",
              blocks = "memref<" + owners + "?x?xi32>";
  return llvm::join(llvm::ArrayRef<std::string>{counts, blocks, counts, blocks},
                    ", ");
}

static Outcome launch(const std::string &text, const std::string &machine,
                      int device, llvm::ArrayRef<CallerArray> arrays,
                      void *stream) {
  std::shared_ptr<const Binding> binding;
  if (Outcome fault = bindText(text, machine, device, arrays, binding))
    return fault;
  llvm::SmallVector<uint64_t, 16> addresses;
  for (const CallerArray &array : arrays)
    addresses.push_back(array.address);
  if (std::optional<std::string> wrong = binding->check(addresses))
    return invalid(*wrong);
  runtime::Status launched = binding->launch(addresses, stream);
  if (!launched.ok())
    return Fault{ATTN_DEVICE_ERROR, launched.message()};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Lists of a region
//===----------------------------------------------------------------------===//

/// What is wrong with a text of ours, by the lines and columns of the clauses
/// in it.
static std::string placedInClauses(llvm::StringRef diagnostics,
                                   size_t firstLine) {
  llvm::SmallVector<std::string> said;
  for (llvm::StringRef line : llvm::split(diagnostics, '\n')) {
    auto [place, sentence] = line.split(": error: ");
    if (sentence.empty())
      continue;
    llvm::SmallVector<llvm::StringRef> parts;
    place.split(parts, ':');
    size_t row = 0;
    std::string where;
    if (parts.size() == 3 && !parts[1].getAsInteger(10, row) &&
        row >= firstLine)
      where = llvm::formatv(":{0}:{1}", row - firstLine + 1, parts[2]);
    for (llvm::StringRef name :
         {"'attn.block_lists' op ", "custom op 'attn.block_lists' "})
      sentence.consume_front(name);
    said.push_back("clauses" + where + ": " + sentence.str());
  }
  return said.empty() ? diagnostics.str() : llvm::join(said, "\n  ");
}

static Outcome checkRequest(const attn_block_lists_request *request) {
  if (!request || request->struct_size < sizeof(*request))
    return invalid("expects a request with struct_size = "
                   "sizeof(attn_block_lists_request)");
  for (int64_t rows : {request->queries, request->keys})
    if (rows < 0 || rows > kMaxRows)
      return invalid("expects queries and keys from 0 to " +
                     std::to_string(kMaxRows) + ", but got " +
                     std::to_string(request->queries) + " and " +
                     std::to_string(request->keys));
  for (int64_t size : {request->block_queries, request->block_keys})
    if (size <= 0 || size % 64 != 0 || size > kMaxRows)
      return invalid("expects blocks of positive multiples of 64, but got " +
                     std::to_string(request->block_queries) + " x " +
                     std::to_string(request->block_keys));
  if (!request->clauses)
    return invalid("expects clauses captures(..) and sees(..)");
  return std::nullopt;
}

/// The function that makes lists, and the line in which clauses begin.
static std::string
textOfLists(const attn_block_lists_request &request,
            llvm::ArrayRef<AttentionArrays::Capture> captures,
            llvm::StringRef clauses, llvm::ArrayRef<int64_t> owners,
            size_t &firstLine) {
  std::string text, parameters = "%sizes: memref<?x?xi8>";
  for (const AttentionArrays::Capture &capture : captures) {
    text += "!" + capture.name + " = " + typeOf(capture) + "\n";
    parameters += ", %" + capture.name + ": !" + capture.name;
  }
  std::string types = typesOf(llvm::formatv("{0}x{1}x", owners[0], owners[1]));
  llvm::SmallVector<llvm::StringRef> each;
  llvm::StringRef(types).split(each, ", ");
  std::string outs;
  for (auto [name, type] : llvm::zip_equal(kLists, each)) {
    parameters += ", %" + name.str() + ": " + type.str();
    outs += (outs.empty() ? "%" : ", %") + name.str();
  }
  text += "func.func @lists(" + parameters +
          ") {\n"
          "  %zero = arith.constant 0 : index\n"
          "  %one = arith.constant 1 : index\n"
          "  %queries = memref.dim %sizes, %zero : memref<?x?xi8>\n"
          "  %keys = memref.dim %sizes, %one : memref<?x?xi8>\n";
  text += llvm::formatv("  attn.block_lists queries(%queries) keys(%keys) "
                        "batch({0}) heads({1}) size {2} x {3}\n",
                        owners[0], owners[1], request.block_queries,
                        request.block_keys);
  firstLine = llvm::StringRef(text).count('\n') + 1;
  text +=
      clauses.str() + "\n  outs(" + outs + " : " + types + ")\n  return\n}\n";
  return text;
}

int32_t attn_block_lists(const attn_block_lists_request *request,
                         int32_t device, const attn_buffer *partial_counts,
                         const attn_buffer *partial_blocks,
                         const attn_buffer *full_counts,
                         const attn_buffer *full_blocks, void *stream,
                         attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (Outcome fault = checkRequest(request))
      return fault;
    AttentionRequest clauses;
    AttentionArrays captured;
    if (Outcome fault = readListClauses(*request->clauses, clauses, captured))
      return fault;
    int64_t rows = llvm::divideCeil(request->queries, request->block_queries),
            columns = llvm::divideCeil(request->keys, request->block_keys);
    llvm::SmallVector<CallerArray> lists;
    if (Outcome fault = readLists(
            {partial_counts, partial_blocks, full_counts, full_blocks}, "",
            rows, columns, lists))
      return fault;
    if (rows == 0)
      return std::nullopt;
    size_t firstLine = 0;
    std::string text = textOfLists(*request, captured.captures, clauses.clauses,
                                   lists[0].sizes, firstLine);
    llvm::SmallVector<CallerArray, 16> arrays = {
        {lists[0].address,
         {request->queries, request->keys},
         {request->keys, 1}}};
    for (const AttentionArrays::Capture &capture : captured.captures)
      arrays.push_back(capture.array);
    llvm::append_range(arrays, lists);
    Outcome fault =
        launch(text, orEmpty(request->machine).str(), device, arrays, stream);
    if (fault && llvm::StringRef(fault->message).contains(": error: "))
      fault->message = placedInClauses(fault->message, firstLine);
    return fault;
  });
}

//===----------------------------------------------------------------------===//
// Lists by keys
//===----------------------------------------------------------------------===//

static std::string textOfTransposed() {
  std::string types = typesOf("?x?x"), in, out, parameters;
  llvm::SmallVector<llvm::StringRef> each;
  llvm::StringRef(types).split(each, ", ");
  for (llvm::StringRef prefix : {"%", "%transposed_"}) {
    std::string &names = prefix == "%" ? in : out;
    for (auto [name, type] : llvm::zip_equal(kLists, each)) {
      names += (names.empty() ? prefix : ", " + prefix).str() + name.str();
      parameters +=
          ((parameters.empty() ? "" : ", ") + prefix + name + ": " + type)
              .str();
    }
  }
  return "func.func @lists(" + parameters + ") {\n  attn.transpose_blocks " +
         in + " outs(" + out + " : " + types + ") : " + types +
         "\n  return\n}\n";
}

int32_t attn_transpose_blocks(const char *machine, int32_t device,
                              const attn_buffer *const lists[4],
                              const attn_buffer *const transposed[4],
                              void *stream, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!lists || !transposed)
      return invalid("expects lists, and places for transposed ones");
    int64_t rows = 0, columns = 0;
    if (const attn_buffer *blocks = lists[1]; blocks && blocks->rank == 4) {
      rows = blocks->sizes[2];
      columns = blocks->sizes[3];
    }
    llvm::SmallVector<CallerArray> arrays;
    if (Outcome fault =
            readLists(llvm::ArrayRef(lists, 4), "", rows, columns, arrays))
      return fault;
    if (Outcome fault = readLists(llvm::ArrayRef(transposed, 4), "transposed_",
                                  columns, rows, arrays))
      return fault;
    if (llvm::ArrayRef(arrays[0].sizes).take_front(2) !=
        llvm::ArrayRef(arrays[4].sizes).take_front(2))
      return invalid("expects transposed lists of as many batch entries and "
                     "heads, " +
                     show(arrays[0].sizes) + ", but got " +
                     show(arrays[4].sizes));
    if (columns == 0)
      return std::nullopt;
    return launch(textOfTransposed(), orEmpty(machine).str(), device, arrays,
                  stream);
  });
}
