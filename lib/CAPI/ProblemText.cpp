//===- ProblemText.cpp - A problem as MLIR text ---------------------------===//

#include "attn/CAPI/ProblemText.h"

#include "attn/IR/Attn.h"
#include "attn/Schedule/RaggedQueries.h"
#include "attn/Schedule/Schedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace attn;
using llvm::SmallVector;

bool attn::isKept(llvm::StringRef role) {
  return role == "weights" || role == "block_rows";
}

bool attn::isOfBlocks(llvm::StringRef role) {
  llvm::ArrayRef<Extent> shape = shapeOf(role);
  return shape.size() > 2 &&
         (shape[2] == Extent::queryBlocks || shape[2] == Extent::keyBlocks);
}

bool attn::isOfPlace(llvm::StringRef role) {
  return role == "used_keys" || role == "page_table";
}

bool attn::isOfOffsets(llvm::StringRef role) {
  llvm::ArrayRef<Extent> shape = shapeOf(role);
  return shape.size() == 1 && shape[0] == Extent::offsets;
}

ArrayPlaces attn::arraysOf(Direction direction) {
  bool isForward = direction == Direction::forward;
  auto isOptional = [&](llvm::StringRef role) {
    return role == (isForward ? "lse" : "dlse") || role == "lse_low" ||
           isKept(role);
  };
  ArrayPlaces places;
  for (llvm::StringRef role :
       isForward ? ForwardOp::inputRoles() : BackwardOp::inputRoles())
    places.push_back({role, /*isOutput=*/false, isOptional(role)});
  for (llvm::StringRef role :
       isForward ? ForwardOp::outputRoles() : BackwardOp::outputRoles())
    places.push_back({role, /*isOutput=*/true, isOptional(role)});
  for (Role role : allRoles())
    if (llvm::StringRef name = factsOf(role).name;
        isOfBlocks(name) && factsOf(role).flow(direction) == Flow::in)
      places.push_back({name, /*isOutput=*/false, /*isOptional=*/true});
  for (Role role :
       {Role::offsetsQ, Role::offsetsK, Role::usedKeys, Role::pageTable})
    if (factsOf(role).flow(direction) == Flow::in)
      places.push_back(
          {factsOf(role).name, /*isOutput=*/false, /*isOptional=*/true});
  return places;
}

ArrayPlaces attn::arraysOf(const KernelClass &kernelClass) {
  const Problem &problem = kernelClass.problem;
  auto has = [&](llvm::StringRef role) {
    if (role == "lse_low")
      return problem.lseLow;
    if (isKept(role))
      return problem.keepsWeights;
    if (isOfPlace(role))
      return role == "used_keys" ? problem.place.usesSome()
                                 : problem.place.isPaged();
    if (role == "cu_k")
      return areKeysRagged(problem);
    if (isOfOffsets(role))
      return problem.ragged.has_value();
    if (isOfBlocks(role))
      return role.contains("partial") ? kernelClass.hasPartial
                                      : kernelClass.hasFull;
    return role == "lse" ? problem.lse : problem.dlse;
  };
  ArrayPlaces places = arraysOf(problem.direction);
  llvm::erase_if(places, [&](ArrayPlace place) {
    return place.isOptional && !has(place.role);
  });
  return places;
}

int64_t attn::elementBytesOf(const Problem &problem, llvm::StringRef role) {
  Role array = *findArray(std::string_view(role));
  if (array == Role::usedKeys)
    return problem.place.usedKeysBits / 8;
  if (isOfOffsets(role))
    return problem.ragged->isWide ? sizeof(int64_t) : sizeof(int32_t);
  return factsOf(array).element == Element::i32
             ? sizeof(int32_t)
             : bytesOf(elementOf(array, problem));
}

/// The type as MLIR spells it.
static std::string spelled(DataType type) {
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

/// Lists may be of one batch entry or head, or of all.
static std::string memref(const Problem &p, llvm::StringRef role) {
  if (isOfBlocks(role))
    return memref(SmallVector<int64_t>(shapeOf(role).size(), -1), "i32");
  if (isOfOffsets(role))
    return memref({-1}, p.ragged->isWide ? "i64" : "i32");
  Role array = *findArray(std::string_view(role));
  if (isOfPlace(role))
    return memref(SmallVector<int64_t>(shapeOf(role).size(), -1),
                  "i" + std::to_string(elementBytesOf(p, role) * 8));
  SmallVector<int64_t> shape;
  for (int64_t size : sizesOf(array, p))
    shape.push_back(size);
  return memref(shape, spelled(elementOf(array, p)));
}

/// ` blocks(partial %counts, %blocks, full %counts, %blocks, size 128 x 128 :
/// types)`, or with one of them; transposed ones have no size.
static std::string listsOf(const KernelClass &kernelClass,
                           llvm::StringRef clause,
                           llvm::ArrayRef<std::string> lists,
                           llvm::ArrayRef<std::string> types) {
  std::string text;
  if (kernelClass.hasPartial)
    text = "partial " + llvm::join(lists.take_front(2), ", ");
  if (kernelClass.hasPartial && kernelClass.hasFull)
    text += ", ";
  if (kernelClass.hasFull)
    text += "full " + llvm::join(lists.take_back(2), ", ");
  BlockSize size = kernelClass.problem.pattern->size();
  if (clause == "blocks")
    text += ", size " + std::to_string(size.queries) + " x " +
            std::to_string(size.keys);
  return " " + clause.str() + "(" + text + " : " + llvm::join(types, ", ") +
         ")";
}

/// ` ragged(%cu_q, %cu_k, longest 100, 200 : types)`, or of queries alone.
static std::string raggedOf(const Problem &p,
                            llvm::ArrayRef<std::string> offsets,
                            llvm::ArrayRef<std::string> types) {
  std::string longest = std::to_string(p.ragged->longest.queries);
  if (areKeysRagged(p))
    longest += ", " + std::to_string(p.ragged->longest.keys);
  return " ragged(" + llvm::join(offsets, ", ") + ", longest " + longest +
         " : " + llvm::join(types, ", ") + ")";
}

std::string attn::textOf(const KernelClass &kernelClass) {
  const Problem &p = kernelClass.problem;
  bool isForward = p.direction == Direction::forward;
  // Operands that the op lists, what it takes in clauses of their names, in
  // `weights` and in `blocks`, and destinations.
  SmallVector<std::string> parameters, operands, types, outs, outTypes, kept,
      keptTypes, lists, listTypes, offsets, offsetTypes;
  std::string clauses;
  for (const ArrayPlace &place : arraysOf(kernelClass)) {
    std::string value = "%" + place.role.str(), type = memref(p, place.role);
    parameters.push_back(llvm::formatv("{0}: {1}", value, type));
    if (place.isOutput) {
      outs.push_back(value);
      outTypes.push_back(type);
    } else if (isOfOffsets(place.role)) {
      offsets.push_back(value);
      offsetTypes.push_back(type);
    } else if (place.role == "used_keys") {
      clauses += llvm::formatv(" lengths(k {0} : {1})", value, type);
    } else if (place.role == "page_table") {
      clauses += llvm::formatv(" pages({0} : {1})", value, type);
    } else if (isOfBlocks(place.role)) {
      lists.push_back(value);
      listTypes.push_back(type);
    } else if (isKept(place.role)) {
      kept.push_back(value);
      keptTypes.push_back(type);
    } else if (place.role == "v" && p.valuesOfKeys) {
      clauses += " values(keys, first " + std::to_string(p.headDimV) + ")";
    } else if (place.isOptional) {
      clauses += llvm::formatv(" {0}({1} : {2})", place.role, value, type);
    } else {
      operands.push_back(value);
      types.push_back(type);
    }
  }

  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const KernelClass::Capture &capture : kernelClass.captures) {
    stream << "!" << capture.name << " = " << capture.type << "\n";
    parameters.push_back("%" + capture.name + ": !" + capture.name);
  }
  SmallVector<std::string> asked;
  for (const KernelClass::Capture &gradient : kernelClass.gradients) {
    std::string value = "%gradient_" + gradient.name;
    parameters.push_back(value + ": " + gradient.type);
    outs.push_back(value);
    outTypes.push_back(gradient.type);
    asked.push_back("%" + gradient.name);
  }
  stream << "func.func @attention(" << llvm::join(parameters, ", ") << ") {\n  "
         << (isForward ? ForwardOp::getOperationName()
                       : BackwardOp::getOperationName())
         << " " << llvm::join(operands, ", ") << clauses;
  if (!kept.empty())
    stream << " weights(" << llvm::join(kept, ", ") << " : "
           << llvm::join(keptTypes, ", ") << ")";
  if (!p.mask.isOpen())
    stream << " mask(" << str(p.mask) << ")";
  if (p.pattern) {
    // Behind lists come transposed ones, as many.
    size_t count = lists.size() / (isForward ? 1 : 2);
    auto first = [&](auto &all) {
      return llvm::ArrayRef(all).take_front(count);
    };
    auto last = [&](auto &all) { return llvm::ArrayRef(all).take_back(count); };
    stream << listsOf(kernelClass, "blocks", first(lists), first(listTypes));
    if (!isForward)
      stream << listsOf(kernelClass, "transposed", last(lists),
                        last(listTypes));
  }
  if (p.ragged)
    stream << raggedOf(p, offsets, offsetTypes);
  if (kernelClass.scale)
    stream << " scale(" << llvm::format("%.9e", *kernelClass.scale) << ")";
  if (p.dtype == DataType::f32)
    stream << " precision(" << name(p.precision) << ")";
  if (!kernelClass.clauses.empty())
    stream << "\n" << kernelClass.clauses << "\n ";
  if (!asked.empty())
    stream << " gradients(" << llvm::join(asked, ", ") << ")";
  stream << " outs(" << llvm::join(outs, ", ") << " : "
         << llvm::join(outTypes, ", ") << ") {alignment = " << p.alignment
         << " : i64" << (p.deterministic ? ", deterministic" : "")
         << "}\n      : " << llvm::join(types, ", ") << "\n  return\n}\n";
  return text;
}

size_t attn::lineOfClauses(const KernelClass &kernelClass) {
  // Behind the types of captures, the function and the op.
  constexpr size_t linesBefore = 2;
  return kernelClass.captures.size() + linesBefore + 1;
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
