// What the ops of attention have in common.
#ifndef ATTN_IR_ATTENTIONOP_TD
#define ATTN_IR_ATTENTIONOP_TD

include "attn/IR/AttentionInterface.td"
include "attn/IR/AttnDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Attn_Shaped : AnyTypeOf<[AnyRankedTensor, AnyMemRef],
                            "ranked tensor or memref">;

/// What is common to the ops is written once, over the interface.
class Attn_AttentionOp<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, traits # [
        Attn_AttentionOpInterface, IsolatedFromAbove,
        DeclareOpInterfaceMethods<OpAsmOpInterface,
                                  ["getAsmBlockArgumentNames"]>,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>]> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region VariadicRegion<AnyRegion>:$functions);
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCustomAssemblyFormat = 1;
  code attentionMethods = [{
    /// The destinations, which come behind what clauses take.
    ::mlir::OperandRange getOuts();
    static ::attn::Direction direction();
    static ::llvm::ArrayRef<::llvm::StringLiteral> inputRoles();
    static ::llvm::ArrayRef<::llvm::StringLiteral> outputRoles();
    static ::llvm::ArrayRef<::attn::OperandClause> operandClauses();
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      return ::attn::verifyAttention(*this);
    }
    ::llvm::LogicalResult $cppClass::verifyRegions() {
      return ::attn::verifyRegions(*this);
    }
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser,
                                         ::mlir::OperationState &result) {
      return ::attn::parseAttention(parser, result, inputRoles(),
                                    operandClauses());
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) {
      ::attn::printAttention(*this, printer);
    }
    ::mlir::OperandRange $cppClass::getOuts() {
      return ::attn::behindClauses(*this, getRest());
    }
    void $cppClass::getAsmBlockArgumentNames(
        ::mlir::Region &region, ::mlir::OpAsmSetValueNameFn name) {
      ::attn::nameArguments(region, name);
    }
    ::mlir::Speculation::Speculatability $cppClass::getSpeculatability() {
      return isOnTensors() ? ::mlir::Speculation::Speculatable
                           : ::mlir::Speculation::NotSpeculatable;
    }
    void $cppClass::getEffects(::llvm::SmallVectorImpl<
        ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>>
        &effects) {
      ::attn::addEffects(*this, inputs().size(), effects);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &reified) {
      return ::attn::reifyShapes(*this, builder, reified);
    }
  }];
}

#endif // ATTN_IR_ATTENTIONOP_TD
