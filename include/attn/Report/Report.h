//===- Report.h - Plans and machines, for three kinds of reader -*- C++ -*-===//
//
// The same plan report as a table for the eye, as an explanation for who wants
// to know why, and as JSON for programs.  attn-plan prints them and libattn
// hands them out, so both say the same.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REPORT_REPORT_H
#define ATTN_REPORT_REPORT_H

#include "attn/Schedule/Packing.h"
#include "attn/Schedule/Plan.h"

#include "llvm/Support/raw_ostream.h"

namespace attn {

/// A terminal's, which a narrow table fits.
inline constexpr size_t kTableColumns = 100;
/// Narrow: a plan's tiles stand below it.  Wide: a plan is one line, with its
/// footprint; and so it is in Markdown.
enum class TableForm { narrow, wide, markdown };

/// The best plans as a table, and the machines.  Here and below the report is
/// of the problem that the packing plans.
void renderTable(llvm::raw_ostream &out, const Packing &packing,
                 const PlanReport &report, TableForm form);
void renderMachines(llvm::raw_ostream &out);

/// Bounds, the chosen plan and why, the runner-up, the refused, pseudocode.
void renderExplanation(llvm::raw_ostream &out, const Packing &packing,
                       const PlanReport &report);

/// The version of what `renderJson` writes.  It rises when a member goes or
/// means something else, not when one is added;
/// docs/reference/plan.schema.json describes it.
inline constexpr int64_t kJsonVersion = 1;
/// Everything, for programs; all machines as a list.
void renderJson(llvm::raw_ostream &out, const Packing &packing,
                const PlanReport &report);
void renderMachinesJson(llvm::raw_ostream &out);

/// `4096 queries`-style lines that table and explanation share.
std::string describe(const Problem &problem);
std::string bytesText(double bytes);
std::string secondsText(double seconds);
/// Why there is no plan, in one sentence, by the choice that needs least.
std::string whyNothingFits(const PlanReport &report);
/// A sentence where nobody has measured the machine, or "".
std::string timesText(const PlanReport &report);

} // namespace attn

#endif // ATTN_REPORT_REPORT_H
