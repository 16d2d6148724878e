//===- PageStyle.h - How a page looks, and its script -----------*- C++ -*-===//

#ifndef ATTN_LIB_REPORT_PAGESTYLE_H
#define ATTN_LIB_REPORT_PAGESTYLE_H

namespace attn {

extern const char *const kPageStyle;
/// Sorts a table by the column whose head is pressed, by what cells have in
/// `data-value`; pressed again, the other way.
extern const char *const kPageScript;

} // namespace attn

#endif // ATTN_LIB_REPORT_PAGESTYLE_H
