//===- Forward.h - Attention on arrays, compiled at need --------*- C++ -*-===//
//
// Arrays come with sizes, strides and addresses.  What a kernel depends on is
// less: types, precision, head dimensions, head counts, mask, scale, how well
// the rows are aligned, and the schedule (SizedSchedule.h).  That class names
// an executable, which this process keeps; batch and rows are left to its
// bindings.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_FORWARD_H
#define ATTN_LIB_CAPI_FORWARD_H

#include "Arguments.h"
#include "Fault.h"

#include "attn/CAPI/Binding.h"
#include "attn/Schedule/Problem.h"

namespace attn {

struct ForwardRequest {
  DataType dtype = DataType::bf16;
  Precision precision = Precision::tf32x3; ///< of f32
  Mask mask;
  std::optional<double> scale;
  /// Empty: the GPU's own row of the table; the derived schedule.
  std::string machine, schedule;
};

/// The arrays of one attention; rank 4, lse of rank 3.
struct ForwardArrays {
  CallerArray q, k, v, o;
  std::optional<CallerArray> lse;

  /// In the order in which addresses are launched.
  llvm::SmallVector<CallerArray, 5> list() const;
};

/// The binding for these arrays on that GPU.
Outcome bindForward(const ForwardRequest &request, int device,
                    const ForwardArrays &arrays,
                    std::shared_ptr<const Binding> &binding);

} // namespace attn

#endif
