//===- OpenSizes.h - What sizes that are not known may cost -----*- C++ -*-===//
//
// Of an op whose batch, queries or keys are `?` the planner is asked for a
// representative (DynamicSizes).  That one decides what is likely to be fast,
// and nothing else: how much memory a launch takes is known with its sizes, and
// a schedule that fits them has to compile.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_OPENSIZES_H
#define ATTN_IR_OPENSIZES_H

#include "attn/IR/Attn.h"

namespace attn {

/// Whether batch, queries or keys are known at run time only.
bool hasOpenSizes(AttentionOpInterface op);

/// The machine that the op's plans have to fit: of one with open sizes, with
/// memory for any.
Machine machineForPlans(AttentionOpInterface op, const Machine &machine);

} // namespace attn

#endif // ATTN_IR_OPENSIZES_H
