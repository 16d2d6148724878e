//===- PartsMerge.cpp - Parts of the keys made whole ----------------------===//
//
// What flash leaves of every part (Walk/KeyParts.h) becomes O and LSE.  A block
// is one warp, with 16 rows of a head and 32 of their columns, so that the few
// rows of a decoding step keep many multiprocessors busy.  Parts come several
// at a time, as many as are on their way at once; and as a softmax goes through
// scores, rows keep the largest LSE so far, the sum of 2^(LSE_p - largest), and
// O times that sum, which shrink when the largest grows.
//
// Sequences that lie one behind the other are rows of one batch entry here: no
// one asks whose a row is.  There are as many blocks as slots of so many rows
// (Schedule/Ragged.h), of which the last have none.
//
// A part that sees nothing has LSE = -inf and weight 0, and what O it has is
// not looked at.  A row that sees nothing has O = 0 and LSE = -inf.
//
//===----------------------------------------------------------------------===//

#include "Flash/PartsMerge.h"

#include "Softmax/LogSumExp.h"
#include "Softmax/Softmax.h"
#include "Walk/KeyParts.h"
#include "Walk/TileOrder.h"

#include "attn/Schedule/KeyParts.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class PartsMerge {
public:
  PartsMerge(TileBuilder &builder, const KernelRequest &request)
      : b(builder), request(request), problem(request.problem),
        parts(request.tiles) {}

  KernelOp build() {
    KernelOp kernel = declare();
    locate();
    if (problem.ragged) // a slot may have no rows
      b.when(row < queries, [&] { merge(); });
    else
      merge();
    ReturnOp::create(b);
    return kernel;
  }

private:
  void merge() {
    Value none = b.fill(b.f32(-kInfinity), b.rowType(kMergedRows));
    Value zero = b.fill(b.f32(0), b.rowType(kMergedRows));
    SmallVector<Value> state = {none, zero, b.fill(b.f32(0), accType())};
    int64_t whole = parts.count / kPartsInFlight;
    ValueRange last = b.loop(
        b.i32(0), b.i32(whole), state, [&](Scalar step, ValueRange carried) {
          return add(step * kPartsInFlight, kPartsInFlight, carried);
        });
    state = llvm::to_vector(last);
    if (int64_t rest = parts.count % kPartsInFlight)
      state = add(b.i32(whole * kPartsInFlight), rest, state);
    finish(state);
  }

  KernelOp declare() {
    parts.declare(arguments, b, problem);
    arguments.operand(Role::o, outputElement());
    if (problem.lse)
      declareLse(arguments, b, problem);
    for (Role size : {Role::queries, Role::heads})
      arguments.scalar(size, b.getI32Type());
    if (problem.ragged) {
      RaggedRows::declare(arguments, b, problem);
      arguments.scalar(Role::batch, b.getI32Type());
    }
    return arguments.createKernel(b, request, /*warps=*/1);
  }

  void locate() {
    queries = arguments.get(b, Role::queries);
    int64_t ofRows = llvm::divideCeil(problem.headDimV, kMergedColumns);
    RaggedRows sequences(arguments, problem, kMergedRows);
    Scalar block = b.programId(0);
    Scalar tiles =
        problem.ragged ? sequences.slots(b) : b.ceilDiv(queries, kMergedRows);
    BlockOfHead at = BlockOfHead::of(b, block, tiles * ofRows,
                                     arguments.get(b, Role::heads));
    batch = at.batch;
    head = at.head;
    if (problem.ragged) // rows behind the last sequence are nobody's
      queries = b.min(queries, sequences.endOfQueries(b));
    Scalar tile = at.number / ofRows;
    row = tile * kMergedRows;
    column = (at.number - tile * ofRows) * kMergedColumns;
  }

  Type outputElement() const {
    return elementType(b.getContext(), resultType(problem));
  }
  FragType accType() const {
    return b.accType(
        kMergedRows,
        std::min<int64_t>(kMergedColumns, llvm::alignTo(problem.headDimV, 8)));
  }
  Value mapRows(ValueRange rows, function_ref<Scalar(ArrayRef<Scalar>)> body) {
    return b.map(
        rows, b.rowType(kMergedRows),
        [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return body(x); });
  }
  Scalar isNone(Scalar lse) { return lse == b.f32(-kInfinity); }
  /// exp(lse - reference), which is 0 of -inf.
  Scalar weight(Scalar lse, Scalar reference) {
    return b.exp2((lse - reference) * b.f32(kLog2E));
  }
  /// What rows stand at: 0 if they have seen nothing, so that weights are not
  /// NaN.
  Value referenceOf(Value largest) {
    return mapRows(largest, [&](ArrayRef<Scalar> x) {
      return b.select(isNone(x[0]), b.f32(0), x[0]);
    });
  }

  /// Goes on with so many parts from one on.
  SmallVector<Value> add(Scalar first, int64_t count, ValueRange state) {
    SmallVector<Value> lses, outputs;
    for (int64_t i = 0; i < count; ++i) {
      KeyParts::Owner owner{batch, head, first + i};
      if (problem.ragged) {
        owner.firstQuery = b.i32(0);
        owner.queries = queries;
      }
      lses.push_back(LoadRowOp::create(b, b.rowType(kMergedRows),
                                       parts.lse(b, arguments, owner), row));
      outputs.push_back(LoadFragmentOp::create(
          b, accType(), parts.output(b, arguments, problem, owner), row,
          column));
    }
    Value largest = state[0];
    for (Value lse : lses)
      largest = mapRows({largest, lse},
                        [&](ArrayRef<Scalar> x) { return b.max(x[0], x[1]); });
    Value reference = referenceOf(largest);
    auto weightsOf = [&](Value lse) {
      return mapRows({lse, reference},
                     [&](ArrayRef<Scalar> x) { return weight(x[0], x[1]); });
    };
    Value shrunk = weightsOf(state[0]);
    Value sum = mapRows({state[1], shrunk},
                        [&](ArrayRef<Scalar> x) { return x[0] * x[1]; });
    Value output = scaleRows(b, state[2], shrunk);
    for (int64_t i = 0; i < count; ++i) {
      Value own = weightsOf(lses[i]);
      sum =
          mapRows({sum, own}, [&](ArrayRef<Scalar> x) { return x[0] + x[1]; });
      output =
          b.map({output, outputs[i], own, lses[i]}, accType(),
                [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                  return b.select(isNone(x[3]), x[0], b.fma(x[1], x[2], x[0]));
                });
    }
    return {largest, sum, output};
  }

  void finish(ValueRange state) {
    Value reference = referenceOf(state[0]);
    Value inverse = mapRows(state[1], [&](ArrayRef<Scalar> x) {
      return b.select(x[0] == b.f32(0), b.f32(0), b.f32(1) / x[0]);
    });
    Value view =
        arguments.view(b, Role::o,
                       ViewType::get(b.getContext(), problem.headDimV,
                                     outputElement(), request.alignmentOf("o")),
                       batch, head, queries);
    StoreFragmentOp::create(b, average(b, state[2], inverse, outputElement()),
                            view, row, column);
    if (!problem.lse)
      return;
    Value lse = mapRows({reference, state[1]}, [&](ArrayRef<Scalar> x) {
      return x[0] + b.log2(x[1]) * b.f32(1 / kLog2E);
    });
    b.when(column == b.i32(0), [&] {
      StoreRowOp::create(
          b, lse, arguments.vector(b, Role::lse, batch, head, queries), row);
    });
  }

  TileBuilder &b;
  const KernelRequest &request;
  const Problem &problem;
  KeyParts parts;
  Arguments arguments;
  Scalar batch, head, row, column, queries;
};

} // namespace

KernelOp attn::buildPartsMerge(TileBuilder &b, const KernelRequest &request) {
  return PartsMerge(b, request).build();
}
