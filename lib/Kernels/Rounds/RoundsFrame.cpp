//===- RoundsFrame.cpp - What launches of plain products share ------------===//

#include "Rounds/RoundsFrame.h"

#include "Rounds/InputParts.h"
#include "Softmax/LogSumExp.h"

#include "attn/Schedule/Schedule.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static bool isForwardOf(const KernelRequest &request) {
  return request.problem.direction == Direction::forward;
}

static bool isSplit(const KernelRequest &request) {
  return request.tiles.has("parts");
}

/// Backward one of the statistics goes before.
static RoundsLaunch spillLaunchOf(const KernelRequest &request) {
  if (isForwardOf(request))
    return request.launch == (isSplit(request) ? kSplittingLaunches : 0)
               ? RoundsLaunch::scores
               : RoundsLaunch::querySums;
  return RoundsLaunch(request.launch - 1);
}

RoundsFrame::RoundsFrame(TileBuilder &b, const KernelRequest &request)
    : GradientFrame(
          b, request,
          {spillLaunchOf(request) == RoundsLaunch::keySums, kRows, kStep}),
      isForward(isForwardOf(request)), splits(isSplit(request)),
      keeps(request.problem.keepsWeights),
      merged(request.tiles.get("merged", 0) != 0),
      launch(spillLaunchOf(request)), keyBlock(request.tiles.get("key_block")),
      halves(isForward && keyBlock == kHalvedKeys),
      hasLanes(isForward && merged && !splits),
      column(request.tiles.get("column")), strip(request.tiles.get("strip")),
      step(request.tiles.get("slice", kStep)),
      stages(request.tiles.get("stages")), parts(partsOf(launch)),
      staging(stagingOf(stages, width(), request.smemBytes)) {
  walksUp = isForward; // what blocks stand at comes in the order of blocks
  hasBusyProducer = isForward;
  hasMergedTiles = merged;
  counters = hasLanes ? kLanes : 1;
  writers = kGroups;
  if (splits)
    element = b.getF16Type();
}

int64_t RoundsFrame::partsOf(RoundsLaunch launch) const {
  switch (launch) {
  case RoundsLaunch::scores:
    return strip / keyBlock;
  case RoundsLaunch::keySums:
    return partsOf(problem.headDimV) + partsOf(problem.headDim);
  case RoundsLaunch::querySums:
    return partsOf(isForward ? problem.headDimV : problem.headDim);
  case RoundsLaunch::deltas:
    return 1;
  }
  llvm_unreachable("closed enum");
}

/// Of narrower tiles, in the places of wider ones.
static Staging narrowed(Staging staging, int64_t width) {
  return {staging.slots, std::min(staging.columns, width)};
}

RoundsFrame::RoundsFrame(const RoundsFrame &other, RoundsLaunch launch)
    : GradientFrame(other), isForward(other.isForward), splits(other.splits),
      keeps(other.keeps), merged(other.merged), launch(launch),
      keyBlock(other.keyBlock), halves(other.halves), hasLanes(other.hasLanes),
      column(other.column), strip(other.strip), step(other.step),
      stages(other.stages), parts(partsOf(launch)), left(other.left),
      leftHalves(other.leftHalves), ring(other.ring),
      ringStaged(other.ringStaged), staging(narrowed(other.staging, width())) {
  assert(merged && !is(RoundsLaunch::scores) && "behind scores");
  // As large, in other stages.
  if (is(RoundsLaunch::deltas)) {
    int64_t groups = stages * keyBlock / kGroupRows;
    right = alias(other.right, groups / kGroups, kRows, kStep);
    rightGroups = alias(other.right, groups, kGroupRows, kStep);
  } else {
    right = alias(other.right, stages, kStep, keyBlock);
  }
  staged = alias(other.staged, staging.slots, kRows, staging.columns);
  if (is(RoundsLaunch::keySums)) {
    left = alias(other.left, stages, kStep, kRows);
    ownsKeys = true;
    enterSide();
  }
  enterRound();
}

KernelOp RoundsFrame::declare() {
  if (isForward)
    declareMapsOfOutput();
  else
    declareMaps();
  declareRound();
  KernelOp kernel = createKernel();
  if (lists) // of whole blocks of scores
    lists = std::make_shared<BlockLists>(b, arguments, problem.pattern->size(),
                                         keyBlock);
  reserve();
  enterRound();
  return kernel;
}

void RoundsFrame::declareRound() {
  if (isForward) {
    if (keeps)
      arguments.operand("block_rows", b.getF32Type());
    else
      arguments.pointer("scratch_rows", b.getF32Type());
    if (splits && is(RoundsLaunch::scores))
      for (StringRef input : {"q", "k"})
        arguments.pointer(exponentsRole(input), b.getI32Type());
    if (merged)
      arguments.perLaunch(kFlagsRole, b.getI32Type(),
                          request.launches.flags(request.problem));
    bool hasOutputs = merged || is(RoundsLaunch::querySums);
    if (hasOutputs && splits) {
      arguments.pointer(exponentsRole("v"), b.getI32Type());
      arguments.operand("o", b.getF32Type());
    }
    if (hasOutputs && problem.lse)
      declareLse(arguments, b, problem);
    for (StringRef size : {"first_head", "round_heads", "first_query"})
      arguments.scalar(size, b.getI32Type());
    return;
  }
  if (is(RoundsLaunch::scores)) {
    declareStatistics();
    if (merged && problem.dlse)
      arguments.operand("dlse", b.getF32Type());
    if (keeps)
      arguments.operand("block_rows", b.getF32Type());
  }
  if (merged)
    declareFlagsOfStrips();
  if (merged && problem.pattern)
    BlockLists::declare(arguments, b, ListSide::keys);
  if (merged || is(RoundsLaunch::querySums))
    arguments.perStrip("scratch_dq", b.getF32Type(),
                       kGroupRows * column * partsOf(RoundsLaunch::querySums));
  for (StringRef size : {"first_head", "round_heads", "first_key"})
    arguments.scalar(size, b.getI32Type());
}

void RoundsFrame::enterRound() {
  queries = arguments.get(b, "queries");
  keys = arguments.get(b, "keys");
  keyHeads = arguments.get(b, "heads") / sharers;
  firstHead = arguments.get(b, "first_head");
  if (isForward)
    return enterStripOfQueries();
  firstKey = arguments.get(b, "first_key");
  endOfKeys = b.min(firstKey + strip, keys);
  heads = arguments.get(b, "round_heads");
  if (!ownsKeys)
    heads = heads * sharers;
  if (lists)
    return enterLists();
  partCount = is(RoundsLaunch::scores)
                  ? b.ceilDiv(b.max(endOfKeys - firstKey, b.i32(1)), keyBlock)
                  : b.i32(parts);
  firstTile = b.i32(0);
  Scalar end = ownsKeys ? endOfKeys - firstKey : queries;
  if (is(RoundsLaunch::scores)) { // queries that see some of the strip
    KeyBand band = KeyBand::seeing(b, arguments, problem.mask);
    KeyBand::Keys rows = band.seenBy(b, firstKey, endOfKeys - 1);
    firstTile = rows.someFirst / kRows;
    end = b.select(rows.someFirst < rows.someEnd, rows.someEnd, b.i32(0));
  }
  rowTiles =
      b.max(b.ceilDiv(b.max(end, b.i32(0)), kRows) - firstTile, b.i32(0));
}

void RoundsFrame::enterLane(Scalar which) {
  lane = which;
  Scalar all = arguments.get(b, "round_heads");
  heads = (all - lane + (kLanes - 1)) / kLanes * sharers;
}

void RoundsFrame::enterStripOfQueries() {
  firstKey = b.i32(0);
  endOfKeys = keys;
  firstQuery = arguments.get(b, "first_query");
  endOfQueries = b.min(firstQuery + strip, queries);
  waitingRows = b.min(b.ceilDiv(queries, kRows) * kRows, b.i32(strip));
  keyBlocks = b.ceilDiv(b.max(keys, b.i32(1)), keyBlock);
  heads = arguments.get(b, "round_heads") * sharers;
  partCount = is(RoundsLaunch::scores) ? keyBlocks : b.i32(parts);
  firstTile = firstQuery / kRows;
  rowTiles = b.ceilDiv(b.max(endOfQueries - firstQuery, b.i32(0)), kRows);
  if (lists && is(RoundsLaunch::scores))
    partCount = partsOfEntries();
  else if (is(RoundsLaunch::scores) && !problem.mask.isOpen())
    foldTiles();
}

// Under a mask tiles of rows see more blocks of keys or less, and whoever draws
// a block that is hidden draws again.  So the first tile of rows that sees
// anything shares its parts with the last one, the second with the last but
// one, and so on: together they see about the same.  Of two such tiles those in
// the middle see most keys, since what a tile sees is a run whose ends are
// clamped, unless all see some keys first: then it may be the outermost two.
// And a run may begin and end within blocks.
void RoundsFrame::foldTiles() {
  KeyBand side = KeyBand::seeing(b, arguments, problem.mask);
  KeyBand::Keys rows = side.seenBy(b, firstKey, endOfKeys - 1);
  firstTile = b.max(firstQuery, rows.someFirst) / kRows;
  Scalar zero = b.i32(0), end = b.min(endOfQueries, rows.someEnd);
  foldedTiles = b.max(b.ceilDiv(b.max(end, zero), kRows) - firstTile, zero);
  rowTiles = b.ceilDiv(foldedTiles, 2);
  Scalar middle = b.max(foldedTiles - 1, zero) / 2;
  Scalar most =
      keysSeen(firstTile + middle) + keysSeen(firstTile + foldedTiles / 2);
  if (problem.mask.opensKeys())
    most = b.max(most, keysSeen(firstTile) +
                           keysSeen(firstTile + b.max(foldedTiles - 1, zero)));
  int64_t ends = band->hasFirst ? 4 : 2;
  partCount = b.min((most + ends * (keyBlock - 1)) / keyBlock, keyBlocks * 2);
}

void RoundsFrame::unfold(Scalar &tile, Scalar &part) const {
  auto blocksOf = [&](Scalar tile) {
    return blocksSeen({(firstTile + tile) * kRows, Scalar(), Scalar()});
  };
  Scalar other = foldedTiles - 1 - tile;
  KeyWalk own = blocksOf(tile), others = blocksOf(other);
  Scalar ownSteps = own.steps();
  Scalar isOwn = part < ownSteps;
  Scalar block = part - ownSteps + others.first();
  Scalar exists = (tile < other) & others.reaches(block);
  part = b.select(isOwn, own.block(part), b.select(exists, block, keyBlocks));
  tile = b.select(isOwn, tile, other);
}

Scalar RoundsFrame::keysSeen(Scalar tile) const {
  Scalar row = tile * kRows;
  KeyBand::Keys seen = band->seenBy(b, row, b.min(row + kRows, queries) - 1);
  return b.max(seen.someEnd - seen.someFirst, b.i32(0));
}

void RoundsFrame::declareMapsOfOutput() {
  bool isScores = is(RoundsLaunch::scores);
  auto mapInput = [&](StringRef input, int64_t rows, int64_t columns) {
    if (splits)
      declareMap(partsRole(input), rows, kScaledParts * partColumns(input));
    else
      declareMap(input, rows, columns);
  };
  StringRef weights = keeps ? "weights" : "scratch_p";
  int64_t columnsOfWeights = keeps    ? TensorMapType::kAnyColumns
                             : splits ? kScaledParts * keyBlock
                                      : keyBlock;
  // P leaves by warpgroups, and merged comes with the same map.
  int64_t rowsOfLeft = merged ? kGroupRows : kRows;
  if (isScores) {
    mapInput("q", rowsOfLeft, problem.headDim);
    mapInput("k", halves ? kRows : keyBlock, problem.headDim);
    declareMap(weights, kGroupRows, columnsOfWeights);
  }
  if (is(RoundsLaunch::querySums))
    declareMap(weights, rowsOfLeft, columnsOfWeights);
  if (merged || is(RoundsLaunch::querySums)) {
    mapInput("v", kStep, problem.headDimV);
    if (!splits)
      declareMap("o", kGroupRows, problem.headDimV);
  }
}

void RoundsFrame::declareMaps() {
  if (is(RoundsLaunch::scores))
    declareMapsOfScores();
  else
    declareMapsOfSums();
}

void RoundsFrame::declareMap(StringRef role, int64_t rows, int64_t columns) {
  arguments.map(b, role, rows, columns, element);
}

// Merged, boxes are those of sums, and scores take several at once.
void RoundsFrame::declareMapsOfScores() {
  if (merged || !keeps) { // of sums, or of scores
    declareMap("q", merged ? kStep : kRows, problem.headDim);
    declareMap("k", merged ? kStep : keyBlock, problem.headDim);
  }
  declareMap("do", merged ? kStep : kRows, problem.headDimV);
  declareMap("v", keyBlock, problem.headDimV);
  if (keeps)
    declareMap("weights", kRows, TensorMapType::kAnyColumns);
  declareMap("scratch_p", kGroupRows, strip);
  declareMap("scratch_ds", kGroupRows, strip);
  if (!merged)
    return;
  declareMap("o", kRows, problem.headDimV);
  for (StringRef gradient : {"dq", "dk"})
    declareMap(gradient, kGroupRows, problem.headDim);
  declareMap("dv", kGroupRows, problem.headDimV);
}

void RoundsFrame::declareMapsOfSums() {
  if (is(RoundsLaunch::querySums)) {
    declareMap("scratch_ds", kRows, strip);
    declareMap("k", kStep, problem.headDim);
    return declareMap("dq", kGroupRows, problem.headDim);
  }
  declareMap("scratch_p", kStep, strip);
  declareMap("scratch_ds", kStep, strip);
  declareMap("do", kStep, problem.headDimV);
  declareMap("q", kStep, problem.headDim);
  declareMap("dv", kGroupRows, problem.headDimV);
  declareMap("dk", kGroupRows, problem.headDim);
}

void RoundsFrame::reserve() {
  bool isScores = is(RoundsLaunch::scores);
  left = ownsKeys ? allocate("left", stages, kStep, kRows)
                  : allocate("left", stages, kRows, kStep);
  right = isScores ? allocate("right", stages, keyBlock, kStep)
                   : allocate("right", stages, kStep, column);
  int64_t consumers = kWarpsPerGroup * kGroups;
  bool isStaged = isScores || !splits;
  if (isStaged)
    staged = allocate("staged", staging.slots, kRows, staging.columns);
  if (merged && isForward)
    leftHalves = alias(left, 2 * stages, kGroupRows, kStep);
  bool isHalved = halves && isScores;
  if (isHalved || (keeps && !isForward && isScores))
    rightHalves = alias(right, 2 * stages, kRows, kStep);
  ring = Ring(b, "ring", stages, consumers,
              /*writers=*/(Value(leftHalves) ? 2 : 1) + (isHalved ? 2 : 1));
  if (isStaged)
    ringStaged = Ring(b, "staged", kGroups * staging.slots, /*readers=*/1,
                      kWarpsPerGroup);
  queue = tileQueue(b, consumers + writers, /*hasParts=*/true);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

RoundsFrame::Section RoundsFrame::sectionOf(Scalar number,
                                            Scalar ofHead) const {
  Scalar one = b.i32(1);
  if (Value(toldInTurn)) {
    Scalar first = number / (toldInTurn * ofHead) * toldInTurn;
    return {first, b.max(b.min(toldInTurn, heads - first), one)};
  }
  if (problem.mask.isOpen() || is(RoundsLaunch::scores))
    return {number / ofHead, one};
  Scalar tiles = b.max(tilesOfHead(), one), all = b.max(heads, one);
  Scalar sections = all / headsInSection(tiles);
  // As few as keep products of heads and sections in 31 bits.
  sections = b.max(b.min(sections, b.i32(1 << 30) / all), one);
  // Section s begins with head s * all / sections, rounded down.
  Scalar section = ((number / ofHead + 1) * sections - 1) / all;
  Scalar first = section * all / sections;
  return {first, (section + 1) * all / sections - first};
}

Scalar RoundsFrame::headsInSection(Scalar tilesOfHead) const {
  if (!merged || splits)
    return (tilesOfHead + (request.sms - 1)) / tilesOfHead;
  return b.max(b.i32(blocksAtOnce() / 2) / tilesOfHead, b.i32(1));
}

Tile RoundsFrame::tileAt(Scalar number) const {
  Scalar exists = number < tileCount();
  Scalar ofHead = b.max(tilesOfHead(), b.i32(1));
  bool isMasked = !problem.mask.isOpen();
  auto [first, width] = sectionOf(number, ofHead);
  Scalar rest = number - first * ofHead;
  Scalar place = rest / partCount, part = rest - place * partCount;
  if (is(RoundsLaunch::scores) && splits)
    takeInBands(rest, place, part);
  Scalar tile = place / width;
  Scalar head = first + (place - tile * width);
  if (isMasked && startsAtEnd())
    tile = rowTiles - 1 - tile;
  if (Value(foldedTiles))
    unfold(tile, part);
  tile = tile + firstTile;
  Scalar row = tile * kRows;
  Scalar sharer = b.i32(0);
  if (ownsKeys) {
    row = row + firstKey;
  } else {
    Scalar keyHead = head / sharers;
    sharer = head - keyHead * sharers;
    head = Value(lane) ? keyHead * kLanes + lane : keyHead;
  }
  Scalar flat = firstHead + head;
  Scalar batch = flat / keyHeads;
  head = flat - batch * keyHeads;
  if (!is(RoundsLaunch::keySums))
    head = head * sharers + sharer;
  return {b.select(exists, row, b.i32(-1)), head, batch, part};
}

// Of scores that gradients wait for those of queries are first.
bool RoundsFrame::startsAtEnd() const {
  return is(RoundsLaunch::querySums) ||
         (is(RoundsLaunch::scores) && merged && !isForward);
}

// What blocks of keys have in parts is more than L2 keeps of a long sequence.
// So some tiles of rows take a block of keys each before the next block comes.
void RoundsFrame::takeInBands(Scalar number, Scalar &place,
                              Scalar &part) const {
  int64_t rows = kBandTiles;
  Scalar band = number / (partCount * rows);
  Scalar first = band * rows;
  Scalar count = b.max(b.min(rowTiles - first, b.i32(rows)), b.i32(1));
  Scalar inBand = number - first * partCount;
  part = inBand / count;
  place = first + (inBand - part * count);
}

Value RoundsFrame::statisticsOfBlock(const Tile &tile, Scalar block,
                                     int64_t which) const {
  Scalar one = b.wide(b.i32(1));
  auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                            /*align=*/4);
  if (keeps) {
    Scalar offset = arguments.offset(b, "block_rows", tile.batch, tile.head,
                                     block * kRowStatistics + which);
    return ViewOp::create(b, type, arguments.get(b, "block_rows"), offset,
                          queries, one);
  }
  RoundHead head = inRound(tile.batch, tile.head);
  Scalar number =
      head.keyHead * sharers * keyBlocks + blockInRound(head, block);
  Scalar offset = b.wide(number * kRowStatistics + which) * b.wide(waitingRows);
  return ViewOp::create(b, type, arguments.get(b, "scratch_rows"), offset,
                        endOfQueries - firstQuery, one);
}

RoundsFrame::WeightsPlace RoundsFrame::weightsAt(const Tile &tile, Scalar block,
                                                 Scalar column) const {
  if (keeps)
    return {"weights", tile.batch, tile.head, tile.row,
            block * keyBlock + column};
  RoundHead head = inRound(tile.batch, tile.head);
  return {"scratch_p", head.keyHead, blockInRound(head, block),
          tile.row - firstQuery, column};
}

RoundsFrame::RoundHead RoundsFrame::inRound(Scalar batch,
                                            Scalar queryHead) const {
  Scalar keyHead = queryHead / sharers;
  return {batch * keyHeads + keyHead - firstHead,
          queryHead - keyHead * sharers};
}

Run RoundsFrame::seenBy(const Tile &tile, Scalar rows, Scalar first, Scalar end,
                        int64_t size) const {
  KeyBand::Keys seen =
      band->seenBy(b, tile.row, b.min(tile.row + kRows, rows) - 1);
  first = b.max(seen.someFirst, first);
  end = b.min(seen.someEnd, end);
  Scalar begin = first / size;
  return {begin,
          b.select(first < end, b.ceilDiv(b.max(end, b.i32(0)), size), begin)};
}

Walk RoundsFrame::walkInRound(const Tile &tile) const {
  if (lists && !isForward && !is(RoundsLaunch::scores))
    return {KeyWalk(), tile.head, stepsOfLists(tile)};
  if (is(RoundsLaunch::keySums)) {
    Run run = seenBy(tile, keys, b.i32(0), queries, step);
    KeyWalk walk(run, walksUp);
    return {walk, tile.head * sharers, walk.steps() * sharers};
  }
  if (is(RoundsLaunch::scores) && lists) {
    Scalar exists = tile.part < entriesOf(listed(tile));
    return {KeyWalk({tile.part, tile.part + 1}, walksUp), tile.head,
            b.select(exists, b.i32(1), b.i32(0))};
  }
  if (is(RoundsLaunch::scores)) {
    Run run = seenBy(tile, queries, firstKey, endOfKeys, keyBlock);
    Scalar block = firstKey / keyBlock + tile.part;
    return {KeyWalk({block, block + 1}, walksUp), tile.head,
            b.select(run.has(block), b.i32(1), b.i32(0))};
  }
  Run run = seenBy(tile, queries, firstKey, endOfKeys, step);
  if (splits) { // whole blocks
    int64_t ofBlock = keyBlock / step;
    Run whole = blocksSeen(tile).all();
    run = {whole.begin * ofBlock, whole.end * ofBlock};
  }
  KeyWalk walk(run, walksUp);
  return {walk, tile.head, walk.steps()};
}

Scalar RoundsFrame::exponentOf(StringRef input, const Tile &tile) const {
  constexpr int64_t rows = SplitViewOp::kBlockRows;
  bool isQuery = input == "q";
  Scalar allHeads = arguments.get(b, "heads");
  Scalar heads = isQuery ? allHeads : allHeads / sharers;
  Scalar head = isQuery ? tile.head : tile.head / sharers;
  Scalar ofHead = b.ceilDiv(isQuery ? queries : keys, rows);
  Scalar block = isQuery ? tile.row / rows : tile.part * keyBlock / rows;
  Value index = (tile.batch * heads + head) * ofHead + block;
  return b.wrap(LoadNumberOp::create(
      b, b.getI32Type(), arguments.get(b, exponentsRole(input)), index));
}

Scalar RoundsFrame::isIdle(const Tile &tile) const {
  // Zeros, if nothing is seen.
  bool isResult = lists && is(RoundsLaunch::querySums);
  if (is(RoundsLaunch::keySums) || isResult)
    return b.boolean(false);
  if (is(RoundsLaunch::deltas))
    return beginsHere(tile) == b.boolean(false);
  Scalar isEmpty = walkInRound(tile).steps == b.i32(0);
  if (is(RoundsLaunch::scores))
    return isEmpty;
  return isEmpty & (turnOf(tile).isLast == b.boolean(false));
}

RoundsFrame::Half RoundsFrame::halfOf(const Tile &tile) const {
  Run seen = seenBy(tile, queries, firstKey, endOfKeys, keyBlock / 2);
  Scalar lower = tile.part * 2;
  Scalar isUpper = lower < seen.begin;
  Scalar isLower = seen.end <= lower + 1;
  return {b.wrap(arith::OrIOp::create(b, isUpper, isLower)), isUpper};
}

Scalar RoundsFrame::isOpen(const KeyBand &band, Scalar row, int64_t rows,
                           Scalar key) const {
  KeyBand::Keys seen = band.seenBy(b, row, b.min(row + rows, queries) - 1);
  return band.isOpen(seen, key, keyBlock) & (row + rows <= queries);
}

Value RoundsFrame::clearHidden(Value gradient, const KeyBand &band,
                               Scalar isOpen, Scalar row, Scalar key) const {
  return b.choose(
      isOpen, [&]() -> SmallVector<Value> { return {gradient}; },
      [&]() -> SmallVector<Value> {
        return {band.clear(b, gradient, row, key, queries)};
      })[0];
}

RoundsFrame::Turn RoundsFrame::turnOf(const Tile &tile) const {
  if (isForward || lists)
    return {b.boolean(true), b.boolean(true)};
  // In strips; what sees nothing has its turn in the first one.
  Run all = seenBy(tile, queries, b.i32(0), keys, strip);
  Scalar now = firstKey / strip;
  Scalar isSeen = all.begin < all.end;
  Scalar first = b.select(isSeen, all.begin, b.i32(0));
  Scalar last = b.select(isSeen, all.end - 1, b.i32(0));
  return {now == first, now == last};
}

Scalar RoundsFrame::beginsHere(const Tile &tile) const {
  KeyWalk walk = blocksSeen(tile);
  return turnOf(tile).isFirst & walk.hasSteps();
}

Scalar RoundsFrame::columnOf(const Tile &tile) const {
  Scalar part = tile.part;
  if (is(RoundsLaunch::keySums))
    part = b.select(isValuePart(tile), part, part - partsOf(problem.headDimV));
  return part * column;
}

Scalar RoundsFrame::placeOf(const Tile &tile, Scalar row, Scalar warp,
                            int64_t warps) const {
  Scalar ofHead = b.ceilDiv(queries, kRows) * (kRows / kStripRows);
  Scalar head = tile.batch * arguments.get(b, "heads") + tile.head;
  Scalar stripNumber = head * ofHead + row / kStripRows;
  return (stripNumber * parts + tile.part) * warps + warp;
}
