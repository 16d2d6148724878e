//===- ForwardArrays.cpp - Checking q, k, v, o and lse against each other -===//

#include "ForwardArrays.h"

#include "attn/Schedule/Schedule.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace attn;

namespace {
struct Named {
  const char *name;
  const CallerArray *array;
  bool isOutput;
};
} // namespace

static llvm::SmallVector<Named> named(const ForwardArrays &arrays) {
  llvm::SmallVector<Named> result = {{"q", &arrays.q, false},
                                     {"k", &arrays.k, false},
                                     {"v", &arrays.v, false},
                                     {"o", &arrays.o, true}};
  if (arrays.lse)
    result.push_back({"lse", &*arrays.lse, true});
  return result;
}

llvm::SmallVector<CallerArray, 5> ForwardArrays::list() const {
  llvm::SmallVector<CallerArray, 5> result;
  for (const Named &each : named(*this))
    result.push_back(*each.array);
  return result;
}

/// Why the shapes do not belong together.
static std::optional<std::string> checkShapes(const ForwardArrays &arrays) {
  for (const Named &each : named(arrays)) {
    size_t rank = arrays.lse && each.array == &*arrays.lse ? 3 : 4;
    if (each.array->sizes.size() != rank)
      return std::string(each.name) + " of rank " + std::to_string(rank);
    for (int64_t size : each.array->sizes)
      if (size < 0)
        return std::string(each.name) + " without negative sizes";
  }
  const auto &q = arrays.q.sizes, &k = arrays.k.sizes, &v = arrays.v.sizes,
             &o = arrays.o.sizes;
  if (q[0] != k[0] || q[0] != v[0])
    return "one batch size";
  if (k[1] != v[1])
    return "k and v with the same number of heads";
  if (k[1] < 1 || q[1] < 1 || q[1] % k[1] != 0)
    return "a head count of q that is a multiple of that of k and v";
  if (k[2] != v[2])
    return "k and v with the same number of rows";
  if (q[3] != k[3])
    return "q and k with the same head dimension";
  if (o[0] != q[0] || o[1] != q[1] || o[2] != q[2] || o[3] != v[3])
    return "o of shape [batch, heads, queries, head dimension of v]";
  if (arrays.lse &&
      !llvm::equal(arrays.lse->sizes, llvm::ArrayRef(q).take_front(3)))
    return "lse of shape [batch, heads, queries]";
  return std::nullopt;
}

static std::optional<std::string> checkStrides(const Named &each) {
  const CallerArray &array = *each.array;
  auto wrong = [&](const std::string &what) {
    return std::string(each.name) + " with " + what + ", but got strides " +
           show(each.array->strides) + " for sizes " + show(each.array->sizes);
  };
  if (array.sizes.back() > 1 && array.strides.back() != 1)
    return wrong("an innermost stride of 1");
  for (auto [size, stride] : llvm::zip_equal(array.sizes, array.strides)) {
    if (size > 1 && stride < 0)
      return wrong("strides of 0 or more");
    if (size > 1 && stride == 0 && each.isOutput)
      return wrong("rows that do not lie on each other");
  }
  return std::nullopt;
}

/// Bytes, at most kMaxAlignment, that divide the addresses of all rows.
static int64_t rowAlignment(const CallerArray &array, int64_t elementBytes) {
  uint64_t divisor = std::gcd<uint64_t>(kMaxAlignment, array.address);
  for (size_t dim = 0; dim + 1 < array.sizes.size(); ++dim)
    if (array.sizes[dim] > 1)
      divisor = std::gcd<uint64_t>(divisor, array.strides[dim] * elementBytes);
  return divisor;
}

std::optional<std::string> attn::classify(const ForwardRequest &request,
                                          const ForwardArrays &arrays,
                                          KernelClass &kernelClass) {
  if (std::optional<std::string> wanted = checkShapes(arrays)) {
    std::string text = "expects " + *wanted + ", but got";
    const char *separator = " ";
    for (const Named &each : named(arrays)) {
      text +=
          separator + std::string(each.name) + " " + show(each.array->sizes);
      separator = ", ";
    }
    return text + "; shapes are [batch, heads, rows, head dimension]";
  }
  Problem &problem = kernelClass.problem;
  problem.dtype = request.dtype;
  problem.precision = request.precision;
  problem.alignment = kMaxAlignment;
  for (const Named &each : named(arrays)) {
    if (std::optional<std::string> wanted = checkStrides(each))
      return "expects " + *wanted;
    bool isLse = each.array->sizes.size() == 3;
    int64_t bytes =
        isLse ? sizeof(float)
              : bytesOf(each.isOutput ? resultType(problem) : problem.dtype);
    int64_t alignment = rowAlignment(*each.array, bytes);
    if (alignment < bytes)
      return "expects " + std::string(each.name) +
             " at an address that is a multiple of its elements' " +
             std::to_string(bytes) + " bytes";
    if (!isLse)
      problem.alignment = std::min(problem.alignment, alignment);
  }
  problem.mask = request.mask;
  problem.batch = arrays.q.sizes[0];
  problem.heads = arrays.q.sizes[1];
  problem.kvHeads = arrays.k.sizes[1];
  problem.queries = arrays.q.sizes[2];
  problem.keys = arrays.k.sizes[2];
  problem.headDim = arrays.q.sizes[3];
  problem.headDimV = arrays.v.sizes[3];
  problem.lse = arrays.lse.has_value();
  kernelClass.scale = request.scale;
  return check(kernelClass);
}
