//===- AttentionArrays.cpp - Checking arrays against each other -----------===//

#include "AttentionArrays.h"

#include "attn/IR/Packing.h"
#include "attn/Schedule/RaggedQueries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numeric>

using namespace attn;

using Array = AttentionArrays::Array;

const CallerArray *AttentionArrays::find(llvm::StringRef role) const {
  const Array *found = llvm::find_if(
      all, [&](const Array &array) { return array.role == role; });
  return found == all.end() ? nullptr : &found->array;
}

llvm::SmallVector<CallerArray, 16> AttentionArrays::list() const {
  llvm::SmallVector<CallerArray, 16> result;
  for (const Array &each : all)
    result.push_back(each.array);
  for (const std::vector<Capture> *those : {&captures, &gradients})
    for (const Capture &each : *those)
      result.push_back(each.array);
  return result;
}

static std::string words(Extent extent, const Problem &problem) {
  switch (extent) {
  case Extent::batch:
    return "batch";
  case Extent::heads:
    return "heads";
  case Extent::kvHeads:
    return "heads of k";
  case Extent::queries:
    return "queries";
  case Extent::keys:
    return "keys";
  case Extent::headDim:
    return "head dimension";
  case Extent::headDimV:
    return "head dimension of v";
  case Extent::keptRows:
    return "2 for every " + std::to_string(kKeptKeys) + " keys";
  case Extent::queryBlocks:
    return "blocks of " + std::to_string(problem.pattern->size().queries) +
           " queries";
  case Extent::keyBlocks:
    return "blocks of " + std::to_string(problem.pattern->size().keys) +
           " keys";
  case Extent::offsets:
    return "sequences + 1";
  case Extent::tablePages:
    return "pages of a batch entry";
  case Extent::pages:
    return "pages";
  case Extent::pageRows:
    return "keys of a page";
  }
  return "";
}

/// The shape in words; lists may be one for all batch entries or heads.
static std::string wordsOf(llvm::StringRef role, const Problem &problem) {
  llvm::SmallVector<std::string> all;
  for (Extent extent :
       shapeOf(role, problem.ragged.has_value(), problem.place)) {
    bool isForAll = isOfBlocks(role) && all.size() < 2;
    all.push_back(words(extent, problem) + (isForAll ? " or 1" : ""));
  }
  return "[" + llvm::join(all, ", ") + "]";
}

/// Whether an array has the sizes that its role has in the problem.
static bool hasShape(const Array &each, const Problem &problem) {
  for (auto [dim, extent] : llvm::enumerate(
           shapeOf(each.role, problem.ragged.has_value(), problem.place))) {
    int64_t size = each.array.sizes[dim];
    bool isForAll = (isOfBlocks(each.role) && dim < 2 && size == 1) ||
                    extent == Extent::pages;
    if (size != valueOf(extent, problem) && !isForAll)
      return false;
  }
  return true;
}

/// Lists whose contents nobody knows here.
static std::optional<Pattern> patternOf(const AttentionRequest &request) {
  if (!request.blocks)
    return std::nullopt;
  return Pattern(*request.blocks, kAssumedDensity);
}

/// Sequences that lie one behind the other: of rows that are [rows, heads,
/// columns].
static void setRaggedSizes(Problem &problem, const AttentionArrays &arrays) {
  const CallerArray &q = *arrays.find("q"), &k = *arrays.find("k");
  problem.batch = std::max<int64_t>(arrays.find("cu_q")->sizes[0] - 1, 0);
  problem.heads = q.sizes[1];
  problem.kvHeads = k.sizes[1];
  problem.queries = q.sizes[0];
  problem.keys = k.sizes[0];
  problem.headDim = q.sizes[2];
  problem.headDimV = arrays.find("v")->sizes.back();
}

/// Of keys that the device says how many are used of.
static void setPlace(Problem &problem, const AttentionRequest &request,
                     const AttentionArrays &arrays) {
  const CallerArray &k = *arrays.find("k");
  problem.place.usedKeysBits = request.usedKeysBits;
  problem.keys = k.sizes[2];
  if (const CallerArray *table = arrays.find("page_table")) {
    problem.place.pageRows = k.sizes[2];
    problem.keys = table->sizes[1] * k.sizes[2];
  }
  if (!problem.ragged)
    return;
  int64_t &longest = problem.ragged->longest.keys; // of 0, all
  longest = std::min(longest > 0 ? longest : kMaxRows, problem.keys);
}

static void setSizes(Problem &problem, const AttentionRequest &request,
                     const AttentionArrays &arrays) {
  if (problem.ragged) {
    setRaggedSizes(problem, arrays);
    if (arrays.find("used_keys"))
      setPlace(problem, request, arrays);
    return;
  }
  const CallerArray &q = *arrays.find("q"), &k = *arrays.find("k");
  problem.batch = q.sizes[0];
  problem.heads = q.sizes[1];
  problem.kvHeads = k.sizes[1];
  problem.queries = q.sizes[2];
  problem.keys = k.sizes[2];
  problem.headDim = q.sizes[3];
  problem.headDimV = arrays.find("v")->sizes[3];
  if (arrays.find("used_keys"))
    setPlace(problem, request, arrays);
}

/// Whether V is the first columns of K.
static bool areFirstColumns(const CallerArray &v, const CallerArray &k) {
  return v.address == k.address && v.strides == k.strides &&
         v.sizes.back() <= k.sizes.back();
}

/// Why the shapes do not belong together.
static std::optional<std::string> checkShapes(const AttentionRequest &request,
                                              const AttentionArrays &arrays) {
  const std::pair<const char *, const char *> pairs[] = {
      {"weights", "block_rows"},
      {"partial_counts", "partial_blocks"},
      {"full_counts", "full_blocks"},
      {"transposed_partial_counts", "transposed_partial_blocks"},
      {"transposed_full_counts", "transposed_full_blocks"}};
  for (auto [one, other] : pairs)
    if (!arrays.find(one) != !arrays.find(other))
      return std::string(one) + " and " + other + " together";
  bool hasQ = arrays.find("cu_q"), hasK = arrays.find("cu_k");
  bool isOnCache = hasQ && arrays.find("used_keys");
  if (isOnCache ? hasK : hasQ != hasK)
    return "cu_q and cu_k together, or cu_q and used_keys";
  if (request.direction == Direction::backward)
    for (const char *list : {"partial_counts", "full_counts"})
      if (!arrays.find(list) != !arrays.find(std::string("transposed_") + list))
        return std::string(list) + " and transposed_" + list + " together";
  Placement cache;
  if (arrays.find("used_keys"))
    cache.usedKeysBits = request.usedKeysBits;
  for (const Array &each : arrays.all) {
    size_t rank = shapeOf(each.role, request.ragged.has_value(), cache).size();
    if (each.array.sizes.size() != rank)
      return each.role.str() + " of rank " + std::to_string(rank);
    for (int64_t size : each.array.sizes)
      if (size < 0)
        return each.role.str() + " without negative sizes";
  }
  const auto &q = arrays.find("q")->sizes, &k = arrays.find("k")->sizes,
             &v = arrays.find("v")->sizes;
  size_t rows = k.size() == 3 ? 0 : 2;
  bool isPaged = arrays.find("page_table");
  if (isPaged && !arrays.find("used_keys"))
    return "page_table and used_keys together";
  if (!request.ragged && !isPaged && (q[0] != k[0] || q[0] != v[0]))
    return "one batch size";
  if (isPaged && k[0] != v[0])
    return "k and v with the same number of pages";
  if (k[1] != v[1])
    return "k and v with the same number of heads";
  if (k[1] < 1 || q[1] < 1 || q[1] % k[1] != 0)
    return "a head count of q that is a multiple of that of k and v";
  if (k[rows] != v[rows])
    return "k and v with the same number of rows";
  if (q.back() != k.back())
    return "q and k with the same head dimension";
  if (request.ragged && arrays.find("cu_q")->sizes[0] < 1)
    return "cu_q with an offset where the last sequence ends";
  if (request.valuesOfKeys &&
      !areFirstColumns(*arrays.find("v"), *arrays.find("k")))
    return "v as the first columns of k, with its address and strides";
  Problem problem;
  problem.ragged = request.ragged;
  setSizes(problem, request, arrays);
  problem.pattern = patternOf(request);
  for (const Array &each : arrays.all)
    if (!hasShape(each, problem))
      return each.role.str() + " of shape " + wordsOf(each.role, problem);
  return std::nullopt;
}

static std::optional<std::string> checkStrides(const Array &each,
                                               int64_t elementBytes) {
  const CallerArray &array = each.array;
  std::optional<std::string> wanted =
      wrongLayout(layoutOf(array, elementBytes), each.isOutput);
  if (!wanted)
    return std::nullopt;
  return each.role.str() + " with " + *wanted + ", but got strides " +
         show(array.strides) + " for sizes " + show(array.sizes);
}

/// Bytes, at most kMaxAlignment, that divide the addresses of all rows.
static int64_t alignmentOfRows(const CallerArray &array, int64_t elementBytes) {
  uint64_t divisor = std::gcd<uint64_t>(kMaxAlignment, array.address);
  for (size_t dim = 0; dim + 1 < array.sizes.size(); ++dim)
    if (array.sizes[dim] > 1)
      divisor = std::gcd<uint64_t>(divisor, array.strides[dim] * elementBytes);
  return divisor;
}

/// The problem, from shapes that belong together.
static Problem problemOfShapes(const AttentionRequest &request,
                               const AttentionArrays &arrays) {
  Problem problem;
  problem.direction = request.direction;
  problem.deterministic = request.deterministic;
  problem.dtype = request.dtype;
  problem.kvDtype = request.kvDtype;
  problem.precision = request.precision;
  problem.mask = request.mask;
  problem.pattern = patternOf(request);
  problem.ragged = request.ragged;
  setSizes(problem, request, arrays);
  problem.lse = arrays.find("lse");
  problem.lseLow = arrays.find("lse_low");
  problem.dlse = arrays.find("dlse");
  problem.keepsWeights = arrays.find("weights");
  problem.valuesOfKeys = request.valuesOfKeys;
  return problem;
}

/// Nobody reads them in another order than they lie.
static std::string typeOfGradient(const AttentionArrays::Capture &gradient) {
  std::string shape;
  for (int64_t size : gradient.array.sizes)
    shape += size == 1 ? "1x" : "?x";
  return "memref<" + shape + "f32>";
}

/// Of a gradient, the shape of its capture, one element behind the other.
static std::optional<std::string>
checkGradient(const AttentionArrays &arrays,
              const AttentionArrays::Capture &gradient) {
  const AttentionArrays::Capture &capture = *llvm::find_if(
      arrays.captures, [&](const AttentionArrays::Capture &each) {
        return each.name == gradient.name;
      });
  std::string what = "expects a gradient of capture '" + gradient.name + "' ";
  const CallerArray &array = gradient.array;
  if (!llvm::is_contained({"bf16", "f16", "f32"}, capture.type))
    return what + "that is of floats, but got " + capture.type;
  if (array.sizes != capture.array.sizes)
    return what + "of shape " + show(capture.array.sizes) + ", but got " +
           show(array.sizes);
  int64_t dense = 1;
  for (size_t dim = array.sizes.size(); dim-- > 0;) {
    if (array.sizes[dim] > 1 && array.strides[dim] != dense)
      return what +
             "whose elements lie one behind the other, but got strides " +
             show(array.strides) + " for sizes " + show(array.sizes);
    dense *= array.sizes[dim];
  }
  return std::nullopt;
}

/// What clauses tell apart is in the type: sizes of 1, which short forms read
/// as one for all, and whether the innermost elements are neighbours.
std::string attn::typeOf(const AttentionArrays::Capture &capture) {
  std::string shape, strides;
  const CallerArray &array = capture.array;
  for (auto [dim, size] : llvm::enumerate(array.sizes)) {
    bool isInnermost = dim + 1 == array.sizes.size();
    bool isNext = isInnermost && (size <= 1 || array.strides[dim] == 1);
    shape += size == 1 ? "1x" : "?x";
    strides += (dim ? ", " : "") + std::string(isNext ? "1" : "?");
  }
  std::string type = "memref<" + shape + capture.type;
  return array.sizes.empty() ? type + ">"
                             : type + ", strided<[" + strides + "]>>";
}

std::optional<std::string> attn::classify(const AttentionRequest &request,
                                          const AttentionArrays &arrays,
                                          KernelClass &kernelClass) {
  if (std::optional<std::string> wanted = checkShapes(request, arrays)) {
    std::string text = "expects " + *wanted + ", but got";
    const char *separator = " ";
    for (const Array &each : arrays.all) {
      text += separator + each.role.str() + " " + show(each.array.sizes);
      separator = ", ";
    }
    std::string ofPages =
        arrays.find("page_table")
            ? ", of pages [pages, heads, keys of a page, head dimension]"
        : request.ragged && arrays.find("used_keys")
            ? ", of a cache [sequences, heads, keys, head dimension]"
            : "";
    return text + "; shapes are " +
           (request.ragged ? "[rows, heads, head dimension], lse [heads, rows]"
                           : "[batch, heads, rows, head dimension]") +
           ofPages;
  }
  kernelClass.problem = problemOfShapes(request, arrays);
  kernelClass.scale = request.scale;
  kernelClass.hasPartial = arrays.find("partial_counts");
  kernelClass.hasFull = arrays.find("full_counts");
  kernelClass.clauses = request.clauses;
  for (const AttentionArrays::Capture &each : arrays.captures)
    kernelClass.captures.push_back({each.name, typeOf(each)});
  for (const AttentionArrays::Capture &each : arrays.gradients) {
    if (std::optional<std::string> wrong = checkGradient(arrays, each))
      return wrong;
    kernelClass.gradients.push_back({each.name, typeOfGradient(each)});
  }
  Problem &problem = kernelClass.problem;
  for (const Array &each : arrays.all) {
    int64_t bytes = elementBytesOf(problem, each.role);
    if (std::optional<std::string> wanted = checkStrides(each, bytes))
      return "expects " + *wanted;
    int64_t alignment = alignmentOfRows(each.array, bytes);
    if (alignment < bytes)
      return "expects " + each.role.str() +
             " at an address that is a multiple of its elements' " +
             std::to_string(bytes) + " bytes";
    if (!isStatistic(each.role) && !isOfBlocks(each.role) &&
        !isOfOffsets(each.role) && !isOfPlace(each.role))
      problem.alignment = std::min(problem.alignment, alignment);
  }
  return check(kernelClass);
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

Packing attn::packingOf(const KernelClass &kernelClass,
                        const AttentionArrays &arrays) {
  const Problem &problem = kernelClass.problem;
  // Regions and sinks tell heads and rows apart; scales do not.
  bool headsAreRows =
      !problem.clauses.any() && !problem.ragged &&
      llvm::all_of(arrays.all, [&](const Array &each) {
        const CallerArray &array = each.array;
        return problem.queries == 1 || !hasRowsOfQueries(each.role) ||
               array.strides[1] == array.sizes[2] * array.strides[2];
      });
  return packing(problem, headsAreRows);
}

AttentionArrays attn::packed(const AttentionArrays &arrays,
                             const Packing &packing) {
  AttentionArrays result = arrays;
  for (Array &each : result.all) {
    if (!hasRowsOfQueries(each.role))
      continue;
    CallerArray &array = each.array;
    array.sizes[1] /= packing.heads;
    array.sizes[2] *= packing.heads;
    array.strides[1] *= packing.heads;
  }
  return result;
}
