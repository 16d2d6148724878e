//===- MmaSyncFrame.cpp - What kernels on mma.sync share ------------------===//

#include "MmaSync/MmaSyncFrame.h"

#include "Softmax/LogSumExp.h"
#include "Walk/BandRuns.h"
#include "Walk/RowLocator.h"
#include "Walk/TileOrder.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

MmaSyncFrame::MmaSyncFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), request(request), problem(request.problem),
      element(elementType(b.getContext(), problem.dtype)),
      query(request.tiles.get("query")), key(request.tiles.get("key")),
      stages(request.tiles.get("stages", 1)), warps(request.tiles.get("warps")),
      products(b, request.problem), parts(request.tiles),
      scoring(arguments, request) {}

KernelOp MmaSyncFrame::declare() {
  declareArguments();
  return arguments.createKernel(b, request, warps);
}

void MmaSyncFrame::declareArguments() {
  for (StringRef operand : {"q", "k", "v"})
    arguments.operand(operand, element);
  if (parts.areSeveral())
    parts.declare(arguments, b, problem);
  else
    arguments.operand("o", element);
  if (problem.lse && !parts.areSeveral())
    declareLse(arguments, b, problem);
  if (problem.pattern)
    BlockLists::declare(arguments, b);
  if (problem.place.any())
    RowLocator::declare(arguments, b, problem.place);
  if (problem.ragged)
    RaggedRows::declare(arguments, b, problem);
  Scoring::declare(arguments, b, request);
  declareProblem(arguments, b, problem.mask);
}

/// The blocks of a tile's parts follow each other.
Scalar MmaSyncFrame::numberOfTile() {
  Scalar block = b.programId(0);
  if (!parts.areSeveral())
    return block;
  Scalar tile = block / parts.count;
  part = block - tile * parts.count;
  return tile;
}

void MmaSyncFrame::locateRows() {
  queries = arguments.get(b, "queries");
  keys = arguments.get(b, "keys");
  if (problem.mask.isOpen() && !problem.ragged) {
    BlockOfHead at =
        BlockOfHead::of(b, numberOfTile(), b.ceilDiv(queries, query),
                        arguments.get(b, "heads"));
    firstRow = at.number * query;
    head = at.head;
    batch = at.batch;
    return;
  }
  TileOrder order(b, arguments, problem, query,
                  request.sms * request.minBlocksPerSm, request.l2Bytes);
  tile = order.at(b, numberOfTile());
  firstRow = tile.row;
  head = tile.head;
  batch = tile.batch;
  if (!problem.ragged)
    return;
  queries = tile.queries;
  keys = tile.keys;
}

void MmaSyncFrame::locateHead() {
  keyHead = head / arguments.get(b, "group");
  KeyBand whole(b, arguments, problem.mask);
  if (problem.place.any()) {
    if (!problem.ragged) // of a sequence they come with its tile
      keys = RowLocator::usedKeys(b, arguments, batch);
    usedKeys = keys;
    KeyBand band = problem.ragged ? whole.ofSequence(b, queries, keys)
                                  : whole.ofUsed(usedKeys);
    blocks.emplace(b, band, firstRow, b.min(firstRow + query, queries) - 1,
                   key);
    return;
  }
  KeyBand band = problem.ragged ? whole.ofSequence(b, queries, keys) : whole;
  if (problem.isListed()) {
    auto lists = tileLists(b, arguments, problem, query, key);
    blocks.emplace(b, band, *lists, lists->counted({firstRow, head, batch}),
                   key);
    return;
  }
  blocks.emplace(b, band, firstRow, b.min(firstRow + query, queries) - 1, key);
}

Value MmaSyncFrame::view(StringRef operand, int64_t columns, int64_t align,
                         Scalar head, Scalar rows, Scalar column) {
  auto type = ViewType::get(b.getContext(), columns, element, align);
  bool isOfKeys = operand == "k" || operand == "v";
  return arguments.view(b, operand, type, batch, head, rows, column,
                        isOfKeys ? tile.firstKey : tile.firstQuery);
}
