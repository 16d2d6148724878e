//===- Executable.h - What attn_executable is -------------------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_EXECUTABLE_H
#define ATTN_LIB_CAPI_EXECUTABLE_H

#include "attn/CAPI/GpuDevice.h"
#include "attn/CAPI/Recording.h"

#include "mlir/IR/MLIRContext.h"

#include <map>
#include <mutex>
#include <optional>

namespace attn {

/// An array of a caller: an address and a shape.
struct CallerArray {
  uint64_t address = 0;
  llvm::SmallVector<int64_t> sizes, strides;
};

/// A compiled function, and what is needed to call it.  Members take turns:
/// every public function holds the lock.
class Executable {
public:
  struct Request {
    llvm::StringRef text, machine, schedule, function;
  };
  /// Compiles; on failure `error` holds the diagnostics.
  static std::unique_ptr<Executable> compile(const Request &request,
                                             std::string &error);

  std::string info() const;
  const Program &compiled() const { return program; }

  runtime::Status load(int device);

  /// Whether what is wrong is what the caller passed.
  struct CallError {
    bool isCallers;
    std::string message;
  };
  std::optional<CallError> call(llvm::ArrayRef<CallerArray> arrays,
                                runtime::Stream stream);

private:
  Executable() : context(mlir::MLIRContext::Threading::DISABLED) {}

  /// Why the arrays do not fit the function.
  std::optional<std::string>
  checkArrays(llvm::ArrayRef<CallerArray> arrays,
              llvm::SmallVectorImpl<HostArray> &arguments);
  /// The recording for these arguments, made at their first call.
  const Recording *recordingFor(llvm::ArrayRef<HostArray> arguments,
                                std::string &error);

  mutable std::mutex mutex;
  mlir::MLIRContext context;
  Program program;
  mlir::func::FuncOp function;

  std::optional<runtime::Gpu> gpu;
  LoadedKernels kernels;
  /// By sizes and strides of all arguments, one behind the other.
  std::map<std::vector<int64_t>, Recording> recordings;
};

} // namespace attn

#endif
