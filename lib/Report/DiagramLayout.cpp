//===- DiagramLayout.cpp - Where a diagram has what -----------------------===//

#include "DiagramLayout.h"

#include "attn/Report/Report.h"
#include <algorithm>

using namespace attn;

static constexpr int64_t kColumnEnd = 10, kLeastColumn = 60;
/// Beside the words of a box, and of a product also what it reads.
static constexpr int64_t kBoxEnds = 14, kOperands = 24;
/// Between a frame and what is in it.
static constexpr int64_t kFramePad = 10;
static constexpr int64_t kHeading = 2 * kLineHeight + 6;
static constexpr int64_t kBandHeight = 20, kBandGap = 4, kBoxHeight = 24;
static constexpr int64_t kLaneGap = 8, kNoBand = 20, kL2Height = 26;

std::string attn::amountText(int64_t bytes) { return bytesText(double(bytes)); }

bool attn::isOfScratch(const Node &node, const Problem &problem) {
  const InScratch scratch = scratchOf(node);
  if (moveOf(node) == Move::none || node.is<verb::Store>() || scratch.isKept)
    return false;
  if (moveOf(node) == Move::up || scratch.partColumns > 0)
    return true;
  Tensor tensor = tensorOf(node);
  bool isBackward = problem.direction == Direction::backward;
  bool isRow = tensor == Tensor::Lse || tensor == Tensor::GradLse;
  return !isInput(tensor, problem) && !(isBackward && isRow);
}

/// Tiles of it that there are room for.
static int64_t ringOf(const Mark &mark) {
  const Node &node = mark.node();
  if (auto *hold = node.as<verb::Hold>())
    return hold->buffers;
  if (auto *load = node.as<verb::Load>())
    return load->buffers;
  auto *stream = node.as<verb::Stream>();
  bool isRing = stream && stream->level == Level::Smem;
  return !isRing ? 1 : stream->buffers ? stream->buffers : mark.stages;
}

/// `K 2×128×64`: two tiles of 128 rows.
static std::string labelOf(const Mark &mark) {
  int64_t ring = ringOf(mark);
  return std::string(name(tensorOf(mark.node()))) + " " +
         (ring > 1 ? std::to_string(ring) + "×" : "") +
         std::to_string(mark.rows) +
         (mark.cols ? "×" + std::to_string(mark.cols) : "");
}

const DrawnBand *System::bandOf(const Diagram &diagram, Tensor tensor,
                                const Column &column) const {
  const DrawnBand *found = nullptr;
  for (const DrawnBand &band : bands)
    if (tensorOf(diagram.marks[band.mark].node()) == tensor &&
        band.box.x < column.x + column.width && band.box.right() > column.x)
      found = &band;
  return found;
}

namespace {

class SystemLayout {
public:
  SystemLayout(const Diagram &diagram, size_t frame, const Problem &problem)
      : diagram(diagram), around(diagram.frames[frame]), problem(problem) {
    for (size_t i = frame; i < diagram.frames.size(); ++i)
      if (diagram.frames[i].first >= around.first &&
          diagram.frames[i].last <= around.last)
        result.frames.push_back({i, {}});
    for (size_t i = around.first; i <= around.last; ++i)
      if (!diagram.marks[i].node().is<verb::Hold>())
        result.columns.push_back({i, 0, kLeastColumn});
  }

  System result;

  void run(int64_t top, int64_t left) {
    result.left = left;
    measureColumns();
    widenFrames();
    placeColumns();
    placeBands();
    stack(top);
  }

private:
  const Diagram &diagram;
  const Frame &around;
  const Problem &problem;

  const Node &nodeOf(const Column &column) const {
    return diagram.marks[column.mark].node();
  }

  /// The first column from a mark on, or the last one of all.
  size_t columnFrom(size_t mark) const {
    for (size_t i = 0; i < result.columns.size(); ++i)
      if (result.columns[i].mark >= mark)
        return i;
    return result.columns.size() - 1;
  }
  size_t columnUpTo(size_t mark) const {
    size_t last = 0;
    for (size_t i = 0; i < result.columns.size(); ++i)
      if (result.columns[i].mark <= mark)
        last = i;
    return last;
  }

  int64_t ownWidth(const Column &column) const {
    const Mark &mark = diagram.marks[column.mark];
    std::string caption = captionOf(mark.node(), problem);
    if (moveOf(mark.node()) == Move::none)
      return textWidth(caption) + 2 * kBoxEnds;
    std::string_view tensor = name(tensorOf(mark.node()));
    int64_t words = std::max({textWidth(tensor) + 8, textWidth(caption),
                              textWidth(amountText(mark.slowBytes))});
    return kBeside + words + kColumnEnd;
  }

  void measureColumns() {
    for (Column &column : result.columns)
      column.width = std::max(column.width, ownWidth(column));
    for (size_t i = around.first; i <= around.last; ++i) {
      const Mark &mark = diagram.marks[i];
      if (!occupies(mark.node()))
        continue;
      Column &column = result.columns[columnFrom(i)];
      int64_t end =
          nodeOf(column).is<verb::Multiply>() ? kOperands : kColumnEnd;
      column.width =
          std::max(column.width, kBeside + textWidth(labelOf(mark)) + end);
    }
  }

  /// Frames that begin before a column, or end behind it.
  int64_t edges(size_t column, bool areEnds) const {
    int64_t count = 0;
    for (const FrameBox &box : result.frames) {
      const Frame &frame = diagram.frames[box.frame];
      count += column ==
               (areEnds ? columnUpTo(frame.last) : columnFrom(frame.first));
    }
    return count;
  }

  int64_t widthOf(const Frame &frame) const {
    int64_t width = 0;
    for (size_t i = columnFrom(frame.first); i <= columnUpTo(frame.last); ++i)
      width += result.columns[i].width;
    return width;
  }

  /// Headings fit; inner frames first, as outer ones become wider with them.
  void widenFrames() {
    for (size_t i = result.frames.size(); i-- > 0;) {
      const Frame &frame = diagram.frames[result.frames[i].frame];
      int64_t words = std::max(textWidth(frame.what), textWidth(frame.how));
      int64_t missing = words + kFramePad - widthOf(frame);
      if (missing > 0)
        result.columns[columnUpTo(frame.last)].width += missing;
    }
  }

  void placeColumns() {
    int64_t x = result.left;
    for (size_t i = 0; i < result.columns.size(); ++i) {
      x += kFramePad * edges(i, false);
      result.columns[i].x = x;
      x += result.columns[i].width + kFramePad * edges(i, true);
    }
    result.right = x + kFramePad;
  }

  /// Frames that begin or end at the same column lie in each other.
  int64_t innerEdges(size_t depth, size_t column, bool areEnds) const {
    int64_t count = 0;
    for (const FrameBox &other : result.frames) {
      const Frame &frame = diagram.frames[other.frame];
      size_t edge = areEnds ? columnUpTo(frame.last) : columnFrom(frame.first);
      count += edge == column && frame.depth > depth;
    }
    return count;
  }

  /// The left of what begins with a column in a frame of that depth, and the
  /// right of what ends with one.
  int64_t leftOf(size_t column, size_t depth) const {
    return result.columns[column].x -
           kFramePad * innerEdges(depth, column, false);
  }
  int64_t rightOf(size_t column, size_t depth) const {
    const Column &last = result.columns[column];
    return last.x + last.width + kFramePad * innerEdges(depth, column, true);
  }

  void placeBands() {
    for (size_t i = around.first; i <= around.last; ++i) {
      const Mark &mark = diagram.marks[i];
      if (!occupies(mark.node()))
        continue;
      size_t depth = diagram.frames[mark.frame].depth;
      size_t from = columnFrom(i);
      size_t last = columnUpTo(diagram.frames[mark.frame].last);
      int64_t x = leftOf(from, depth) + 3, right = rightOf(last, depth) - 3;
      result.bands.push_back({i,
                              labelOf(mark),
                              result.columns[from].x + kBeside,
                              mark.node().is<verb::Stream>(),
                              {x, 0, right - x, kBandHeight}});
    }
  }

  /// Puts the bands of a level under each other where they would overlap; the
  /// bottom.
  int64_t stackBands(Level level, int64_t top) {
    std::vector<int64_t> ends; // of each row
    for (DrawnBand &band : result.bands) {
      if (levelOf(diagram.marks[band.mark].node()) != level)
        continue;
      size_t row = 0;
      while (row < ends.size() && ends[row] > band.box.x)
        ++row;
      ends.resize(std::max(ends.size(), row + 1));
      ends[row] = band.box.right();
      band.box.y = top + int64_t(row) * (kBandHeight + kBandGap);
    }
    int64_t rows = int64_t(ends.size());
    return rows ? top + rows * (kBandHeight + kBandGap) : top + kNoBand;
  }

  template <typename Is> bool hasBoxes(Is is) const {
    return std::any_of(result.columns.begin(), result.columns.end(),
                       [&](const Column &column) {
                         const Node &node = nodeOf(column);
                         return moveOf(node) == Move::none && is(node);
                       });
  }

  Rectangle lane(int64_t top, int64_t bottom) const {
    return {kMargin, top, result.right - kMargin, bottom - top};
  }

  /// A lane of bands, with a row of boxes if there are any.
  Rectangle bandLane(Level level, bool hasRow, int64_t top, int64_t &boxes) {
    int64_t y = stackBands(level, top + kBandGap);
    boxes = y;
    if (hasRow)
      y += kBoxHeight + kBandGap;
    return lane(top, y);
  }

  void stack(int64_t top) {
    int64_t deepest = 0;
    for (const FrameBox &box : result.frames)
      deepest = std::max(deepest, depthOf(box));
    int64_t y = top + (deepest + 1) * kHeading;
    result.l2 = lane(y, y + kL2Height);
    result.captions = result.l2.bottom() + 4;
    y = result.captions + 2 * kLineHeight + 6;
    auto isProduct = [](const Node &node) { return node.is<verb::Multiply>(); };
    auto isInSmem = [&](const Node &node) {
      return !isProduct(node) && levelOf(node) == Level::Smem;
    };
    auto isInRegisters = [&](const Node &node) {
      return !isProduct(node) && levelOf(node) == Level::Registers;
    };
    result.smem =
        bandLane(Level::Smem, hasBoxes(isInSmem), y, result.smemBoxes);
    result.registers =
        bandLane(Level::Registers, hasBoxes(isInRegisters),
                 result.smem.bottom() + kLaneGap, result.registerBoxes);
    y = result.registers.bottom();
    result.products = lane(y, y);
    if (hasBoxes(isProduct)) {
      y += kLaneGap;
      result.products = lane(y, y + kBoxHeight + 2 * kBandGap);
      y = result.products.bottom();
    }
    constexpr int64_t inner = 6;
    for (FrameBox &box : result.frames)
      box.box = boxOf(box, top, y + inner * (deepest - depthOf(box) + 1));
    result.bars = y + inner * (deepest + 2) + kLineHeight;
    result.bottom = result.bars + kBarHeight;
  }

  int64_t depthOf(const FrameBox &box) const {
    return int64_t(diagram.frames[box.frame].depth - around.depth);
  }

  Rectangle boxOf(const FrameBox &box, int64_t top, int64_t bottom) const {
    const Frame &frame = diagram.frames[box.frame];
    int64_t x = leftOf(columnFrom(frame.first), frame.depth);
    int64_t right = rightOf(columnUpTo(frame.last), frame.depth);
    int64_t y = top + kHeading * depthOf(box);
    return {x - 4, y, right - x + 8, bottom - y};
  }
};

} // namespace

System attn::layoutSystem(const Diagram &diagram, size_t frame,
                          const Problem &problem, int64_t top, int64_t left) {
  SystemLayout layout(diagram, frame, problem);
  layout.run(top, left);
  return std::move(layout.result);
}
