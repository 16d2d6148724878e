//===- KeyParts.cpp - A tile's walk, dealt out to blocks ------------------===//

#include "Walk/KeyParts.h"

#include "attn/Schedule/KeyParts.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Run KeyParts::of(TileBuilder &b, Scalar steps, Scalar part) const {
  Scalar all = steps / count, more = steps - all * count;
  Scalar begin = part * all + b.min(part, more);
  Scalar one = b.select(part < more, b.i32(1), b.i32(0));
  return {begin, begin + all + one};
}

void KeyParts::declare(Arguments &arguments, TileBuilder &b,
                       const Problem &problem) const {
  arguments.perRow(Role::keyPartsO, b.getF32Type(),
                   count * pitchOfParts(problem.headDimV));
  arguments.perRow(Role::keyPartsLse, b.getF32Type(), count);
}

Scalar KeyParts::rowsBefore(TileBuilder &b, const Arguments &arguments,
                            const Owner &owner) const {
  bool isOfSequence = bool(Value(owner.firstQuery));
  Scalar head = isOfSequence
                    ? b.wide(owner.head)
                    : b.wide(owner.batch) * b.wide(arguments.get(b, "heads")) +
                          b.wide(owner.head);
  Scalar rows =
      (head * count + b.wide(owner.part)) * b.wide(arguments.get(b, "queries"));
  return isOfSequence ? rows + b.wide(owner.firstQuery) : rows;
}

Scalar KeyParts::rowsOf(TileBuilder &b, const Arguments &arguments,
                        const Owner &owner) const {
  return Value(owner.queries) ? owner.queries : arguments.get(b, "queries");
}

Value KeyParts::output(TileBuilder &b, const Arguments &arguments,
                       const Problem &problem, const Owner &owner,
                       Scalar column) const {
  constexpr int64_t align = 16;
  int64_t pitch = pitchOfParts(problem.headDimV);
  auto type =
      ViewType::get(b.getContext(), problem.headDimV, b.getF32Type(), align);
  Scalar offset = rowsBefore(b, arguments, owner) * pitch;
  if (Value(column))
    offset = offset + b.wide(column);
  return ViewOp::create(b, type, arguments.get(b, Role::keyPartsO), offset,
                        rowsOf(b, arguments, owner),
                        b.constantLike(offset, pitch));
}

Value KeyParts::lse(TileBuilder &b, const Arguments &arguments,
                    const Owner &owner) const {
  auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                            /*align=*/4);
  Scalar offset = rowsBefore(b, arguments, owner);
  return ViewOp::create(b, type, arguments.get(b, Role::keyPartsLse), offset,
                        rowsOf(b, arguments, owner), b.constantLike(offset, 1));
}
