//===- Diagram.cpp - The picture of a schedule ----------------------------===//

#include "DiagramLayout.h"
#include "MachineName.h"

#include "attn/Report/Pictures.h"
#include "attn/Report/Report.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Registry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <algorithm>
#include <cmath>

using namespace attn;
using llvm::Twine;

namespace {

/// A level's lane, and what lies there.
struct Colours {
  const char *lane, *tile, *ring, *line;
};
constexpr Colours kMemory = {"#dfe2e6", "#ffffff", "#ffffff", "#1f2328"},
                  kSmem = {"#fff3df", "#ffcf8f", "#fffaf2", "#9a4d00"},
                  kRegisters = {"#e4f4e8", "#a9dcb5", "#f4fbf6", "#14662a"},
                  kProducts = {"#e2ecfb", "#b9d2f7", "#ffffff", "#0a4a8f"};
constexpr const char *kNone = "none";
constexpr int64_t kRowGap = 22, kMemoryLane = 22, kMemoryWidth = 44,
                  kGaugeWidth = 220, kSumWidth = 420;

const Colours &coloursOf(Level level) {
  return level == Level::Smem ? kSmem : kRegisters;
}

/// Whether what is spilled is more than L2 keeps.
bool leavesL2(const Plan &plan, const Machine &machine) {
  double kept = calibrationOf(machine).l2UsableShare * double(machine.l2Bytes);
  return double(plan.footprint.scratchBytes) > kept;
}

class Picture : Sheet {
public:
  Picture(const PlanReport &report, const Plan &plan)
      : problem(atLeastOne(report.problem)), report(report), plan(plan),
        schedule(findScheduleKind(plan.schedule)->build(plan.tiles)),
        shown(diagram(schedule, problem)),
        hasMemory(leavesL2(plan, report.machine)) {
    for (const Mark &mark : shown.marks) {
      mostBytes = std::max(mostBytes, mark.slowBytes);
      mostWords = std::max(mostWords, mark.held.all());
    }
  }

  std::string draw() {
    heading();
    written();
    systems();
    sums();
    legend();
    return svg.file(width + kEdge, y + kEdge,
                    decision(plan.schedule, plan.tiles) + ": " +
                        describe(problem) + " on " +
                        nameWithFacts(report.machine));
  }

private:
  const Problem problem;
  const PlanReport &report;
  const Plan &plan;
  const Schedule schedule;
  const Diagram shown;
  const bool hasMemory; ///< whether scratch leaves L2
  int64_t mostBytes = 1, mostWords = 1;

  int64_t cache() const { return cacheWords(problem, report.machine); }

  void heading() {
    line(decision(plan.schedule, plan.tiles), true);
    line(describe(problem) + " on " + nameWithFacts(report.machine));
    y += kLineHeight / 2;
  }

  //===--------------------------------------------------------------------===//
  // The op as it is written
  //===--------------------------------------------------------------------===//

  /// All in one lane: nothing says yet where a tensor lies.
  void written() {
    line("As written: every tensor whole, in memory", true);
    std::vector<Operation> all = operationsOf(problem);
    int64_t top = y + 2, x = kMargin + kShaft, bytes = 0;
    constexpr int64_t height = 24, between = 26;
    std::vector<int64_t> lefts;
    for (const Operation &one : all) {
      int64_t words = std::max(textWidth(one.formula) + 2 * kShaft,
                               textWidth(sizeText(one.result)));
      lefts.push_back(x);
      x += words + between;
    }
    int64_t laneHeight = height + 2 * kLineHeight + 18;
    lane({kMargin, top, x - kMargin, laneHeight}, kMemory, "memory");
    for (auto [one, left] : llvm::zip(all, lefts)) {
      for (Tensor tensor : one.reads)
        bytes += wholeBytes(tensor, problem);
      bytes += wholeBytes(one.result, problem);
      operation(one, left, top + 6, height);
    }
    y = top + laneHeight + 6;
    width = std::max(width, x);
    text(kMargin, y,
         "one after the other: " + grouped(bytes) + " bytes (" +
             amountText(bytes) + ")",
         Svg::kFaint);
    y += kRowGap + kLineHeight;
  }

  std::string sizeText(Tensor tensor) const {
    Shape shape = shapeOf(tensor);
    return std::to_string(extent(problem, shape.rows)) +
           (shape.cols ? "×" + std::to_string(extent(problem, *shape.cols))
                       : "") +
           ", " + amountText(wholeBytes(tensor, problem));
  }

  void operation(const Operation &one, int64_t x, int64_t top, int64_t height) {
    svg.begin("operation", one.formula);
    svg.box({x, top, textWidth(one.formula) + 2 * kShaft, height},
            {kMemory.tile, kMemory.line, false, 1, 4});
    svg.text(x + kShaft, top + 4, one.formula);
    svg.text(x, top + height + 6, std::string(name(one.result)), Svg::kInk,
             true);
    svg.text(x, top + height + 6 + kLineHeight, sizeText(one.result));
    svg.end();
  }

  //===--------------------------------------------------------------------===//
  // The schedule
  //===--------------------------------------------------------------------===//

  void systems() {
    line("As scheduled: " + findScheduleKind(plan.schedule)->summary, true);
    y += 4;
    size_t rounds = shown.frames.size();
    int64_t top = 0;
    for (const DrawnGrid &grid : shown.grids) {
      const Frame &frame = shown.frames[grid.frame];
      if (frame.parent != grid.frame && rounds == shown.frames.size()) {
        rounds = frame.parent;
        top = y;
        y += kLineHeight + 8;
      }
      system(grid);
    }
    if (rounds < shown.frames.size())
      roundsFrame(shown.frames[rounds], top);
  }

  void roundsFrame(const Frame &frame, int64_t top) {
    width = std::max(width + kEdge,
                     2 * kEdge + textWidth(frame.what + ", " + frame.how));
    svg.begin("frame", frame.what + ", " + frame.how);
    svg.box({kEdge / 2, top, width - kEdge / 2, y - top - 6},
            {kNone, Svg::kInk, false, 2, 6});
    svg.text(kEdge, top + 4, frame.what + ", " + frame.how, Svg::kInk, true);
    svg.end();
    y += kRowGap / 2;
  }

  std::string launchText(const DrawnGrid &grid) const {
    std::string text = "launch " + std::to_string(grid.launch + 1) + " of " +
                       std::to_string(shown.launches);
    return text + (grid.isMain ? ": " : ", by the same blocks: ") +
           shown.frames[grid.frame].more;
  }

  void system(const DrawnGrid &grid) {
    text(kEdge, y, launchText(grid), Svg::kFaint);
    y += kLineHeight + 2;
    bool hasLane =
        hasMemory && grid.isMain && plan.launches[grid.launch].bytes.hbm > 0;
    int64_t top = y;
    y += hasLane ? kMemoryLane + kRowGap / 2 : 0;
    System own = layoutSystem(shown, grid.frame, problem, y,
                              kMargin + (hasMemory ? kMemoryWidth : 0));
    width = std::max(width, own.right);
    lanes(own);
    if (hasLane)
      memoryLane(own, top, grid.launch);
    for (const FrameBox &box : own.frames)
      frame(box);
    for (const DrawnBand &band : own.bands)
      this->band(band);
    for (const Column &column : own.columns)
      mark(own, column);
    bars(own);
    y = own.bottom + 6;
    if (grid.isMain)
      gauge(plan.launches[grid.launch].footprint);
    y += kRowGap;
  }

  void lane(const Rectangle &box, const Colours &colours,
            const std::string &name) {
    if (box.height == 0)
      return;
    svg.box(box, {colours.lane, kNone});
    svg.text(kEdge, box.y + box.height / 2 - kLineHeight / 2, name,
             colours.line);
  }

  void lanes(const System &own) {
    lane(own.l2, kMemory, "L2");
    lane(own.smem, kSmem, "shared memory");
    lane(own.registers, kRegisters, "registers");
    lane(own.products, kProducts,
         plan.family == TensorCoreFamily::none ? "FMA units" : "tensor cores");
  }

  /// Of a launch: by the model, so in all and not by tensor.
  void memoryLane(const System &own, int64_t top, size_t launch) {
    int64_t bytes = plan.launches[launch].bytes.hbm, x = kMargin + kShaft;
    std::string words = amountText(bytes) + " in this launch, by the model";
    width = std::max(width, kMargin + kBeside + textWidth(words));
    Rectangle box = {kMargin, top, width - kMargin, kMemoryLane};
    lane(box, kMemory, "device memory");
    Look look = {kNone, kMemory.line, false, 3};
    svg.begin("memory",
              "to and from device memory, by the model: " + grouped(bytes) +
                  " bytes",
              " data-memory-bytes=\"" + Twine(bytes) + "\"");
    svg.arrow(x, box.bottom(), own.l2.y, look);
    svg.arrow(x + kBeside, own.l2.y, box.bottom(), look);
    svg.text(x, top + 3, words);
    svg.end();
  }

  void frame(const FrameBox &box) {
    const Frame &frame = shown.frames[box.frame];
    bool isLoop = frame.kind == FrameKind::loop; // one after the other
    svg.begin("frame", frame.what + ", " + frame.how +
                           (frame.more.empty() ? "" : ", " + frame.more));
    svg.box(box.box, {kNone, Svg::kInk, isLoop, isLoop ? 1 : 2, 4});
    svg.text(box.box.x + 6, box.box.y + 3, frame.what, Svg::kInk, true);
    svg.text(box.box.x + 6, box.box.y + 3 + kLineHeight, frame.how,
             Svg::kFaint);
    svg.end();
  }

  //===--------------------------------------------------------------------===//
  // Marks
  //===--------------------------------------------------------------------===//

  std::string titleOf(const Mark &mark) const {
    std::string tensor(name(tensorOf(mark.node())));
    std::string caption = captionOf(mark.node(), problem);
    bool moves = moveOf(mark.node()) != Move::none;
    std::string text =
        occupies(mark.node()) || moves ? tensor + " " + caption : caption;
    text += ": " + grouped(mark.count) + " times";
    if (mark.rows)
      text += ", a tile of " + std::to_string(mark.rows) +
              (mark.cols ? " x " + std::to_string(mark.cols) : "");
    if (moves)
      text += ", " + grouped(mark.slowBytes) + " bytes to or from L2";
    if (mark.smemBytes)
      text +=
          ", " + grouped(mark.smemBytes) + " bytes in and out of shared memory";
    return text;
  }

  static std::string smemAttribute(const Mark &mark) {
    return " data-smem-bytes=\"" + std::to_string(mark.smemBytes) + "\"";
  }

  /// A hold has no other mark.
  void band(const DrawnBand &band) {
    const Mark &mark = shown.marks[band.mark];
    const Colours &colours = coloursOf(levelOf(mark.node()));
    bool isHold = mark.node().is<verb::Hold>();
    svg.begin("band", titleOf(mark),
              isHold ? smemAttribute(mark) : std::string());
    svg.box(band.box, {band.streams ? colours.ring : colours.tile, colours.line,
                       band.streams, 1, 3});
    svg.text(band.labelAt, band.box.y + 2, band.label);
    svg.end();
  }

  void mark(const System &own, const Column &column) {
    const Mark &mark = shown.marks[column.mark];
    if (moveOf(mark.node()) == Move::none)
      return box(own, column, mark);
    arrow(own, column, mark);
  }

  /// Where an arrow ends inside a multiprocessor.
  int64_t endOf(const System &own, const Column &column,
                const Mark &mark) const {
    if (const DrawnBand *band =
            own.bandOf(shown, tensorOf(mark.node()), column))
      return moveOf(mark.node()) == Move::down ? band->box.y : band->box.y + 4;
    const Rectangle &lane =
        levelOf(mark.node()) == Level::Smem ? own.smem : own.registers;
    return lane.y + lane.height / 2;
  }

  int64_t strokeOf(const Mark &mark) const {
    constexpr double most = 8;
    double share = std::sqrt(double(mark.slowBytes) / double(mostBytes));
    return std::max<int64_t>(1, std::llround(most * share));
  }

  void arrow(const System &own, const Column &column, const Mark &mark) {
    const Node &node = mark.node();
    bool isDown = moveOf(node) == Move::down;
    bool isScratch = isOfScratch(node, problem);
    int64_t end = endOf(own, column, mark), x = column.x + kShaft;
    Look look = {kNone, coloursOf(levelOf(node)).line, isScratch,
                 strokeOf(mark)};
    svg.begin("arrow", titleOf(mark),
              " data-bytes=\"" + Twine(mark.slowBytes) + "\"" +
                  smemAttribute(mark));
    isDown ? svg.arrow(x, own.l2.bottom(), end, look)
           : svg.arrow(x, end, own.l2.bottom(), look);
    std::string place(name(tensorOf(node)));
    if (isScratch)
      svg.box({column.x + kBeside - 4, own.l2.y + 3, textWidth(place) + 8,
               own.l2.height - 6},
              {kMemory.tile, kMemory.line, true, 1, 3});
    svg.text(column.x + kBeside, own.l2.y + 5, place, Svg::kInk, true);
    svg.text(column.x + kBeside, own.captions, captionOf(node, problem));
    svg.text(column.x + kBeside, own.captions + kLineHeight,
             amountText(mark.slowBytes));
    svg.end();
  }

  /// Of a product, its operands come from above where they are in shared
  /// memory.
  void operands(const System &own, const Column &column, const Use &use,
                const verb::Multiply &product) {
    int64_t x = column.x + column.width - 16;
    for (Tensor tensor : {product.a, product.b}) {
      bool isInSmem = tensor == product.a ? use.aInSmem : use.bInSmem;
      const DrawnBand *band = own.bandOf(shown, tensor, column);
      if (isInSmem && band)
        svg.arrow(x, band->box.bottom(), own.products.y + 4,
                  {kNone, kProducts.line});
      x += 8;
    }
  }

  void box(const System &own, const Column &column, const Mark &mark) {
    const Node &node = mark.node();
    auto *product = node.as<verb::Multiply>();
    bool isInSmem = levelOf(node) == Level::Smem;
    const Colours &colours = product ? kProducts : coloursOf(levelOf(node));
    int64_t top = product    ? own.products.y + 4
                  : isInSmem ? own.smemBoxes
                             : own.registerBoxes;
    std::string caption = captionOf(node, problem);
    svg.begin("box", titleOf(mark), smemAttribute(mark));
    if (product)
      operands(own, column, mark.use, *product);
    svg.box({column.x + 3, top, column.width - 6, 24},
            {product ? colours.tile : Svg::kPaper, colours.line, false, 1,
             product ? 2 : 11});
    svg.text(column.x + 14, top + 4, caption);
    svg.end();
  }

  //===--------------------------------------------------------------------===//
  // What is held
  //===--------------------------------------------------------------------===//

  int64_t barHeight(int64_t words) const {
    return words * kBarHeight / std::max(mostWords, cache());
  }

  void bars(const System &own) {
    int64_t base = own.bars + kBarHeight, most = 0;
    svg.text(kEdge, base - kLineHeight, "words");
    for (const Column &column : own.columns) {
      const HeldWords &held = shown.marks[column.mark].held;
      most = std::max(most, held.all());
      int64_t low = barHeight(held.smem), all = barHeight(held.all());
      svg.begin("bar",
                grouped(held.smem) + " words in shared memory, " +
                    grouped(held.registers) + " in registers",
                " data-words=\"" + Twine(held.all()) + "\"");
      svg.box({column.x + 1, base - low, column.width - 2, low},
              {kSmem.tile, kSmem.line});
      svg.box({column.x + 1, base - all, column.width - 2, all - low},
              {kRegisters.tile, kRegisters.line});
      svg.end();
    }
    svg.line(kMargin, base, own.right, base, {kNone, Svg::kInk});
    limit(own, base - barHeight(cache()));
    widest(own, most, base - barHeight(cache()));
  }

  void limit(const System &own, int64_t at) {
    std::string words = "M = " + grouped(cache());
    svg.begin("limit", words + " words, the shared memory of a block");
    svg.line(kMargin, at, own.right, at, {kNone, Svg::kInk, true, 2});
    svg.end();
    text(own.right - textWidth(words), own.bars - kLineHeight, words);
  }

  /// The number of the widest bar, on no line: above the bar where the limit
  /// leaves room, else within it, else within it and below the limit.
  void widest(const System &own, int64_t most, int64_t limit) {
    auto first = llvm::find_if(own.columns, [&](const Column &column) {
      return shown.marks[column.mark].held.all() == most;
    });
    int64_t top = own.bars + kBarHeight - barHeight(most), at = top + 1;
    if (top - kLineHeight > limit + 1)
      at = top - kLineHeight;
    else if (at <= limit + 1 && limit <= at + kLineHeight)
      at = limit + 2;
    text(first->x + 4, at, grouped(most));
  }

  void gauge(const Footprint &space) {
    int64_t limit = report.machine.smemBytesPerBlock;
    std::string words =
        grouped(space.smemBytes) + " of " + grouped(limit) +
        " bytes of shared memory, " + std::to_string(space.registersPerThread) +
        " registers of " + std::to_string(space.threads) + " threads";
    svg.begin("gauge", "a block takes " + words,
              " data-block-bytes=\"" + Twine(space.smemBytes) + "\"");
    svg.box({kMargin, y + 2, kGaugeWidth, 12}, {Svg::kPaper, Svg::kInk});
    svg.box({kMargin, y + 2, space.smemBytes * kGaugeWidth / limit, 12},
            {kSmem.tile, kSmem.line});
    svg.end();
    svg.text(kEdge, y, "a block takes");
    text(kMargin + kGaugeWidth + kShaft, y, words);
    y += kLineHeight;
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  void sum(const std::string &what, int64_t bytes, int64_t most,
           const std::string &more) {
    int64_t length = std::llround(double(bytes) / double(most) * kSumWidth);
    svg.text(kEdge, y, what);
    svg.box({kMargin, y + 2, length, 12}, {kMemory.lane, kMemory.line});
    text(kMargin + kSumWidth + kShaft, y,
         grouped(bytes) + " bytes (" + amountText(bytes) + ")" + more);
    y += kLineHeight + 2;
  }

  void sums() {
    line("Bytes between L2 and the multiprocessors", true);
    int64_t bound = report.lowerBoundBytes;
    int64_t most = std::max(plan.bytes.l2, bound);
    std::string times;
    llvm::raw_string_ostream(times) << llvm::format(
        ", %.2f x the least",
        double(plan.bytes.l2) / double(std::max<int64_t>(1, bound)));
    sum("all arrows", plan.bytes.l2, most, times);
    sum("lower bound", bound, most, ", whatever the schedule");
    y += kRowGap / 2;
  }

  /// What strokes say, for who sees no colours.
  void legend() {
    int64_t x = kEdge;
    auto sample = [&](const Look &look, const std::string &words,
                      const std::string &name = "") {
      svg.box({x, y + 1, 28, 15}, look);
      if (!name.empty())
        svg.text(x + 10, y, name);
      text(x + 34, y, words, Svg::kFaint);
      x += 34 + textWidth(words) + kRowGap;
    };
    sample({kSmem.tile, kSmem.line, false, 1, 3}, "stays");
    sample({kSmem.ring, kSmem.line, true, 1, 3},
           "streams: the next step overwrites it");
    sample({kMemory.tile, kMemory.line, true, 1, 3},
           "in scratch memory: spilled", "P");
    sample({kNone, Svg::kInk, true, 1, 3}, "loop");
    sample({kNone, Svg::kInk, false, 2, 3}, "in parallel");
    y += kLineHeight;
    text(kEdge, y + 2,
         "M: words of the shared memory of a block; bars: words held there "
         "(below) and in registers (above)",
         Svg::kFaint);
    y += kLineHeight + 2;
  }
};

} // namespace

std::string attn::diagramSvg(const PlanReport &report, const Plan &plan) {
  return Picture(report, plan).draw();
}
