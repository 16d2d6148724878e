//===- RaggedOrder.cpp - Are the longest sequences the first? -------------===//
//
// A kernel that writes down every tile of an order, in order.  Whatever the
// lengths, each tile is there once, and none is of a longer sequence than one
// before it, section of heads by section.  Without ranks, and of more sequences
// than a table has room for, tiles are in the order of memory.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelDraws.h"
#include "Harness/KernelTest.h"
#include "Harness/RaggedCase.h"

#include "Walk/TileOrder.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// A tile as the kernel writes it down; places in front of it are numbers.
struct Written {
  int32_t row, head, sequence;

  bool operator<(const Written &other) const {
    return std::tie(row, head, sequence) <
           std::tie(other.row, other.head, other.sequence);
  }
};

constexpr int64_t kRows = 32, kWarps = 8;
constexpr int32_t kUntouched = -7;

class RaggedOrder : public ::testing::Test {
protected:
  RaggedOrder() { loadDialects(context); }

  Problem problemOf(std::vector<Lengths> lengths, int64_t heads) {
    Problem one = oneHead(0, 0, 64, 64, {});
    one.heads = one.kvHeads = heads;
    return raggedProblem(one, std::move(lengths));
  }

  /// All tiles that have rows, as the order has them.
  std::vector<Written> walk(const Problem &problem, bool isRanked,
                            bool ownsKeys = false) {
    OpBuilder builder(&context);
    Location loc = builder.getUnknownLoc();
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    KernelRequest request;
    request.name = "order";
    request.problem = problem;
    TileBuilder b(loc, builder);
    Arguments arguments;
    arguments.pointer(kCounterRole, b.getI32Type());
    RaggedRows::declare(arguments, b, problem);
    for (Role size :
         {Role::queries, Role::keys, Role::heads, Role::group, Role::batch})
      arguments.scalar(size, b.getI32Type());
    KernelOp kernel = arguments.createKernel(b, request, kWarps);
    Value table;
    if (isRanked)
      table = RaggedRows(arguments, problem, kRows, ownsKeys)
                  .rank(b, /*longestFirst=*/ownsKeys);
    BarrierOp::create(b);
    TileOrder order = ownsKeys ? TileOrder::ofKeys(b, arguments, problem, kRows,
                                                   /*atOnce=*/4, kL2Bytes)
                               : TileOrder(b, arguments, problem, kRows,
                                           /*atOnce=*/4, kL2Bytes);
    if (isRanked)
      order = order.byRank(table);
    Value out = arguments.get(b, kCounterRole);
    b.when(b.wrap(b.warpId()) == b.i32(0), [&] {
      b.loop(b.i32(0), order.count, {},
             [&](Scalar number, ValueRange) -> SmallVector<Value> {
               attn::Tile tile = order.at(b, number);
               Scalar rows = ownsKeys ? tile.keys : tile.queries;
               b.when(tile.row < rows, [&] {
                 Scalar place = number * 3;
                 StoreNumberOp::create(b, tile.row, out, place);
                 StoreNumberOp::create(b, tile.head, out, place + 1);
                 StoreNumberOp::create(b, tile.batch, out, place + 2);
               });
               return {};
             });
    });
    ReturnOp::create(b);
    return run(kernel, problem, ownsKeys);
  }

  std::vector<Written> run(KernelOp kernel, const Problem &problem,
                           bool ownsKeys) {
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      error = diagnostic.str();
      return success();
    });
    int64_t rows = ownsKeys ? problem.keys : problem.queries;
    int64_t slots = (rows / kRows + problem.batch) * problem.heads;
    std::vector<Written> all(slots,
                             Written{kUntouched, kUntouched, kUntouched});
    GlobalMemory memory;
    uint64_t out = memory.allocate(slots * int64_t(sizeof(Written)));
    memory.write(out, all.data(), slots * int64_t(sizeof(Written)));
    RaggedArguments values(problem);
    llvm::StringMap<uint64_t> addresses = {{str(Role::counter), out}};
    values.uploadOffsets(memory, addresses);
    std::vector<KernelArgument> arguments;
    for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
      arguments.push_back(
          values.of(*roleOf(kernel, i), type, /*scale=*/1, addresses));
    InterpreterOptions options = drawOptions(draw);
    EXPECT_TRUE(
        succeeded(interpret(kernel, {1, 1, 1}, arguments, memory, options)))
        << error;
    memory.read(out, all.data(), slots * int64_t(sizeof(Written)));
    llvm::erase_if(all, [](const Written &w) { return w.row == kUntouched; });
    return all;
  }

  /// Every tile of every head, once.
  void expectAll(const std::vector<Written> &all, const Problem &problem,
                 bool ownsKeys = false) {
    std::set<Written> wanted;
    for (auto [n, each] : llvm::enumerate(problem.ragged->lengths))
      for (int64_t row = 0; row < (ownsKeys ? each.keys : each.queries);
           row += kRows)
        for (int64_t head = 0; head < problem.heads; ++head)
          wanted.insert({int32_t(row), int32_t(head), int32_t(n)});
    EXPECT_EQ(all.size(), wanted.size());
    for (const Written &w : all)
      EXPECT_TRUE(wanted.erase(w))
          << w.row << " " << w.head << " " << w.sequence;
    EXPECT_TRUE(wanted.empty());
  }

  /// Rows that stream past tiles of a head, in the order of its tiles.
  std::vector<int64_t> streamedOf(const std::vector<Written> &all,
                                  const Problem &problem, int64_t head,
                                  bool ownsKeys = false) {
    std::vector<int64_t> streamed;
    for (const Written &w : all)
      if (w.head == head) {
        const Lengths &own = problem.ragged->lengths[w.sequence];
        streamed.push_back(ownsKeys ? own.queries : own.keys);
      }
    return streamed;
  }

  bool isLongestFirst(const std::vector<Written> &all, const Problem &problem,
                      bool ownsKeys = false) {
    for (int64_t head = 0; head < problem.heads; ++head) {
      std::vector<int64_t> s = streamedOf(all, problem, head, ownsKeys);
      if (!std::is_sorted(s.rbegin(), s.rend()))
        return false;
    }
    return true;
  }

  static constexpr int64_t kL2Bytes = 1 << 20;
  MLIRContext context;
  Draws draw{41};
};

} // namespace

TEST_F(RaggedOrder, LongestFirst) {
  for (int i = 0; i < 24; ++i)
    for (bool ownsKeys : {false, true}) {
      Problem p = problemOf(drawLengths(draw, 40, 300, draw(0, 1)), draw(1, 5));
      p.ragged->isWide = draw(0, 1);
      std::vector<Written> all = walk(p, /*isRanked=*/true, ownsKeys);
      expectAll(all, p, ownsKeys);
      EXPECT_TRUE(isLongestFirst(all, p, ownsKeys));
    }
}

TEST_F(RaggedOrder, WithoutRanksAsInMemory) {
  Problem p = problemOf({{40, 40}, {300, 300}, {90, 90}}, 1);
  std::vector<Written> all = walk(p, /*isRanked=*/false);
  expectAll(all, p);
  EXPECT_FALSE(isLongestFirst(all, p));
  EXPECT_TRUE(isLongestFirst(walk(p, /*isRanked=*/true), p));
}

/// Tiles of a sequence stay together, the last rows first.
TEST_F(RaggedOrder, OfASequenceTheLastTileIsFirst) {
  Problem p = problemOf({{40, 40}, {100, 100}, {70, 70}}, 2);
  std::vector<Written> all = walk(p, /*isRanked=*/true);
  std::map<int32_t, int32_t> before;
  std::vector<int32_t> sequences;
  for (const Written &w : all) {
    if (w.head != 0)
      continue;
    if (sequences.empty() || sequences.back() != w.sequence)
      sequences.push_back(w.sequence);
    if (before.count(w.sequence)) {
      EXPECT_EQ(w.row, before[w.sequence] - kRows);
    }
    before[w.sequence] = w.row;
  }
  EXPECT_EQ(sequences, (std::vector<int32_t>{1, 2, 0}));
}

/// As without ranks, so that nothing changes where lengths are the same.
TEST_F(RaggedOrder, EqualLengthsAsInMemory) {
  Problem p = problemOf(std::vector<Lengths>(7, {50, 50}), 2);
  std::vector<Written> ranked = walk(p, true), plain = walk(p, false);
  expectAll(ranked, p);
  ASSERT_EQ(ranked.size(), plain.size());
  for (size_t i = 0; i < ranked.size(); ++i)
    EXPECT_FALSE(ranked[i] < plain[i] || plain[i] < ranked[i]);
}

/// As many as a table has room for, and one more.
TEST_F(RaggedOrder, MoreSequencesThanEntries) {
  for (int64_t count : {kRankedSequences, kRankedSequences + 1}) {
    std::vector<Lengths> lengths;
    for (int64_t n = 0; n < count; ++n)
      lengths.push_back({1 + n * 37 % 61, 1 + n * 37 % 61});
    Problem p = problemOf(lengths, 1);
    std::vector<Written> all = walk(p, /*isRanked=*/true);
    expectAll(all, p);
    EXPECT_EQ(isLongestFirst(all, p), count == kRankedSequences);
  }
}

TEST_F(RaggedOrder, NoneAndEmpty) {
  for (const std::vector<Lengths> &lengths :
       {std::vector<Lengths>{{5, 5}}, std::vector<Lengths>{{0, 0}, {0, 9}},
        std::vector<Lengths>{{0, 4}, {70, 0}, {3, 8}, {0, 0}}}) {
    Problem p = problemOf(lengths, 2);
    std::vector<Written> all = walk(p, /*isRanked=*/true);
    expectAll(all, p);
    EXPECT_TRUE(isLongestFirst(all, p));
  }
}
