//===- attn-run.cpp - Compiles a file, runs it, checks it -----------------===//
//
//   attn-run attention.mlir [--on gpu|interpreter] [--machine h100_sxm] ...
//
// Compiles the file, runs its function on random inputs, compares every output
// with fp64, and prints errors and times.  The exit status is 1 when anything
// is wrong: the file, the machine, or a result.
//
//===----------------------------------------------------------------------===//

#include "Execution.h"
#include "Function.h"
#include "NumpyFiles.h"
#include "Reads.h"
#include "Reference.h"
#include "Report.h"
#include "Tracing.h"

#include "../commands/Commands.h"

#include "attn/CAPI/GpuMachine.h"
#include "attn/InitAll.h"
#include "attn/Machine/MachineText.h"
#include "attn/Pipelines/Nesting.h"
#include "attn/Report/Options.h"
#include "attn/Report/Tool.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

#include <cmath>

using namespace attn;
using namespace attn::run;
using namespace mlir;

namespace {

enum class Where { automatic, gpu, interpreter };

struct Options {
  llvm::cl::OptionCategory category{"attn-run options"};
  llvm::cl::opt<std::string> file{llvm::cl::Positional, llvm::cl::Required,
                                  llvm::cl::desc("FILE.mlir"),
                                  llvm::cl::cat(category)};
  ChoiceOption<Where> on{
      "on", llvm::cl::desc("where to run (default: gpu where there is one)"),
      llvm::cl::values(clEnumValN(Where::gpu, "gpu", "the first GPU"),
                       clEnumValN(Where::interpreter, "interpreter",
                                  "the CPU, tile by tile")),
      llvm::cl::init(Where::automatic), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> machine{
      "machine",
      llvm::cl::desc("compile for this machine (default: the module's, else "
                     "the GPU that is present, else h100_sxm)"),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> schedule{
      "schedule",
      llvm::cl::desc("overrule the choice: \"flash, query = 128, key = 64\""),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> function{
      "function", llvm::cl::desc("which function (default: the only one)"),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> reference{
      "reference",
      llvm::cl::desc("function of the same arguments and results that says "
                     "what they should be (default: the function itself)"),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  DecimalOption<int64_t> batch{"batch",
                               llvm::cl::desc("value of a dynamic batch size"),
                               llvm::cl::init(-1), llvm::cl::cat(category)};
  DecimalOption<int64_t> queries{
      "queries", llvm::cl::desc("value of a dynamic row count of Q"),
      llvm::cl::init(-1), llvm::cl::cat(category)};
  DecimalOption<int64_t> keys{
      "keys",
      llvm::cl::desc("value of a dynamic row count of K and V (default: that "
                     "of Q)"),
      llvm::cl::init(-1), llvm::cl::cat(category)};
  DecimalOption<uint64_t> seed{"seed", llvm::cl::desc("seed of the inputs"),
                               llvm::cl::init(1), llvm::cl::cat(category)};
  ChoiceOption<Inputs> inputs{
      "inputs", llvm::cl::desc("what the inputs are drawn from"),
      llvm::cl::values(
          clEnumValN(Inputs::normal, "normal", "standard normal (default)"),
          clEnumValN(Inputs::nanKey, "nan-key", "one key holds a NaN"),
          clEnumValN(Inputs::infinity, "inf", "one key holds an infinity"),
          clEnumValN(Inputs::large, "large", "Q and K are 8 times as large")),
      llvm::cl::init(Inputs::normal), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> arrays{
      "arrays",
      llvm::cl::desc("take arguments from FOLDER/argument0.npy, ..., write "
                     "FOLDER/result0.npy, ..., and compare nothing"),
      llvm::cl::value_desc("folder"), llvm::cl::cat(category)};
  DecimalOption<int64_t> repeat{
      "repeat", llvm::cl::desc("launches to time on a GPU (default 20)"),
      llvm::cl::init(20), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> trace{
      "trace",
      llvm::cl::desc("write what the warps of the first block of each kernel "
                     "did, in order, with durations by the model, in Chrome's "
                     "trace format; on the interpreter only"),
      llvm::cl::value_desc("file.json"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> guard{
      "guard",
      llvm::cl::desc("watch 4096 bytes around every array, and the inputs"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> noCheck{"no-check",
                              llvm::cl::desc("do not compare with fp64"),
                              llvm::cl::cat(category)};
  llvm::cl::opt<double> budget{
      "check-budget",
      llvm::cl::desc("multiply-adds of the reference, behind which only a "
                     "sample of rows is compared (default 2e11)"),
      llvm::cl::init(2e11), llvm::cl::cat(category)};
  DecimalOption<unsigned> threads{
      "threads",
      llvm::cl::desc("threads of the reference (default: all processors)"),
      llvm::cl::init(0), llvm::cl::cat(category)};
  llvm::cl::opt<bool> progress{
      "progress",
      llvm::cl::desc("say on stderr what is being done (default: on a "
                     "terminal)"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> json{"json", llvm::cl::desc("print one line of JSON"),
                           llvm::cl::cat(category)};
};

} // namespace

/// Says on stderr what is being done: on a terminal in one line, which goes at
/// the end; elsewhere in lines that stay, if asked for.
class Progress {
public:
  explicit Progress(const Options &options)
      : isOnTerminal(llvm::errs().is_displayed() &&
                     options.progress.getNumOccurrences() == 0),
        isOn(isOnTerminal || options.progress) {}
  ~Progress() { clear(); }

  void begin(const llvm::Twine &what) {
    clear();
    if (isOn)
      llvm::errs() << "attn-run: " << what << (isOnTerminal ? " ..." : "\n");
  }
  void clear() {
    if (isOnTerminal)
      llvm::errs() << "\r\x1b[K";
  }

private:
  bool isOnTerminal, isOn;
};

/// An error that belongs to no place in the file.
static LogicalResult fail(const llvm::Twine &message) {
  llvm::errs() << "attn-run: error: " << message << "\n";
  return failure();
}

/// Opens the GPU if there is one and it is wanted.
static LogicalResult openGpu(const Options &options,
                             std::optional<runtime::Gpu> &gpu) {
  if (options.on == Where::interpreter)
    return success();
  runtime::Expected<runtime::Gpu> opened = runtime::Gpu::open();
  if (opened && options.trace.getNumOccurrences())
    return fail("--trace expects --on interpreter, but got the GPU " +
                opened->facts().name);
  if (opened) {
    gpu = *opened;
    return success();
  }
  if (options.on == Where::gpu)
    return fail(opened.message());
  return success();
}

/// The machine to compile for; empty means the compiler's default.
static FailureOr<std::string>
chooseMachine(const Options &options, ModuleOp module,
              const std::optional<runtime::Gpu> &gpu) {
  if (!options.machine.empty())
    return options.machine.getValue();
  if (!gpu || module->hasAttr(machineAttrName))
    return std::string();
  if (const Machine *machine = machineOf(gpu->facts()))
    return machine->name;
  return fail(unknownGpu(gpu->facts()));
}

/// Whether nothing is asked of a comparison that is not made.
static LogicalResult checkCompared(const Options &options) {
  const char *without = options.noCheck           ? "no-check"
                        : !options.arrays.empty() ? "arrays"
                                                  : nullptr;
  if (!without)
    return success();
  for (const llvm::cl::Option *asked :
       {static_cast<const llvm::cl::Option *>(&options.reference),
        static_cast<const llvm::cl::Option *>(&options.guard),
        static_cast<const llvm::cl::Option *>(&options.budget)})
    if (asked->getNumOccurrences() > 0)
      return fail("--" + asked->ArgStr + " expects a comparison, but got --" +
                  without);
  return success();
}

/// Whether the options are in range.
static LogicalResult checkOptions(const Options &options, Extents &extents) {
  const std::pair<const DecimalOption<int64_t> *, std::optional<int64_t> *>
      sizes[] = {{&options.batch, &extents.batch},
                 {&options.queries, &extents.queries},
                 {&options.keys, &extents.keys}};
  for (auto [option, extent] : sizes) {
    if (option->getNumOccurrences() == 0)
      continue;
    if (*option < 0 || *option > kMaxRows)
      return fail("--" + option->ArgStr + " expects 0 to " +
                  llvm::Twine(kMaxRows) + ", but got " +
                  llvm::Twine(option->getValue()));
    *extent = option->getValue();
  }
  if (options.repeat < 0)
    return fail("--repeat expects 0 or more, but got " +
                llvm::Twine(options.repeat.getValue()));
  if (!(options.budget > 0) || !std::isfinite(options.budget))
    return fail("--check-budget expects a finite number above 0, but got " +
                std::to_string(options.budget.getValue()));
  return checkCompared(options);
}

/// ", captures 2, sees, score, blocks 128x128, sinks", of what there is.
static std::string describeClauses(AttentionOpInterface op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!op.captures().empty())
    out << ", captures " << op.captures().size();
  for (Region &region : op->getRegions()) {
    SmallVector<ShortForm> forms = shortFormsOf(region);
    for (const ShortForm &form : forms)
      out << ", " << keywordOf(form.kind);
    if (forms.empty())
      out << (isScore(region) ? ", score" : ", sees");
  }
  if (std::optional<BlockSize> size = op.blockSize())
    out << ", blocks " << str(*size);
  if (!op.clauseOperands(ClauseGroup::sinks).empty())
    out << ", sinks";
  if (Placement place = placeOf(op); place.any())
    out << ", " << str(place);
  if (OperandScales scales = problemOf(op).scales; scales.any())
    out << ", " << str(scales);
  return text;
}

/// "attn.forward bf16 2x8/2x100x100, head dims 64 and 64, mask causal".
static std::string describe(const Attention &attention) {
  const Problem &p = attention.problem;
  std::string text;
  if (p.dtype == DataType::f32)
    text = " as " + std::string(name(p.precision));
  if (p.kvDtype)
    text = " with k and v in " + std::string(name(*p.kvDtype));
  text.insert(0, name(p.dtype));
  if (attention.isBackward())
    text.insert(0, "gradients, ");
  llvm::raw_string_ostream(text)
      << ", batch " << p.batch << ", heads " << p.heads << " over " << p.kvHeads
      << ", queries " << p.queries << ", keys " << p.keys << ", head dims "
      << p.headDim << " and " << p.headDimV << ", mask " << str(p.mask)
      << llvm::format(", scale %g", attention.scale)
      << (p.lseLow ? ", LSE in two words" : "")
      << (p.dlse ? ", gradient of LSE" : "")
      << (p.deterministic ? ", deterministic" : "")
      << describeClauses(attention.op);
  return text;
}

/// "merge, bf16, parts bf16 f32, batch 2, heads 3, queries 100, head dim 64".
static std::string describe(const Merge &merge) {
  std::string text;
  llvm::raw_string_ostream out(text);
  bool isBackward = merge.direction == Direction::backward;
  out << (isBackward ? "gradients of a part, " : "merge, ") << name(merge.dtype)
      << (isBackward ? ", part" : ", parts");
  for (DataType part : merge.parts)
    out << " " << name(part);
  out << ", batch " << merge.batch << ", heads " << merge.heads << ", queries "
      << merge.queries << ", head dim " << merge.headDim
      << (merge.dlse ? ", gradient of LSE" : "");
  return text;
}

/// "lists of blocks 128x128, queries 300, keys 400", or "lists by keys".
static std::string describe(const Listing &listing) {
  auto op = dyn_cast<BlockListsOp>(listing.op);
  if (!op)
    return "lists of blocks by keys";
  std::string text;
  llvm::raw_string_ostream(text)
      << "lists of blocks "
      << str(BlockSize{op.getBlocks()[0], op.getBlocks()[1]}) << ", batch "
      << op.getBatch() << ", heads " << op.getHeads() << ", queries "
      << listing.queries << ", keys " << listing.keys << ", captures "
      << op.getCaptures().size();
  return text;
}

/// With the rates of the machine that the kernels were compiled for.
static LogicalResult writeTraced(const Options &options, const Program &program,
                                 const Trace &trace) {
  if (program.kernels.empty())
    return fail("--trace expects a kernel, but got none");
  if (std::optional<std::string> wrong =
          writeTraceFile(options.trace, trace, program.kernels.front().machine))
    return fail(*wrong);
  return success();
}

/// Says about how long the interpreter takes, where that is long: it does 1 to
/// 7 thousand million operations a second, and of f32 a fourth of that.
static void announceTime(const Report &report, bool isF32) {
  constexpr double perSecond = 3e9, shareOfF32 = 0.25, longest = 10;
  double seconds = report.flops / (perSecond * (isF32 ? shareOfF32 : 1));
  if (seconds < longest)
    return;
  llvm::errs() << llvm::format("attn-run: the interpreter takes about %.0f %s "
                               "for %.1e operations; fewer rows take less\n",
                               seconds < 120 ? seconds : seconds / 60,
                               seconds < 120 ? "seconds" : "minutes",
                               report.flops);
}

/// Runs where it was asked for and fills the report.
static LogicalResult launch(const Options &options, const Function &function,
                            Execution &execution, const Program &program,
                            const std::optional<runtime::Gpu> &gpu,
                            Location location, Report &report) {
  if (!gpu) {
    announceTime(report,
                 llvm::any_of(function.attentions, [](const auto &each) {
                   return each.problem.dtype == DataType::f32;
                 }));
    bool isTraced = options.trace.getNumOccurrences() > 0;
    Trace trace;
    FailureOr<tile::Traffic> traffic =
        runInterpreted(execution, location, isTraced ? &trace : nullptr);
    if (failed(traffic))
      return failure();
    report.traffic = *traffic;
    return isTraced ? writeTraced(options, program, trace) : success();
  }
  FailureOr<std::vector<double>> seconds =
      runOnGpu(execution, program, *gpu, options.repeat, location);
  if (failed(seconds))
    return failure();
  llvm::sort(*seconds);
  report.repeat = seconds->size();
  report.seconds = seconds->empty() ? 0 : (*seconds)[seconds->size() / 2];
  return success();
}

/// Runs on the caller's arrays.
static LogicalResult executeOn(ArrayRef<NumpyArray> arguments,
                               const Options &options, const Function &function,
                               const Program &program,
                               const std::optional<runtime::Gpu> &gpu,
                               Report &report) {
  FailureOr<Execution> execution =
      prepare(function, program, options.inputs, options.seed,
              /*guardBytes=*/0);
  if (failed(execution))
    return failure();
  fillArguments(*execution, arguments);
  func::FuncOp op = function.op;
  if (!options.noCheck &&
      failed(checkReads(function, execution->arrays, options.budget)))
    return failure();
  if (failed(launch(options, function, *execution, program, gpu, op.getLoc(),
                    report)))
    return failure();
  return writeResults(*execution, op, options.arrays);
}

/// Runs on random inputs, and compares.
static LogicalResult execute(const Options &options, const Function &function,
                             const Program &program,
                             const std::optional<runtime::Gpu> &gpu,
                             Report &report) {
  Location location = func::FuncOp(function.op).getLoc();
  Progress progress(options);
  progress.begin("making inputs");
  FailureOr<Execution> execution =
      prepare(function, program, options.inputs, options.seed,
              options.guard ? kGuardBytes : 0);
  if (failed(execution))
    return failure();
  if (!options.noCheck &&
      failed(checkReads(function, execution->arrays, options.budget)))
    return failure();
  fillForwardResults(function, execution->arrays,
                     options.noCheck ? 0 : options.budget.getValue(),
                     options.threads);
  std::vector<std::vector<uint8_t>> before;
  report.guardBytes = options.guard ? kGuardBytes : 0;
  if (options.guard)
    for (const HostBytes &array : execution->arrays)
      before.push_back(array.bytes);

  progress.begin(gpu ? "running on the GPU" : "running on the interpreter");
  if (failed(launch(options, function, *execution, program, gpu, location,
                    report)))
    return failure();

  auto checkInputs = [&](const std::map<std::string, unsigned> &inputs) {
    for (const auto &[role, position] : inputs)
      if (options.guard &&
          before[position] != execution->arrays[position].bytes)
        report.changedInputs.push_back(role);
  };
  for (const Attention &attention : function.attentions) {
    checkInputs(attention.inputs);
    std::map<std::string, unsigned> ofClauses;
    for (const auto &[name, source] : attention.clauseInputs)
      if (!source.listing)
        ofClauses[name] = source.position;
    checkInputs(ofClauses);
  }
  for (const Merging &merging : function.merges)
    checkInputs(merging.inputs);
  if (!options.noCheck)
    progress.begin("comparing with fp64");
  if (!options.noCheck)
    report.comparisons =
        compareAll(function, execution->arrays, execution->outputs,
                   options.inputs, options.budget, options.threads);
  return success();
}

static LogicalResult runFile(const Options &options) {
  Extents extents;
  std::optional<runtime::Gpu> gpu;
  if (failed(checkOptions(options, extents)) || failed(openGpu(options, gpu)))
    return failure();
  std::string error;
  if (!options.machine.empty() &&
      !parseMachine(options.machine.getValue(), error))
    return fail(error);

  std::unique_ptr<llvm::MemoryBuffer> buffer =
      openInputFile(options.file, &error);
  if (!buffer)
    return fail(error);
  if (failed(checkNesting(*buffer, llvm::errs())))
    return failure();
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // The place says enough; a whole module in generic form says less.
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return failure();

  FailureOr<func::FuncOp> op = findFunction(*module, options.function);
  if (failed(op))
    return failure();
  FailureOr<func::FuncOp> said = op;
  if (!options.reference.empty())
    said = findFunction(*module, options.reference);
  if (failed(said))
    return failure();
  if (said->getFunctionType() != op->getFunctionType())
    return op->emitOpError("expects the type of the reference, ")
           << said->getFunctionType() << ", but got " << op->getFunctionType();
  FailureOr<std::vector<NumpyArray>> arguments = std::vector<NumpyArray>();
  if (!options.arrays.empty())
    arguments = readArguments(*op, options.arrays);
  if (failed(arguments))
    return failure();
  FailureOr<Function> function = options.arrays.empty()
                                     ? readFunction(*said, extents)
                                     : functionOn(*said, *arguments);
  if (failed(function))
    return failure();
  function->name = op->getSymName().str();
  OwningOpRef<func::FuncOp> reference; // is read, and not compiled
  if (*said != *op) {
    (*said)->remove();
    reference = *said;
  }
  // Only this function is compiled; it calls no other.
  for (func::FuncOp other :
       llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
    if (other != *op)
      other.erase();
  FailureOr<std::string> machine = chooseMachine(options, *module, gpu);
  if (failed(machine))
    return failure();
  CompileOptions compileOptions;
  compileOptions.machine = *machine;
  compileOptions.schedule = options.schedule;
  compileOptions.withBinary = gpu.has_value();
  std::optional<Progress> progress(options);
  progress->begin("compiling");
  FailureOr<Program> program = compile(*module, compileOptions);
  progress.reset();
  if (failed(program))
    return failure();

  Report report;
  report.file = options.file;
  report.function = op->getSymName().str();
  report.onGpu = gpu.has_value();
  report.device = gpu ? gpu->facts().name : "interpreter";
  if (!program->kernels.empty())
    report.machine = program->kernels.front().machine;
  report.program = &*program;
  for (const Attention &attention : function->attentions) {
    report.problems.push_back(describe(attention));
    report.flops += usefulFlops(attention.problem);
  }
  for (const Merging &merging : function->merges)
    report.problems.push_back(describe(merging.merge));
  for (const Listing &listing : function->listings)
    report.problems.push_back(describe(listing));
  LogicalResult executed =
      options.arrays.empty()
          ? execute(options, *function, *program, gpu, report)
          : executeOn(*arguments, options, *function, *program, gpu, report);
  if (failed(executed))
    return failure();
  if (options.json)
    report.printJson(llvm::outs());
  else
    report.print(llvm::outs());
  return success(report.ok());
}

int attn::runMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // LLVM's code generator has options of its own, with names like ours.
  llvm::cl::ResetCommandLineParser();
  Options options;
  if (auto sentence = prepareTool(argc, argv)) {
    (void)fail(*sentence);
    return 1;
  }
  llvm::cl::HideUnrelatedOptions(options.category);
  llvm::cl::ParseCommandLineOptions(
      argc, argv, "runs attention and checks it against fp64\n");
  if (auto sentence = repeatedOption(options.category)) {
    (void)fail(*sentence);
    return 1;
  }
  bool ok = succeeded(runFile(options));
  llvm::outs().flush();
  return ok ? 0 : 1;
}
