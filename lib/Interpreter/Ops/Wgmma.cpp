//===- Wgmma.cpp - Products that four warps start together ----------------===//

#include "Memory/Elements.h"
#include "Run/Buffers.h"
#include "Run/Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

//===----------------------------------------------------------------------===//
// What the warps of a group agree on
//===----------------------------------------------------------------------===//

bool Products::start(Warp &warp, const Instruction &in,
                     ArrayRef<int64_t> places) {
  std::vector<Product> &group = groups[warp.id / kWarpsOfGroup];
  unsigned number = warp.productsStarted++;
  if (number == group.size()) {
    group.push_back({in.index, SmallVector<int64_t, 4>(places), warp.id, 1});
    return true;
  }
  Product &product = group[number];
  ++product.warps;
  if (product.instruction == in.index && ArrayRef(product.places) == places)
    return true;
  bool same = product.instruction == in.index;
  warp.report(in, "warpgroup",
              "expects the warps of a warpgroup to start the same products in "
              "the same order, but got " +
                  Twine(same ? "this one at other places" : "another one") +
                  " in warp " + Twine(product.firstWarp),
              warp.block.program.ops[product.instruction],
              "warp " + Twine(product.firstWarp) + " is here");
  return false;
}

void Products::checkEnd(ThreadBlock &block) const {
  for (auto [index, group] : llvm::enumerate(groups))
    for (const Product &product : group)
      if (product.warps != kWarpsOfGroup)
        block.reporter.report(
            block.program.ops[product.instruction], "warps",
            "expects all " + Twine(kWarpsOfGroup) +
                " warps of a warpgroup to start the product, but got " +
                Twine(product.warps) + " of warpgroup " + Twine(index) + " (" +
                block.name() + ")");
}

//===----------------------------------------------------------------------===//
// tile.wgmma
//===----------------------------------------------------------------------===//

namespace {
/// One execution of the op by a warp.
class Product {
public:
  Product(Warp &warp, const Instruction &in)
      : warp(warp), in(in), op(cast<tile::WgmmaOp>(in.op)),
        token(warp.block.shared.beginRead(warp.id)) {}

  Step run();

private:
  bool place();
  std::shared_ptr<Matrix> read(const Part &part);

  Warp &warp;
  const Instruction &in;
  tile::WgmmaOp op;
  unsigned token;
  /// The factors in shared memory.
  std::optional<Part> lhs, rhs;
};
} // namespace

/// Finds the factors.
bool Product::place() {
  int64_t depth = op.depth(), columns = op.getResult().getType().getColumns();
  bool transpose = op.getTranspose();
  SmallVector<int64_t, 4> places;
  if (isa<tile::SmemType>(op.getLhs().getType())) {
    int64_t stage = warp.integer(in, 1), row = warp.integer(in, 2);
    places = {stage, row};
    const Buffer &left = warp.buffer(in, 0);
    bool isDown = op.getLhsTranspose();
    int64_t unit = isDown ? left.type.panelColumns() : 8;
    StringRef what = isDown ? "column" : "row";
    if (row % unit != 0) {
      warp.report(in, what,
                  "expects a " + what + " of the left factor in multiples of " +
                      Twine(unit) + ", but got " + Twine(row));
      return false;
    }
    constexpr int64_t warpRows = 16;
    int64_t first = row + warp.id % kWarpsOfGroup * warpRows;
    lhs.emplace(isDown ? Part{left, stage, 0, depth, first, warpRows}
                       : Part{left, stage, first, warpRows, 0, depth});
    if (!checkInside(warp, in, *lhs))
      return false;
  }
  unsigned rhsOperand = op.getRhsMutable().getOperandNumber();
  const Buffer &right = warp.buffer(in, rhsOperand);
  int64_t stage = warp.integer(in, rhsOperand + 1);
  int64_t column = op.getRhsColumn() ? warp.integer(in, rhsOperand + 2) : 0;
  places.append({stage, column});
  if (column % right.type.panelColumns() != 0) {
    warp.report(in, "column",
                "expects a column of the right factor in multiples of " +
                    Twine(right.type.panelColumns()) + ", but got " +
                    Twine(column));
    return false;
  }
  rhs.emplace(Part{right, stage, 0, transpose ? columns : depth, column,
                   transpose ? depth : columns});
  return checkInside(warp, in, *rhs) &&
         warp.block.products.start(warp, in, places);
}

/// A part of a buffer as a matrix, read by the tensor cores.
std::shared_ptr<Matrix> Product::read(const Part &part) {
  std::vector<uint8_t> bytes(part.bytes());
  if (std::optional<Breach> breach = warp.block.shared.readLater(
          part.rectangle(), warp.id, in.index, token, bytes.data()))
    reportBreach(warp, in, part, *breach, "read");
  bytes = asColumns(part, std::move(bytes));
  auto matrix = std::make_shared<Matrix>(part.rows, part.columns);
  decode(part.buffer.type.getElementType(), bytes.data(), matrix->reals);
  return matrix;
}

static std::shared_ptr<Matrix> transposed(const Matrix &matrix) {
  auto result = std::make_shared<Matrix>(matrix.columns, matrix.rows);
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (int64_t j = 0; j < matrix.columns; ++j)
      result->row(j)[i] = matrix.row(i)[j];
  return result;
}

Step Product::run() {
  if (!place())
    return Step::stop;
  MatrixRef left = lhs ? read(*lhs) : warp.matrix(in, 0);
  if (op.getLhsTranspose())
    left = transposed(*left);
  std::shared_ptr<Matrix> right = read(*rhs);
  if (op.getTranspose())
    right = transposed(*right);
  tile::PendingType type = op.getResult().getType();
  auto sum = std::make_shared<Matrix>(type.getRows(), type.getColumns());
  if (op.getAcc()) {
    auto last = unsigned(in.operands.size() - 1);
    bool pending = isa<tile::PendingType>(op.getAcc().getType());
    *sum = pending ? *warp.pending(in, last).sum : *warp.matrix(in, last);
  }
  multiply(*left, *right, *sum);
  int64_t quarter = int64_t(right->reals.size()) / kWarpsOfGroup;
  int64_t elements = quarter + (lhs ? int64_t(left->reals.size()) : 0);
  warp.block.traffic.smem += elements * op.getRhs().getType().elementBytes();
  warp.products.push_back({token, op});
  return warp.set(in, Pending{std::move(sum), token});
}

Step attn::interpreter::runWgmma(Warp &warp, const Instruction &in) {
  return Product(warp, in).run();
}

//===----------------------------------------------------------------------===//
// tile.wgmma_wait
//===----------------------------------------------------------------------===//

Step attn::interpreter::runWgmmaWait(Warp &warp, const Instruction &in) {
  size_t allowed = cast<tile::WgmmaWaitOp>(in.op).getInFlight();
  auto groups = [&] {
    return size_t(llvm::count_if(warp.products, [](const InFlight &product) {
      return !cast<tile::WgmmaOp>(product.op).getOpen();
    }));
  };
  while (groups() > allowed) {
    warp.block.shared.endRead(warp.id, warp.products.front().token);
    warp.products.pop_front();
  }
  for (auto [operand, result] : llvm::enumerate(in.results)) {
    const Pending &product = warp.pending(in, unsigned(operand));
    for (const InFlight &other : warp.products)
      if (other.token == product.token)
        return warp.stop(in, "in flight",
                         "expects the product to be done, but got it in "
                         "flight beside " +
                             Twine(allowed) + " others");
    warp.cell(result) = product.sum;
  }
  return Step::next;
}
