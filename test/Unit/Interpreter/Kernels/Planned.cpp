//===- Planned.cpp - Does a kernel move the bytes that its plan promised? -===//
//
// Random problems, planned for several machines; the best plan and a random
// one are built and run.  The bytes are those that the interpreter moved, so
// neither the kernel's own traffic interface nor the plan is the judge.
//
//===----------------------------------------------------------------------===//

#include "Harness/FlashCase.h"
#include "Harness/KernelDraws.h"
#include "Harness/KernelTest.h"

#include "attn/Schedule/Plan.h"
#include "attn/Tile/SharedMemory.h"

using namespace mlir;
using namespace attn;

namespace {
class Planned : public ::testing::TestWithParam<const char *> {
protected:
  Planned() { loadDialects(context); }

  Problem drawProblem() {
    Problem p;
    p.dtype = draw(0, 1) ? DataType::bf16 : DataType::f16;
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.queries = draw(0, 3) ? draw(1, 200) : draw(1, 20);
    p.keys = draw(0, 3) ? draw(1, 250) : draw(1, 20);
    p.headDim = draw(0, 1) ? 16 * draw(1, 9) : draw(8, 150);
    p.headDimV = draw(0, 1) ? p.headDim : draw(8, 150);
    drawMask(p);
    p.lse = draw(0, 1) != 0;
    p.lseLow = p.lse && draw(0, 1);
    return p;
  }
  Problem drawWideProblem() {
    Problem p;
    p.dtype = draw(0, 1) ? DataType::bf16 : DataType::f16;
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.queries = draw(1, 100);
    p.keys = draw(1, 150);
    p.headDim = 8 * draw(1, 80);
    p.headDimV = draw(0, 1) ? p.headDim : 8 * draw(1, 80);
    drawMask(p);
    p.lse = draw(0, 1) != 0;
    p.lseLow = p.lse && draw(0, 1);
    return p;
  }
  void drawMask(Problem &p) {
    switch (draw(0, 5)) {
    case 0:
    case 1:
      break;
    case 2:
      p.mask = {MaskKind::causal};
      break;
    case 3:
      p.mask = {MaskKind::causalBottomRight};
      break;
    case 4:
      p.mask = {MaskKind::prefix, 0, 0, draw(0, 100)};
      break;
    default:
      p.mask = {MaskKind::window, draw(0, 100), draw(0, 50)};
    }
  }
  /// The best plan with a kernel, and a random one.
  void checkSome(const Problem &problem, const Machine &machine,
                 const char *kernel) {
    PlanReport report = plans(problem, machine);
    std::vector<const Plan *> built;
    for (const Plan &plan : report.plans)
      if (plan.kernel == kernel)
        built.push_back(&plan);
    ASSERT_FALSE(built.empty()) << problem.headDim;
    check(problem, *built.front());
    check(problem, *built[size_t(draw(0, int64_t(built.size()) - 1))]);
  }
  void check(const Problem &problem, const Plan &plan) {
    SCOPED_TRACE(plan.tiles.str() + "; queries " +
                 std::to_string(problem.queries) + ", keys " +
                 std::to_string(problem.keys) + ", d " +
                 std::to_string(problem.headDim) + ", d_v " +
                 std::to_string(problem.headDimV) + ", " + str(problem.mask));
    OwningOpRef<ModuleOp> module = buildFlash(context, problem, plan.tiles);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    FlashCase flash(problem, plan.tiles, uint64_t(draw(0, 1000)));
    InterpreterOptions options = drawOptions(draw);
    Outcome outcome = flash.run(kernel, options);
    EXPECT_EQ(outcome.error, "");
    EXPECT_LT(outcome.relativeError,
              problem.dtype == DataType::bf16 ? 4e-3 : 6e-4);
    EXPECT_LT(outcome.lseError, 1e-4);
    EXPECT_EQ(outcome.traffic.global, plan.bytes.l2);
    EXPECT_EQ(outcome.traffic.smem, plan.bytes.smem);
    EXPECT_EQ(tile::SharedMemory(kernel).totalBytes(),
              plan.footprint.smemBytes);
  }

  MLIRContext context;
  Draws draw{7};
};
} // namespace

TEST_P(Planned, RandomProblems) {
  const Machine *machine = findMachine(GetParam());
  ASSERT_NE(machine, nullptr);
  for (int i = 0; i < 25; ++i)
    checkSome(drawProblem(), *machine, "flash_mma_sync");
}

TEST_P(Planned, RandomWideProblems) {
  const Machine *machine = findMachine(GetParam());
  ASSERT_NE(machine, nullptr);
  for (int i = 0; i < 12; ++i)
    checkSome(drawWideProblem(), *machine, "streamed_query_mma_sync");
}

TEST_P(Planned, RandomProblemsInStrips) {
  const Machine *machine = findMachine(GetParam());
  ASSERT_NE(machine, nullptr);
  for (int i = 0; i < 12; ++i)
    checkSome(i % 2 ? drawProblem() : drawWideProblem(), *machine,
              "score_spill_mma_sync");
}

TEST_P(Planned, RandomProblemsWithOutputsInPlaces) {
  const Machine *machine = findMachine(GetParam());
  ASSERT_NE(machine, nullptr);
  for (int i = 0; i < 12; ++i)
    checkSome(i % 2 ? drawProblem() : drawWideProblem(), *machine,
              "output_spill_mma_sync");
}

INSTANTIATE_TEST_SUITE_P(Machines, Planned,
                         ::testing::Values("h100_sxm", "rtx_4090", "a100_80g"));
