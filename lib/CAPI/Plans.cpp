//===- Plans.cpp - attn-c/Attn.h: machines, devices and plans -------------===//

#include "Boundary.h"
#include "Problems.h"
#include "SizedSchedule.h"

#include "attn/CAPI/GpuMachine.h"
#include "attn/Machine/MachineText.h"
#include "attn/Report/Pictures.h"
#include "attn/Report/Report.h"

#include "llvm/Support/JSON.h"

using namespace attn;

int32_t attn_machines_json(char **json, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!json)
      return invalid("expects a place for the result");
    std::string text;
    llvm::raw_string_ostream stream(text);
    renderMachinesJson(stream);
    return give(text, json);
  });
}

int32_t attn_device_count(int32_t *count, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!count)
      return invalid("expects a place for the result");
    *count = 0;
    runtime::Expected<int> devices = runtime::Gpu::count();
    if (!devices)
      return Fault{ATTN_DEVICE_ERROR, devices.message()};
    *count = *devices;
    return std::nullopt;
  });
}

int32_t attn_device_json(int32_t device, char **json, attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!json)
      return invalid("expects a place for the result");
    runtime::Expected<runtime::Gpu> gpu = runtime::Gpu::open(device);
    if (!gpu)
      return Fault{ATTN_DEVICE_ERROR, gpu.message()};
    const runtime::GpuFacts &facts = gpu->facts();
    const Machine *machine = machineOf(facts);
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::json::OStream out(stream);
    out.object([&] {
      out.attribute("name", facts.name);
      out.attribute("machine", machine ? llvm::json::Value(machine->name)
                                       : llvm::json::Value(nullptr));
      out.attribute("compute_capability", facts.computeCapability);
      out.attribute("multiprocessors", facts.multiprocessors);
      out.attribute("smem_bytes_per_block", facts.smemBytesPerBlock);
      out.attribute("l2_bytes", facts.l2Bytes);
      out.attribute("memory_bytes", facts.memoryBytes);
      out.attribute("clock_hz", facts.clockHz);
      out.attribute("driver_version", facts.driverVersion);
    });
    return give(text, json);
  });
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Reads a problem and a machine, and gives what is written of them.
using Write = llvm::function_ref<Outcome(llvm::raw_ostream &, const Problem &,
                                         const Machine &)>;
static int32_t writeProblem(const attn_problem *source, const char *machine,
                            char **text, attn_status *status, Write write) {
  return guarded(status, [&]() -> Outcome {
    if (!source || !machine || !text)
      return invalid("expects a problem, a machine and a place for the result");
    KernelClass kernelClass;
    if (std::optional<std::string> wrong = readProblem(*source, kernelClass))
      return invalid(*wrong);
    if (std::optional<std::string> wrong = check(kernelClass.problem))
      return invalid(*wrong);
    std::string error;
    std::optional<Machine> parsed = parseMachine(machine, error);
    if (!parsed)
      return invalid(error);
    std::string rendered;
    llvm::raw_string_ostream stream(rendered);
    if (Outcome fault = write(stream, kernelClass.problem, *parsed))
      return fault;
    return give(rendered, text);
  });
}

/// Renders the plans for a problem of the caller.
static int32_t renderPlans(const attn_problem *source, const char *machine,
                           char **text, attn_status *status,
                           void (*render)(llvm::raw_ostream &, const Packing &,
                                          const PlanReport &)) {
  return writeProblem(source, machine, text, status,
                      [&](llvm::raw_ostream &stream, const Problem &problem,
                          const Machine &parsed) -> Outcome {
                        Packing packed = packing(problem);
                        render(stream, packed, plans(packed.problem, parsed));
                        return std::nullopt;
                      });
}

int32_t attn_plan_json(const attn_problem *problem, const char *machine,
                       char **json, attn_status *status) {
  return renderPlans(problem, machine, json, status, renderJson);
}

int32_t attn_plan_text(const attn_problem *problem, const char *machine,
                       char **text, attn_status *status) {
  return renderPlans(problem, machine, text, status, renderExplanation);
}

/// Of a report, the plan of a schedule with the sizes that its text names; of
/// no text, the one that would be built.
static Outcome findPlan(const PlanReport &report, llvm::StringRef given,
                        Plan &plan) {
  if (given.empty()) {
    const Plan *best = chosen(report);
    if (!best)
      return Fault{ATTN_UNSUPPORTED, "expects a schedule that fits " +
                                         report.machine.name +
                                         ", but got none"};
    plan = *best;
    return std::nullopt;
  }
  auto [name, sizes] = given.split(',');
  std::string error;
  std::optional<Tiles> tiles = parseTiles(sizes, error);
  std::optional<Plan> found;
  if (tiles)
    found = planFor(report.problem, report.machine, name.trim(), *tiles, error);
  if (!found)
    return invalid(error);
  plan = *found;
  return std::nullopt;
}

int32_t attn_diagram_svg(const attn_problem *problem, const char *machine,
                         const char *schedule, char **svg,
                         attn_status *status) {
  auto write = [&](llvm::raw_ostream &stream, const Problem &sized,
                   const Machine &parsed) -> Outcome {
    PlanReport report = plans(packing(sized).problem, parsed);
    Plan plan;
    if (Outcome fault = findPlan(report, orEmpty(schedule), plan))
      return fault;
    stream << diagramSvg(report, plan);
    return std::nullopt;
  };
  return writeProblem(problem, machine, svg, status, write);
}

int32_t attn_bound_schedule(const attn_problem *problem, const char *machine,
                            const char *schedule, char **text,
                            attn_status *status) {
  auto write = [&](llvm::raw_ostream &stream, const Problem &sized,
                   const Machine &parsed) -> Outcome {
    std::string given = orEmpty(schedule).str();
    std::string bound =
        scheduleForSizes({KernelClass{sized, std::nullopt},
                          packing(sized).problem, parsed, machine, given});
    if (bound.empty())
      return Fault{given.empty() ? ATTN_UNSUPPORTED : ATTN_INVALID_ARGUMENT,
                   "expects a schedule that fits " + parsed.name +
                       " and has a kernel, but got " +
                       (given.empty() ? "none" : given)};
    stream << bound;
    return std::nullopt;
  };
  return writeProblem(problem, machine, text, status, write);
}

int32_t attn_problem_text(const attn_problem *problem, char **text,
                          attn_status *status) {
  return guarded(status, [&]() -> Outcome {
    if (!problem || !text)
      return invalid("expects a problem and a place for the result");
    KernelClass kernelClass;
    if (std::optional<std::string> wrong = readProblem(*problem, kernelClass))
      return invalid(*wrong);
    if (std::optional<std::string> wrong = check(kernelClass))
      return invalid(*wrong);
    return give(textOf(kernelClass), text);
  });
}
