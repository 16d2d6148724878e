//===- FlashFrame.cpp - What the roles of a flash kernel share ------------===//

#include "FlashFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static constexpr int64_t kStep = 16; ///< columns of one wgmma step

FlashFrame::FlashFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), problem(request.problem), request(request),
      element(elementType(b.getContext(), problem.dtype)),
      query(request.tiles.get("query")), key(request.tiles.get("key")),
      stages(request.tiles.get("stages")),
      queryStages(request.tiles.get("query_stages")),
      staging(request.tiles.get("staging")),
      overlap(request.tiles.get("overlap") != 0),
      pingPong(request.tiles.get("ping_pong") != 0),
      persistent(request.tiles.get("persistent") != 0),
      groups(query / kGroupRows), dim(llvm::alignTo(problem.headDim, kStep)),
      dimV(llvm::alignTo(problem.headDimV, kStep)) {}

KernelOp FlashFrame::declare() {
  Type i32 = b.getI32Type();
  mapArgument("q", query, problem.headDim);
  mapArgument("k", key, problem.headDim);
  mapArgument("v", key, problem.headDimV);
  mapArgument("o", kGroupRows, problem.headDimV);
  if (problem.lse)
    arguments.operand("lse", b.getF32Type());
  if (persistent)
    arguments.scalar("counter", PtrType::get(b.getContext(), i32));
  for (StringRef size : {"queries", "keys", "heads", "batch", "group"})
    arguments.scalar(size, i32);
  declareBand(arguments, b.getContext(), problem.mask.kind);
  arguments.scalar("scale", b.getF32Type());
  KernelOp kernel =
      arguments.createKernel(b, request, kWarpsPerGroup * (groups + 1));
  reserve();
  queries = arguments.get(b, "queries");
  band.emplace(b, arguments, problem.mask.kind);
  blocks.emplace(*band, queries, query, key);
  return kernel;
}

void FlashFrame::mapArgument(StringRef operand, int64_t rows, int64_t columns) {
  arguments.scalar(mapRole(operand),
                   TensorMapType::get(b.getContext(), rows, columns, element));
}

Value FlashFrame::map(StringRef operand) const {
  return arguments.get(b, mapRole(operand));
}

void FlashFrame::reserve() {
  auto alloc = [&](StringRef name, int64_t stages, int64_t rows,
                   int64_t columns) -> Value {
    auto type = SmemType::get(b.getContext(), stages, rows, columns, element,
                              SmemLayout::sw128);
    return AllocOp::create(b, type, name);
  };
  bufferQ = alloc("query", queryStages, query, dim);
  bufferK = alloc("key", stages, key, dim);
  bufferV = alloc("value", stages, key, dimV);
  bufferO = alloc("staging", 1, query, staging);
  int64_t readers = kWarpsPerGroup * groups;
  ringQ = Ring(b, "query", queryStages, readers);
  ringK = Ring(b, "key", stages, readers);
  ringV = Ring(b, "value", stages, readers);
  queue = QueueOp::create(b, QueueType::get(b.getContext(), kMessages, 3),
                          "tile", uint32_t(readers));
}
