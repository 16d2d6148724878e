//===- FlashFrame.cpp - What the roles of a flash kernel share ------------===//

#include "Flash/FlashFrame.h"

#include "Softmax/LogSumExp.h"

#include "attn/Schedule/SharedTiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Bytes that a wgmma step contracts, and columns of a product in all types.
static constexpr int64_t kStepBytes = 32, kColumns = 16;

FlashFrame::FlashFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), problem(request.problem), request(request),
      element(elementType(b.getContext(), problem.dtype)),
      kvElement(elementType(b.getContext(), kvTypeOf(problem))),
      transposes(needsTranspose(problem)), splits(needsSplit(problem)),
      widens(needsWidening(problem)), helper(splits       ? Helper::splitter
                                             : widens     ? Helper::widener
                                             : transposes ? Helper::transposer
                                                          : Helper::none),
      parts(request.tiles), query(request.tiles.get("query")),
      key(request.tiles.get("key")), stages(request.tiles.get("stages")),
      queryStages(request.tiles.get("query_stages", 1)),
      staging(request.tiles.get("staging")),
      heads(headsOfTile(request.tiles), query),
      overlap(request.tiles.get("overlap") != 0),
      pingPong(request.tiles.get("ping_pong") != 0),
      persistent(request.tiles.get("persistent") != 0),
      groups(query / kGroupRows), pairs(request.tiles.get("pairs", 1)),
      budget(registerBudget(groups, helper, /*merges=*/false, pairs)),
      helperWarps(budget.helperWarps()),
      dim(llvm::alignTo(problem.headDim,
                        splits ? kColumns
                               : 8 * kStepBytes /
                                     element.getIntOrFloatBitWidth())),
      dimV(llvm::alignTo(problem.headDimV, kColumns)),
      landing(splits ? landingOf(problem, key) : Landing()),
      scoring(arguments, request) {
  if (heads.areSeveral() && !parts.areSeveral())
    staging = kPanelColumns;
}

KernelOp FlashFrame::declare() {
  int64_t queryRows = splits               ? landing.rows
                      : heads.areSeveral() ? heads.boxRows(query)
                                           : query;
  int64_t keyRows = splits ? landing.rows : key;
  arguments.map(b, "q", queryRows, problem.headDim, element);
  if (problem.place.any()) {
    locator.emplace(b, arguments, problem.place, key);
    locator->declareMapOfKeys(arguments, problem);
    locator->declareMapsOfValues(arguments, problem);
    RowLocator::declare(arguments, b, problem.place);
  } else {
    arguments.map(b, "k", keyRows, problem.headDim, kvElement);
    arguments.map(b, "v", keyRows, problem.headDimV, kvElement);
  }
  if (parts.areSeveral())
    parts.declare(arguments, b, problem);
  else if (staging == 0)
    arguments.operand("o", outputElement());
  else
    arguments.map(b, "o", heads.boxRows(kGroupRows), problem.headDimV,
                  outputElement());
  if (problem.lse && !parts.areSeveral())
    declareLse(arguments, b, problem);
  if (persistent)
    arguments.pointer(kCounterRole, b.getI32Type());
  if (problem.pattern)
    BlockLists::declare(arguments, b);
  // Boxes of some of a tile's rows may have none that are a sequence's, nor has
  // the one block that a sequence without keys has.
  if (problem.ragged && (splits || heads.areSeveral()))
    arguments.map(b, "q", queryRows, problem.headDim, element, Facet::emptyMap);
  if (problem.ragged && areKeysRagged(problem))
    arguments.map(b, "k", keyRows, std::min(problem.headDim, problem.headDimV),
                  kvElement, Facet::emptyMap);
  if (problem.ragged)
    RaggedRows::declare(arguments, b, problem);
  Scoring::declare(arguments, b, request);
  declareProblem(arguments, b, problem.mask);
  KernelOp kernel = arguments.createKernel(
      b, request, kWarpsPerGroup * (groups * pairs + budget.others));
  if (problem.ragged && persistent)
    ranks = RaggedRows(arguments, problem, heads.rows)
                .rank(b, /*longestFirst=*/false); // taken from the last on
  reserve();
  queries = arguments.get(b, "queries");
  band.emplace(b, arguments, problem.mask);
  if (problem.isListed())
    lists = tileLists(b, arguments, problem, query, key);
  blocks.emplace(*band, queries, heads.rows, key, lists.get(), parts,
                 locator ? &*locator : nullptr,
                 heads.areSeveral() ? &heads : nullptr);
  return kernel;
}

Type FlashFrame::outputElement() const {
  return elementType(b.getContext(), resultType(problem));
}

Value FlashFrame::map(StringRef operand) const {
  return arguments.get(b, mapRole(operand));
}

Value FlashFrame::emptyMap(Role rows) const {
  ArgumentRole map(rows, Facet::emptyMap);
  return arguments.has(map) ? Value(arguments.get(b, map)) : Value();
}

Tile FlashFrame::pop(Place message) const { return popTile(b, queue, message); }

void FlashFrame::enter(Scalar pair) {
  if (pairs == 1)
    return;
  for (Ring *ring : {&ringQ, &ringK, &ringV, &ringLoadedK, &ringLoadedV})
    ring->enter(pair);
  queue.enter(pair);
}

TileQueue FlashFrame::queueFor(int64_t readers) const {
  if (problem.isListed())
    return tileQueueOfLists(b, readers, arguments.get(b, "heads"), pairs);
  if (problem.ragged)
    return tileQueueOfSequences(b, readers, /*areKeys=*/false,
                                parts.areSeveral(), pairs);
  return tileQueueOf(b, arguments, problem.place, readers, parts.areSeveral(),
                     pairs);
}

TileOrder FlashFrame::order() const {
  TileOrder whole(b, arguments, problem, heads.rows,
                  request.sms * request.minBlocksPerSm * pairs, request.l2Bytes,
                  heads.heads);
  if (ranks)
    whole = whole.byRank(ranks);
  return parts.areSeveral() ? whole.inParts(parts) : whole;
}

void FlashFrame::reserve() {
  auto alloc = [&](StringRef name, int64_t stages, int64_t rows,
                   int64_t columns, Type element,
                   SmemLayout layout = SmemLayout::sw128) -> Value {
    auto type = SmemType::get(b.getContext(), stages * pairs, rows, columns,
                              element, layout);
    return AllocOp::create(b, type, name);
  };
  auto allocFactor = [&](StringRef name, int64_t stages, int64_t rows,
                         int64_t columns) -> SmallVector<Value> {
    if (!splits)
      return {alloc(name, stages, rows, columns, element)};
    SmallVector<Value> parts;
    for (StringRef part : {"_first", "_second", "_third"})
      parts.push_back(
          alloc((name + part).str(), stages, rows, columns, b.getBF16Type()));
    return parts;
  };
  buffersQ = allocFactor("query", queryStages, query, dim);
  if (widens)
    return reserveWidened();
  buffersK = allocFactor("key", stages, key, dim);
  buffersV = allocFactor("value", stages, key, dimV);
  bufferLoadedK = buffersK.front();
  bufferLoadedV = buffersV.front();
  if (transposes)
    buffersV = {alloc("value_transposed", stages, dimV, key, element,
                      SmemLayout::sw128_paired)};
  int64_t readers = kWarpsPerGroup * groups;
  if (splits) {
    bufferLanding = alloc("landing", landing.stages, landing.rows,
                          landing.columns, element);
    ringQ = Ring(b, "query", queryStages, readers, helperWarps);
    ringK = Ring(b, "key", stages, readers, helperWarps);
    ringV = Ring(b, "value", stages, readers, helperWarps);
    ringLanding = Ring(b, "landing", landing.stages, helperWarps);
    queue = queueFor(readers + helperWarps);
    return;
  }
  reserveStaging();
  auto ring = [&](StringRef name, int64_t slots, int64_t readers) {
    return Ring(b, name, slots, readers, /*writers=*/1, /*inCluster=*/false,
                pairs);
  };
  ringQ = ring("query", queryStages, readers);
  ringLoadedK = ringK = ring("key", stages, readers);
  ringLoadedV = ring("value", stages, transposes ? helperWarps : readers);
  ringV = transposes ? Ring(b, "value_transposed", stages, readers,
                            /*writers=*/helperWarps)
                     : ringLoadedV;
  if (transposes)
    readers += helperWarps;
  queue = queueFor(readers);
}

void FlashFrame::reserveWidened() {
  int64_t readers = kWarpsPerGroup * groups;
  auto rings = [&](StringRef name, int64_t columns, Value &loaded,
                   SmallVectorImpl<Value> &factor) {
    auto alloc = [&](const Twine &name, int64_t stages, Type element) -> Value {
      auto type = SmemType::get(b.getContext(), stages, key, columns, element,
                                SmemLayout::sw128);
      return AllocOp::create(b, type, name.str());
    };
    loaded = alloc(name, stages, kvElement);
    factor.push_back(alloc(name + "_widened", kWidenedStages, element));
  };
  rings("key", dim, bufferLoadedK, buffersK);
  rings("value", dimV, bufferLoadedV, buffersV);
  reserveStaging();
  ringQ = Ring(b, "query", queryStages, readers);
  ringLoadedK = Ring(b, "key", stages, helperWarps);
  ringK = Ring(b, "key_widened", kWidenedStages, readers, helperWarps);
  ringLoadedV = Ring(b, "value", stages, helperWarps);
  ringV = Ring(b, "value_widened", kWidenedStages, readers, helperWarps);
  queue = queueFor(readers + helperWarps);
}

void FlashFrame::reserveStaging() {
  if (staging == 0)
    return;
  auto alloc = [&](StringRef name, int64_t columns) -> Value {
    auto type = SmemType::get(b.getContext(), 1, query * pairs, columns,
                              outputElement(), SmemLayout::sw128);
    return AllocOp::create(b, type, name);
  };
  // What does not hold O at once is cut in two, so that one half is written
  // while the other is read.
  bool halves = staging < dimV && staging % (2 * kPanelColumns) == 0;
  if (halves)
    buffersO = {alloc("staging0", staging / 2), alloc("staging1", staging / 2)};
  else
    buffersO = {alloc("staging", staging)};
}
