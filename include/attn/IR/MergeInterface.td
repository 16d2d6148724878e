// What attn.merge and its gradient have in common.
#ifndef ATTN_IR_MERGEINTERFACE_TD
#define ATTN_IR_MERGEINTERFACE_TD

include "mlir/IR/OpBase.td"

def Attn_MergeOpInterface : OpInterface<"MergeOpInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    Implemented by `attn.merge` and `attn.merge_backward`, which multiply rows by
    numbers and so need no schedule. Arrays are known by their roles: `o_0` and
    `lse_0` of the first part, `o` and `lse` of the whole; `do` and `do_0` are
    gradients. Arrays of rows have the shape `[batch, heads, queries, e]`,
    statistics `[batch, heads, queries]`.

    Operands are the inputs, then `outs`.
  }];
  let methods = [
    InterfaceMethod<"What is computed.", "::attn::Direction", "direction">,
    InterfaceMethod<"The roles of the inputs that are there, in the order of "
                    "the operands.",
      "::llvm::SmallVector<std::string>", "givenInputs">,
    InterfaceMethod<"The roles of the outputs that there may be, in order.",
      "::llvm::ArrayRef<::llvm::StringLiteral>", "outputRoles">,
    InterfaceMethod<"How many outputs there are at least.",
      "size_t", "leastOutputs">,
    InterfaceMethod<"The destinations.", "::mlir::OperandRange", "getOuts">,
    InterfaceMethod<"The alignment that the caller promises, if any.",
      "::std::optional<uint64_t>", "getAlignment">,
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
    /// The operands that come in.
    ::mlir::OperandRange inputs() {
      return $_op->getOperands().drop_back($_op.getOuts().size());
    }
    /// All arrays: inputs, then outputs.
    ::llvm::SmallVector<::attn::AttentionArray> arrays() {
      return ::attn::arraysOf($_op, $_op.givenInputs(), inputs(),
                              $_op.outputRoles(), outputs());
    }
    /// The array of a role, or null.
    ::mlir::Value array(::llvm::StringRef role) {
      for (const ::attn::AttentionArray &array : arrays())
        if (array.role == role)
          return array.value;
      return {};
    }
  }];
}

#endif // ATTN_IR_MERGEINTERFACE_TD
