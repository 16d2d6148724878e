// Attributes of the attn dialect: masks, precisions, machines and schedules.
#ifndef ATTN_IR_ATTNATTRS_TD
#define ATTN_IR_ATTNATTRS_TD

include "attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Attn_Attr<string name, string attrMnemonic> : AttrDef<Attn_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_MaskAttr : Attn_Attr<"Mask", "mask"> {
  let summary = "which keys a query sees";
  let description = [{
    One of a closed set of named masks. In an op it is written without the
    dialect prefix: `mask(causal)`. With `nq` queries and `nk` keys, query `i`
    sees key `j` iff

    | mask | condition |
    |---|---|
    | `none` | always |
    | `causal` | `j <= i` (top-left aligned) |
    | `causal_bottom_right` | `j <= i + nk - nq` |
    | `window<L, R>` | `i + nk - nq - L <= j <= i + nk - nq + R` (bottom-right aligned) |
    | `prefix<P>` | `j < P` or `j <= i + nk - nq` (bottom-right aligned) |

    `L`, `R` and `P` are between 0 and 2^30; the latter is a side without bound,
    so `window<1073741824, 0>` is `causal_bottom_right`, and so is `prefix<0>`.

    What a query sees is one run of keys, both of whose ends rise with the
    query.  That is why the set is closed: from these ends alone follow which
    blocks are skipped, which need mask code, and how much work there is.
  }];
  let parameters = (ins "::attn::Mask":$value);
  let builders = [AttrBuilder<
      (ins "::attn::MaskKind":$kind, "int64_t":$left, "int64_t":$right),
      [{ return $_get($_ctxt, ::attn::Mask{kind, left, right}); }]>];
  let extraClassDeclaration = [{
    /// The body between the brackets, shared with the op's `mask(...)`.
    static MaskAttr parseBody(::mlir::AsmParser &parser);
    void printBody(::mlir::AsmPrinter &printer) const;
  }];
}

def Attn_PrecisionAttr : Attn_Attr<"Precision", "precision"> {
  let summary = "how factors of f32 are multiplied";
  let description = [{
    Tensor cores take factors with ten bits of fraction, tf32. In an op it is
    written without the dialect prefix: `precision(tf32)`.

    | precision | products |
    |---|---|
    | `tf32x3` | a factor is the sum of two numbers of tf32, or of f16 once a power of two has brought it there, and a product three of theirs; or of three numbers of bf16, and six; sums are rounded as in f32: nearly the precision of f32 |
    | `tf32` | factors are rounded to tf32: a relative error of 2^-11 each |
  }];
  let parameters = (ins "::attn::Precision":$value);
  let genVerifyDecl = 0;
  let extraClassDeclaration = [{
    /// The body between the brackets, shared with the op's `precision(...)`.
    static PrecisionAttr parseBody(::mlir::AsmParser &parser);
    void printBody(::mlir::AsmPrinter &printer) const;
  }];
}

def Attn_MachineAttr : Attn_Attr<"Machine", "machine"> {
  let summary = "the GPU that code is compiled for";
  let description = [{
    A row of the table of machines, by its name, or a row with some facts
    replaced:

    ```mlir
    #attn.machine<h100_sxm>
    #attn.machine<h100_sxm, smem_bytes_per_block = 65536>
    ```

    Overridden fields answer "what if": what would be chosen on a GPU with half
    the shared memory, or with the bandwidth that was measured here. The
    attribute holds no facts of its own, so a machine is described in one place.
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
                        ArrayRefParameter<"::mlir::NamedAttribute">:$overrides);
  let extraClassDeclaration = [{
    /// The machine, overrides applied.
    ::attn::Machine resolve() const;
  }];
}

def Attn_ScheduleAttr : Attn_Attr<"Schedule", "schedule"> {
  let summary = "how an op is computed: a schedule and its tile sizes";
  let description = [{
    The decision that `-attn-select-schedule` writes and the conversion to tile
    IR obeys. It reads as a sentence:

    ```mlir
    #attn.schedule<flash, query = 128, key = 64, stages = 2, warps = 4>
    ```

    The name and the names of the sizes are those of the schedule's own file;
    each size is given once and is at least 1. Whether the sizes fit a problem and a machine is
    not the attribute's to know: the passes ask the cost model.
  }];
  let parameters = (ins
    "::mlir::StringAttr":$name,
    ArrayRefParameter<"std::pair<::mlir::StringAttr, int64_t>">:$sizes);
  let extraClassDeclaration = [{
    /// The tile sizes as the cost model knows them.
    ::attn::Tiles tiles() const;

    /// The attribute for a plan's choice.
    static ScheduleAttr get(::mlir::MLIRContext *context,
                            ::llvm::StringRef name, const ::attn::Tiles &tiles);

    /// The body between the brackets, shared with the pass option `schedule=`.
    static ScheduleAttr parseBody(::mlir::AsmParser &parser);
  }];
}

#endif // ATTN_IR_ATTNATTRS_TD
