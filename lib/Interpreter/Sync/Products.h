//===- Products.h - Which products a warpgroup has started ------*- C++ -*-===//
//
// The four warps of a warpgroup start the same products in the same order, over
// the same parts of the same buffers.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_SYNC_PRODUCTS_H
#define ATTN_LIB_INTERPRETER_SYNC_PRODUCTS_H

#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace attn::interpreter {

class ThreadBlock;
class Warp;
struct Instruction;

constexpr unsigned kWarpsOfGroup = 4;

class Products {
public:
  explicit Products(unsigned warps)
      : groups((warps + kWarpsOfGroup - 1) / kWarpsOfGroup) {}

  /// The warp starts its next product.  False, and reported, when another warp
  /// of the group started another one, or the same over other parts.
  bool start(Warp &warp, const Instruction &in, llvm::ArrayRef<int64_t> places);
  /// Reports products that some warp of a group never started.
  void checkEnd(ThreadBlock &block) const;

private:
  struct Product {
    unsigned instruction;
    llvm::SmallVector<int64_t, 4> places;
    unsigned firstWarp, warps;
  };
  std::vector<std::vector<Product>> groups;
};

} // namespace attn::interpreter

#endif
