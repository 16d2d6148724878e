//===- Roles.cpp - Warps with different work ------------------------------===//
//
// Roles become a chain of branches on the number of the warpgroup, and those
// that share one a chain on the number of the warp in it.  ptxas moves
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
    if (clusterOf(op) > 1)
      meetCluster(b);
    else
      NVVM::BarrierOp::create(b);
    Value group = b.uniform(b.shiftRight(b.thread(), 7));
    auto roles = llvm::to_vector(op.getBody().front().getOps<RoleOp>());
    int64_t warps = 0;
    for (RoleOp role : roles)
      warps += role.getWarps();
    choose(b, byWarpgroup(roles), group, RoleOp::kWarpsPerGroup,
           [&](ArrayRef<RoleOp> shared) {
             setRegisters(b, RoleOp(shared.front()).getRegisters(), warps);
             SmallVector<ArrayRef<RoleOp>> each;
             for (const RoleOp &role : shared)
               each.push_back(role);
             Value warp = each.size() > 1 ? b.warp() : Value();
             choose(b, each, warp, 1, [&](ArrayRef<RoleOp> role) {
               enter(b, rewriter, role.front());
             });
           });
    // No block goes while another still writes to its shared memory.
    if (clusterOf(op) > 1)
      meetCluster(b);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Not the aligned form: the lanes of a single-lane role's warp may come by
  /// themselves.
  static void meetCluster(Lane &b) {
    NVVM::ClusterArriveOp::create(b, /*aligned=*/UnitAttr());
    NVVM::ClusterWaitOp::create(b, /*aligned=*/UnitAttr());
  }

  /// Runs of roles, each of which has whole warpgroups.
  static SmallVector<ArrayRef<RoleOp>> byWarpgroup(ArrayRef<RoleOp> roles) {
    SmallVector<ArrayRef<RoleOp>> runs;
    int64_t warps = 0;
    for (size_t i = 0, begin = 0; i < roles.size(); ++i) {
      warps += RoleOp(roles[i]).getWarps();
      if (warps % RoleOp::kWarpsPerGroup != 0)
        continue;
      runs.push_back(roles.slice(begin, i + 1 - begin));
      begin = i + 1;
    }
    return runs;
  }

  /// Enters the first of the runs for the units (of so many warps) that belong
  /// to it, else one of the others.
  static void choose(Lane &b, ArrayRef<ArrayRef<RoleOp>> runs, Value unit,
                     int64_t warpsOfUnit,
                     function_ref<void(ArrayRef<RoleOp>)> enter) {
    ArrayRef<RoleOp> run = runs.front();
    if (runs.size() == 1)
      return enter(run);
    RoleOp last = run.back();
    int64_t end = (last.firstWarp() + last.getWarps()) / warpsOfUnit;
    auto branch = scf::IfOp::create(b, b.less(unit, b.i32(end)),
                                    /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    enter(run);
    b.setInsertionPointToStart(branch.elseBlock());
    choose(b, runs.drop_front(), unit, warpsOfUnit, enter);
  }

  /// Asks for registers, if the launch gave each thread other ones.
  static void setRegisters(Lane &b, int64_t wanted, int64_t warps) {
    int64_t given = 65536 / (32 * warps) / 8 * 8;
    if (wanted != given)
      NVVM::SetMaxRegisterOp::create(
          b, uint32_t(wanted),
          wanted > given ? NVVM::SetMaxRegisterAction::increase
                         : NVVM::SetMaxRegisterAction::decrease);
  }

  static void enter(Lane &b, ConversionPatternRewriter &rewriter, RoleOp role) {
    if (!role.getSingleLane())
      return inlineBody(b, rewriter, role);
    Value first;
    if (role.getWarps() > 1)
      first = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.warp(),
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
    role.walk([&](RowDotOp op) {
      op->setAttr(kRegistersAttr, role.getRegistersAttr());
    });
    rewriter.inlineBlockBefore(&role.getBody().front(), b.getInsertionBlock(),
                               b.getInsertionPoint());
  }
};

} // namespace

void attn::populateRolePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<RolesLowering>(converter, patterns.getContext());
}
