//===- MmaSyncFrame.cpp - What kernels on mma.sync share ------------------===//

#include "MmaSync/MmaSyncFrame.h"

#include "Softmax/LogSumExp.h"
#include "Walk/TileOrder.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

MmaSyncFrame::MmaSyncFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), request(request), problem(request.problem),
      element(elementType(b.getContext(), problem.dtype)),
      query(request.tiles.get("query")), key(request.tiles.get("key")),
      stages(request.tiles.get("stages", 1)), warps(request.tiles.get("warps")),
      products(b, request.problem), scoring(arguments, request) {}

KernelOp MmaSyncFrame::declare() {
  declareArguments();
  return arguments.createKernel(b, request, warps);
}

void MmaSyncFrame::declareArguments() {
  for (StringRef operand : {"q", "k", "v", "o"})
    arguments.operand(operand, element);
  if (problem.lse)
    declareLse(arguments, b, problem);
  if (problem.pattern)
    BlockLists::declare(arguments, b);
  Scoring::declare(arguments, b, request);
  declareProblem(arguments, b, problem.mask);
}

void MmaSyncFrame::locateRows() {
  queries = arguments.get(b, "queries");
  keys = arguments.get(b, "keys");
  if (problem.mask.isOpen()) {
    BlockOfHead at =
        BlockOfHead::of(b, b.programId(0), b.ceilDiv(queries, query),
                        arguments.get(b, "heads"));
    firstRow = at.number * query;
    head = at.head;
    batch = at.batch;
    return;
  }
  TileOrder order(b, arguments, problem, query,
                  request.sms * request.minBlocksPerSm, request.l2Bytes);
  Tile tile = order.at(b, b.programId(0));
  firstRow = tile.row;
  head = tile.head;
  batch = tile.batch;
}

void MmaSyncFrame::locateHead() {
  keyHead = head / arguments.get(b, "group");
  KeyBand band(b, arguments, problem.mask);
  if (problem.pattern) {
    BlockLists lists(b, arguments, problem.pattern->size(), key);
    blocks.emplace(b, band, lists, lists.counted({firstRow, head, batch}), key);
    return;
  }
  blocks.emplace(b, band, firstRow, b.min(firstRow + query, queries) - 1, key);
}

Value MmaSyncFrame::view(StringRef operand, int64_t columns, int64_t align,
                         Scalar head, Scalar rows, Scalar column) {
  auto type = ViewType::get(b.getContext(), columns, element, align);
  return arguments.view(b, operand, type, batch, head, rows, column);
}
