//===- Arguments.cpp - What a kernel is passed ----------------------------===//

#include "Build/TileBuilder.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Type attn::elementType(MLIRContext *context, DataType type) {
  switch (type) {
  case DataType::bf16:
    return BFloat16Type::get(context);
  case DataType::f16:
    return Float16Type::get(context);
  case DataType::f32:
    return Float32Type::get(context);
  case DataType::f8e4m3:
    return Float8E4M3FNType::get(context);
  }
  llvm_unreachable("closed enum");
}

NamedRole::NamedRole(StringRef text) : ArgumentRole(Role::q) {
  std::optional<ArgumentRole> role = parseRole(std::string_view(text));
  assert(role && "the table has every role that a builder names");
  ArgumentRole::operator=(*role);
}

std::string attn::mapRole(StringRef array) { return (array + "_map").str(); }

void Arguments::pointer(const NamedRole &role, Type element) {
  scalar(role, PtrType::get(element.getContext(), element));
}

void Arguments::scalar(const NamedRole &role, Type type) {
  roles.push_back(role);
  types.push_back(type);
}

void Arguments::perBlock(const NamedRole &role, Type element, int64_t count,
                         int64_t beyondKeys) {
  counts.emplace_back(roles.size(), kPerBlockAttr, count);
  if (beyondKeys > 0)
    counts.emplace_back(roles.size(), kBeyondKeysAttr, beyondKeys);
  pointer(role, element);
}

void Arguments::perLaunch(const NamedRole &role, Type element, int64_t count) {
  counts.emplace_back(roles.size(), kPerLaunchAttr, count);
  pointer(role, element);
}

void Arguments::perStrip(const NamedRole &role, Type element, int64_t count) {
  counts.emplace_back(roles.size(), kPerStripAttr, count);
  pointer(role, element);
}

void Arguments::perRow(const NamedRole &role, Type element, int64_t count) {
  counts.emplace_back(roles.size(), kPerRowAttr, count);
  pointer(role, element);
}

void Arguments::operand(const NamedRole &array, Type element) {
  Type i64 = IntegerType::get(element.getContext(), 64);
  pointer(array, element);
  scalar(array.at(Facet::offset), i64);
  for (Facet stride : kStrides)
    scalar(array.at(stride), i64);
}

void Arguments::map(TileBuilder &b, const NamedRole &array, int64_t boxRows,
                    int64_t columns, Type element, Facet facet) {
  scalar(array.at(facet),
         TensorMapType::get(b.getContext(), boxRows, columns, element));
}

KernelOp Arguments::createKernel(TileBuilder &builder,
                                 const KernelRequest &request, int64_t warps) {
  // Launches for strips of queries, beside those with tiles, walk nothing, nor
  // those that rewrite inputs before rounds.
  bool isBeforeRounds = request.launches.rounds && !request.shape().isInRounds;
  assert((!request.problem.pattern || isBeforeRounds ||
          request.problem.direction == Direction::backward ||
          llvm::is_contained(roles, ArgumentRole(Role::partialCounts))) &&
         "this kernel does not walk lists");
  kernel = KernelOp::create(builder, request.name,
                            builder.getFunctionType(types, {}), warps,
                            request.minBlocksPerSm);
  if (request.launches.shapes.size() > 1)
    kernel->setAttr(kLaunchAttr, builder.getI64IntegerAttr(request.launch));
  Block *entry = builder.createBlock(
      &kernel.getBody(), {}, types,
      SmallVector<Location>(types.size(), builder.getLoc()));
  for (auto [i, role] : llvm::enumerate(roles))
    kernel.setArgAttr(i, kRoleAttr, builder.getStringAttr(str(role)));
  for (auto [i, attribute, count] : counts)
    kernel.setArgAttr(i, attribute, builder.getI64IntegerAttr(count));
  builder.setInsertionPointToStart(entry);
  return kernel;
}

Scalar Arguments::get(TileBuilder &builder, const NamedRole &role) const {
  const ArgumentRole *found = llvm::find(roles, role);
  assert(found != roles.end() && "role was not declared");
  KernelOp op = kernel;
  return builder.wrap(op.getBody().getArgument(found - roles.begin()));
}

Scalar Arguments::opaqueZero(TileBuilder &b) const {
  Scalar none = b.i32(0);
  return b.select(get(b, Role::heads) < none, b.i32(1), none);
}

Scalar Arguments::offset(TileBuilder &b, const NamedRole &array, Scalar batch,
                         Scalar head, Scalar row) const {
  Scalar offset = get(b, array.at(Facet::offset));
  std::pair<Facet, Scalar> places[] = {{Facet::strideBatch, batch},
                                       {Facet::strideHead, head},
                                       {Facet::strideRow, row}};
  for (auto [stride, place] : places)
    offset = offset + b.wide(place) * get(b, array.at(stride));
  return offset;
}

Value Arguments::view(TileBuilder &b, const NamedRole &array, ViewType type,
                      Scalar batch, Scalar head, Scalar rows, Scalar column,
                      Scalar first) const {
  Scalar offset = get(b, array.at(Facet::offset)) +
                  b.wide(batch) * get(b, array.at(Facet::strideBatch)) +
                  b.wide(head) * get(b, array.at(Facet::strideHead));
  if (Value(column))
    offset = offset + b.wide(column);
  if (Value(first))
    offset = offset + b.wide(first) * get(b, array.at(Facet::strideRow));
  return ViewOp::create(b, type, get(b, array), offset, rows,
                        get(b, array.at(Facet::strideRow)));
}

Value Arguments::vector(TileBuilder &b, const NamedRole &array, Scalar batch,
                        Scalar head, Scalar rows, Scalar first) const {
  auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                            /*align=*/4);
  return view(b, array, type, batch, head, rows, Scalar(), first);
}
