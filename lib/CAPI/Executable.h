//===- Executable.h - What attn_executable is -------------------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_EXECUTABLE_H
#define ATTN_LIB_CAPI_EXECUTABLE_H

#include "Arguments.h"
#include "Fault.h"

#include "attn/CAPI/Binding.h"

#include "mlir/IR/MLIRContext.h"

#include <map>
#include <mutex>

namespace attn {

/// A compiled function, and what is needed to call it.  Members take turns:
/// every public function holds the lock.
class Executable {
public:
  struct Request {
    llvm::StringRef text, machine, schedule, function;
    /// Without, it cannot be loaded; what it takes of scratch is known.
    bool withBinary = true;
  };
  /// Compiles; on failure `error` holds the diagnostics.
  static std::unique_ptr<Executable> compile(const Request &request,
                                             std::string &error);

  std::string info() const;
  const Program &compiled() const { return program; }

  Outcome load(int device);

  /// The binding for arrays of these sizes, strides and alignment: arguments,
  /// then results.
  Outcome bind(llvm::ArrayRef<CallerArray> arrays,
               std::shared_ptr<const Binding> &binding);

  /// The scratch that such a binding would take, without a GPU.
  Outcome scratchBytes(llvm::ArrayRef<CallerArray> arrays, int64_t &bytes);

private:
  /// The caller's buffers of a call, and those that must not overlap.
  struct Callers {
    std::vector<Binding::Buffer> buffers;
    std::vector<Binding::Apart> apart;
  };

  Executable() : context(mlir::MLIRContext::Threading::DISABLED) {}

  Outcome record(llvm::ArrayRef<CallerArray> arrays,
                 llvm::SmallVectorImpl<HostArray> &arguments,
                 Recording &recording);
  /// Records, and puts the caller's arrays in their places.
  Outcome place(llvm::ArrayRef<CallerArray> arrays, Recording &recording,
                Callers &callers);
  std::optional<std::string> placeResult(size_t number,
                                         const CallerArray &array,
                                         const Recording &recording,
                                         Binding::Buffer &buffer) const;

  mutable std::mutex mutex;
  mlir::MLIRContext context;
  Program program;
  mlir::func::FuncOp function;
  std::vector<Demand> demands; ///< of each argument
  std::vector<Binding::Apart> apart;
  EqualSizes equalSizes;
  std::vector<LeastSize> leastSizes;

  std::shared_ptr<const LoadedKernels> kernels;
  /// By sizes and strides of all arrays, one behind the other.
  std::map<std::vector<int64_t>, std::shared_ptr<const Binding>> bindings;
};

} // namespace attn

#endif
