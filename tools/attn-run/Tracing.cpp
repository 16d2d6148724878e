//===- Tracing.cpp - The order of events, with a machine's rates ----------===//

#include "Tracing.h"

#include "attn/Machine/MachineText.h"
#include "attn/Schedule/Timeline.h"

#include "llvm/Support/FileUtilities.h"

using namespace attn;

std::optional<std::string> run::writeTraceFile(llvm::StringRef file,
                                               const Trace &trace,
                                               llvm::StringRef machineText) {
  std::string wrong;
  std::optional<Machine> machine = parseMachine(machineText.str(), wrong);
  if (!machine)
    return wrong;
  CopyRates copies = copyRates(*machine);
  double flops = machine->tensor16FlopsPerClockPerSm;
  TraceRates rates = {machine->name, copies.clockHz, copies.bytesPerClock,
                      copies.latency,
                      flops > 0 ? flops : machine->fp32FlopsPerClockPerSm};
  llvm::Error error = llvm::writeToOutput(file, [&](llvm::raw_ostream &out) {
    writeTrace(out, trace, rates);
    return llvm::Error::success();
  });
  if (!error)
    return std::nullopt;
  return "--trace expects a file that can be written, but got '" + file.str() +
         "': " + llvm::toString(std::move(error));
}
