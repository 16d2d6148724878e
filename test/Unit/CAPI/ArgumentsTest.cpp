//===- ArgumentsTest.cpp - Are sizes of captures compared in a call? ------===//
//
// What types leave open the verifier cannot compare; a call knows all sizes.
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"

#include "attn/InitAll.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace attn;
using namespace mlir;

namespace {

constexpr StringLiteral kText = R"(
  !q = memref<?x4x?x64xbf16>
  !x = memref<1x?x?x300xf32>
  !ids = memref<?x?xi32>
  func.func @f(%q: !q, %k: !q, %x: !x, %ids: !ids, %o: !q) {
    attn.forward %q, %k, %k document(%ids : !ids) bias(%x : !x)
        outs(%o : !q) : !q, !q, !q
    return
  })";

/// What is wrong with a call with these sizes of the captures, for batch 2, 200
/// queries and `keys` keys.
std::string wrongOf(std::vector<int64_t> bias, std::vector<int64_t> ids,
                    int64_t keys = 300) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kText, &context);
  if (!module)
    return "no module";
  func::FuncOp function = *module->getOps<func::FuncOp>().begin();
  auto array = [](std::vector<int64_t> sizes) {
    CallerArray array;
    array.sizes.assign(sizes.begin(), sizes.end());
    return array;
  };
  std::vector<CallerArray> arrays = {
      array({2, 4, 200, 64}), array({2, 4, keys, 64}), array(std::move(bias)),
      array(std::move(ids)), array({2, 4, 200, 64})};
  return checkSizes(arrays, leastSizesOf(function)).value_or("");
}

TEST(Arguments, LargeEnoughCaptures) {
  EXPECT_EQ(wrongOf({1, 4, 200, 300}, {2, 300}), "");
  EXPECT_EQ(wrongOf({1, 8, 256, 300}, {3, 512}), "");
}

TEST(Arguments, CapturesThatAreTooSmall) {
  EXPECT_EQ(wrongOf({1, 3, 200, 300}, {2, 300}),
            "buffer 2: expects an array of bias(..) with 4 elements or more in "
            "dimension 1, one for each of the heads, but got sizes [1, 3, 200, "
            "300]");
  EXPECT_EQ(wrongOf({1, 4, 199, 300}, {2, 300}),
            "buffer 2: expects an array of bias(..) with 200 elements or more "
            "in dimension 2, one for each of the queries, but got sizes [1, 4, "
            "199, 300]");
  // A size that the type tells may be too small for the keys of a call.
  EXPECT_EQ(wrongOf({1, 4, 200, 300}, {2, 301}, /*keys=*/301),
            "buffer 2: expects an array of bias(..) with 301 elements or more "
            "in dimension 3, one for each of the keys, but got sizes [1, 4, "
            "200, 300]");
  EXPECT_EQ(wrongOf({1, 4, 200, 300}, {1, 300}),
            "buffer 3: expects an array of document(..) with 2 elements or "
            "more in dimension 0, one for each of the batch entries, but got "
            "sizes [1, 300]");
  // Ids are read by keys too.
  EXPECT_EQ(wrongOf({1, 4, 200, 300}, {2, 299}),
            "buffer 3: expects an array of document(..) with 300 elements or "
            "more in dimension 1, one for each of the keys, but got sizes [2, "
            "299]");
}

} // namespace
