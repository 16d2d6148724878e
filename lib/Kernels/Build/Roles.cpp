//===- Roles.cpp - Do a kernel's arguments follow the table? --------------===//

#include "Build/TileBuilder.h"

#include "attn/Schedule/Tensor.h"
#include "attn/Tile/Traffic.h"

using namespace mlir;
using namespace attn;

FailureOr<ArgumentRole> attn::roleOf(tile::KernelOp kernel, unsigned argument) {
  auto text = kernel.getArgAttrOfType<StringAttr>(argument, kRoleAttr);
  if (text)
    if (std::optional<ArgumentRole> role =
            parseRole(std::string_view(text.getValue())))
      return *role;
  InFlightDiagnostic error = kernel.emitOpError("expects argument ")
                             << argument << " to have a role, but got ";
  if (text)
    error << text;
  else
    error << "none";
  error.attachNote() << "roles: " << roleNames();
  return error;
}

FailureOr<SmallVector<ArgumentRole>> attn::rolesOf(tile::KernelOp kernel) {
  SmallVector<ArgumentRole> roles;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    FailureOr<ArgumentRole> role = roleOf(kernel, i);
    if (failed(role))
      return failure();
    roles.push_back(*role);
  }
  return roles;
}

//===----------------------------------------------------------------------===//
// What a role asks of an argument
//===----------------------------------------------------------------------===//

/// The elements that an array or a number of a problem may have.
static SmallVector<Type> elementsOf(MLIRContext *context, Element element,
                                    const Problem &problem) {
  auto type = [&](DataType type) { return elementType(context, type); };
  switch (element) {
  case Element::input:
    return {type(problem.dtype)};
  case Element::keys:
    return {type(kvTypeOf(problem))};
  case Element::result:
    return {type(resultType(problem))};
  case Element::scores:
    return {type(problem.dtype), type(DataType::f16)};
  case Element::any:
    return {type(DataType::f32), type(DataType::bf16), type(DataType::f16)};
  case Element::read: {
    SmallVector<Type> types = elementsOf(context, Element::any, problem);
    for (unsigned width : {1, 8, 16, 32, 64})
      types.push_back(IntegerType::get(context, width));
    return types;
  }
  case Element::whole:
    return {IntegerType::get(context, 32), IntegerType::get(context, 64)};
  case Element::i32:
    return {IntegerType::get(context, 32)};
  case Element::f16:
    return {type(DataType::f16)};
  case Element::f32:
    return {type(DataType::f32)};
  }
  llvm_unreachable("closed enum");
}

/// What the type of an argument is of, or null if its form is another than that
/// of the role.
static Type elementOfArgument(const ArgumentRole &role, Type type) {
  switch (role.facet) {
  case Facet::itself:
    if (role.facts().isNumber())
      return type;
    if (auto pointer = dyn_cast<tile::PtrType>(type))
      return pointer.getElementType();
    return {};
  case Facet::map:
  case Facet::octetMap:
  case Facet::rowMap:
  case Facet::emptyMap:
    if (auto map = dyn_cast<tile::TensorMapType>(type))
      return map.getElementType();
    return {};
  case Facet::offset:
  case Facet::strideBatch:
  case Facet::strideHead:
  case Facet::strideRow:
  case Facet::stride0:
  case Facet::stride1:
  case Facet::stride2:
  case Facet::stride3:
  case Facet::size0:
  case Facet::size1:
  case Facet::size2:
  case Facet::size3:
    return type;
  }
  llvm_unreachable("closed enum");
}

static bool hasTypeOf(const ArgumentRole &role, Type type,
                      const Problem &problem) {
  bool isItsOwn = role.facet == Facet::itself || isMap(role.facet);
  Type element = elementOfArgument(role, type);
  if (!isItsOwn)
    return element.isInteger(64);
  return llvm::is_contained(
      elementsOf(type.getContext(), role.facts().element, problem), element);
}

/// The attributes that count the elements of an argument with such memory, of
/// which it has one; none if it is not counted.
static SmallVector<StringRef> countsOf(Memory memory) {
  switch (memory) {
  case Memory::zeros:
    return {kPerBlockAttr, kPerLaunchAttr};
  case Memory::block:
    return {kPerBlockAttr};
  case Memory::strip:
    return {kPerStripAttr};
  case Memory::row:
    return {kPerRowAttr};
  case Memory::array:
  case Memory::captured:
  case Memory::round:
  case Memory::parts:
  case Memory::exponents:
  case Memory::none:
    return {};
  }
  llvm_unreachable("closed enum");
}

/// A word that is 0 needs no count.
static bool isCountedAsItShould(tile::KernelOp kernel, unsigned argument,
                                Memory memory) {
  auto has = [&](StringRef attribute) {
    return bool(kernel.getArgAttr(argument, attribute));
  };
  SmallVector<StringRef> wanted = countsOf(memory);
  for (StringRef each :
       {kPerBlockAttr, kPerLaunchAttr, kPerStripAttr, kPerRowAttr})
    if (has(each) && !llvm::is_contained(wanted, each))
      return false;
  return llvm::count_if(wanted, has) == 1 || wanted.empty() ||
         (memory == Memory::zeros && llvm::none_of(wanted, has));
}

LogicalResult attn::checkRoles(tile::KernelOp kernel, const Problem &problem) {
  FailureOr<SmallVector<ArgumentRole>> roles = rolesOf(kernel);
  if (failed(roles))
    return failure();
  std::map<ArgumentRole, unsigned> seen;
  for (unsigned i = 0; i < roles->size(); ++i) {
    const ArgumentRole &role = (*roles)[i];
    auto error = [&] {
      return kernel.emitOpError("expects argument ")
             << i << ", " << str(role) << ", to ";
    };
    Type type = kernel.getArgumentTypes()[i];
    if (auto [first, isNew] = seen.try_emplace(role, i); !isNew)
      return error() << "have a role of its own, but argument " << first->second
                     << " has it too";
    if (role.facts().flow(problem.direction) == Flow::none)
      return error() << "play a role in a kernel of the other direction, but "
                        "got one that is "
                     << StringRef(name(problem.direction));
    if (!hasTypeOf(role, type, problem))
      return error() << "have the type that its role has, but got " << type;
    if (!isCountedAsItShould(kernel, i, role.facts().memory))
      return error() << "have one count of elements if a launch makes its "
                        "memory by a count, and none if not";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Whether a kernel is built for the columns of an array.
static bool hasKnownColumns(Role array) {
  Extent last = factsOf(array).shape.back();
  return last == Extent::headDim || last == Extent::headDimV;
}

int64_t attn::roleValue(const ArgumentRole &role, const Problem &problem,
                        const Round &round) {
  const RoleFacts &facts = role.facts();
  if (facts.isNumber())
    return facts.value(problem, round);
  if (!isMap(role.facet))
    return 0;
  if (facts.memory == Memory::round)
    return round.rows;
  Role array = facts.memory == Memory::parts ? facts.of : role.role;
  std::vector<int64_t> sizes = sizesOf(array, problem);
  int64_t rows = sizes[2], columns = sizes[3];
  return hasKnownColumns(array) ? rows : tile::extentsOfMap(rows, columns);
}
