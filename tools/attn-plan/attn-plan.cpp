//===- attn-plan.cpp - Which schedule, and why ----------------------------===//
//
// Prices every schedule for one problem on one machine, without compiling
// anything.  All numbers come from Schedule; this file only reads the command
// line.
//
//===----------------------------------------------------------------------===//

#include "attn/Machine/MachineText.h"
#include "attn/Report/Report.h"
#include "attn/Report/Tool.h"
#include "attn/Schedule/Advice.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace attn;
namespace cl = llvm::cl;

static cl::OptionCategory options("attn-plan options");

static cl::opt<std::string> machineName("machine", cl::value_desc("name"),
                                        cl::desc("The GPU (--machines lists)"),
                                        cl::init("h100_sxm"), cl::cat(options));
static cl::list<std::string>
    overrides("set", cl::value_desc("field=value"),
              cl::desc("Override a fact of the machine; may be repeated"),
              cl::cat(options));
static cl::opt<std::string> dtype("dtype", cl::value_desc("type"),
                                  cl::desc("bf16, f16, f32 or f8e4m3"),
                                  cl::init("bf16"), cl::cat(options));
static cl::opt<std::string>
    precision("precision", cl::value_desc("name"),
              cl::desc("Of f32: tf32x3 (default) or tf32"), cl::cat(options));
static cl::opt<int64_t> batch("batch", cl::desc("Batch size"), cl::init(1),
                              cl::cat(options));
static cl::opt<int64_t> heads("heads", cl::desc("Query heads"), cl::init(1),
                              cl::cat(options));
static cl::opt<int64_t>
    kvHeads("kv-heads", cl::desc("Key and value heads (default: heads)"),
            cl::cat(options));
static cl::opt<int64_t> queries("queries", cl::desc("Rows of Q and O"),
                                cl::cat(options));
static cl::opt<int64_t> keys("keys",
                             cl::desc("Rows of K and V (default: queries)"),
                             cl::cat(options));
static cl::opt<int64_t> headDim("head-dim", cl::desc("Columns of Q and K"),
                                cl::cat(options));
static cl::opt<int64_t>
    headDimV("head-dim-v", cl::desc("Columns of V and O (default: head-dim)"),
             cl::cat(options));
static cl::opt<bool> causal("causal", cl::desc("Same as --mask causal"),
                            cl::cat(options));
static cl::opt<std::string>
    mask("mask", cl::value_desc("mask"),
         cl::desc("none, causal, causal_bottom_right or window<L, R>"),
         cl::init("none"), cl::cat(options));
static cl::opt<bool> lse("lse", cl::desc("The log-sum-exp is a result too"),
                         cl::cat(options));
static cl::opt<int64_t>
    alignment("alignment", cl::value_desc("bytes"),
              cl::desc("Bytes that divide the address of every row"),
              cl::init(kMaxAlignment), cl::cat(options));
static cl::opt<std::string>
    direction("direction", cl::value_desc("direction"),
              cl::desc("forward or backward: the output, or the gradients"),
              cl::init("forward"), cl::cat(options));
static cl::opt<bool> deterministic(
    "deterministic",
    cl::desc("Backward: sums are taken in one order, the same in every run"),
    cl::cat(options));
static cl::opt<bool> dlse("dlse",
                          cl::desc("Backward: a gradient of the log-sum-exp "
                                   "comes in"),
                          cl::cat(options));
static cl::opt<bool>
    keepWeights("keep-weights",
                cl::desc("Weights are results too, or backward come in; they "
                         "grow with the square of the rows"),
                cl::cat(options));
static cl::opt<std::string> scheduleName("schedule", cl::value_desc("name"),
                                         cl::desc("Price only this schedule"),
                                         cl::cat(options));
static cl::list<std::string>
    tiles("tiles", cl::value_desc("name = value, ..."),
          cl::desc("Price only these tiles of --schedule; what is left out is "
                   "chosen; may be repeated"),
          cl::cat(options));
static cl::opt<bool> json("json", cl::desc("Print everything as JSON"),
                          cl::cat(options));
static cl::opt<bool> explain("explain", cl::desc("Say what was chosen and why"),
                             cl::cat(options));
static cl::opt<bool> listMachines("machines", cl::desc("List the machines"),
                                  cl::cat(options));

/// Prints `attn-plan: error: ...` and the notes; the exit status.
static int fail(const llvm::Twine &error, const llvm::Twine &note = "") {
  llvm::errs() << "attn-plan: error: " << error << '\n';
  if (!note.isTriviallyEmpty())
    llvm::errs() << "attn-plan: note: " << note << '\n';
  return 1;
}

/// Reads the machine and its overrides; the exit status.
static int readMachine(Machine &machine) {
  std::string name = llvm::StringRef(machineName).split(',').first.trim().str();
  if (!findMachine(name))
    return fail("expects a known machine, but got '" + name + "'",
                "known machines: " + machineNames());
  std::string error;
  std::optional<Machine> parsed = parseMachine(machineName.getValue(), error);
  if (!parsed)
    return fail(error);
  machine = *parsed;
  for (llvm::StringRef item : overrides) {
    auto [field, text] = item.split('=');
    double value = 0;
    if (text.trim().empty() || text.trim().getAsDouble(value))
      return fail("expects --set field=number, but got '" + item + "'");
    if (auto sentence = overrideField(machine, field.trim().str(), value))
      return fail(*sentence, "known fields: " + machineFieldNames());
  }
  if (auto sentence = check(machine))
    return fail(*sentence);
  return 0;
}

/// Reads what gradients are asked for, if any are.
static int readDirection(Problem &problem) {
  auto parsed = parseDirection(direction);
  if (!parsed)
    return fail("expects --direction forward or backward, but got '" +
                direction + "'");
  problem.direction = *parsed;
  problem.deterministic = deterministic;
  problem.dlse = dlse;
  problem.keepsWeights = keepWeights;
  if (*parsed == Direction::forward && (deterministic || dlse))
    return fail("expects --deterministic and --dlse only with --direction "
                "backward, but got forward");
  return 0;
}

static int readProblem(Problem &problem) {
  if (int status = readDirection(problem))
    return status;
  auto type = parseDataType(dtype);
  if (!type)
    return fail("expects a known dtype, but got '" + dtype + "'",
                "known types: bf16, f16, f32, f8e4m3");
  if (precision.getNumOccurrences()) {
    auto parsed = parsePrecision(precision);
    if (!parsed)
      return fail("expects a known precision, but got '" + precision + "'",
                  "known precisions: tf32x3, tf32");
    if (*type != DataType::f32)
      return fail("expects --precision only with --dtype f32, but got " +
                  dtype);
    problem.precision = *parsed;
  }
  auto parsedMask = parseMask(mask);
  if (!parsedMask)
    return fail("expects a known mask, but got '" + mask + "'",
                "known masks: none, causal, causal_bottom_right, window<L, R>");
  if (causal && mask.getNumOccurrences() && mask != "causal")
    return fail("expects --causal or --mask, but got both");
  if (!queries.getNumOccurrences())
    return fail("expects --queries, the number of rows of Q, but got none");
  if (!headDim.getNumOccurrences())
    return fail("expects --head-dim, the columns of Q and K, but got none");

  problem.dtype = *type;
  problem.batch = batch;
  problem.heads = heads;
  problem.kvHeads = kvHeads.getNumOccurrences() ? kvHeads : heads;
  problem.queries = queries;
  problem.keys = keys.getNumOccurrences() ? keys : queries;
  problem.headDim = headDim;
  problem.headDimV = headDimV.getNumOccurrences() ? headDimV : headDim;
  problem.mask = causal ? Mask{MaskKind::causal} : *parsedMask;
  problem.lse = lse;
  problem.alignment = alignment;
  if (auto sentence = check(problem))
    return fail(*sentence);
  return 0;
}

/// Prices the given tiles.  Alone they must be possible; of several those that
/// are not are refused.
static int priceTiles(PlanReport &report) {
  report.plans.clear();
  report.refused.clear();
  for (const std::string &text : tiles) {
    std::string error;
    auto given = parseTiles(text, error);
    if (!given)
      return fail(error);
    auto plan =
        planFor(report.problem, report.machine, scheduleName, *given, error);
    if (plan)
      report.plans.push_back(*plan);
    else if (tiles.size() == 1)
      return fail(error);
    else
      report.refused.push_back({scheduleName, *given, {}, error, {}});
  }
  llvm::stable_sort(report.plans, [](const Plan &a, const Plan &b) {
    return a.seconds < b.seconds;
  });
  return 0;
}

/// Keeps one schedule, or some choices of it.
static int narrow(PlanReport &report) {
  if (!scheduleName.getNumOccurrences())
    return tiles.getNumOccurrences()
               ? fail("expects --schedule with --tiles, but got none",
                      "known schedules: " +
                          llvm::join(scheduleNames(report.problem.direction),
                                     ", "))
               : 0;
  if (tiles.getNumOccurrences())
    return priceTiles(report);
  std::string error;
  if (!planFor(report.problem, report.machine, scheduleName, {}, error))
    return fail(error);
  llvm::erase_if(report.plans, [](const Plan &other) {
    return other.schedule != scheduleName;
  });
  llvm::erase_if(report.refused, [](const Refused &other) {
    return other.schedule != scheduleName;
  });
  return 0;
}

/// The choice that needs least, and the smallest machine that has a plan.
static std::string whatWouldFit(const PlanReport &report) {
  std::string text;
  if (const Refused *nearest = nearestFit(report))
    text = "nearest is " + nearest->schedule + " with " + nearest->tiles.str() +
           ": " + nearest->reason + "; ";
  const Machine *smallest = smallestMachine(report.problem);
  if (!smallest)
    return text + "no known machine fits";
  return text + "the smallest known machine that fits is " + smallest->name +
         " with " + std::to_string(smallest->smemBytesPerBlock);
}

int main(int argc, char **argv) {
  if (auto sentence = prepareTool(argc, argv))
    return fail(*sentence);
  cl::HideUnrelatedOptions(options);
  cl::ParseCommandLineOptions(
      argc, argv,
      "attn-plan: which schedule computes an attention fastest, and why\n");
  if (listMachines) {
    renderMachines(llvm::outs());
    return 0;
  }
  if (json && explain)
    return fail("expects --json or --explain, but got both");

  Machine machine;
  Problem problem;
  if (int status = readMachine(machine))
    return status;
  if (int status = readProblem(problem))
    return status;
  Packing packed = packing(problem);
  PlanReport report = plans(packed.problem, machine);
  if (int status = narrow(report))
    return status;

  if (json)
    renderJson(llvm::outs(), packed, report);
  else if (explain)
    renderExplanation(llvm::outs(), packed, report);
  else
    renderTable(llvm::outs(), packed, report);
  if (!report.plans.empty())
    return 0;
  llvm::outs().flush();
  return fail("no plan fits " + machine.name, whatWouldFit(report));
}
