//===- Roles.cpp - Warps with different work ------------------------------===//
//
// Roles become a chain of branches on the number of the warpgroup.  ptxas moves
// registers between warpgroups (setmaxnreg) only if each role is one branch,
// and keeps addresses in uniform registers only if it knows the number to be
// uniform, which a shuffle tells it.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

struct RolesLowering : OpConversionPattern<RolesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RolesOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    // One thread has initialised the barriers; behind this the others and TMA
    // may use them.
    NVVM::FenceMbarrierInitOp::create(b);
    NVVM::BarrierOp::create(b);
    Value group = b.uniform(b.shiftRight(b.thread(), 7));
    auto roles = llvm::to_vector(op.getBody().front().getOps<RoleOp>());
    int64_t warps = 0;
    for (RoleOp role : roles)
      warps += role.getWarps();
    dispatch(b, rewriter, roles, group, warps);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The first of the roles, else the others.
  static void dispatch(Lane &b, ConversionPatternRewriter &rewriter,
                       ArrayRef<RoleOp> roles, Value group, int64_t warps) {
    RoleOp role = roles.front();
    if (roles.size() == 1)
      return enter(b, rewriter, role, warps);
    int64_t lastGroup = (role.firstWarp() + role.getWarps()) / 4;
    auto branch = scf::IfOp::create(b, b.less(group, b.i32(lastGroup)),
                                    /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    enter(b, rewriter, role, warps);
    b.setInsertionPointToStart(branch.elseBlock());
    dispatch(b, rewriter, roles.drop_front(), group, warps);
  }

  static void enter(Lane &b, ConversionPatternRewriter &rewriter, RoleOp role,
                    int64_t warps) {
    // Registers that the launch gave each thread.
    int64_t given = 65536 / (32 * warps) / 8 * 8;
    int64_t wanted = role.getRegisters();
    if (wanted != given)
      NVVM::SetMaxRegisterOp::create(
          b, uint32_t(wanted),
          wanted > given ? NVVM::SetMaxRegisterAction::increase
                         : NVVM::SetMaxRegisterAction::decrease);
    if (!role.getSingleLane())
      return inlineBody(b, rewriter, role);
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.warp(),
                                        b.i32(role.firstWarp()));
    b.when(first, [&] {
      Value elected = NVVM::ElectSyncOp::create(b, b.getI1Type(), Value());
      b.when(elected, [&] {
        b.getInsertionBlock()->getParentOp()->setAttr(kSingleLaneAttr,
                                                      b.getUnitAttr());
        inlineBody(b, rewriter, role);
      });
    });
  }

  static void inlineBody(Lane &b, ConversionPatternRewriter &rewriter,
                         RoleOp role) {
    rewriter.inlineBlockBefore(&role.getBody().front(), b.getInsertionBlock(),
                               b.getInsertionPoint());
  }
};

} // namespace

void attn::populateRolePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<RolesLowering>(converter, patterns.getContext());
}
