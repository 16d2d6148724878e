//===- Listing.cpp - Do kernels make the lists that the host makes? -------===//
//
// Regions, sizes and captures are drawn; lists of the kernels, interpreted, are
// those of HostBlocks.h, which asks every pair, and so are those by keys.
//
//===----------------------------------------------------------------------===//

#include "../../Seed.h"
#include "Harness/KernelTest.h"

#include "attn/IR/Attn.h"
#include "attn/IR/HostBlocks.h"
#include "attn/Kernels/Listing.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <random>

using namespace mlir;
using namespace attn;

namespace {

/// Bodies of regions; %x are ids of documents by batch entry and row.
constexpr const char *kBodies[] = {
    "%r = arith.cmpi sle, %j, %i : index",
    "%y = attn.read %x[%b, %i] : !ids\n %z = attn.read %x[%b, %j] : !ids\n"
    "%r = arith.cmpi eq, %y, %z : i32",
    "%y = attn.read %x[%b, %i] : !ids\n %z = attn.read %x[%b, %j] : !ids\n"
    "%s = arith.cmpi eq, %y, %z : i32\n %t = arith.cmpi sle, %j, %i : index\n"
    "%r = arith.andi %s, %t : i1",
    "%r = arith.constant false",
    "%r = arith.constant true",
    "%k = arith.constant 100 : index\n %m = arith.muli %h, %k : index\n"
    "%d = arith.subi %i, %j : index\n %r = arith.cmpi slt, %d, %m : index",
    "%k = arith.constant 7 : index\n %d = arith.subi %i, %j : index\n"
    "%m = arith.remsi %d, %k : index\n %z = arith.constant 0 : index\n"
    "%r = arith.cmpi eq, %m, %z : index",
    "%k = arith.constant 130 : index\n %d = arith.divui %i, %k : index\n"
    "%e = arith.divui %j, %k : index\n %r = arith.cmpi eq, %d, %e : index"};

struct Sizes {
  int64_t batch, heads, queries, keys;
  BlockSize block;
};

class Listings : public KernelTest {
protected:
  Listings() {
    context.loadDialect<AttnDialect, func::FuncDialect, gpu::GPUDialect,
                        index::IndexDialect>();
  }

  /// Draws ids, and lists of the region by the host; makes room for others.
  void prepare(const std::string &body, const Sizes &of, std::mt19937 &random);
  /// Runs one kernel; `queries` and `keys` are what it calls so.
  void launch(ListingRequest request, int64_t queries, int64_t keys,
              int64_t warpsOfHead);
  void expectList(int list, const HostBlocks &wanted, const std::string &what);

  AttentionOpInterface op;
  Sizes sizes;
  HostBlocks byQueries, byKeys;
  int64_t rowsOfIds = 0;
  uint64_t ids = 0, classes = 0, counts[4], blocks[4];

private:
  int64_t words() const {
    return (byQueries.columns + kBlocksOfWord - 1) / kBlocksOfWord;
  }
  KernelArgument argumentOf(const ArgumentRole &role, Type type,
                            int64_t queries, int64_t keys) const;
  int64_t integerOf(const ArgumentRole &role) const;
};

} // namespace

void Listings::prepare(const std::string &body, const Sizes &of,
                       std::mt19937 &random) {
  sizes = of;
  rowsOfIds = std::max<int64_t>({of.queries, of.keys, 1});
  std::string text = "!ids = tensor<" + std::to_string(of.batch) + "x" +
                     std::to_string(rowsOfIds) +
                     "xi32>\n!t = tensor<?x4x?x8xf32>\n"
                     "func.func @f(%q: !t, %y: !ids) -> !t {\n"
                     "  %o = attn.forward %q, %q, %q captures(%y : !ids)\n"
                     "      sees (%b, %h, %i, %j, %nq, %nk, %x) {\n" +
                     body +
                     "\n attn.yield %r : i1\n} : !t, !t, !t -> !t\n"
                     "  return %o : !t\n}";
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  module->walk([&](AttentionOpInterface found) { op = found; });
  CapturedArray drawn = {{of.batch, rowsOfIds}, {}, {}};
  for (int64_t b = 0; b < of.batch; ++b)
    for (int64_t i = 0, id = 0; i < rowsOfIds; ++i)
      drawn.wholes.push_back(id += random() % 90 == 0);
  byQueries = blockListsOf(*op.sees(), {drawn}, of.batch, of.heads, of.queries,
                           of.keys, of.block);
  byKeys = transposed(byQueries);
  std::vector<int32_t> numbers(drawn.wholes.begin(), drawn.wholes.end());
  ids = memory.allocate(numbers.size() * sizeof numbers[0]);
  memory.write(ids, numbers.data(), numbers.size() * sizeof numbers[0]);
  auto room = [&](int64_t numbers) {
    return memory.allocate(numbers * int64_t(sizeof(int32_t)));
  };
  int64_t lines = of.batch * of.heads;
  classes = room(lines * byQueries.rows * words());
  for (int list = 0; list < 4; ++list) {
    const HostBlocks &like = list < 2 ? byQueries : byKeys;
    counts[list] = room(lines * like.rows);
    blocks[list] = room(lines * like.rows * like.columns);
  }
}

/// Offsets, strides and sizes of row-major arrays.
int64_t Listings::integerOf(const ArgumentRole &role) const {
  if (role.facet == Facet::offset)
    return 0;
  if (role.role == Role::capture) {
    if (role.facet == Facet::stride1)
      return 1;
    return role.facet == Facet::size0 ? sizes.batch : rowsOfIds;
  }
  const HostBlocks &like = role.part < 2 ? byQueries : byKeys;
  int64_t row = role.role == Role::listCounts   ? 1
                : role.role == Role::listBlocks ? like.columns
                                                : words();
  if (role.facet == Facet::strideRow)
    return row;
  int64_t head = row * like.rows;
  return role.facet == Facet::strideHead ? head : head * sizes.heads;
}

KernelArgument Listings::argumentOf(const ArgumentRole &role, Type type,
                                    int64_t queries, int64_t keys) const {
  if (role.facet != Facet::itself)
    return integerOf(role);
  switch (role.role) {
  case Role::listCounts:
    return counts[role.part];
  case Role::listBlocks:
    return blocks[role.part];
  case Role::blockClasses:
    return classes;
  case Role::capture:
    return ids;
  case Role::queries:
    return int32_t(queries);
  case Role::keys:
    return int32_t(keys);
  case Role::heads:
    return int32_t(sizes.heads);
  case Role::batch:
    return int32_t(sizes.batch);
  default:
    ADD_FAILURE() << str(role);
    return uint64_t(0);
  }
}

void Listings::launch(ListingRequest request, int64_t queries, int64_t keys,
                      int64_t warpsOfHead) {
  OpBuilder builder(&context);
  builder.setInsertionPointToEnd(module->getBody());
  auto kernels =
      gpu::GPUModuleOp::create(builder, builder.getUnknownLoc(), "kernels");
  builder.setInsertionPointToEnd(kernels.getBody());
  request.name = listingName(request);
  tile::KernelOp kernel =
      buildListing(builder, builder.getUnknownLoc(), request);
  ASSERT_TRUE(succeeded(verify(kernel)));
  ASSERT_TRUE(succeeded(checkRoles(kernel, Problem())));
  std::vector<KernelArgument> arguments;
  for (auto [role, type] :
       llvm::zip_equal(*rolesOf(kernel), kernel.getArgumentTypes()))
    arguments.push_back(argumentOf(role, type, queries, keys));
  int64_t warps = warpsOfHead * sizes.batch * sizes.heads;
  int64_t grid = (warps + kListingWarps - 1) / kListingWarps;
  if (grid != 0)
    EXPECT_TRUE(succeeded(interpret(kernel, {grid, 1, 1}, arguments, memory)));
  kernels.erase();
}

void Listings::expectList(int list, const HostBlocks &wanted,
                          const std::string &what) {
  const HostBlockList &truth = list % 2 ? wanted.full : wanted.partial;
  auto numberAt = [&](uint64_t base, int64_t place) {
    int32_t number = -1;
    auto wrong =
        memory.read(base + place * sizeof number, &number, sizeof number);
    EXPECT_FALSE(wrong) << *wrong << what;
    return number;
  };
  for (size_t line = 0; line < truth.counts.size(); ++line) {
    ASSERT_EQ(numberAt(counts[list], line), truth.counts[line])
        << what << " line " << line;
    for (int32_t n = 0; n < truth.counts[line]; ++n) {
      int64_t place = line * wanted.columns + n;
      ASSERT_EQ(numberAt(blocks[list], place), truth.indices[place])
          << what << " line " << line << " number " << n;
    }
  }
}

TEST_F(Listings, OfRandomRegions) {
  Seed seed;
  std::mt19937 random(seed);
  int64_t partial = 0, full = 0;
  for (unsigned n = 0; n < 10; ++n) {
    auto below = [&](int64_t most) { return int64_t(random() % most); };
    // A row more or less is ragged; one has no query at all.
    Sizes of = {1 + below(2),
                1 + below(3),
                n == 9 ? 0 : 1 + below(300),
                1 + below(n % 2 ? 300 : 1400),
                {64 * (1 + below(2)), 64 * (1 + below(2))}};
    const char *body = kBodies[(n + seed) % std::size(kBodies)];
    prepare(body, of, random);
    if (HasFatalFailure())
      return;
    int64_t rows = byQueries.rows, columns = byQueries.columns;
    launch({"", Listing::classes, of.block, op.sees()}, of.queries, of.keys,
           rows * ((columns + kBlocksOfWord - 1) / kBlocksOfWord));
    launch({"", Listing::listed, of.block}, of.queries, of.keys, rows);
    launch({"", Listing::transposed}, rows, columns, columns);
    std::string what = std::string(body) + "\nqueries " +
                       std::to_string(of.queries) + ", keys " +
                       std::to_string(of.keys) + ", blocks " + str(of.block) +
                       ", list ";
    for (int list = 0; list < 4; ++list)
      expectList(list, list < 2 ? byQueries : byKeys,
                 what + std::to_string(list));
    for (int32_t count : byQueries.partial.counts)
      partial += count;
    for (int32_t count : byQueries.full.counts)
      full += count;
  }
  // Otherwise nothing has been listed.
  EXPECT_GT(partial, 0);
  EXPECT_GT(full, 0);
}
