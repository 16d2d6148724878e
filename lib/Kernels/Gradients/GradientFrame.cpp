//===- GradientFrame.cpp - What launches for gradients share --------------===//

#include "Gradients/ListedSteps.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

GradientFrame::GradientFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), problem(request.problem), request(request),
      element(elementType(b.getContext(), problem.dtype)),
      block(request.tiles.get("query_block")), scoring(arguments, request),
      captures(arguments, request) {}

GradientFrame::GradientFrame(TileBuilder &b, const KernelRequest &request,
                             const GradientRows &rows)
    : GradientFrame(b, request) {
  ownsKeys = rows.ownsKeys;
  keyOrder.mayBeNone = request.shape().isNeverEmpty;
  own = rows.own;
  streamed = rows.streamed;
  groups = own / kGroupRows;
}

KernelOp GradientFrame::createKernel() {
  if (counters > 1)
    arguments.perLaunch(kCounterRole, b.getI32Type(), counters);
  else
    arguments.pointer(kCounterRole, b.getI32Type());
  if (problem.pattern)
    BlockLists::declare(arguments, b,
                        ownsKeys ? ListSide::keys : ListSide::queries);
  if (problem.ragged)
    RaggedRows::declare(arguments, b, problem);
  // The producer's warpgroup has the writer too.
  return createKernel(kWarpsPerGroup * (groups + 1));
}

KernelOp GradientFrame::createKernel(int64_t warps) {
  if (pulls)
    CaptureSums::declare(arguments, b, request);
  Scoring::declare(arguments, b, request);
  declareProblem(arguments, b, problem.mask);
  KernelOp kernel = arguments.createKernel(b, request, warps);
  enterSide();
  return kernel;
}

void GradientFrame::enterSide() {
  ownRows = arguments.get(b, ownsKeys ? "keys" : "queries");
  streamedRows = arguments.get(b, ownsKeys ? "queries" : "keys");
  sharers = arguments.get(b, "group");
  if (ownsKeys)
    band.emplace(KeyBand::seeing(b, arguments, problem.mask));
  else
    band.emplace(b, arguments, problem.mask);
  TileBlocks all(*band, ownRows, own, streamed);
  blocks.emplace(ownsKeys ? all.ofKeys() : all);
  if (problem.isListed())
    lists = tileLists(b, arguments, problem, own, streamed,
                      ownsKeys ? ListSide::keys : ListSide::queries);
}

static SmemType bufferType(const GradientFrame &f, int64_t count, int64_t rows,
                           int64_t columns) {
  return SmemType::get(f.b.getContext(), count, rows, columns, f.element,
                       SmemLayout::sw128);
}

Value GradientFrame::allocate(StringRef name, int64_t count, int64_t rows,
                              int64_t columns) const {
  return AllocOp::create(b, bufferType(*this, count, rows, columns), name);
}

Value GradientFrame::alias(Value buffer, int64_t count, int64_t rows,
                           int64_t columns) const {
  return AliasOp::create(b, bufferType(*this, count, rows, columns), buffer);
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

void GradientFrame::createRoles(function_ref<void()> produce,
                                function_ref<void(int64_t)> write,
                                function_ref<void()> consume,
                                function_ref<void()> finish) const {
  RegisterBudget budget = registerBudget(
      groups, hasBusyProducer ? Helper::transposer : Helper::none,
      hasMergedTiles);
  b.roles([&] {
    b.role("producer", 1, budget.producer, /*singleLane=*/true, produce);
    int64_t others = kWarpsPerGroup - 1, finishers = finish ? kFinishers : 0;
    int64_t left = others - finishers;
    for (int64_t writer = 0; writer < writers; ++writer) {
      int64_t warps = writer + 1 < writers ? 1 : left;
      b.role("writer", warps, budget.producer, /*singleLane=*/true,
             [&] { write(writer); });
      left -= warps;
    }
    if (finish)
      b.role("finisher", finishers, budget.producer, /*singleLane=*/false,
             finish);
    b.role("consumer", kWarpsPerGroup * groups, budget.consumer,
           /*singleLane=*/false, consume);
  });
}

TileOrder GradientFrame::order() const {
  if (ownsKeys)
    return TileOrder::ofKeys(b, arguments, problem, own, request.sms,
                             request.l2Bytes, keyOrder);
  return TileOrder(b, arguments, problem, own, request.sms, request.l2Bytes);
}

//===----------------------------------------------------------------------===//
// Products of a consumer's warp
//===----------------------------------------------------------------------===//

Value GradientFrame::startScores(Value own, Scalar row, Value streamed,
                                 Scalar slot) const {
  bool isInRegisters = isa<FragType>(own.getType());
  Value stage = isInRegisters ? Value() : Value(b.i32(0));
  int64_t columns = cast<SmemType>(streamed.getType()).getRows();
  return WgmmaOp::create(b, b.pendingType(columns), own, stage,
                         isInRegisters ? Value() : Value(row), streamed, slot,
                         /*rhsColumn=*/Value(), /*transpose=*/true,
                         /*acc=*/Value());
}

Value GradientFrame::startSum(Value sum, Value factor, Value streamed,
                              Scalar slot) const {
  auto pending = dyn_cast<PendingType>(sum.getType());
  int64_t columns = pending ? pending.getColumns()
                            : cast<FragType>(sum.getType()).getColumns();
  return WgmmaOp::create(b, b.pendingType(columns), factor,
                         /*lhsStage=*/Value(), /*lhsRow=*/Value(), streamed,
                         slot, /*rhsColumn=*/Value(), /*transpose=*/false, sum);
}

Value GradientFrame::factorOf(Value accumulator) const {
  int64_t columns = cast<FragType>(accumulator.getType()).getColumns();
  return CastOp::create(b, b.lhsType(kWarpRows, columns, element), accumulator);
}

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

void GradientFrame::declareFlagsOfStrips() {
  arguments.perStrip(kFlagsOfStrips, b.getI32Type(), kFlagWords);
}

void GradientFrame::declareStatistics() {
  arguments.perStrip("scratch_statistics", b.getF32Type(),
                     statisticCount() * kStripRows);
}

Scalar GradientFrame::numberOf(Scalar batch, Scalar head, Scalar block) const {
  Scalar ofHead = b.ceilDiv(arguments.get(b, "queries"), this->block);
  return (batch * arguments.get(b, "heads") + head) * ofHead + block;
}

Scalar GradientFrame::numberOf(const Tile &tile, Scalar head,
                               Scalar block) const {
  if (!tile.isOfSequence())
    return numberOf(tile.batch, head, block);
  RaggedRows slots(arguments, problem, this->block);
  return head * slots.slots(b) +
         slots.firstSlot(b, tile.firstQuery, tile.batch) + block;
}

Value GradientFrame::statistics(Scalar number, int64_t first,
                                Scalar count) const {
  auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                            /*align=*/4);
  Scalar one = b.wide(b.i32(1));
  Scalar offset = b.wide(number) * blockNumbers();
  if (first != 0)
    offset = offset + first;
  return ViewOp::create(b, type, arguments.get(b, "scratch_statistics"), offset,
                        count, one);
}

Value GradientFrame::statisticOf(const Tile &tile, Scalar row, Statistic which,
                                 int64_t rows) const {
  // Rows behind the head's last block are behind the rows of that one.
  Scalar rowsOfHead = ownRowsOf(tile);
  Scalar number = b.min(row / block, (rowsOfHead - 1) / block);
  Scalar begin = number * block;
  Scalar count = b.min(rowsOfHead - begin, b.i32(block));
  Value all =
      statistics(numberOf(tile, tile.head, number), firstOf(which), count);
  auto load = [&]() -> SmallVector<Value> {
    return {LoadRowOp::create(b, b.rowType(rows), all, row - begin)};
  };
  if (!lists && !problem.ragged)
    return load()[0];
  // A tile without steps asks for none.
  Scalar asks = lists ? hasSteps(tile) : b.i32(0) < streamedRowsOf(tile);
  return b.choose(asks, load, [&]() -> SmallVector<Value> {
    return {b.fill(b.f32(0), b.rowType(rows))};
  })[0];
}

double GradientFrame::shiftIsEnough() const {
  return problem.dtype == DataType::f32 ? 0 : 2048;
}

Shift GradientFrame::shiftOfRows(const Tile &tile, Scalar row,
                                 int64_t rows) const {
  Shift shift{statisticOf(tile, row, Statistic::shift, rows), nullptr,
              shiftIsEnough()};
  if (problem.lseLow)
    shift.low = [low = statisticOf(tile, row, Statistic::low, rows)] {
      return low;
    };
  return shift;
}

GradientFrame::RowStatistics GradientFrame::statisticsOf(const Tile &tile,
                                                         Scalar row) const {
  Shift shift = shiftOfRows(tile, row);
  return {shift, statisticOf(tile, row, Statistic::delta)};
}

void GradientFrame::loadStatistics(const Ring &ring, Place place,
                                   const Tile &tile,
                                   const GradientStep &step) const {
  LoadWordsOp::create(b, arguments.get(b, "scratch_statistics"),
                      numberOf(tile, step.head, step.block), bufferStatistics,
                      place.slot, ring.fullBarrier(), place.slot);
}

void GradientFrame::reserveStatistics(int64_t slots) {
  auto type = SmemType::get(slots, 1, blockNumbers(), b.getF32Type());
  bufferStatistics = AllocOp::create(b, type, "statistics");
}

Value GradientFrame::columnsOf(Scalar slot, Statistic which,
                               QueriesOfSlot some) const {
  return GetColumnsOp::create(
      b, b.accType(kWarpRows, some.count ? some.count : streamed),
      bufferStatistics, slot, b.i32(0), b.i32(firstOf(which) + some.first));
}

Shift GradientFrame::shiftColumns(Scalar slot, QueriesOfSlot some) const {
  Shift shift{columnsOf(slot, Statistic::shift, some), nullptr,
              shiftIsEnough()};
  if (problem.lseLow)
    shift.low = [this, slot, some] {
      return columnsOf(slot, Statistic::low, some);
    };
  return shift;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

GradientFrame::About
GradientFrame::aboutRun(Scalar isLast, Scalar isOpen, Scalar column,
                        const Scoring::Rows &rows,
                        const std::function<Value(Value scores)> &hide) const {
  About about{isLast, isOpen, column, rows, {}};
  // A region may hide something in any block.
  if (scoring.hides())
    about.isOpen = b.boolean(false);
  about.hidden = [=](Value scores) {
    scores = hiddenUnless(b, isOpen, scores, hide);
    return scoring.hidden(b, rows, scores, column, /*isCut=*/true);
  };
  return about;
}

GradientFrame::About
GradientFrame::aboutListed(const GradientStep &step, Scalar row,
                           const Scoring::Rows &rows, Scalar areWhole,
                           Scalar endOfRows, int64_t first) const {
  About about{
      step.isLast, isOpen(step, areWhole), columnOf(step, first), rows, {}};
  about.hidden = [=, isOpen = about.isOpen](Value scores) {
    return hiddenUnless(b, isOpen, scores, [&](Value scores) {
      return hide(scores, row, step, columnOf(step, first), rows, endOfRows);
    });
  };
  return about;
}

GradientFrame::Weighed GradientFrame::weigh(const ScoreScale &scale,
                                            Value products, const Shift &shift,
                                            const About &about,
                                            bool wantsSlopes) const {
  products = scale.orient(b, products);
  // Whether a block is open is known at run time.
  Pairs pairs = Pairs::any;
  Value scores = about.hidden(
      scoring.scored(b, about.rows, products, about.column, pairs));
  Value weights = weightsOf(b, scale, scores, shift), slopes;
  if (wantsSlopes)
    slopes =
        scoring.slopes(b, about.rows, products, scores, about.column, pairs);
  if (pulls)
    return {weights, weights, slopes, products};
  return {weights, steepened(b, weights, slopes), {}, products};
}

Value GradientFrame::differentiate(const Weighed &weighed, Value gradient,
                                   Value delta, const About &about,
                                   MutableArrayRef<Value> sums) const {
  if (!pulls)
    return gradientOf(b, weighed.steep, gradient, delta, about.isOpen);
  // What is hidden adds nothing, even where nobody says what dP is there.
  Value ofScores = withoutHidden(
      b, weighed.weights, gradientOf(b, weighed.weights, gradient, delta));
  captures.add(
      b, *about.rows.score,
      {weighed.products, ofScores, about.column, ownRows, streamedRows}, sums);
  return withSlopes(b, weighed.weights, ofScores, weighed.slopes);
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

Scalar GradientFrame::ownRowsOf(const Tile &tile) const {
  if (!tile.isOfSequence())
    return ownRows;
  return ownsKeys ? tile.keys : tile.queries;
}

Scalar GradientFrame::streamedRowsOf(const Tile &tile) const {
  if (!tile.isOfSequence())
    return streamedRows;
  return ownsKeys ? tile.queries : tile.keys;
}

KeyBand GradientFrame::bandOf(const Tile &tile) const {
  if (!tile.isOfSequence())
    return *band;
  return band->ofSequence(b, ownRowsOf(tile), streamedRowsOf(tile));
}

Walk GradientFrame::walkOf(const Tile &tile) const {
  KeyWalk walk = blocks->walkOf(b, tile, walksUp);
  Scalar steps = walk.steps();
  if (ownsKeys)
    steps = steps * sharers;
  Scalar walks = b.i32(0) < streamedRowsOf(tile);
  if (walksOnlySeen) {
    Scalar last = b.min(tile.row + own, ownRowsOf(tile)) - 1;
    KeyBand::Keys seen = bandOf(tile).seenBy(b, tile.row, last);
    walks = seen.someFirst < seen.someEnd;
  }
  return {walk, ownsKeys ? tile.head * sharers : tile.head / sharers,
          b.select(walks, steps, b.i32(0))};
}

Scalar GradientFrame::firstBlock(const Walk &walk) const {
  return walk.blocks.first();
}

GradientStep GradientFrame::firstStep(const Walk &walk) const {
  return {walk.firstHead, firstBlock(walk)};
}

GradientStep GradientFrame::nextStep(const Walk &walk,
                                     const GradientStep &step) const {
  Scalar isLast = step.block == walk.blocks.last();
  return {b.select(isLast, step.head + 1, step.head),
          b.select(isLast, firstBlock(walk), walk.blocks.behind(step.block))};
}

//===----------------------------------------------------------------------===//
// Of lists
//===----------------------------------------------------------------------===//

Tile GradientFrame::drawn(const Tile &tile) const {
  if (!lists)
    return tile;
  return ownsKeys ? lists->countedOfAll(tile, sharers) : lists->counted(tile);
}

Scalar GradientFrame::columnOf(const GradientStep &step, int64_t first) const {
  Scalar column = step.block * streamed;
  return first == 0 ? column : column + first;
}

Scalar GradientFrame::isOpen(const GradientStep &step, Scalar areWhole) const {
  Scalar isOpen = b.boolean(true);
  if (hidesInCut())
    isOpen = step.isCut == b.boolean(false);
  // Weights of queries behind the end are 0; those of keys are not, nor those
  // of which a region makes scores.
  if (!ownsKeys || scoring.scores())
    isOpen = isOpen & ((step.block + 1) * streamed <= streamedRows);
  return Value(areWhole) ? areWhole & isOpen : isOpen;
}

Value GradientFrame::hide(Value scores, Scalar row, const GradientStep &step,
                          Scalar column, const Scoring::Rows &rows,
                          Scalar endOfRows) const {
  auto hideEnd = [&]() -> SmallVector<Value> {
    return {band->withoutMask().hide(b, scores, row, column, endOfRows)};
  };
  if (!hidesInCut())
    return hideEnd()[0];
  return b.choose(
      step.isCut,
      [&]() -> SmallVector<Value> {
        Value seen = band->hide(b, scores, row, column, endOfRows);
        return {scoring.hidden(b, rows, seen, column, /*isCut=*/true)};
      },
      hideEnd)[0];
}

void GradientFrame::reserveQueues(int64_t consumers, int64_t others,
                                  int64_t ofSteps) {
  if (problem.ragged) {
    queue = tileQueueOfSequences(b, consumers + others, ownsKeys);
    return;
  }
  if (!lists) {
    queue = tileQueue(b, consumers + others);
    return;
  }
  Scalar heads = arguments.get(b, "heads");
  queue = tileQueueOfLists(b, consumers + others,
                           ownsKeys ? heads / sharers : heads);
  steps = stepQueue(b, consumers + ofSteps);
}

static BlockOfHead stripOf(const GradientFrame &f, bool fromEnd) {
  TileBuilder &b = f.b;
  Scalar number = b.programId(0);
  if (fromEnd)
    number = b.gridSize(0) - 1 - number;
  Scalar blocks = f.problem.ragged
                      ? RaggedRows(f.arguments, f.problem, f.block).slots(b)
                      : b.ceilDiv(f.arguments.get(b, "queries"), f.block);
  return BlockOfHead::of(b, number, blocks * (f.block / kStripRows),
                         f.arguments.get(b, "heads"));
}

StripRows::StripRows(const GradientFrame &f, bool fromEnd)
    : StripRows(f, stripOf(f, fromEnd)) {}

StripRows::StripRows(const GradientFrame &f, const BlockOfHead &at)
    : tile(at.number), head(at.head), batch(at.batch), warp(f.b.warpId()) {
  if (f.problem.ragged) { // the number of a slot's strip
    int64_t strips = f.block / kStripRows;
    Scalar slot = tile / strips;
    sequence = RaggedRows(f.arguments, f.problem, f.block).at(f.b, slot, head);
    tile = sequence.row / kStripRows + (tile - slot * strips);
    batch = sequence.batch;
  }
  place(f);
}

StripRows::StripRows(const GradientFrame &f, Scalar batch, Scalar head,
                     Scalar part)
    : tile(part / kWarpsPerGroup), head(head), batch(batch),
      warp(part % kWarpsPerGroup) {
  place(f);
}

void StripRows::place(const GradientFrame &f) {
  row = tile * kStripRows + warp * kWarpRows;
  int64_t strips = f.block / kStripRows;
  strip = tile % strips;
  if (!sequence.isOfSequence()) {
    block = f.numberOf(batch, head, tile / strips);
    return;
  }
  block = f.numberOf(sequence, head, tile / strips);
  queries = sequence.queries;
}

void StripRows::ifAny(TileBuilder &b, function_ref<void()> body) const {
  if (sequence.isOfSequence())
    b.when(sequence.row < queries, body);
  else
    body();
}
