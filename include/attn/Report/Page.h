//===- Page.h - A plan as one page of HTML ----------------------*- C++ -*-===//
//
// Everything that is known of a choice, in one file that needs nothing else: no
// network, no other file, no fonts.  It is XML, too.  In a wide window and a
// narrow one, light and dark, with a script or without, it says the same; the
// script only sorts the candidates.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REPORT_PAGE_H
#define ATTN_REPORT_PAGE_H

#include "attn/Report/Report.h"

namespace attn {

/// Of a report that has a plan.
void renderPage(llvm::raw_ostream &out, const Packing &packing,
                const PlanReport &report);

} // namespace attn

#endif // ATTN_REPORT_PAGE_H
