//===- Attn.h - The attn dialect: attention as mathematics ----------------===//
//
// The one header for users of the dialect: the dialect, its attributes and its
// ops, and the bridge from an op to the pure C++ world of Machine and Schedule.
//
//   attn.forward ── problemOf ──> attn::Problem ──┐
//   #attn.machine ── resolve ───> attn::Machine ──┴──> plans() ──> attn::Plan
//   #attn.schedule <── get ────── Plan::schedule, Plan::tiles
//
// Example: `attn.forward %q, %k, %v mask(causal)` on Q of
// tensor<4x32x?x128xbf16> and K, V of tensor<4x8x?x128xbf16> is the problem
// {bf16, batch 4, heads 32, kvHeads 8, queries 4096, keys 4096, headDim 128,
// headDimV 128, causal}: sizes only known at run time take the value of
// DynamicSizes, by default 4096 rows.
//
// Deliberately absent: any number about a GPU or a tile.  The dialect holds
// names and choices; facts and costs live in Machine and Schedule.
//
// An op is known by its *arrays*, each of which plays a role.  A role has a
// shape, whichever op it appears in, so that one verifier, one buffer model and
// one launch serve all ops; Roles.def has them:
//
//   q     [batch, heads,    queries, headDim]
//   lse   [batch, heads,    queries]            of f32
//
// What clauses take besides is in Clauses.h.
//
// Merges (MergeInterface.td) are rows and numbers: they need no schedule.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_ATTN_H
#define ATTN_IR_ATTN_H

#include "attn/IR/Clauses.h"
#include "attn/Machine/Machine.h"
#include "attn/Schedule/Merge.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Roles.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <optional>

#include "attn/IR/AttnDialect.h.inc"

namespace attn {
/// Attributes are unique by the hashes of what they hold.
llvm::hash_code hash_value(const Mask &mask);
} // namespace attn

#define GET_ATTRDEF_CLASSES
#include "attn/IR/AttnAttrs.h.inc"

namespace attn {

/// An array of an op.  On tensors the value of an output is the result.
struct AttentionArray {
  llvm::StringRef role;
  mlir::Value value;
  bool isOutput = false;
  int64_t columns = 0; ///< so many first ones of the value; 0: all

  mlir::ShapedType type() const;
};

/// Inputs that an op takes in a clause of that name: `dlse(%dlse : type)`.
struct OperandClause {
  llvm::StringLiteral keyword;
  llvm::ArrayRef<llvm::StringLiteral> roles;
};

/// `1/sqrt(d)` for Q of that type.
double defaultScale(mlir::Type q);

/// Inputs and outputs by role; roles live as long as the context of `op`.
llvm::SmallVector<AttentionArray>
arraysOf(mlir::Operation *op, llvm::ArrayRef<std::string> inputRoles,
         mlir::ValueRange inputs,
         llvm::ArrayRef<llvm::StringLiteral> outputRoles,
         mlir::ValueRange outputs);

/// What clauses take and `gradients` gives, by name; names live as long.
llvm::SmallVector<AttentionArray> clauseArrays(mlir::Operation *op,
                                               mlir::OperandRange inputs,
                                               mlir::ValueRange outputs);

/// The shape of the array that plays a role where sequences lie one behind the
/// other, or where they do not.
llvm::SmallVector<Extent> shapeOf(llvm::StringRef role, bool isRagged,
                                  const Placement &place = {});

} // namespace attn

#include "attn/IR/AttentionInterface.h.inc"
#include "attn/IR/MergeInterface.h.inc"

namespace attn {

/// The verifier and the interfaces of all ops.
llvm::LogicalResult verifyAttention(AttentionOpInterface op);
llvm::LogicalResult verifyRegions(AttentionOpInterface op);
void addEffects(mlir::Operation *op, size_t inputs,
                llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                    mlir::MemoryEffects::Effect>> &effects);
llvm::LogicalResult reifyShapes(AttentionOpInterface op,
                                mlir::OpBuilder &builder,
                                mlir::ReifiedRankedShapedTypeDims &reified);

/// The op of a score's region that keeps the gradients that are asked for from
/// passing, if there is one.
mlir::Operation *withoutDerivative(AttentionOpInterface op);

/// The same of merges.
llvm::LogicalResult verifyMerge(MergeOpInterface op);
llvm::LogicalResult reifyShapes(MergeOpInterface op, mlir::OpBuilder &builder,
                                mlir::ReifiedRankedShapedTypeDims &reified);

/// The text of all ops of attention: inputs in order, then the clauses that
/// take some.
mlir::ParseResult parseAttention(mlir::OpAsmParser &parser,
                                 mlir::OperationState &result,
                                 llvm::ArrayRef<llvm::StringLiteral> inputs,
                                 llvm::ArrayRef<OperandClause> clauses);
void printAttention(AttentionOpInterface op, mlir::OpAsmPrinter &printer);

/// What ops of lists read and write, and their text.
void addListEffects(mlir::Operation *op, size_t inputs,
                    llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                        mlir::MemoryEffects::Effect>> &effects);
mlir::ParseResult parseBlockSize(mlir::OpAsmParser &parser,
                                 mlir::DenseI64ArrayAttr &size);
void printBlockSize(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    mlir::DenseI64ArrayAttr size);
mlir::ParseResult
parseSees(mlir::OpAsmParser &parser,
          llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &captures,
          llvm::SmallVectorImpl<mlir::Type> &types, mlir::Region &sees);
void printSees(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::OperandRange captures, mlir::TypeRange types,
               mlir::Region &sees);

/// The text of the parts of a merge, and of their types.
mlir::ParseResult
parseParts(mlir::OpAsmParser &parser,
           llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &parts,
           llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &lses);
void printParts(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                mlir::OperandRange parts, mlir::OperandRange lses);
mlir::ParseResult parsePartTypes(mlir::OpAsmParser &parser,
                                 llvm::SmallVectorImpl<mlir::Type> &parts,
                                 llvm::SmallVectorImpl<mlir::Type> &lses);
void printPartTypes(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                    mlir::TypeRange parts, mlir::TypeRange lses);

/// The sizes of the groups of operands, where an op counts them in groups.
inline constexpr llvm::StringLiteral kSegmentsAttr = "operandSegmentSizes";

/// The op's attributes once it has so many destinations, which are the last
/// group of operands.
llvm::SmallVector<mlir::NamedAttribute> attributesWithOuts(mlir::Operation *op,
                                                           size_t count);

} // namespace attn

#define GET_OP_CLASSES
#include "attn/IR/AttnOps.h.inc"

namespace attn {

/// Name of the module attribute that holds the `#attn.machine`.
inline constexpr llvm::StringLiteral machineAttrName = "attn.machine";

/// Lets upstream's one-shot bufferization handle the ops of the dialect.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);

/// Lets upstream tile, fuse and split the ops of attention.
void registerTilingInterfaceExternalModels(mlir::DialectRegistry &registry);

/// The data type of an element type, if it is one that the dialect accepts.
std::optional<DataType> dataTypeOf(mlir::Type elementType);

/// Sizes assumed where the type says `?`.  A schedule has to be chosen before
/// they are known; it is correct for every size and best near these.  They fill
/// a machine many times over: what the last, partly filled wave costs depends
/// on sizes too much to guess it.
struct DynamicSizes {
  int64_t batch = 8;
  int64_t rows = 4096; // queries and keys
};

/// The share of blocks that lists are assumed to show, which only the device
/// knows: what a window or a document leaves of long sequences.
inline constexpr double kAssumedDensity = 0.25;

/// The shape of the array that plays a role (Roles.h); empty if nothing has
/// that role.
llvm::ArrayRef<Extent> shapeOf(llvm::StringRef role);

/// Where the device says that rows of an op lie.
Placement placeOf(AttentionOpInterface op);

/// Whether the array has numbers of f32 for each query.
bool isStatistic(llvm::StringRef role);

/// The problem that an op poses to the cost model.
Problem problemOf(AttentionOpInterface op, DynamicSizes assumed = {});
/// The same but for what its regions say, which may not be verified yet.
Problem problemWithoutRegions(AttentionOpInterface op,
                              DynamicSizes assumed = {});

/// What a merge computes.
Merge mergeOf(MergeOpInterface op, DynamicSizes assumed = {});

/// Whether the array of a merge has a number for each query.
bool isStatisticOfMerge(llvm::StringRef role);

/// Bytes that divide the address of every row of an array, at most
/// kMaxAlignment: what the type and the op's `alignment` tell.
int64_t rowAlignment(mlir::Value array, std::optional<int64_t> promised);
int64_t rowAlignment(AttentionOpInterface op, mlir::Value array);

/// The machine that the nearest module around `op` names; null if none does.
MachineAttr machineAttrOf(mlir::Operation *op);
/// The same with all that is known of it.
std::optional<Machine> machineFor(mlir::Operation *op);

} // namespace attn

#endif // ATTN_IR_ATTN_H
