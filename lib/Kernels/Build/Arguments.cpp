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

void Arguments::pointer(StringRef role, Type element) {
  scalar(role, PtrType::get(element.getContext(), element));
}

void Arguments::scalar(StringRef role, Type type) {
  roles.push_back(role.str());
  types.push_back(type);
}

void Arguments::perBlock(StringRef role, Type element, int64_t count,
                         int64_t beyondKeys) {
  counts.emplace_back(roles.size(), kPerBlockAttr, count);
  if (beyondKeys > 0)
    counts.emplace_back(roles.size(), kBeyondKeysAttr, beyondKeys);
  pointer(role, element);
}

void Arguments::perLaunch(StringRef role, Type element, int64_t count) {
  counts.emplace_back(roles.size(), kPerLaunchAttr, count);
  pointer(role, element);
}

void Arguments::perStrip(StringRef role, Type element, int64_t count) {
  counts.emplace_back(roles.size(), kPerStripAttr, count);
  pointer(role, element);
}

void Arguments::operand(StringRef name, Type element) {
  Type i64 = IntegerType::get(element.getContext(), 64);
  pointer(name, element);
  scalar(offsetRole(name), i64);
  for (StringRef axis : {"batch", "head", "row"})
    scalar(strideRole(name, axis), i64);
}

void Arguments::map(TileBuilder &b, StringRef operand, int64_t boxRows,
                    int64_t columns, Type element) {
  scalar(mapRole(operand),
         TensorMapType::get(b.getContext(), boxRows, columns, element));
}

KernelOp Arguments::createKernel(TileBuilder &builder,
                                 const KernelRequest &request, int64_t warps) {
  kernel = KernelOp::create(builder, request.name,
                            builder.getFunctionType(types, {}), warps,
                            request.minBlocksPerSm);
  if (request.launches.shapes.size() > 1)
    kernel->setAttr(kLaunchAttr, builder.getI64IntegerAttr(request.launch));
  Block *entry = builder.createBlock(
      &kernel.getBody(), {}, types,
      SmallVector<Location>(types.size(), builder.getLoc()));
  for (auto [i, role] : llvm::enumerate(roles))
    kernel.setArgAttr(i, kRoleAttr, builder.getStringAttr(role));
  for (auto [i, attribute, count] : counts)
    kernel.setArgAttr(i, attribute, builder.getI64IntegerAttr(count));
  builder.setInsertionPointToStart(entry);
  return kernel;
}

Scalar Arguments::get(TileBuilder &builder, StringRef role) const {
  auto *found = llvm::find(roles, role);
  assert(found != roles.end() && "role was not declared");
  KernelOp op = kernel;
  return builder.wrap(op.getBody().getArgument(found - roles.begin()));
}

Scalar Arguments::opaqueZero(TileBuilder &b) const {
  Scalar none = b.i32(0);
  return b.select(get(b, "heads") < none, b.i32(1), none);
}

Scalar Arguments::offset(TileBuilder &b, StringRef operand, Scalar batch,
                         Scalar head, Scalar row) const {
  Scalar offset = get(b, offsetRole(operand));
  std::pair<StringRef, Scalar> places[] = {
      {"batch", batch}, {"head", head}, {"row", row}};
  for (auto [axis, place] : places)
    offset = offset + b.wide(place) * get(b, strideRole(operand, axis));
  return offset;
}

Value Arguments::view(TileBuilder &b, StringRef operand, ViewType type,
                      Scalar batch, Scalar head, Scalar rows,
                      Scalar column) const {
  Scalar offset = get(b, offsetRole(operand)) +
                  b.wide(batch) * get(b, strideRole(operand, "batch")) +
                  b.wide(head) * get(b, strideRole(operand, "head"));
  if (Value(column))
    offset = offset + b.wide(column);
  return ViewOp::create(b, type, get(b, operand), offset, rows,
                        get(b, strideRole(operand, "row")));
}

Value Arguments::vector(TileBuilder &b, StringRef operand, Scalar batch,
                        Scalar head, Scalar rows) const {
  auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                            /*align=*/4);
  return view(b, operand, type, batch, head, rows);
}
