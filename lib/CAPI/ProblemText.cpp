//===- ProblemText.cpp - A problem as MLIR text ---------------------------===//

#include "attn/CAPI/ProblemText.h"

#include "attn/Schedule/Schedule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace attn;

/// The type as MLIR spells it.
static std::string elementOf(DataType type) {
  return type == DataType::f8e4m3 ? "f8E4M3FN" : std::string(name(type));
}

static std::string memref(llvm::ArrayRef<int64_t> shape,
                          const std::string &element) {
  std::string text = "memref<";
  llvm::raw_string_ostream stream(text);
  for (int64_t size : shape)
    size < 0 ? stream << "?x" : stream << size << "x";
  stream << element << ", strided<[";
  for (size_t dim = 1; dim < shape.size(); ++dim)
    stream << "?, ";
  stream << "1]>>";
  return text;
}

std::string attn::textOf(const KernelClass &kernelClass) {
  const Problem &p = kernelClass.problem;
  std::string element = elementOf(p.dtype);
  std::string result = elementOf(resultType(p));
  std::string q = memref({p.batch, p.heads, p.queries, p.headDim}, element);
  std::string k = memref({p.batch, p.kvHeads, p.keys, p.headDim}, element);
  std::string v = memref({p.batch, p.kvHeads, p.keys, p.headDimV}, element);
  std::string outs = "%o";
  std::string types = memref({p.batch, p.heads, p.queries, p.headDimV}, result);
  std::string parameters =
      "%q: " + q + ", %k: " + k + ", %v: " + v + ", %o: " + types;
  if (p.lse) {
    std::string lse = memref({p.batch, p.heads, p.queries}, "f32");
    outs += ", %lse";
    types += ", " + lse;
    parameters += ", %lse: " + lse;
  }

  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "func.func @attention(" << parameters << ") {\n"
         << "  attn.forward %q, %k, %v";
  if (p.mask.kind != MaskKind::none)
    stream << " mask(" << str(p.mask) << ")";
  if (kernelClass.scale)
    stream << " scale(" << llvm::format("%.9e", *kernelClass.scale) << ")";
  if (p.dtype == DataType::f32)
    stream << " precision(" << name(p.precision) << ")";
  stream << " outs(" << outs << " : " << types
         << ") {alignment = " << p.alignment << " : i64}\n      : " << q << ", "
         << k << ", " << v << "\n  return\n}\n";
  return text;
}

std::optional<std::string> attn::check(const KernelClass &kernelClass) {
  Problem sized = kernelClass.problem;
  for (int64_t *size : {&sized.batch, &sized.queries, &sized.keys}) {
    if (*size < -1)
      return "expects sizes of 0 or more, or -1 for any, but got " +
             std::to_string(*size);
    *size = std::max<int64_t>(*size, 1);
  }
  if (std::optional<std::string> wrong = check(sized))
    return wrong;
  if (kernelClass.scale && !std::isfinite(float(*kernelClass.scale)))
    return "expects a finite scale in f32, but got " +
           std::to_string(*kernelClass.scale);
  return std::nullopt;
}
