//===- attn-plan.cpp - Which schedule, and why ----------------------------===//
//
// Prices every schedule for one problem on one machine, without compiling
// anything.  All numbers come from Schedule; this file only reads the command
// line.
//
//===----------------------------------------------------------------------===//

#include "../commands/Commands.h"
#include "Blocks.h"
#include "Cache.h"
#include "Format.h"
#include "Pictures.h"
#include "Sequences.h"
#include "Sweep.h"

#include "attn/Report/Options.h"
#include "attn/Report/Report.h"
#include "attn/Report/Survey.h"
#include "attn/Report/Sweep.h"
#include "attn/Report/Tool.h"
#include "attn/Schedule/Advice.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

using namespace attn;
namespace cl = llvm::cl;

namespace {

/// Made when the command runs, not before: libattn has other commands, whose
/// options have the same names.
struct Options {
  cl::OptionCategory category{"attn-plan options"};

  cl::opt<std::string> machine{
      "machine", cl::value_desc("name"),
      cl::desc("The GPU, several, or all (--machines lists)"),
      cl::init("h100_sxm"), cl::cat(category)};
  cl::list<std::string> overrides{
      "set", cl::value_desc("field=value"),
      cl::desc("Override a fact of the machine; may be repeated"),
      cl::cat(category)};
  cl::opt<std::string> dtype{
      "dtype", cl::value_desc("type"),
      cl::desc("bf16, f16, f32 or f8e4m3, several, or all"), cl::init("bf16"),
      cl::cat(category)};
  cl::opt<std::string> precision{
      "precision", cl::value_desc("name"),
      cl::desc("Of f32: tf32x3 (default) or tf32; of 16 bits f8_qk, "
               "which has no kernel: Q and K in f8e4m3"),
      cl::cat(category)};
  DecimalOption<int64_t> batch{"batch", cl::desc("Batch size"), cl::init(1),
                               cl::cat(category)};
  DecimalOption<int64_t> heads{"heads", cl::desc("Query heads"), cl::init(1),
                               cl::cat(category)};
  DecimalOption<int64_t> kvHeads{
      "kv-heads", cl::desc("Key and value heads (default: heads)"),
      cl::cat(category)};
  DecimalOption<int64_t> queries{"queries", cl::desc("Rows of Q and O"),
                                 cl::cat(category)};
  DecimalOption<int64_t> keys{"keys",
                              cl::desc("Rows of K and V (default: queries)"),
                              cl::cat(category)};
  DecimalOption<int64_t> headDim{"head-dim", cl::desc("Columns of Q and K"),
                                 cl::cat(category)};
  DecimalOption<int64_t> headDimV{
      "head-dim-v", cl::desc("Columns of V and O (default: head-dim)"),
      cl::cat(category)};
  cl::opt<bool> causal{"causal", cl::desc("Same as --mask causal"),
                       cl::cat(category)};
  cl::opt<std::string> mask{
      "mask", cl::value_desc("mask"),
      cl::desc("none, causal, causal_bottom_right, window<L, R> or "
               "prefix<P>"),
      cl::init("none"), cl::cat(category)};
  cl::opt<bool> lse{"lse", cl::desc("The log-sum-exp is a result too"),
                    cl::cat(category)};
  cl::opt<bool> lseLow{
      "lse-low",
      cl::desc("So is its low word; backward: both words are inputs"),
      cl::cat(category)};
  DecimalOption<int64_t> alignment{
      "alignment", cl::value_desc("bytes"),
      cl::desc("Bytes that divide the address of every row"),
      cl::init(kMaxAlignment), cl::cat(category)};
  cl::opt<std::string> direction{
      "direction", cl::value_desc("direction"),
      cl::desc("forward or backward: the output, or the gradients"),
      cl::init("forward"), cl::cat(category)};
  cl::opt<bool> deterministic{"deterministic",
                              cl::desc("Backward: the same bits in every run"),
                              cl::cat(category)};
  cl::opt<bool> dlse{
      "dlse", cl::desc("Backward: the gradient of the log-sum-exp is an input"),
      cl::cat(category)};
  cl::opt<bool> valuesOfKeys{
      "values-of-keys",
      cl::desc("V is the first --head-dim-v columns of K, as of one latent "
               "vector"),
      cl::cat(category)};
  cl::opt<bool> keepWeights{
      "keep-weights",
      cl::desc("Keep the weights P for backward, or use kept ones; they take "
               "memory of queries x keys"),
      cl::cat(category)};
  cl::opt<std::string> schedule{"schedule", cl::value_desc("name"),
                                cl::desc("Price only this schedule"),
                                cl::cat(category)};
  cl::list<std::string> tiles{
      "tiles", cl::value_desc("name = value, ..."),
      cl::desc("Price only these tiles of --schedule; sizes left out are "
               "chosen; may be repeated"),
      cl::cat(category)};
  BlockOptions blocks{category};
  SequenceOptions sequences{category};
  CacheOptions cache{category};
  FormatOptions format{category};
  cl::opt<std::string> sweep{
      "sweep", cl::value_desc("field=first..last"),
      cl::desc("Price every schedule at all values of a size, or of a fact of "
               "the machine"),
      cl::cat(category)};
  cl::opt<bool> machines{"machines", cl::desc("List the machines"),
                         cl::cat(category)};
  PictureOptions pictures{category};
};

} // namespace

/// Prints `attn-plan: error: ...` and the notes; the exit status.
static int fail(const llvm::Twine &error, const std::string &note = "") {
  llvm::errs() << "attn-plan: error: " << error << '\n';
  if (!note.empty())
    llvm::errs() << "attn-plan: note: " << note << '\n';
  return 1;
}

/// Says what an answer does not.
static void note(const std::string &sentence) {
  if (!sentence.empty())
    llvm::errs() << "attn-plan: note: " << sentence << '\n';
}

/// Reads what gradients are asked for, if any are.
static int readDirection(const Options &options, Problem &problem) {
  auto parsed = parseDirection(options.direction);
  if (!parsed)
    return fail("expects --direction forward or backward, but got '" +
                options.direction + "'");
  problem.direction = *parsed;
  problem.deterministic = options.deterministic;
  problem.dlse = options.dlse;
  problem.keepsWeights = options.keepWeights;
  problem.valuesOfKeys = options.valuesOfKeys;
  if (*parsed == Direction::forward && (options.deterministic || options.dlse))
    return fail("expects --deterministic and --dlse only with --direction "
                "backward, but got forward");
  return 0;
}

/// Precisions of kernels are of f32; the one that is only priced is not.
static int readPrecision(const Options &options,
                         const std::vector<DataType> &types, Problem &problem) {
  if (!options.precision.getNumOccurrences())
    return 0;
  auto parsed = parsePrecision(options.precision);
  if (options.precision == name(Precision::f8_qk))
    parsed = Precision::f8_qk;
  if (!parsed)
    return fail("expects a known precision, but got '" + options.precision +
                    "'",
                "known precisions: tf32x3, tf32, f8_qk");
  problem.precision = *parsed;
  if (*parsed != Precision::f8_qk && !llvm::is_contained(types, DataType::f32))
    return fail("expects --precision only with --dtype f32, but got " +
                options.dtype);
  return 0;
}

/// All of a problem but its type and its sizes.
static int readProblem(const Options &options,
                       const std::vector<DataType> &types,
                       llvm::StringRef sweptField, Problem &problem) {
  if (int status = readDirection(options, problem))
    return status;
  if (int status = readPrecision(options, types, problem))
    return status;
  auto parsedMask = parseMask(options.mask);
  if (!parsedMask)
    return fail("expects a known mask, but got '" + options.mask + "'",
                "known masks: " + std::string(kMaskNames));
  if (options.causal && options.mask.getNumOccurrences() &&
      options.mask != "causal")
    return fail("expects --causal or --mask, but got both");
  auto isLeftOut = [&](const DecimalOption<int64_t> &size) {
    return !size.getNumOccurrences() && size.ArgStr != sweptField;
  };
  if (isLeftOut(options.queries) && !options.sequences.isGiven())
    return fail("expects --queries, the number of rows of Q, but got none");
  if (isLeftOut(options.headDim))
    return fail("expects --head-dim, the columns of Q and K, but got none");

  problem.mask = options.causal ? Mask{MaskKind::causal} : *parsedMask;
  problem.lse = options.lse;
  problem.lseLow = options.lseLow;
  if (problem.direction == Direction::forward && !options.lse &&
      (options.lseLow || options.keepWeights))
    return fail(llvm::Twine("expects --lse with --") +
                (options.lseLow ? "lse-low" : "keep-weights") +
                ", but got none");
  return 0;
}

/// The options that are sizes of a problem.
static std::vector<const DecimalOption<int64_t> *>
sizes(const Options &options) {
  return {&options.batch,    &options.heads,    &options.kvHeads,
          &options.queries,  &options.keys,     &options.headDim,
          &options.headDimV, &options.alignment};
}

/// Sets the sizes: the swept one, those that are given, and those that follow
/// from them.
static void setSizes(const Options &options, Problem &problem,
                     llvm::StringRef sweptField = "", int64_t swept = 0) {
  auto size = [&](const DecimalOption<int64_t> &option, int64_t otherwise) {
    if (option.ArgStr == sweptField)
      return swept;
    return option.getNumOccurrences() ? option.getValue() : otherwise;
  };
  problem.batch = size(options.batch, options.batch);
  problem.heads = size(options.heads, options.heads);
  problem.kvHeads = size(options.kvHeads, problem.heads);
  problem.queries = size(options.queries, options.queries);
  problem.keys = size(options.keys, problem.queries);
  problem.headDim = size(options.headDim, options.headDim);
  problem.headDimV = size(options.headDimV, problem.headDim);
  problem.alignment = size(options.alignment, options.alignment);
}

/// Prices the given tiles.  Alone they must be possible; of several those that
/// are not are refused.
static int priceTiles(const Options &options, PlanReport &report) {
  report.plans.clear();
  report.refused.clear();
  auto isFaster = [](const Plan &a, const Plan &b) {
    return a.seconds < b.seconds;
  };
  for (const std::string &text : options.tiles) {
    std::string error;
    if (llvm::StringRef(text).trim().empty())
      return fail("expects --tiles 'name = value, ...', but got '" + text +
                  "'");
    auto given = parseTiles(text, error);
    if (!given)
      return fail(error);
    auto plan = planFor(report.problem, report.machine, options.schedule,
                        *given, error);
    if (plan)
      report.plans.insert(llvm::upper_bound(report.plans, *plan, isFaster),
                          *plan);
    else if (options.tiles.size() == 1)
      return fail(error);
    else
      report.refused.push_back({options.schedule, *given, {}, error, {}});
  }
  return 0;
}

/// Keeps one schedule, or some choices of it.
static int narrow(const Options &options, PlanReport &report) {
  if (!options.schedule.getNumOccurrences())
    return options.tiles.getNumOccurrences()
               ? fail("expects --schedule with --tiles, but got none",
                      "known schedules: " +
                          llvm::join(scheduleNames(report.problem.direction),
                                     ", "))
               : 0;
  if (options.tiles.getNumOccurrences())
    return priceTiles(options, report);
  std::string error;
  if (!planFor(report.problem, report.machine, options.schedule, {}, error))
    return fail(error);
  llvm::erase_if(report.plans, [&](const Plan &other) {
    return other.schedule != options.schedule;
  });
  llvm::erase_if(report.refused, [&](const Refused &other) {
    return other.schedule != options.schedule;
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

/// Writes what a function prints; the exit status.
static int answer(const Options &options,
                  llvm::function_ref<void(llvm::raw_ostream &)> print) {
  auto sentence = writeAnswer(options.format.output, print);
  return sentence ? fail(*sentence) : 0;
}

/// What several machines, types or sizes do not have: one plan to explain, or
/// to overrule.
static int checkSeveral(const Options &options, Format format) {
  const char *what = options.pictures.any()      ? "a picture of a schedule"
                     : format == Format::explain ? "--explain"
                     : options.schedule.getNumOccurrences() ||
                             options.tiles.getNumOccurrences()
                         ? "--schedule"
                         : nullptr;
  return what ? fail(llvm::Twine("expects one machine, one type and no sweep "
                                 "with ") +
                     what + ", but got several plans")
              : 0;
}

/// Every machine and every type.
static int runSurvey(const Options &options, Format format, Problem problem,
                     const std::vector<Machine> &machines,
                     const std::vector<DataType> &types) {
  if (int status = checkSeveral(options, format))
    return status;
  std::vector<SurveyCell> cells;
  for (const Machine &machine : machines)
    for (DataType type : types)
      cells.push_back(surveyCell(options.cache.typed(problem, type), machine));
  if (llvm::none_of(cells, [](const SurveyCell &one) { return one.hasPlan(); }))
    return fail("no plan fits any of the machines",
                cells.front().machine.name + ": " + cells.front().whyNot);
  return answer(options, [&](llvm::raw_ostream &out) {
    if (format == Format::json)
      renderSurveyJson(out, cells);
    else if (format == Format::svg)
      out << surveySvg(cells);
    else
      renderSurvey(out, cells, tableForm(format));
  });
}

static SweepPoint pointOf(const Options &options, const Swept &swept,
                          int64_t value, Problem problem, Machine machine) {
  setSizes(options, problem, swept.field, value);
  std::optional<std::string> sentence = options.blocks.read(problem);
  if (!sentence && swept.isOfMachine())
    sentence = overrideField(machine, swept.field, double(value));
  if (!sentence)
    sentence = options.sequences.read(problem);
  if (!sentence)
    sentence = options.cache.read(problem);
  if (!sentence)
    return sweepPoint(value, problem, machine);
  SweepPoint point;
  point.value = value, point.problem = problem, point.machine = machine;
  point.whyNot = *sentence;
  return point;
}

/// Every value of a size, for every machine and every type.
static int runSweep(const Options &options, Format format, const Swept &swept,
                    Problem problem, const std::vector<Machine> &machines,
                    const std::vector<DataType> &types) {
  if (int status = checkSeveral(options, format))
    return status;
  std::vector<Sweep> sweeps;
  bool fits = false;
  for (const Machine &machine : machines)
    for (DataType type : types) {
      problem = options.cache.typed(problem, type);
      Sweep &sweep = sweeps.emplace_back();
      sweep.field = swept.field;
      for (int64_t value : swept.values) {
        sweep.points.push_back(
            pointOf(options, swept, value, problem, machine));
        fits |= sweep.points.back().hasPlan();
      }
    }
  const SweepPoint &first = sweeps.front().points.front();
  if (!fits)
    return fail("no plan fits at any value of " + swept.field,
                std::to_string(first.value) + ": " + first.whyNot);
  return answer(options, [&](llvm::raw_ostream &out) {
    if (format == Format::json)
      renderSweepsJson(out, sweeps);
    else if (format == Format::svg)
      out << sweepsSvg(sweeps);
    else
      renderSweeps(out, sweeps, tableForm(format));
  });
}

static void print(llvm::raw_ostream &out, Format format, const Packing &packed,
                  const PlanReport &report) {
  if (format == Format::json)
    renderJson(out, packed, report);
  else if (format == Format::explain)
    renderExplanation(out, packed, report);
  else
    renderTable(out, packed, report, tableForm(format));
}

/// One machine and one type.
static int runOne(const Options &options, Format format, Problem problem,
                  const Machine &machine) {
  if (auto sentence = check(problem))
    return fail(*sentence);
  if (format == Format::svg)
    return fail("expects --sweep, or several machines or types, with --format "
                "svg, but got one plan");
  Packing packed = packing(problem);
  PlanReport report = plans(packed.problem, machine);
  if (int status = narrow(options, report))
    return status;
  bool fits = !report.plans.empty();
  int status = 0;
  if (options.pictures.any()) {
    if (auto sentence = drawPictures(options.pictures, packed, report))
      status = fail(*sentence);
  } else if (fits || options.format.output.empty()) {
    status = answer(options, [&](llvm::raw_ostream &out) {
      print(out, format, packed, report);
    });
  }
  if (status || fits)
    return status;
  llvm::outs().flush();
  return fail("no plan fits " + machine.name, whatWouldFit(report));
}

static int runMachines(const Options &options, Format format) {
  return answer(options, [&](llvm::raw_ostream &out) {
    format == Format::json ? renderMachinesJson(out) : renderMachines(out);
  });
}

/// The exit status.
static int run(const Options &options) {
  std::string error;
  std::optional<Format> format = options.format.read(error);
  if (!format)
    return fail(error);
  if (options.machines)
    return runMachines(options, *format);
  std::vector<Machine> machines;
  std::vector<DataType> types;
  Swept swept;
  std::vector<llvm::StringRef> fields;
  for (const DecimalOption<int64_t> *size : sizes(options))
    fields.push_back(size->ArgStr);
  auto complaint = readMachines(options.machine, options.overrides, machines);
  if (!complaint)
    complaint = readTypes(options.dtype, types);
  if (!complaint && options.sweep.getNumOccurrences())
    complaint = readSweep(options.sweep.getValue(), fields, swept);
  if (complaint)
    return fail(complaint->sentence, complaint->note);
  Problem problem;
  if (int status = readProblem(options, types, swept.field, problem))
    return status;
  setSizes(options, problem, swept.field,
           swept.values.empty() ? 0 : swept.values.front());
  if (auto sentence = options.blocks.read(problem))
    return fail(*sentence);
  if (swept.values.empty())
    note(BlockOptions::note(problem));
  for (const DecimalOption<int64_t> *size :
       {&options.batch, &options.queries, &options.keys})
    if (options.sequences.isGiven() &&
        (size->getNumOccurrences() || size->ArgStr == swept.field))
      return fail("expects --ragged without --" + size->ArgStr +
                  ", which the file tells, but got both");
  if (auto sentence = options.sequences.read(problem))
    return fail(*sentence);
  if (auto complaint = options.cache.checkTypes())
    return fail(*complaint, "known types: bf16, f16, f32, f8e4m3");
  problem = options.cache.typed(problem, types.front());
  if (auto sentence = options.cache.read(problem))
    return fail(*sentence);
  if ((options.pictures.any() || *format == Format::explain) &&
      options.sequences.isGiven())
    return fail("expects a picture or an explanation of sequences of one "
                "length, but got --ragged");
  if (options.pictures.any() && options.format.isGiven())
    return fail("expects a picture, a format or --explain, but got several");
  if (options.pictures.withoutFile() > 1)
    return fail("expects a file for all pictures but one, as in "
                "--diagram=FILE.svg, but got " +
                std::to_string(options.pictures.withoutFile()) + " without");
  if (!swept.values.empty())
    return runSweep(options, *format, swept, problem, machines, types);
  return machines.size() * types.size() > 1
             ? runSurvey(options, *format, problem, machines, types)
             : runOne(options, *format, problem, machines.front());
}

int attn::planMain(int argc, char **argv) {
  // In libattn the code generator has options of its own, with names like ours.
  cl::ResetCommandLineParser();
  Options options;
  if (auto sentence = prepareTool(argc, argv))
    return fail(*sentence);
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "attn-plan: which schedule computes an attention fastest, and why\n");
  if (auto sentence = repeatedOption(options.category))
    return fail(*sentence);
  int status = run(options);
  llvm::outs().flush();
  return status;
}
