//===- Attention.cpp - The executables that a process keeps ---------------===//

#include "AttentionArrays.h"

#include "Clauses.h"
#include "Executable.h"
#include "ForkGate.h"
#include "SizedSchedule.h"

#include "attn/CAPI/GpuMachine.h"
#include "attn/IR/Attn.h"
#include "attn/Machine/MachineText.h"
#include "attn/Schedule/Plan.h"

#include "llvm/ADT/StringExtras.h"

#include <list>
#include <pthread.h>

using namespace attn;

/// So many executables are kept; each holds its kernels and an MLIR context.
static constexpr size_t kMaxExecutables = 256;

namespace {

/// An executable to be, or one that is: the first who needs it compiles it,
/// the others wait.
struct Entry {
  std::mutex mutex;
  std::unique_ptr<Executable> executable;
};

/// Executables by class, machine, schedule and GPU; the least recently used
/// go first.
class Store {
public:
  std::shared_ptr<Entry> at(const std::string &key) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = places.find(key);
    if (found != places.end()) {
      order.splice(order.begin(), order, found->second);
      return found->second->second;
    }
    order.emplace_front(key, std::make_shared<Entry>());
    places[key] = order.begin();
    if (order.size() > kMaxExecutables) {
      places.erase(order.back().first);
      order.pop_back();
    }
    return order.front().second;
  }

private:
  using Order = std::list<std::pair<std::string, std::shared_ptr<Entry>>>;
  std::mutex mutex;
  Order order;
  std::map<std::string, Order::iterator> places;
};

} // namespace

/// Those of this process: a child of a fork has its own, since the GPU is not
/// there for it, and it must wait for no entry that a thread of the parent has
/// locked.  Never destroyed: threads may outlive statics.
static Store *executables;

/// When the library is loaded: see the gate of forks.
__attribute__((constructor)) static void makeStores() {
  executables = new Store();
  pthread_atfork(nullptr, nullptr, [] { executables = new Store(); });
}

/// The machine to compile for, as text.
static Outcome resolveMachine(const std::string &asked, int device,
                              std::string &name) {
  if (!asked.empty()) {
    name = asked;
    return std::nullopt;
  }
  // Asking the driver takes microseconds, and the answer does not change.
  static std::mutex mutex;
  static auto *known = new std::map<int, std::string>();
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = known->find(device); found != known->end()) {
    name = found->second;
    return std::nullopt;
  }
  runtime::Expected<runtime::Gpu> gpu = runtime::Gpu::open(device);
  if (!gpu)
    return Fault{ATTN_DEVICE_ERROR, gpu.message()};
  const Machine *machine = machineOf(gpu->facts());
  if (!machine)
    return Fault{ATTN_DEVICE_ERROR, unknownGpu(gpu->facts())};
  name = (*known)[device] = machine->name;
  return std::nullopt;
}

/// Diagnostics without the place in a text that the caller never saw, and
/// without the text itself.
static std::string sentences(llvm::StringRef diagnostics) {
  llvm::SmallVector<std::string> kept;
  for (llvm::StringRef line : llvm::split(diagnostics, '\n'))
    for (llvm::StringRef kind : {": error: ", ": note: "}) {
      auto [place, sentence] = line.split(kind);
      if (place == line)
        continue;
      for (llvm::StringRef op :
           {ForwardOp::getOperationName(), BackwardOp::getOperationName()})
        sentence.consume_front(("'" + op + "' op ").str());
      if (!sentence.starts_with("see current operation"))
        kept.push_back(sentence.str());
    }
  return llvm::join(kept, "\n  ");
}

namespace {

/// What arrays are bound with.
struct Choice {
  KernelClass kernelClass;
  Machine machine;
  Packing packing;
  std::string schedule; ///< empty: there is none
};

} // namespace

/// Uses what is kept under a key, which is made first if need be.
static Outcome useKept(const std::string &key,
                       llvm::function_ref<Outcome(Entry &)> make,
                       llvm::function_ref<Outcome(Executable &)> use) {
  std::shared_ptr<Entry> entry = executables->at(key);
  // Who holds it may be waiting for ptxas, and a fork need not.
  std::unique_lock<std::mutex> lock(entry->mutex, std::defer_lock);
  {
    forkgate::Outside outside;
    lock.lock();
  }
  if (!entry->executable)
    if (Outcome fault = make(*entry))
      return fault;
  return use(*entry->executable);
}

Outcome attn::bindText(const std::string &text, const std::string &machine,
                       int device, llvm::ArrayRef<CallerArray> arrays,
                       std::shared_ptr<const Binding> &binding) {
  std::string name;
  if (Outcome fault = resolveMachine(machine, device, name))
    return fault;
  auto make = [&](Entry &entry) -> Outcome {
    std::string error;
    std::unique_ptr<Executable> executable = Executable::compile(
        {text, name, llvm::StringRef(), llvm::StringRef()}, error);
    if (!executable)
      return invalid(error);
    if (Outcome fault = executable->load(device))
      return fault;
    entry.executable = std::move(executable);
    return std::nullopt;
  };
  return useKept(text + name + '\0' + std::to_string(device), make,
                 [&](Executable &made) { return made.bind(arrays, binding); });
}

/// Everything that is known without a GPU, on a machine by its text.
static Outcome choose(const AttentionRequest &request,
                      const AttentionArrays &arrays, const std::string &machine,
                      Choice &choice) {
  if (Outcome fault = readClauses(choice.kernelClass))
    return fault;
  std::string error;
  std::optional<Machine> parsed = parseMachine(machine, error);
  if (!parsed)
    return Fault{ATTN_INVALID_ARGUMENT, error};
  choice.machine = *parsed;
  choice.packing = packingOf(choice.kernelClass, arrays);
  choice.schedule =
      scheduleForSizes({choice.kernelClass, choice.packing.problem, *parsed,
                        machine, request.schedule});
  return std::nullopt;
}

/// Why nothing is planned, in a few of the reasons.
static Fault noSchedule(const AttentionRequest &request, const Choice &choice) {
  std::string words = "expects a schedule that fits " + choice.machine.name +
                      " and has a kernel, but got " +
                      (request.schedule.empty() ? "none" : request.schedule);
  llvm::SmallVector<std::string> reasons;
  PlanReport report = plans(choice.packing.problem, choice.machine);
  for (const Refused &refused : report.refused)
    if (!llvm::is_contained(reasons, refused.reason) && reasons.size() < 4)
      reasons.push_back(refused.reason);
  if (!reasons.empty())
    words += ": " + llvm::join(reasons, "; ");
  return {request.schedule.empty() ? ATTN_UNSUPPORTED : ATTN_INVALID_ARGUMENT,
          words};
}

/// The class of a call on the machine that the request names.
static Outcome classifyForNamed(const AttentionRequest &request,
                                const AttentionArrays &arrays,
                                KernelClass &kernelClass) {
  if (std::optional<std::string> wrong = classify(request, arrays, kernelClass))
    return invalid(*wrong);
  if (request.machine.empty())
    return invalid("expects a request that names a machine");
  return std::nullopt;
}

Outcome attn::chooseSchedule(const AttentionRequest &request,
                             const AttentionArrays &arrays,
                             std::string &schedule) {
  Choice choice;
  if (Outcome fault = classifyForNamed(request, arrays, choice.kernelClass))
    return fault;
  if (Outcome fault = choose(request, arrays, request.machine, choice))
    return fault;
  if (choice.schedule.empty())
    return noSchedule(request, choice);
  schedule = choice.schedule;
  return std::nullopt;
}

/// What arrays of a class are bound with, and those that are bound.
static Outcome chooseBound(const AttentionRequest &request,
                           const AttentionArrays &arrays,
                           const std::string &machine, Choice &choice,
                           AttentionArrays &bound) {
  if (Outcome fault = choose(request, arrays, machine, choice))
    return fault;
  const Packing &packing = choice.packing;
  Problem &problem = choice.kernelClass.problem;
  // That there is one query is part of the class, whose code then cuts keys; of
  // several the strides are not, so they are packed here.
  bool isOne = packing && problem.queries == 1;
  bound = packing && !isOne ? packed(arrays, packing) : arrays;
  if (!isOne) {
    problem = packing.problem;
    problem.queries = -1;
  }
  problem.batch = problem.keys = -1;
  if (problem.ragged) // it decided the schedule, and is nothing of a kernel
    problem.ragged->longest = {kMaxRows, kMaxRows};
  return std::nullopt;
}

/// Compiles a class with a schedule for a machine.
static Outcome compileClass(const AttentionRequest &request,
                            const Choice &choice, const std::string &machine,
                            bool withBinary,
                            std::unique_ptr<Executable> &executable) {
  std::string error, text = textOf(choice.kernelClass);
  executable = Executable::compile(
      {text, machine, choice.schedule, llvm::StringRef(), withBinary}, error);
  if (executable)
    return std::nullopt;
  std::string words = sentences(error);
  // The text is ours and in order: what fails is the caller's schedule, or
  // there is nothing that computes this.
  return Fault{request.schedule.empty() ? ATTN_UNSUPPORTED
                                        : ATTN_INVALID_ARGUMENT,
               words.empty() ? error : words};
}

/// Kernels are for any sizes; these may need more than there is.
static Outcome checkMemory(int64_t bytes, const Machine &machine) {
  if (bytes <= machine.hbmBytes)
    return std::nullopt;
  return Fault{ATTN_UNSUPPORTED,
               "needs " + std::to_string(bytes) +
                   " bytes of scratch memory for these sizes, but " +
                   machine.name + " has " + std::to_string(machine.hbmBytes)};
}

Outcome attn::scratchBytesOf(const AttentionRequest &request,
                             const AttentionArrays &arrays, int64_t &bytes) {
  Choice choice;
  AttentionArrays bound;
  if (Outcome fault = classifyForNamed(request, arrays, choice.kernelClass))
    return fault;
  if (Outcome fault =
          chooseBound(request, arrays, request.machine, choice, bound))
    return fault;
  if (choice.schedule.empty())
    return noSchedule(request, choice);
  auto make = [&](Entry &entry) {
    return compileClass(request, choice, request.machine, /*withBinary=*/false,
                        entry.executable);
  };
  if (Outcome fault = useKept(
          textOf(choice.kernelClass) + request.machine + '\0' + choice.schedule,
          make, [&](Executable &executable) {
            return executable.scratchBytes(bound.list(), bytes);
          }))
    return fault;
  return checkMemory(bytes, choice.machine);
}

Outcome attn::bindAttention(const AttentionRequest &request, int device,
                            const AttentionArrays &arrays,
                            std::shared_ptr<const Binding> &binding) {
  Choice choice;
  AttentionArrays bound;
  if (std::optional<std::string> wrong =
          classify(request, arrays, choice.kernelClass))
    return invalid(*wrong);
  std::string machine;
  if (Outcome fault = resolveMachine(request.machine, device, machine))
    return fault;
  if (Outcome fault = chooseBound(request, arrays, machine, choice, bound))
    return fault;
  if (choice.schedule.empty()) // what is wrong with it, if anything, is told
    choice.schedule = request.schedule; // when it is compiled
  std::string key = textOf(choice.kernelClass) + machine + '\0' +
                    choice.schedule + '\0' + std::to_string(device);
  auto make = [&](Entry &entry) -> Outcome {
    std::unique_ptr<Executable> executable;
    if (Outcome fault = compileClass(request, choice, machine,
                                     /*withBinary=*/true, executable))
      return fault;
    if (Outcome fault = executable->load(device))
      return fault;
    entry.executable = std::move(executable);
    return std::nullopt;
  };
  if (Outcome fault = useKept(key, make, [&](Executable &executable) {
        return executable.bind(bound.list(), binding);
      }))
    return fault;
  return checkMemory(binding->scratchBytes(), choice.machine);
}
