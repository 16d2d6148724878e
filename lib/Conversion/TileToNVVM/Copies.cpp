//===- Copies.cpp - Between global and shared memory ----------------------===//
//
// A tile is copied in pieces of up to 16 bytes.  Lanes are dealt out so that
// each keeps its column: a pass of T lanes covers T / P whole rows of P pieces,
// and from pass to pass a lane goes down by that many rows.  Addresses then
// grow by constants, whatever the row length; lanes that do not fit sit idle.
// Of more than two rows a pass takes a multiple of four, in which places are
// the same or all swapped (`SmemType::swapsHalves`).
// Example: 128 lanes, rows of 96 bf16 (12 pieces of 16 bytes): 10 rows would
// fit, a pass is 8, 32 lanes are idle, 64 rows take 8 passes.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Passes that are written out; longer copies become loops over as many, or
/// less.  Of copies that shall be rolled, so few that their addresses cost less
/// than a loop, which has one pass then.
constexpr int64_t kMaxUnrolled = 16, kMaxUnrolledOfRolled = 2;

/// A piece's place in a tile: row `row + below`, column `column`.  What is
/// known when the code is built is kept apart, to become an immediate.
struct Piece {
  Value row;
  int64_t below;
  Value column;
  Value mine; ///< whether the lane has such a piece; null is always
};

/// How lanes are dealt out to the pieces of a tile.
struct Deal {
  Deal(Lane &b, Value lane, int64_t lanes, int64_t rows, int64_t pieces,
       bool isRolled = false)
      : rows(rows), pieces(pieces), isRolled(isRolled) {
    columns = std::min(lanes, pieces);
    rowsPerPass = lanes / columns;
    if (rowsPerPass > 2)
      rowsPerPass = std::max<int64_t>(rowsPerPass / 4 * 4, 2);
    row = b.div(lane, columns);
    column = b.rem(lane, columns);
    busy = rowsPerPass * columns == lanes ? Value()
                                          : b.less(row, b.i32(rowsPerPass));
  }

  using Body = function_ref<void(Lane &, const Piece &)>;

  void forEach(Lane &b, Body body) {
    for (int64_t first = 0; first < pieces; first += columns) {
      Value mine = busy;
      Value at = b.add(column, first);
      if (first + columns > pieces)
        mine = both(b, mine, b.less(at, b.i32(pieces)));
      forEachRow(b, at, mine, body);
    }
  }

private:
  void forEachRow(Lane &b, Value at, Value mine, Body body) {
    int64_t passes = llvm::divideCeil(rows, rowsPerPass);
    if (passes <= (isRolled ? kMaxUnrolledOfRolled : kMaxUnrolled))
      return forPasses(b, {row, 0, at, mine}, passes, body);
    int64_t together = isRolled ? 1 : passesTogether();
    auto loop =
        scf::ForOp::create(b, row, b.i32(rows), b.i32(together * rowsPerPass));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    forPasses(b, {loop.getInductionVar(), 0, at, mine}, together, body);
  }

  /// Of a loop, as many as are written out at once: without a rest, and whole
  /// groups of four rows (`SmemType::swapsHalves`).  One by one, flash with 48
  /// keys of 288 columns, 24 passes, took 1.25 times as long as with 32, 16.
  int64_t passesTogether() const {
    for (int64_t count = kMaxUnrolled; count > 1; --count)
      if (rows % (count * rowsPerPass) == 0 && count * rowsPerPass % 4 == 0)
        return count;
    return 1;
  }

  void forPasses(Lane &b, Piece first, int64_t passes, Body body) const {
    for (int64_t pass = 0; pass < passes; ++pass) {
      Piece piece = first;
      piece.below = pass * rowsPerPass;
      if (piece.below + rowsPerPass > rows)
        piece.mine =
            both(b, first.mine, b.less(first.row, b.i32(rows - piece.below)));
      body(b, piece);
    }
  }

  static Value both(Lane &b, Value x, Value y) {
    if (!x || !y)
      return x ? x : y;
    return b.both(x, y);
  }

  Value row, column, busy;
  int64_t rows, pieces, columns;
  bool isRolled;

public:
  int64_t rowsPerPass;
};

/// The addresses of a lane's pieces in a view, pass by pass.  Each comes from
/// the one before by one addition: a product of the stride per pass would be
/// invariant in the kernel's loop and held in two registers each.
class PieceWalk {
public:
  PieceWalk(Lane &b, const ViewValues &view, Value firstRow,
            int64_t rowsPerPass, int64_t pieceBytes)
      : view(view), firstRow(firstRow), pieceBytes(pieceBytes),
        step(b.mul(view.stride, rowsPerPass)) {}

  Value address(Lane &b, const Piece &piece) {
    if (piece.below != 0)
      return last = b.offset(last, step);
    Value row = b.wide(b.add(firstRow, piece.row));
    Value start = b.offset(view.base, b.mul(row, view.stride));
    return last = b.offset(start, b.wide(b.mul(piece.column, pieceBytes)));
  }

  /// Whether the piece's row lies in the view.  Asked as "below < rows left",
  /// a constant against one value per copy.
  Value isInside(Lane &b, const Piece &piece) {
    Value left = b.sub(view.rows, b.add(firstRow, piece.row));
    return b.less(b.i32(piece.below), left);
  }

private:
  ViewValues view;
  Value firstRow;
  int64_t pieceBytes;
  Value step, last;
};

/// Whether 0 <= row < rows.
Value isInside(Lane &b, Value row, Value rows) {
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, row, rows);
}

/// The address of a piece in a buffer that starts at an i32 address, that of a
/// row that is a multiple of 8.
Value pieceAddress(Lane &b, Value base, SmemType buffer, const Piece &piece,
                   int64_t pieceBytes) {
  constexpr int64_t half = 16; // of a sector
  auto [start, bytes] = b.splitConstant(base);
  Value address = b.add(start, b.add(b.mul(piece.row, buffer.pitchBytes()),
                                     b.mul(piece.column, pieceBytes)));
  auto swap = [&](Value address, Value bytes) {
    return b.createOrFold<arith::XOrIOp>(address, bytes);
  };
  // Rows begin at whole sectors.  What of the place is known now changes it
  // behind `opaque`, so that all passes share one register.
  if (buffer.swapsHalves())
    address =
        swap(address, b.mul(b.bitAnd(b.shiftRight(piece.row, 2), 1), half));
  address = b.opaque(address);
  if (buffer.swapsHalves() && piece.below / 4 % 2 != 0)
    address = swap(address, b.i32(half));
  return b.offset(b.shared(address), bytes + piece.below * buffer.pitchBytes());
}

struct CopyAsyncLowering : OpConversionPattern<CopyAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewValues view(adaptor.getView());
    ViewType type = op.getView().getType();
    SmemType buffer = op.getBuffer().getType();
    if (type.isVector())
      return copyVector(op, adaptor, rewriter);
    int64_t bytes = std::min<int64_t>(16, type.getAlign());
    int64_t rowBytes = type.rowBytes();
    int64_t pieces = buffer.getColumns() * buffer.elementBytes() / bytes;
    int64_t threads = threadsOf(op);
    Value base = b.add(adaptor.getBuffer().front(),
                       b.mul(adaptor.getStage().front(), buffer.stageBytes()));

    Deal deal(b, b.thread(), threads, buffer.getRows(), pieces, op.getRolled());
    Value firstRow = adaptor.getRow().front();
    // What an inner loop does not change, LLVM would keep in registers
    // throughout: the addresses and conditions of every pass.
    if (auto loop = op->getParentOfType<scf::ForOp>();
        loop && loop->getParentOfType<scf::ForOp>())
      firstRow = b.opaque(firstRow);
    PieceWalk walk(b, view, firstRow, deal.rowsPerPass, bytes);
    deal.forEach(b, [&](Lane &b, const Piece &piece) {
      // Bytes of the piece that exist; the copy fills up with zeros.  Where
      // none exist the address is formed but not read.
      Value exist = b.i32(bytes);
      if (rowBytes != pieces * bytes) {
        Value left = b.createOrFold<arith::SubIOp>(b.i32(rowBytes),
                                                   b.mul(piece.column, bytes));
        left = b.createOrFold<arith::MaxSIOp>(left, b.i32(0));
        exist = b.createOrFold<arith::MinSIOp>(left, exist);
      }
      exist = b.select(walk.isInside(b, piece), exist, b.i32(0));
      Value source = walk.address(b, piece);
      Value target = pieceAddress(b, base, buffer, piece, bytes);
      b.when(piece.mine, [&] { copyPiece(b, source, target, bytes, exist); });
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Elements side by side, one for each lane.
  static LogicalResult copyVector(CopyAsyncOp op, OneToNOpAdaptor adaptor,
                                  ConversionPatternRewriter &rewriter) {
    Lane b(op.getLoc(), rewriter);
    ViewValues view(adaptor.getView());
    SmemType buffer = op.getBuffer().getType();
    int64_t bytes = buffer.elementBytes(), threads = threadsOf(op);
    Value base = b.add(adaptor.getBuffer().front(),
                       b.mul(adaptor.getStage().front(), buffer.stageBytes()));
    for (int64_t from = 0; from < buffer.getColumns(); from += threads) {
      Value column = b.add(b.thread(), from);
      Value mine = from + threads > buffer.getColumns()
                       ? b.less(column, b.i32(buffer.getColumns()))
                       : Value();
      Value row = b.add(adaptor.getRow().front(), column);
      Value exist =
          b.select(isInside(b, row, view.rows), b.i32(bytes), b.i32(0));
      Value source = b.offset(view.base, b.mul(b.wide(row), view.stride));
      Value target = b.shared(b.add(base, b.mul(column, bytes)));
      b.when(mine, [&] { copyPiece(b, source, target, bytes, exist); });
    }
    rewriter.eraseOp(op);
    return success();
  }

  static int64_t threadsOf(Operation *op) {
    auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
    auto threads = function->getAttrOfType<DenseI32ArrayAttr>(
        NVVM::NVVMDialect::getMaxntidAttrName());
    return threads[0];
  }

  /// cp.async takes 4, 8 or 16 bytes.  A single element goes through a
  /// register: later than asynchronous is never, so the order still holds.
  static void copyPiece(Lane &b, Value source, Value target, int64_t bytes,
                        Value exist) {
    if (bytes >= 4) {
      NVVM::CpAsyncOp::create(b, target, source, uint32_t(bytes),
                              bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                          : NVVM::LoadCacheModifierKind::CA,
                              exist);
      return;
    }
    Type i16 = b.getIntegerType(16);
    auto branch = scf::IfOp::create(b, TypeRange{i16}, b.less(b.i32(0), exist),
                                    /*withElse=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value loaded = LLVM::LoadOp::create(b, i16, source, /*alignment=*/2u);
      scf::YieldOp::create(b, loaded);
      b.setInsertionPointToStart(branch.elseBlock());
      Value zero = arith::ConstantOp::create(b, b.getI16IntegerAttr(0));
      scf::YieldOp::create(b, zero);
    }
    LLVM::StoreOp::create(b, branch.getResult(0), target, /*alignment=*/2u);
  }
};

struct CopyOutLowering : OpConversionPattern<CopyOutOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyOutOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewValues view(adaptor.getView());
    ViewType type = op.getView().getType();
    SmemType buffer = op.getBuffer().getType();
    // A store has no zero-fill: pieces divide the row.
    int64_t rowBytes = type.rowBytes();
    int64_t bytes =
        std::min<int64_t>({16, type.getAlign(), rowBytes & -rowBytes});
    Type piece = b.getIntegerType(8 * std::min<int64_t>(bytes, 4));
    if (bytes > 4)
      piece = VectorType::get(bytes / 4, b.getI32Type());

    // The lanes of the warp wrote to the buffer and now read each other's part.
    NVVM::SyncWarpOp::create(b, b.i32(-1));
    Deal deal(b, b.lane(), 32, int32_t(op.getCount()), rowBytes / bytes);
    Value base =
        b.add(adaptor.getBuffer().front(),
              b.mul(adaptor.getSourceRow().front(), buffer.pitchBytes()));
    PieceWalk walk(b, view, adaptor.getRow().front(), deal.rowsPerPass, bytes);
    deal.forEach(b, [&](Lane &b, const Piece &part) {
      Value store = walk.isInside(b, part);
      if (part.mine)
        store = b.both(store, part.mine);
      Value target = walk.address(b, part);
      b.when(store, [&] {
        Value source = pieceAddress(b, base, buffer, part, bytes);
        Value loaded = LLVM::LoadOp::create(b, piece, source, unsigned(bytes));
        LLVM::StoreOp::create(b, loaded, target, unsigned(bytes));
      });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct StoreRowLowering : OpConversionPattern<StoreRowOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreRowOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewValues view(adaptor.getView());
    Value first = b.add(adaptor.getRow().front(), b.quad());
    Value leads = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                                b.inQuad(), b.i32(0));
    for (auto [i, value] : llvm::enumerate(adaptor.getValues())) {
      Value row = b.add(first, int64_t(i) * 8);
      b.when(b.both(leads, isInside(b, row, view.rows)), [&, value = value] {
        Value address = b.offset(view.base, b.mul(b.wide(row), view.stride));
        LLVM::StoreOp::create(b, value, address, /*alignment=*/4u);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct CommitGroupLowering : OpConversionPattern<CommitGroupOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CommitGroupOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncCommitGroupOp>(op);
    return success();
  }
};

struct WaitGroupLowering : OpConversionPattern<WaitGroupOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WaitGroupOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncWaitGroupOp>(op, op.getInFlight());
    return success();
  }
};

struct BarrierLowering : OpConversionPattern<BarrierOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::Barrier0Op>(op);
    return success();
  }
};

struct LoadNumberLowering : OpConversionPattern<LoadNumberOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadNumberOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    rewriter.replaceOp(op,
                       loadNumber(b, op.getBase().getType().getElementType(),
                                  adaptor.getBase(), adaptor.getIndex()));
    return success();
  }
};

} // namespace

Value attn::loadNumber(Lane &b, Type element, Value base, Value index) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Value place = b.mul(index, bytes);
  if (place.getType().isInteger(32))
    place = b.wide(place);
  Value number =
      LLVM::LoadOp::create(b, element, b.offset(base, place), unsigned(bytes));
  if (!element.isInteger(64))
    return number;
  auto limit = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  number = LLVM::SMinOp::create(
      b, LLVM::SMaxOp::create(b, number, limit(INT32_MIN)), limit(INT32_MAX));
  return LLVM::TruncOp::create(b, b.getI32Type(), number);
}

void attn::populateCopyPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<BarrierLowering, CommitGroupLowering, CopyAsyncLowering,
               CopyOutLowering, LoadNumberLowering, StoreRowLowering,
               WaitGroupLowering>(converter, patterns.getContext());
}
