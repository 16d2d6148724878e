//===- InputParts.cpp - Inputs of f32 in two parts of f16 -----------------===//

#include "Rounds/InputParts.h"

#include "Walk/TileOrder.h"

#include "attn/Schedule/Schedule.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

std::string attn::partsRole(StringRef input) {
  return ("scratch_" + input).str();
}

std::string attn::exponentsRole(StringRef input) {
  return partsRole(input) + "_exponents";
}

// The plan says it too, and knows no ops.
static_assert(kScaledParts == SplitViewOp::kParts &&
              kScaledRows == SplitViewOp::kBlockRows);

/// Of V as many columns as a tile of the output has, of others those of a
/// slice.
int64_t attn::columnsOfPart(Role input, const Problem &problem,
                            const Tiles &tiles) {
  if (input == Role::v)
    return llvm::alignTo(problem.headDimV, tiles.get("column"));
  return llvm::alignTo(problem.headDim, SplitViewOp::kColumns);
}

/// That of V becomes a factor of sums of weights, up to 2^14 times as much, and
/// those have to stay in the range of f32.
static constexpr int32_t kMostMoveOfValues = 60;

namespace {

class InputSplitter {
public:
  InputSplitter(TileBuilder &b, const KernelRequest &request, bool ownsKeys)
      : b(b), request(request), ownsKeys(ownsKeys) {
    if (!ownsKeys)
      inputs = {{"q", request.problem.headDim}};
    else
      inputs = {{"k", request.problem.headDim},
                {"v", request.problem.headDimV}};
  }

  KernelOp build() {
    StringRef rowsRole = ownsKeys ? "keys" : "queries";
    for (const Input &input : inputs) {
      arguments.operand(input.role, b.getF32Type());
      arguments.pointer(partsRole(input.role), b.getF16Type());
      arguments.pointer(exponentsRole(input.role), b.getI32Type());
    }
    for (StringRef size : {rowsRole, StringRef("heads")})
      arguments.scalar(size, b.getI32Type());
    if (ownsKeys)
      arguments.scalar("group", b.getI32Type());
    KernelOp kernel = arguments.createKernel(b, request, SplitViewOp::kWarps);
    rows = arguments.get(b, rowsRole);
    heads = arguments.get(b, "heads");
    if (ownsKeys)
      heads = heads / arguments.get(b, "group");
    Scalar blocks = b.ceilDiv(rows, SplitViewOp::kBlockRows);
    at = BlockOfHead::of(b, b.programId(0), blocks, heads);
    for (const Input &input : inputs)
      split(input);
    ReturnOp::create(b);
    return kernel;
  }

private:
  struct Input {
    StringRef role;
    int64_t columns;
  };

  void split(const Input &input) const {
    auto type = SmemType::get(1, 1, SplitViewOp::kNumbers, b.getF32Type());
    Value largest = AllocOp::create(b, type, ("largest_" + input.role).str());
    // Exponents lie in the order of blocks.
    SplitViewOp::create(
        b, source(input), target(input), at.number * SplitViewOp::kBlockRows,
        arguments.get(b, exponentsRole(input.role)), b.programId(0),
        input.role == "v" ? kMostMoveOfValues : SplitViewOp::kMostMove,
        largest);
  }

  Value source(const Input &input) const {
    auto type = ViewType::get(b.getContext(), input.columns, b.getF32Type(),
                              request.alignmentOf(input.role));
    return arguments.view(b, input.role, type, at.batch, at.head, rows);
  }

  Value target(const Input &input) const {
    int64_t columns =
        kScaledParts * columnsOfPart(NamedRole(input.role).role,
                                     request.problem, request.tiles);
    auto type =
        ViewType::get(b.getContext(), columns, b.getF16Type(), kMaxAlignment);
    Scalar first = b.wide(at.batch * heads + at.head) * b.wide(rows);
    return ViewOp::create(b, type, arguments.get(b, partsRole(input.role)),
                          first * columns, rows, b.wide(b.i32(columns)));
  }

  TileBuilder &b;
  const KernelRequest &request;
  bool ownsKeys;
  SmallVector<Input, 2> inputs;
  Arguments arguments;
  Scalar rows, heads; ///< of the inputs
  BlockOfHead at;
};

} // namespace

KernelOp attn::splitInputs(TileBuilder &builder, const KernelRequest &request,
                           bool ownsKeys) {
  return InputSplitter(builder, request, ownsKeys).build();
}
