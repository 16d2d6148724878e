//===- Tracing.cpp - The order of events, with a machine's rates ----------===//

#include "Tracing.h"

#include "attn/Machine/MachineText.h"
#include "attn/Report/Tool.h"
#include "attn/Schedule/Timeline.h"

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
  auto wrongly = writeFile(file.str(), [&](llvm::raw_ostream &out) {
    writeTrace(out, trace, rates);
  });
  if (!wrongly)
    return std::nullopt;
  return "--trace " + *wrongly;
}
