//===- Attention.h - Attention on arrays, compiled at need ------*- C++ -*-===//
//
// Arrays come with sizes, strides and addresses.  What a kernel depends on is
// less: the direction, types, precision, head dimensions, head counts, mask,
// scale, clauses, how well the rows are aligned, and the schedule
// (SizedSchedule.h).
// That class names an executable, which this process keeps; batch and rows are
// left to its bindings.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_ATTENTION_H
#define ATTN_LIB_CAPI_ATTENTION_H

#include "Arguments.h"
#include "Fault.h"

#include "attn/CAPI/Binding.h"
#include "attn/Schedule/Problem.h"

namespace attn {

struct AttentionRequest {
  Direction direction = Direction::forward;
  DataType dtype = DataType::bf16;
  std::optional<DataType> kvDtype;         ///< of k and v, if it is another
  Precision precision = Precision::tf32x3; ///< of f32
  Mask mask;
  std::optional<double> scale;
  bool deterministic = false; ///< backward
  /// Of lists of blocks, if there are some among the arrays.
  std::optional<BlockSize> blocks;
  /// Where sequences lie one behind the other, by offsets among the arrays.
  std::optional<Ragged> ragged;
  /// Of the numbers of used keys, if they are among the arrays.
  int64_t usedKeysBits = 32;
  bool valuesOfKeys = false; ///< V is the first columns of K
  /// As they stand in C; the arrays have the addresses of what they read.
  std::string clauses;
  /// Empty: the GPU's own row of the table; the derived schedule.
  std::string machine, schedule;
};

/// The arrays of one attention by their roles (IR/Attn.h), in the order in
/// which addresses are launched: that of arraysOf (ProblemText.h).
struct AttentionArrays {
  struct Array {
    llvm::StringRef role;
    bool isOutput = false;
    CallerArray array;
  };
  llvm::SmallVector<Array, 16> all;

  /// What clauses read, behind all of these; the type is of an element.
  struct Capture {
    std::string name, type;
    CallerArray array;
  };
  std::vector<Capture> captures;
  /// Gradients of some of them, by their names, behind all of these.
  std::vector<Capture> gradients;

  const CallerArray *find(llvm::StringRef role) const;
  llvm::SmallVector<CallerArray, 16> list() const;
};

/// The schedule that these arrays would be bound with on the machine that the
/// request names; or why there is none.  Nothing is compiled, and no GPU is
/// asked.
Outcome chooseSchedule(const AttentionRequest &request,
                       const AttentionArrays &arrays, std::string &schedule);

/// The scratch that these arrays would be bound with on the machine that the
/// request names.  No kernel is compiled, and no GPU is asked.
Outcome scratchBytesOf(const AttentionRequest &request,
                       const AttentionArrays &arrays, int64_t &bytes);

/// The binding for these arrays on that GPU.
Outcome bindAttention(const AttentionRequest &request, int device,
                      const AttentionArrays &arrays,
                      std::shared_ptr<const Binding> &binding);

/// The binding of a text's only function for these arrays; it is compiled once
/// for a machine, or if that is empty for the GPU's own.
Outcome bindText(const std::string &text, const std::string &machine,
                 int device, llvm::ArrayRef<CallerArray> arrays,
                 std::shared_ptr<const Binding> &binding);

} // namespace attn

#endif
