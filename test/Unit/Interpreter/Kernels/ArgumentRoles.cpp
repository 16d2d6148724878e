//===- ArgumentRoles.cpp - Do all kernels follow the table of roles? ------===//
//
// The kernels of all schedules, of every type and with whatever an attention
// may take besides, are built and held to Roles.def; and every row of that has
// an argument of some kernel.
//
//===----------------------------------------------------------------------===//

#include "Harness/ClauseCase.h"
#include "Harness/KernelTest.h"

#include "attn/Kernels/CaptureLaunches.h"
#include "attn/Kernels/Listing.h"
#include "attn/Kernels/Merge.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <set>

using namespace mlir;
using namespace attn;

namespace {

class ArgumentRoles : public ::testing::Test {
protected:
  ArgumentRoles() {
    loadDialects(context);
    module = ModuleOp::create(UnknownLoc::get(&context));
  }

  /// All launches of a plan, each of which follows the table.
  void build(const Problem &problem, const Machine &machine, const Plan &plan,
             ClauseCase *clauses = nullptr) {
    SCOPED_TRACE(plan.kernel + " " + plan.tiles.str());
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    KernelRequest request;
    request.name = "kernel";
    request.problem = problem;
    request.tiles = plan.tiles;
    request.launches = launchesOf(plan.schedule, plan.tiles);
    request.sms = machine.sms;
    request.l2Bytes = machine.l2Bytes;
    request.smemBytes = machine.smemBytesPerBlock;
    if (clauses)
      clauses->addTo(request);
    for (size_t i = 0; i < request.launches.shapes.size(); ++i) {
      request.launch = int64_t(i);
      hold(findKernelBuilder(plan.kernel)(b, b.getUnknownLoc(), request),
           problem);
    }
    built.insert(plan.kernel);
  }

  void hold(tile::KernelOp kernel, const Problem &problem) {
    ASSERT_TRUE(succeeded(checkRoles(kernel, problem)));
    SmallVector<ArgumentRole> roles = *rolesOf(kernel);
    for (const ArgumentRole &role : roles)
      seen.insert(role.role);
    kernel.walk([&](Operation *op) {
      if (std::optional<unsigned> written = argumentWrittenBy(op)) {
        Flow flow = roles[*written].facts().flow(problem.direction);
        EXPECT_NE(flow, Flow::in) << str(roles[*written]) << " by "
                                  << op->getName().getStringRef().str();
      }
    });
    kernel.erase();
  }

  /// The kernel's argument that an op writes to in global memory.
  static std::optional<unsigned> argumentWrittenBy(Operation *op) {
    Value target =
        llvm::TypeSwitch<Operation *, Value>(op)
            .Case([](tile::TmaStoreOp op) { return op.getMap(); })
            .Case<tile::AddWordsOp, tile::StoreWordsOp, tile::StoreRegistersOp,
                  tile::AddElementsOp>([](auto op) { return op.getBase(); })
            .Case<tile::StoreFragmentOp, tile::StoreRowOp>(
                [](auto op) { return op.getView(); })
            .Default(Value());
    if (!target)
      return std::nullopt;
    while (auto view = target.getDefiningOp<tile::ViewOp>())
      target = view.getBase();
    auto argument = dyn_cast<BlockArgument>(target);
    if (!argument || !isa<tile::KernelOp>(argument.getOwner()->getParentOp()))
      return std::nullopt;
    return argument.getArgNumber();
  }

  /// What chooses the form of a kernel: its name, and whatever is no size.
  static std::string formOf(const Plan &plan) {
    constexpr int64_t leastSize = 8;
    std::string form = plan.kernel;
    for (const auto &[name, value] : plan.tiles)
      if (value < leastSize)
        form += " " + name + std::to_string(value);
    return form;
  }

  /// The best plan of each kernel that there is for the problem, and of each
  /// form that was not built before.
  void buildAll(const Problem &problem, const Machine &machine) {
    if (attn::check(problem))
      return;
    std::set<std::string> done;
    for (const Plan &plan : plans(problem, machine).plans) {
      if (plan.kernel.empty())
        continue;
      bool isFirst = done.insert(plan.kernel).second;
      if (forms.insert(formOf(plan)).second || isFirst)
        build(problem, machine, plan);
    }
  }

  /// Kernels that walk lists of blocks.
  void buildListed(const Machine &machine) {
    Problem p = oneHead(1024, 1024, 64, 64, {MaskKind::causal});
    p.pattern.emplace(BlockSize{128, 128}, /*density=*/0.5);
    for (Direction direction : {Direction::forward, Direction::backward}) {
      p.direction = direction;
      std::vector<Plan> all = plans(p, machine).plans;
      auto isBuilt = [](const Plan &plan) { return !plan.kernel.empty(); };
      auto first = std::find_if(all.begin(), all.end(), isBuilt);
      if (first == all.end())
        ADD_FAILURE() << "expects a plan for lists on " << machine.name;
      else
        build(p, machine, *first);
    }
  }

  /// Those of which the device says where rows lie, or what they are scaled by.
  void buildPlaced(const Machine &machine) {
    Problem dense = oneHead(1024, 1024, 64, 64, {MaskKind::causalBottomRight});
    Problem paged = dense;
    paged.place = {/*usedKeysBits=*/32, /*pageRows=*/64};
    Problem scaled = dense;
    scaled.scales = {/*q=*/true, /*k=*/true, /*v=*/true};
    for (const Problem &p :
         {paged, scaled, raggedProblem(dense, {{300, 400}, {0, 90}})}) {
      int count = 0;
      for (const Plan &plan : plans(p, machine).plans)
        if (!plan.kernel.empty() && count++ == 0)
          build(p, machine, plan);
      EXPECT_GT(count, 0) << machine.name;
    }
  }

  /// One that reads captures, and has sinks.
  void buildWithClauses(const Machine &machine) {
    Problem p = oneHead(1024, 1024, 64, 64, {MaskKind::causal});
    ClauseCase clauses(context, p,
                       "bias(%x0 : tensor<1x1024x1024xbf16>) sinks(%x1 : "
                       "tensor<1xf32>)",
                       {"tensor<1x1024x1024xbf16>", "tensor<1xf32>"},
                       /*seed=*/1);
    p.clauses = clauses.flags();
    int count = 0;
    for (const Plan &plan : plans(p, machine).plans)
      if (!plan.kernel.empty() && count++ == 0)
        build(p, machine, plan, &clauses);
    EXPECT_GT(count, 0) << machine.name;
  }

  /// One that has gradients of captures and of sinks, and what is launched
  /// around it.
  void buildWithGradients(const Machine &machine) {
    Problem p = oneHead(1024, 1024, 64, 64, {MaskKind::causal});
    p.direction = Direction::backward;
    std::string bias = "tensor<1x1024x1024xbf16>", ofHead = "tensor<1xf32>";
    ClauseCase clauses(context, p,
                       "alibi(%x1 : " + ofHead + ") bias(%x0 : " + bias +
                           ") sinks(%x2 : " + ofHead + ")",
                       {bias, ofHead, ofHead}, /*seed=*/1, /*most=*/3,
                       {0, 1, 2});
    p.clauses = clauses.flags();
    std::vector<Plan> all = plans(p, machine).plans;
    auto isBuilt = [](const Plan &plan) { return !plan.kernel.empty(); };
    auto first = std::find_if(all.begin(), all.end(), isBuilt);
    ASSERT_NE(first, all.end()) << machine.name;
    build(p, machine, *first, &clauses);
    KernelRequest request;
    request.name = "around";
    request.problem = p;
    request.tiles = first->tiles;
    request.launches = launchesOf(first->schedule, first->tiles);
    clauses.addTo(request);
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    for (const CaptureGradient &gradient :
         captureGradients(request, {3, 1, 1})) {
      EXPECT_NE(gradient.isCleared(), gradient.hasHeads);
      hold(gradient.hasHeads
               ? buildGathered(b, b.getUnknownLoc(), request, gradient)
               : buildCleared(b, b.getUnknownLoc(), request, gradient),
           p);
    }
  }

  /// What an attention may take or give besides.
  static std::vector<Problem> variants(Problem p) {
    std::vector<Problem> all = {p};
    p.lseLow = true;
    p.dlse = p.direction == Direction::backward;
    p.mask = {MaskKind::window, 40, 0};
    all.push_back(p);
    p.mask = {MaskKind::prefix, 0, 0, 90};
    p.deterministic = p.dlse;
    all.push_back(p);
    p.keepsWeights = true;
    p.deterministic = false;
    all.push_back(p);
    return all;
  }

  /// Parses a kernel with that argument; what checkRoles says of it.
  std::string errorOf(StringRef argument, const Problem &problem) {
    std::string text =
        "tile.kernel @k(%a: i32 {tile.role = \"queries\"}, %b: " +
        argument.str() + ") attributes {warps = 1 : i32} { tile.return }";
    OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(parsed) << text;
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (error.empty())
        error = diagnostic.str();
      notes = "";
      for (Diagnostic &note : diagnostic.getNotes())
        notes += note.str();
      return success();
    });
    tile::KernelOp kernel = *parsed->getOps<tile::KernelOp>().begin();
    EXPECT_EQ(failed(checkRoles(kernel, problem)), !error.empty());
    return error;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::set<std::string> built, forms;
  std::set<Role> seen;
  std::string notes;
};

} // namespace

TEST_F(ArgumentRoles, OfAllKernelsAreRows) {
  for (const char *machine : {"h100_sxm", "a100_80g"})
    for (Direction direction : {Direction::forward, Direction::backward})
      for (DataType type : {DataType::bf16, DataType::f32, DataType::f8e4m3})
        for (int64_t headDim : {64, 128, 512}) {
          Problem p;
          p.direction = direction;
          p.dtype = type;
          p.heads = 8, p.kvHeads = 2;
          p.queries = p.keys = 4096;
          p.headDim = p.headDimV = headDim;
          for (const Problem &variant : variants(p)) {
            SCOPED_TRACE(std::string(machine) + " " + std::string(name(type)) +
                         " " + std::string(name(direction)) + " " +
                         std::to_string(headDim) + " " + str(variant.mask));
            buildAll(variant, *findMachine(machine));
          }
        }
  for (const char *machine : {"h100_sxm", "a100_80g"}) {
    buildListed(*findMachine(machine));
    buildWithClauses(*findMachine(machine));
    buildWithGradients(*findMachine(machine));
  }
  buildPlaced(*findMachine("h100_sxm"));
  for (Direction direction : {Direction::forward, Direction::backward}) {
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    MergeRequest request;
    request.name = "merge";
    request.merge.direction = direction;
    request.merge.headDim = 64;
    request.merge.parts = {DataType::f32};
    request.merge.dlse = true;
    Problem problem = limitsOf(request.merge);
    problem.direction = direction;
    hold(buildMerge(b, b.getUnknownLoc(), request), problem);
  }
  for (Listing kind : {Listing::listed, Listing::transposed}) {
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    ListingRequest request = {"lists", kind, {128, 128}};
    request.name = listingName(request);
    hold(buildListing(b, b.getUnknownLoc(), request), Problem());
  }
  for (const std::string &kernel : kernelNames())
    EXPECT_TRUE(built.count(kernel)) << kernel << " was not built";
  for (Role role : allRoles())
    EXPECT_TRUE(seen.count(role))
        << factsOf(role).name << " is a row that no kernel asks for";
}

TEST_F(ArgumentRoles, WrongOnesAreErrors) {
  Problem p = oneHead(10, 10, 64, 64);
  EXPECT_EQ(errorOf("i32 {tile.role = \"keys\"}", p), "");
  EXPECT_EQ(errorOf("i32", p),
            "'tile.kernel' op expects argument 1 to have a role, but got none");
  EXPECT_EQ(errorOf("i32 {tile.role = \"query\"}", p),
            "'tile.kernel' op expects argument 1 to have a role, but got "
            "\"query\"");
  EXPECT_EQ(notes, "roles: " + roleNames());
  EXPECT_EQ(errorOf("i32 {tile.role = \"queries\"}", p),
            "'tile.kernel' op expects argument 1, queries, to have a role of "
            "its own, but argument 0 has it too");
  EXPECT_EQ(errorOf("!tile.ptr<bf16> {tile.role = \"dq\"}", p),
            "'tile.kernel' op expects argument 1, dq, to play a role in a "
            "kernel of the other direction, but got one that is forward");
  for (StringRef argument :
       {"!tile.ptr<f16> {tile.role = \"q\"}", "i64 {tile.role = \"keys\"}",
        "i64 {tile.role = \"q\"}", "i32 {tile.role = \"q_offset\"}",
        "!tile.ptr<bf16> {tile.role = \"q_map\"}",
        "!tile.tensor_map<64x64xf16> {tile.role = \"q_map\"}",
        "f32 {tile.role = \"keys\"}", "!tile.ptr<bf16> {tile.role = \"lse\"}"})
    EXPECT_NE(errorOf(argument, p).find("to have the type that its role has"),
              std::string::npos)
        << argument.str() << ": " << errorOf(argument, p);
  for (StringRef argument :
       {"!tile.ptr<i32> {tile.role = \"scratch\"}",
        "!tile.ptr<f32> {tile.role = \"scratch_dq\"}",
        "!tile.ptr<f32> {tile.per_block = 4 : i64, tile.role = "
        "\"scratch_dq\"}",
        "!tile.ptr<bf16> {tile.per_strip = 4 : i64, tile.role = \"q\"}"})
    EXPECT_NE(errorOf(argument, p).find("to have one count of elements"),
              std::string::npos)
        << argument.str() << ": " << errorOf(argument, p);
  EXPECT_EQ(errorOf("!tile.ptr<i32> {tile.role = \"counter\"}", p), "");
  EXPECT_EQ(errorOf("!tile.ptr<i32> {tile.per_launch = 2 : i64, tile.role = "
                    "\"counter\"}",
                    p),
            "");
}
