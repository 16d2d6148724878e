//===- Scoring.cpp - What clauses make of scores in a kernel --------------===//

#include "Region/Scoring.h"

#include "Region/OperandScale.h"
#include "Region/SinkSums.h"

using namespace mlir;
using namespace attn;

void Scoring::declare(Arguments &arguments, TileBuilder &b,
                      const KernelRequest &request) {
  RegionCode::declare(arguments, b, {request.sees, request.score});
  const Problem &problem = request.problem;
  declareScales(arguments, b, problem.scales);
  // Gradients have them in the LSE.
  if (!problem.clauses.sinks || problem.direction == Direction::backward)
    return;
  declareSinks(arguments, b);
}

Scoring::Scoring(const Arguments &arguments, const KernelRequest &request)
    : arguments(arguments),
      hasSinks(request.problem.clauses.sinks &&
               request.problem.direction == Direction::forward),
      scales(request.problem.scales), scaleOfRequest(request.scale) {
  if (request.sees)
    sees.emplace(arguments, *request.sees, request.problem.dtype);
  if (request.score)
    score.emplace(arguments, *request.score, request.problem.dtype);
}

Scalar Scoring::scale(TileBuilder &b, const Rows &rows) const {
  if (score)
    return b.f32(score->factor());
  Scalar scale = arguments.get(b, Role::scale);
  return Value(rows.ofProducts) ? scale * rows.ofProducts : scale;
}

Scoring::Rows Scoring::ofRows(TileBuilder &b,
                              const RegionCode::Place &place) const {
  Rows rows;
  RegionCode::Place scaled = place;
  if (scales.any()) {
    Scalar keyHead = place.head / arguments.get(b, Role::group);
    rows.ofProducts = scaleOfScores(b, arguments, scales, place.batch, keyHead);
    rows.ofValues = scaleOfValues(b, arguments, scales, place.batch, keyHead);
    scaled.ofProducts = rows.ofProducts;
  }
  if (sees)
    rows.sees = sees->ofRows(b, place);
  if (score)
    rows.score = score->ofRows(b, scaled);
  if (hasSinks)
    rows.sink = sinkOf(b, arguments, place.head);
  return rows;
}

Pairs Scoring::pairsOf(bool isCut, bool isListed) const {
  if (isCut)
    return Pairs::any;
  // Full blocks are seen whatever a region says.
  if (isListed)
    return Pairs::inRange;
  return sees ? Pairs::any : Pairs::seen;
}

Value Scoring::scored(TileBuilder &b, const Rows &rows, Value scores,
                      Scalar column, Pairs pairs) const {
  return score ? score->scored(b, *rows.score, scores, column, pairs) : scores;
}

Value Scoring::slopes(TileBuilder &b, const Rows &rows, Value products,
                      Value scores, Scalar column, Pairs pairs) const {
  if (!score)
    return {};
  return score->slopes(b, *rows.score, products, scores, column, pairs);
}

Value Scoring::hidden(TileBuilder &b, const Rows &rows, Value scores,
                      Scalar column, bool isCut) const {
  if (!sees)
    return scores;
  Pairs pairs = isCut ? Pairs::any : Pairs::seen;
  return sees->hidden(b, *rows.sees, scores, column, pairs);
}
