//===- Render.h - A plan report, for three kinds of reader ------*- C++ -*-===//

#ifndef ATTN_PLAN_RENDER_H
#define ATTN_PLAN_RENDER_H

#include "attn/Schedule/Plan.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// The best plans as a table, and the machines.
void renderTable(llvm::raw_ostream &out, const PlanReport &report);
void renderMachines(llvm::raw_ostream &out);

/// Bounds, the chosen plan and why, the runner-up, the refused, pseudocode.
void renderExplanation(llvm::raw_ostream &out, const PlanReport &report);

/// Everything, for programs.
void renderJson(llvm::raw_ostream &out, const PlanReport &report);

/// `4096 queries`-style lines that table and explanation share.
std::string describe(const Problem &problem);
std::string bytesText(double bytes);
std::string secondsText(double seconds);
/// The plan that would be built: the best with a kernel, else the best.
const Plan *chosen(const PlanReport &report);

} // namespace attn

#endif // ATTN_PLAN_RENDER_H
