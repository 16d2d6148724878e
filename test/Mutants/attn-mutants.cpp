//===- attn-mutants.cpp - Runs the mutants of a module's kernels ----------===//
//
//   attn-mutants attention.mlir [--kernel NAME] [--share 3/7]
//                [--mutant "consumer bar_sync 3 dropped" [--print]]
//
// Compiles the functions of the file, which differ in their sizes only, and
// runs every mutant of their kernels on all of them in several orders of warps
// and blocks, until something is wrong.  Prints lines of fields with tabs
// between them:
//
//   idle      <kernel>  <op that no size runs>
//   never     <kernel>  <mutant of such an op>
//   killed    <kernel>  <mutant>  <what is wrong>
//   more      <kernel>  <mutant>  <why it asks for no less order>
//   survived  <kernel>  <mutant>
//   done      <file>  <seconds of CPU>
//
// A share k/n is the k-th of n parts of the mutants.
//
//===----------------------------------------------------------------------===//

#include "Subject.h"

#include "Mutants/Mutations.h"

#include "attn/InitAll.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"

#include "llvm/Support/CRC.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/Timer.h"

#include <set>

using namespace mlir;
using namespace attn;

namespace {
struct Options {
  llvm::cl::OptionCategory category{"attn-mutants options"};
  llvm::cl::opt<std::string> file{llvm::cl::Positional, llvm::cl::Required,
                                  llvm::cl::desc("FILE.mlir"),
                                  llvm::cl::cat(category)};
  llvm::cl::opt<std::string> kernel{
      "kernel", llvm::cl::desc("only the kernel whose name ends so"),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> mutant{
      "mutant", llvm::cl::desc("only this one: \"wait_group 3 dropped\""),
      llvm::cl::value_desc("name"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> print{"print", llvm::cl::desc("print every mutant"),
                            llvm::cl::cat(category)};
  llvm::cl::opt<std::string> share{
      "share", llvm::cl::desc("the k-th of n parts: k/n (default 1/1)"),
      llvm::cl::init("1/1"), llvm::cl::cat(category)};
};

/// The k-th of n parts.  A mutant has its part by its name alone, so that one
/// more or less moves no other.
struct Share {
  uint64_t part = 1, parts = 1;

  bool has(StringRef name) const {
    return llvm::crc32(llvm::arrayRefFromStringRef(name)) % parts == part - 1;
  }

  static std::optional<Share> parse(StringRef text) {
    auto [part, parts] = text.split('/');
    Share share;
    if (part.getAsInteger(10, share.part) ||
        parts.getAsInteger(10, share.parts) || share.part < 1 ||
        share.part > share.parts)
      return std::nullopt;
    return share;
  }
};
} // namespace

/// Orders of warps, and of blocks where these wait for each other: first one of
/// each kind, then more of those by chance.
static std::vector<InterpreterOptions> allOrders(bool ofBlocks) {
  std::vector<InterpreterOptions> all;
  auto add = [&](WarpOrder warps, BlockOrder blocks) {
    InterpreterOptions &options = all.emplace_back();
    options.order = warps;
    options.blocks = blocks;
    options.seed = all.size();
  };
  add(WarpOrder::forward, BlockOrder::sameAsWarps);
  add(WarpOrder::reverse, BlockOrder::sameAsWarps);
  add(WarpOrder::shuffled, BlockOrder::sameAsWarps);
  if (!ofBlocks)
    return all;
  add(WarpOrder::forward, BlockOrder::oldestFirst);
  add(WarpOrder::shuffled, BlockOrder::oneStarved);
  add(WarpOrder::reverse, BlockOrder::oldestFirst);
  add(WarpOrder::reverse, BlockOrder::inTurn);
  for (int more = 0; more < 2; ++more) {
    add(WarpOrder::shuffled, BlockOrder::shuffled);
    add(WarpOrder::reverse, BlockOrder::oneStarved);
  }
  return all;
}

namespace {
class Trial {
public:
  Trial(const Options &options, Share share) : options(options), share(share) {}

  LogicalResult run(ModuleOp source);

private:
  LogicalResult makeCases(Program &program);
  /// Runs the right kernels in all orders up to that one.
  LogicalResult runRight(size_t order);
  /// Names of the targets in a kernel that no size runs, by a copy of it.
  std::set<std::string> idleTargets(tile::KernelOp kernel, ModuleOp copy) const;
  void runMutants(tile::KernelOp kernel);
  /// What there is to say against a mutant, in so many orders.
  std::string verdict(tile::KernelOp kernel, tile::KernelOp mutant,
                      size_t count);

  const Options &options;
  const Share share;
  std::vector<SubjectCase> cases;
  llvm::DenseSet<Operation *> executed;
  /// Of all orders, those in which every mutant runs.
  static constexpr size_t kFirstOrders = 3;
  std::vector<InterpreterOptions> orders;
  size_t ordersDone = 0;
  /// The kernel itself was wrong in some order.
  bool isBroken = false;
};
} // namespace

LogicalResult Trial::makeCases(Program &program) {
  bool ofBlocks = false;
  for (auto function : program.module->getOps<func::FuncOp>()) {
    FailureOr<SubjectCase> subject = SubjectCase::make(function);
    if (failed(subject))
      return failure();
    ofBlocks |= subject->waitsForBlocks();
    cases.push_back(std::move(*subject));
  }
  orders = allOrders(ofBlocks);
  for (size_t order = 0; order < kFirstOrders; ++order)
    if (failed(runRight(order)))
      return failure();
  return success();
}

LogicalResult Trial::runRight(size_t order) {
  for (; ordersDone <= order; ++ordersDone)
    for (SubjectCase &subject : cases)
      if (failed(subject.runRight(orders[ordersDone], executed)))
        return failure();
  return success();
}

std::string Trial::verdict(tile::KernelOp kernel, tile::KernelOp mutant,
                           size_t count) {
  for (size_t order = 0; order < count; ++order) {
    if (failed(runRight(order))) {
      isBroken = true;
      return "";
    }
    for (const SubjectCase &subject : cases)
      if (subject.has(kernel))
        if (std::string error = subject.verdict(kernel, mutant, order);
            !error.empty())
          return error;
  }
  return "";
}

std::set<std::string> Trial::idleTargets(tile::KernelOp kernel,
                                         ModuleOp copy) const {
  // Both have the same ops in the same order.
  std::vector<Operation *> ops;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  llvm::DenseSet<Operation *> ran;
  (*copy.getOps<tile::KernelOp>().begin())
      .walk<WalkOrder::PreOrder>([&, at = size_t(0)](Operation *op) mutable {
        if (executed.contains(ops[at++]))
          ran.insert(op);
      });
  // A condition runs where something below it does.
  auto runs = [&](Operation *op) {
    if (!isa<scf::IfOp>(op))
      return ran.contains(op);
    return op->getRegion(0)
        .walk([&](Operation *inner) {
          return ran.contains(inner) ? WalkResult::interrupt()
                                     : WalkResult::advance();
        })
        .wasInterrupted();
  };
  std::set<std::string> idle;
  for (const Target &target : mutationTargets(copy))
    if (!runs(target.op))
      idle.insert(target.name);
  return idle;
}

void Trial::runMutants(tile::KernelOp kernel) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(kernel.getLoc());
  copy->push_back(kernel.clone());
  std::set<std::string> idle = idleTargets(kernel, *copy);
  auto print = [&](StringRef what, StringRef name, StringRef why) {
    llvm::outs() << what << '\t' << kernel.getSymName() << '\t' << name << '\t'
                 << why << '\n';
    llvm::outs().flush();
  };
  if (options.mutant.empty())
    for (const std::string &name : idle)
      print("idle", name, "");
  auto isWanted = [&](const std::string &name) {
    return options.mutant.empty() ? share.has(name) : name == options.mutant;
  };
  forEachMutant(*copy, isWanted, [&](Mutant &mutant) {
    if (options.print)
      mutant.module->print(llvm::errs());
    if (idle.count(mutant.target))
      return print("never", mutant.name, "");
    // More order than the kernel's may only make warps wait forever, which
    // hangs on no order of theirs; and of blocks the order matters to flags.
    size_t count = !mutant.asksForMore.empty() ? 1
                   : mutant.isOfFlags          ? orders.size()
                                               : kFirstOrders;
    std::string wrong = verdict(
        kernel, *mutant.module->getOps<tile::KernelOp>().begin(), count);
    if (!wrong.empty())
      return print("killed", mutant.name, wrong);
    print(mutant.asksForMore.empty() ? "survived" : "more", mutant.name,
          mutant.asksForMore);
  });
}

LogicalResult Trial::run(ModuleOp source) {
  CompileOptions compileOptions;
  compileOptions.withBinary = false;
  FailureOr<Program> program = compile(source, compileOptions);
  if (failed(program))
    return failure();
  if (failed(makeCases(*program)))
    return failure();
  program->module->walk([&](tile::KernelOp kernel) {
    StringRef name = kernel.getSymName();
    if (name.ends_with(options.kernel))
      runMutants(kernel);
  });
  llvm::TimeRecord spent = llvm::TimeRecord::getCurrentTime();
  llvm::outs() << "done\t" << options.file << '\t'
               << llvm::format("%.1f", spent.getProcessTime()) << '\n';
  return failure(isBroken);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ResetCommandLineParser();
  Options options;
  llvm::cl::HideUnrelatedOptions(options.category);
  llvm::cl::ParseCommandLineOptions(argc, argv,
                                    "runs the mutants of kernels\n");
  std::optional<Share> share = Share::parse(options.share);
  if (!share) {
    llvm::errs()
        << "attn-mutants: error: --share expects k/n with k from 1 to n, "
           "but got "
        << options.share << '\n';
    return 1;
  }
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      openInputFile(options.file, &error);
  if (!buffer) {
    llvm::errs() << "attn-mutants: error: " << error << '\n';
    return 1;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return 1;
  return succeeded(Trial(options, *share).run(*module)) ? 0 : 1;
}
