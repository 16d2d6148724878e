//===- ListLaunches.cpp - Lists of blocks as launches of kernels ----------===//

#include "ListLaunches.h"

#include "attn/IR/ScalarOps.h"
#include "attn/Schedule/Limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

namespace {

/// Sizes on the host.
struct HostSizes {
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value sizeOf(Value memref, int64_t dimension) {
    return b.createOrFold<memref::DimOp>(memref, dimension);
  }
  Value times(Value x, Value y) { return b.createOrFold<arith::MulIOp>(x, y); }
  Value ceilDiv(Value x, int64_t by) {
    return b.createOrFold<arith::CeilDivSIOp>(x, index(by));
  }
  Value narrow(Value size) {
    return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), size);
  }
  void require(Value holds, const Twine &sentence) {
    if (getConstantIntValue(holds) != 1)
      cf::AssertOp::create(b, holds, sentence.str());
  }
  Value isAtMost(Value x, Value most) {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle, x, most);
  }

  ImplicitLocOpBuilder &b;
};

} // namespace

static ArgumentRole numbered(Role role, int number) {
  return {role, Facet::itself, number};
}

/// Two lists, of which these are numbers `first` and `first + 1`.
static void setLists(ImplicitLocOpBuilder &b, ArgumentValues &values,
                     ValueRange lists, int first) {
  for (int i : {0, 1}) {
    values.setArray(b, numbered(Role::listCounts, first + i), lists[2 * i]);
    values.setArray(b, numbered(Role::listBlocks, first + i), lists[2 * i + 1]);
  }
}

LogicalResult ListConverter::check(Operation *op, bool isOnTensors) {
  if (failed(checkPlace(op, module)))
    return failure();
  if (isOnTensors)
    return op->emitOpError("expects memrefs here: bufferize first");
  return success();
}

LogicalResult ListConverter::convert(BlockListsOp op) {
  if (failed(check(op, op.isOnTensors())))
    return failure();
  if (Operation *lacking = withoutCode(op.getSees()))
    return lacking->emitOpError("expects an op for which kernels have code");
  OpBuilder builder(op);
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  HostSizes sizes{b};
  Value most = sizes.index(kMaxRows);
  for (auto [name, rows] :
       {std::pair("queries", op.getQueries()), std::pair("keys", op.getKeys())})
    sizes.require(sizes.isAtMost(rows, most),
                  Twine("expects at most ") + Twine(kMaxRows) + " " + name);
  BlockSize size = {op.getBlocks()[0], op.getBlocks()[1]};
  Value batch = sizes.index(int64_t(op.getBatch())),
        heads = sizes.index(int64_t(op.getHeads())),
        rows = sizes.ceilDiv(op.getQueries(), size.queries),
        words = sizes.ceilDiv(op.getKeys(), size.keys * kBlocksOfWord);
  ArgumentValues values;
  Value classes = tile::ScratchOp::create(
      b,
      MemRefType::get({int64_t(op.getBatch()), int64_t(op.getHeads()),
                       ShapedType::kDynamic, ShapedType::kDynamic},
                      b.getI32Type()),
      ValueRange{rows, words});
  values.setArray(b, Role::blockClasses, classes);
  for (auto [number, capture] : llvm::enumerate(op.getCaptures()))
    values.setCapture(b, numbered(Role::capture, int(number)), capture);
  setLists(b, values, op.outputs(), 0);
  values.set(Role::queries, sizes.narrow(op.getQueries()));
  values.set(Role::keys, sizes.narrow(op.getKeys()));
  values.set(Role::batch, sizes.narrow(batch));
  values.set(Role::heads, sizes.narrow(heads));
  ListingRequest request = {"", Listing::classes, size, &op.getSees()};
  if (failed(launch(b, request, values, sizes.times(rows, words))))
    return failure();
  request = {"", Listing::listed, size, nullptr};
  if (failed(launch(b, request, values, rows)))
    return failure();
  op->erase();
  return success();
}

LogicalResult ListConverter::convert(TransposeBlocksOp op) {
  if (failed(check(op, op.isOnTensors())))
    return failure();
  OpBuilder builder(op);
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  HostSizes sizes{b};
  ArgumentValues values;
  setLists(b, values, op.inputs(), 0);
  setLists(b, values, op.outputs(), 2);
  Value indices = op.getPartialIndices();
  Value columns = sizes.sizeOf(indices, 3);
  values.set(Role::batch, sizes.narrow(sizes.sizeOf(indices, 0)));
  values.set(Role::heads, sizes.narrow(sizes.sizeOf(indices, 1)));
  values.set(Role::queries, sizes.narrow(sizes.sizeOf(indices, 2)));
  values.set(Role::keys, sizes.narrow(columns));
  ListingRequest request = {"", Listing::transposed};
  if (failed(launch(b, request, values, columns)))
    return failure();
  op->erase();
  return success();
}

LogicalResult ListConverter::launch(ImplicitLocOpBuilder &b,
                                    const ListingRequest &request,
                                    const ArgumentValues &values, Value warps) {
  FailureOr<tile::KernelOp> kernel = findOrBuild(b, request);
  if (failed(kernel))
    return failure();
  HostSizes sizes{b};
  auto count = [&](Role role) {
    return b.createOrFold<arith::IndexCastOp>(b.getIndexType(),
                                              values.lookup(role));
  };
  Value all =
      sizes.times(warps, sizes.times(count(Role::heads), count(Role::batch)));
  constexpr int64_t most = INT32_MAX;
  sizes.require(sizes.isAtMost(all, sizes.index(most)),
                Twine("expects lists of blocks that at most ") + Twine(most) +
                    " warps make");
  Value one = sizes.index(1);
  return attn::launch(b, kernels.symbolOf(*kernel), *kernel,
                      {sizes.ceilDiv(all, kListingWarps), one, one}, values);
}

FailureOr<tile::KernelOp>
ListConverter::findOrBuild(ImplicitLocOpBuilder &b,
                           const ListingRequest &request) {
  for (const Built &known : built)
    if (known.request.kind == request.kind &&
        known.request.size == request.size &&
        sameRegion(known.sees.get(), request.sees))
      return known.kernel;
  Built one;
  gpu::GPUModuleOp into = kernels.at(b.getLoc());
  one.request = request;
  one.request.name = kernels.uniqueName(listingName(request));
  one.sees = copyOf(request.sees);
  OpBuilder builder(b.getContext());
  builder.setInsertionPointToEnd(into.getBody());
  one.kernel = buildListing(builder, b.getLoc(), one.request);
  if (failed(checkRoles(one.kernel, Problem())))
    return failure();
  one.kernel->setAttr("machine", machine);
  built.push_back(std::move(one));
  return built.back().kernel;
}
