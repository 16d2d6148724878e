//===- InterpreterDevice.h - The interpreter as a device --------*- C++ -*-===//

#ifndef ATTN_INTERPRETER_INTERPRETERDEVICE_H
#define ATTN_INTERPRETER_INTERPRETERDEVICE_H

#include "attn/Host/Host.h"
#include "attn/Interpreter/Interpreter.h"

#include <map>

namespace attn {

/// The device that is the interpreter.
class InterpreterDevice : public Device {
public:
  explicit InterpreterDevice(InterpreterOptions options = {})
      : options(options) {}

  /// Global memory, for reading and writing the contents of arrays.
  GlobalMemory &memory() { return global; }
  /// Bytes moved by all launches so far.
  tile::Traffic traffic() const { return total; }

  mlir::FailureOr<uint64_t> allocate(int64_t bytes,
                                     mlir::Location location) override;
  mlir::LogicalResult free(uint64_t address, mlir::Location location) override;
  mlir::LogicalResult launch(tile::KernelOp kernel, std::array<int64_t, 3> grid,
                             llvm::ArrayRef<KernelArgument> arguments,
                             mlir::Location location) override;
  /// Every launch that is given them is checked to leave them at 0.
  mlir::FailureOr<uint64_t> counters(int64_t count,
                                     mlir::Location location) override;
  mlir::LogicalResult copy(const HostArray &source, const HostArray &target,
                           mlir::Location location) override;
  mlir::LogicalResult runLoops(const ElementLoops &loops) override {
    return runElementLoops(loops, *this);
  }
  mlir::FailureOr<HostScalar> load(mlir::Type type, uint64_t address,
                                   mlir::Location location) override;
  mlir::LogicalResult store(const HostScalar &value, mlir::Type type,
                            uint64_t address, mlir::Location location) override;

private:
  InterpreterOptions options;
  GlobalMemory global;
  /// Counters by address: how many there are.
  std::map<uint64_t, int64_t> counterCounts;
  tile::Traffic total;
};

} // namespace attn

#endif
