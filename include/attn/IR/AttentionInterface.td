// What the ops of the attn dialect have in common.
#ifndef ATTN_IR_ATTENTIONINTERFACE_TD
#define ATTN_IR_ATTENTIONINTERFACE_TD

include "mlir/IR/OpBase.td"

def Attn_AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    Implemented by every op that computes attention or its gradients, so that
    passes know no op by name. An op is its direction, its arrays by role, and
    the attributes that say which attention it is; all else follows from these.

    Operands are the inputs in the order of `inputRoles`, some of which may be
    absent (`givenInputs`), then what clauses take (`ClauseGroup`), then `outs`.
  }];
  let methods = [
    InterfaceMethod<"What is computed.", "::attn::Direction", "direction">,
    InterfaceMethod<"Roles of the inputs, in the order of the operands.",
      "::llvm::ArrayRef<::llvm::StringLiteral>", "inputRoles">,
    InterfaceMethod<"Roles of the outputs, in order.",
      "::llvm::ArrayRef<::llvm::StringLiteral>", "outputRoles">,
    InterfaceMethod<"The inputs that come in clauses, the last ones.",
      "::llvm::ArrayRef<::attn::OperandClause>", "operandClauses">,
    InterfaceMethod<"The roles of the inputs that are there.",
      "::llvm::SmallVector<::llvm::StringLiteral>", "givenInputs", (ins), "",
      "return ::llvm::to_vector($_op.inputRoles());">,
    InterfaceMethod<"The roles of so many outputs; none if there may not be as "
                    "many.",
      "::llvm::SmallVector<::llvm::StringLiteral>", "rolesOfOutputs",
      (ins "size_t":$count), "",
      "auto roles = ::llvm::to_vector($_op.outputRoles()); "
      "if (count != roles.size()) roles.clear(); return roles;">,
    InterfaceMethod<"Whether every run takes sums in the same order.",
      "bool", "isDeterministic", (ins), "", "return false;">,
    InterfaceMethod<"The destinations.", "::mlir::OperandRange", "getOuts">,
    InterfaceMethod<"The mask, if any.", "::attn::MaskAttr", "getMaskAttr">,
    InterfaceMethod<"The scale, if given.", "::mlir::FloatAttr",
      "getScaleAttr">,
    InterfaceMethod<"The precision of f32, if given.", "::attn::PrecisionAttr",
      "getPrecisionAttr">,
    InterfaceMethod<"The alignment that the caller promises, if any.",
      "::std::optional<uint64_t>", "getAlignment">,
    InterfaceMethod<"The schedule, once decided.", "::attn::ScheduleAttr",
      "getScheduleAttr">,
    InterfaceMethod<"Decides the schedule.", "void", "setScheduleAttr",
      (ins "::attn::ScheduleAttr":$schedule)>,
  ];
  let extraSharedClassDeclaration = [{
    bool isOnTensors() {
      return ::llvm::isa<::mlir::RankedTensorType>(
          $_op->getOperand(0).getType());
    }
    /// The outputs: the results on tensors, `outs` on memrefs.
    ::mlir::ValueRange outputs() {
      if (isOnTensors())
        return ::mlir::ValueRange($_op->getResults());
      return ::mlir::ValueRange($_op.getOuts());
    }
    /// The roles of the outputs that are there, without those of `gradients`,
    /// which come last.
    ::llvm::SmallVector<::llvm::StringLiteral> givenOutputs() {
      size_t others = gradientTargets().size();
      return $_op.rolesOfOutputs(
          std::max(outputs().size(), others) - others);
    }
    ::mlir::TypeRange outputTypes() { return outputs().getTypes(); }
    /// The operands that come in, also in clauses.
    ::mlir::OperandRange inputs() {
      return $_op->getOperands().drop_back($_op.getOuts().size());
    }

    /// What clauses take, which comes last of the inputs.
    ::mlir::OperandRange clauseInputs() {
      return ::attn::clauseInputs($_op, inputs());
    }
    /// The same as arrays with names, and outputs of `gradients`.
    ::llvm::SmallVector<::attn::AttentionArray> clauseArrays() {
      return ::attn::clauseArrays($_op, inputs(), outputs());
    }
    /// What a clause takes.
    ::mlir::OperandRange clauseOperands(::attn::ClauseGroup group) {
      return ::attn::clauseOperands($_op, inputs(), group);
    }
    /// Whether sequences lie one behind the other: arrays of rows are [rows,
    /// heads, columns], and those of numbers for each row [heads, rows].
    bool isRagged() { return ::attn::isRagged($_op); }
    ::llvm::SmallVector<::attn::Extent> shapeOf(::llvm::StringRef role) {
      return ::attn::shapeOf(role, isRagged(),
                             ::attn::placeOf($_op, inputs()));
    }
    ::mlir::OperandRange captures() {
      return clauseOperands(::attn::ClauseGroup::captures);
    }
    /// The region that tells which keys a query sees, or null.
    ::mlir::Region *sees() { return ::attn::seesOf($_op); }
    /// The region that tells what becomes of a score, or null.
    ::mlir::Region *score() { return ::attn::scoreOf($_op); }
    /// The queries and keys of a block of lists, if there are lists.
    std::optional<::attn::BlockSize> blockSize() {
      return ::attn::blockSizeOf($_op);
    }
    /// The captures and sinks of which gradients are asked for.
    ::llvm::SmallVector<::mlir::Value> gradientTargets() {
      return ::attn::gradientTargetsOf($_op, inputs());
    }
    /// Whether there is a clause that a band and a scale cannot say.
    bool hasClauses() {
      return $_op->getNumRegions() != 0 || blockSize() ||
             !clauseInputs().empty() || ::attn::valueColumns($_op);
    }

    /// All arrays that have a role in the mathematics of the plain op: inputs,
    /// then outputs.
    ::llvm::SmallVector<::attn::AttentionArray> arrays() {
      ::llvm::SmallVector<::attn::AttentionArray> all;
      for (auto [role, value] : ::llvm::zip($_op.givenInputs(), inputs()))
        all.push_back({role, value, /*isOutput=*/false,
                       role == "v" ? ::attn::valueColumns($_op) : 0});
      for (auto [role, value] : ::llvm::zip(givenOutputs(), outputs()))
        all.push_back({role, value, /*isOutput=*/true});
      return all;
    }
    /// The array of a role, or null.
    ::mlir::Value array(::llvm::StringRef role) {
      for (const ::attn::AttentionArray &array : arrays())
        if (array.role == role)
          return array.value;
      return {};
    }

    /// The mask, `none` when absent.
    ::attn::Mask maskOrNone() {
      ::attn::MaskAttr mask = $_op.getMaskAttr();
      return mask ? mask.getValue() : ::attn::Mask();
    }
    /// The scale, `1/sqrt(d)` when absent.
    double scaleOrDefault() {
      if (::mlir::FloatAttr scale = $_op.getScaleAttr())
        return scale.getValueAsDouble();
      return ::attn::defaultScale(array("q").getType());
    }
    /// The precision of f32, `tf32x3` when absent.
    ::attn::Precision precisionOrDefault() {
      ::attn::PrecisionAttr precision = $_op.getPrecisionAttr();
      return precision ? precision.getValue() : ::attn::Precision::tf32x3;
    }
  }];
}

#endif // ATTN_IR_ATTENTIONINTERFACE_TD
