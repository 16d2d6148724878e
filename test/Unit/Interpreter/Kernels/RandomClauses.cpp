//===- RandomClauses.cpp - 200 problems, forward and gradients ------------===//
//
// A problem is a mask, lists of blocks, a region or short forms, captures of
// every shape and sinks, drawn together.  All 200 go through the oracle in
// f64, forward and with gradients, also those of captures; in a share of the
// tests it is a quarter of them, of another seed in every run.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltGradient.h"
#include "Harness/BuiltKernel.h"
#include "Harness/KernelDraws.h"
#include "Harness/RandomRegion.h"

using namespace mlir;
using namespace attn;

namespace {

constexpr int kProblems = 200;

/// Clauses of a problem, and what they read.
struct Drawn {
  Problem problem;
  std::string text;
  std::vector<std::string> captures;
  /// Captures that get gradients, of pairs, of heads, and of sinks.
  std::vector<int64_t> ofPairs, ofHeads, ofSinks;
  uint64_t seed = 0;
  ListedBlocks::Owners owners;

  std::string str() const {
    return "seed " + std::to_string(seed) + ", queries " +
           std::to_string(problem.queries) + ", keys " +
           std::to_string(problem.keys) + ", " + attn::str(problem.mask) +
           (problem.pattern ? ", lists\n" : "\n") + text;
  }
};

/// Draws clauses one behind the other.
class ClauseDraws : public Draws {
public:
  using Draws::Draws;
  Drawn clauses(uint64_t seed);

private:
  void shortForms();
  void table();
  void sinks();
  /// The name of a new capture, behind a %.
  std::string capture(const std::string &type) {
    drawn.captures.push_back(type);
    return "%x" + std::to_string(drawn.captures.size() - 1);
  }
  int64_t last() const { return int64_t(drawn.captures.size()) - 1; }
  bool oneIn(int64_t many) { return (*this)(1, many) == 1; }
  std::string size(int64_t of, bool isOne = false) {
    return std::to_string(isOne ? 1 : of) + "x";
  }

  Drawn drawn;
};

} // namespace

/// Documents of ids in any order, a cap, slopes or a bias.
void ClauseDraws::shortForms() {
  const Problem &p = drawn.problem;
  if (oneIn(2)) {
    std::string type = "tensor<" + (oneIn(2) ? size(p.batch) : "") +
                       size(std::max(p.queries, p.keys)) + "i32>";
    drawn.text += "document(" + capture(type) + " : " + type + ") ";
  }
  if (oneIn(2))
    drawn.text += "softcap(3.0) ";
  int64_t which = (*this)(0, 2);
  if (which == 1) {
    std::string type =
        "tensor<" + (oneIn(2) ? size(p.batch) : "") + size(p.heads) + "f32>";
    drawn.text += "alibi(" + capture(type) + " : " + type + ") ";
    drawn.ofHeads.push_back(last());
  }
  if (which == 2) {
    std::string type = "tensor<" + size(p.batch, oneIn(2)) +
                       size(p.heads, oneIn(2)) + size(p.queries) +
                       size(p.keys) + (oneIn(2) ? "bf16>" : "f32>");
    drawn.text += "bias(" + capture(type) + " : " + type + ") ";
    drawn.ofPairs.push_back(last());
  }
}

/// Read by distance, behind a function of scores.
void ClauseDraws::table() {
  const Problem &p = drawn.problem;
  std::string type =
      "tensor<" + size(p.queries + p.keys) + size(p.heads) + "f32>";
  drawn.text += readByDistance(capture(type), type) + " ";
  drawn.ofPairs.push_back(last());
}

void ClauseDraws::sinks() {
  std::string type = "tensor<" + size(drawn.problem.heads) + "f32>";
  drawn.text +=
      "sinks(%x" + std::to_string(drawn.captures.size()) + " : " + type + ") ";
  drawn.captures.push_back(type);
  drawn.ofSinks.push_back(last());
}

Drawn ClauseDraws::clauses(uint64_t seed) {
  ClauseDraws &draw = *this;
  drawn = {};
  drawn.seed = seed;
  Problem &p = drawn.problem;
  p.batch = 2;
  p.kvHeads = draw(1, 2);
  p.heads = p.kvHeads * draw(1, 2);
  p.queries = draw(1, 100);
  p.keys = oneIn(3) ? p.queries : draw(1, 100);
  p.headDim = 32;
  p.headDimV = oneIn(2) ? 32 : 48;
  p.mask = kMasks[draw(0, 5)];
  p.dtype = draw16Bit(draw);
  p.lseLow = oneIn(3);
  switch (draw(0, 3)) {
  case 0:
    shortForms();
    break;
  case 1:
    table();
    break;
  default: {
    RandomRegion region(p, seed * 31 + 7);
    drawn.captures = region.types();
    bool sees = oneIn(2);
    drawn.text = region.captures() + (sees ? region.sees() : "") +
                 (!sees || oneIn(2) ? region.score() : "");
  }
  }
  // Far keys have weights beside a sink that f16 has no place for.
  if (drawn.ofHeads.empty() && oneIn(3))
    sinks();
  if (oneIn(2)) {
    p.pattern.emplace(BlockSize{64 * draw(1, 2), 64 * draw(1, 2)},
                      /*density=*/0.5);
    drawn.owners = {oneIn(2), oneIn(2)};
  }
  return drawn;
}

/// Calls with so many of the problems as the share at hand has.
static void
forEachProblem(llvm::function_ref<void(Drawn &, int, Draws &)> run) {
  Seed seed;
  for (int number = 0; number < drawsOf(kProblems); ++number) {
    uint64_t own = uint64_t(seed) * kProblems + uint64_t(number);
    ClauseDraws draw(own);
    Drawn drawn = draw.clauses(own);
    SCOPED_TRACE("problem " + std::to_string(number) + ", " + drawn.str());
    run(drawn, number, draw);
    if (testing::Test::HasFailure())
      return;
  }
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

using RandomClauses = BuiltKernel;

TEST_F(RandomClauses, Forward) {
  Tiles families[] = {{{"query", 32}, {"key", 32}, {"stages", 2}, {"warps", 2}},
                      {{"query", 64},
                       {"key", 32},
                       {"stages", 2},
                       {"query_stages", 1},
                       {"staging", 64},
                       {"ping_pong", 0},
                       {"overlap", 1},
                       {"persistent", 1}}};
  forEachProblem([&](Drawn &drawn, int number, Draws &draw) {
    const Tiles &tiles = families[number % 2];
    Problem p = drawn.problem;
    ClauseCase clauses(context, p, drawn.text, drawn.captures, drawn.seed);
    p.clauses = clauses.flags();
    FlashCase flash(p, tiles, drawn.seed);
    if (p.pattern)
      flash.list(drawn.owners, {}, drawn.seed);
    flash.use(clauses);
    OwningOpRef<ModuleOp> module =
        buildFlash(context, p, tiles, flash.scale, &clauses);
    Outcome outcome =
        flash.run(*module->getOps<tile::KernelOp>().begin(), drawOptions(draw));
    ASSERT_EQ(outcome.error, "");
    EXPECT_LT(outcome.relativeError, limitOf(flash));
    EXPECT_LT(outcome.lseError, limitOfLse(p));
    if (p.lseLow)
      EXPECT_LT(outcome.lowError, limitOfLse(p));
  });
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

namespace {

class RandomClauseGradients : public BuiltGradient {
protected:
  RandomClauseGradients(const std::string &schedule, const std::string &family)
      : BuiltGradient(schedule, family) {}

  /// Those of the problems whose number leaves this rest of three.
  void checkShare(int rest, const Tiles &tiles, bool sumsOverHeads) {
    forEachProblem([&](Drawn &drawn, int number, Draws &draw) {
      if (number % 3 != rest)
        return;
      Problem p = drawn.problem;
      p.direction = Direction::backward;
      p.dlse = draw(0, 1) != 0;
      std::vector<int64_t> gradients = drawn.ofPairs;
      if (sumsOverHeads)
        llvm::append_range(gradients, drawn.ofHeads);
      llvm::append_range(gradients, drawn.ofSinks);
      ClauseCase clauses(context, p, drawn.text, drawn.captures, drawn.seed,
                         /*most=*/3, gradients);
      p.clauses = clauses.flags();
      // A bias of one query and one key is one of a head.
      if (!sumsOverHeads && p.clauses.headGradients > 0)
        return;
      GradientCase truth(p, drawn.seed, &clauses);
      if (p.pattern)
        truth.list(drawn.owners, {}, drawn.seed);
      check(truth, tiles, drawOptions(draw));
    });
  }
};

struct RandomSplitBackward : RandomClauseGradients {
  RandomSplitBackward() : RandomClauseGradients("split_backward", "mma_sync") {}
};
struct RandomSplitBackwardWgmma : RandomClauseGradients {
  RandomSplitBackwardWgmma()
      : RandomClauseGradients("split_backward", "wgmma") {}
};
struct RandomFlashBackward : RandomClauseGradients {
  RandomFlashBackward() : RandomClauseGradients("flash_backward", "wgmma") {}
};

} // namespace

TEST_F(RandomSplitBackward, Gradients) {
  checkShare(0,
             {{"query", 32},
              {"key_block", 32},
              {"query_warps", 2},
              {"key", 32},
              {"query_block", 32},
              {"key_warps", 2},
              {"stages", 2},
              {"separate", 0}},
             /*sumsOverHeads=*/true);
}

TEST_F(RandomSplitBackwardWgmma, Gradients) {
  checkShare(1,
             {{"query", 64},
              {"key_block", 64},
              {"key", 64},
              {"query_block", 64},
              {"stages", 2},
              {"value_stages", 1},
              {"separate", 0},
              {"persistent", 1}},
             /*sumsOverHeads=*/true);
}

TEST_F(RandomFlashBackward, Gradients) {
  checkShare(2,
             {{"query_block", 64},
              {"key", 64},
              {"stages", 2},
              {"overlap", 1},
              {"beside", 2},
              {"ordered", 0},
              {"first_stores", 0},
              {"short_first", 0},
              {"persistent", 1}},
             /*sumsOverHeads=*/false);
}
