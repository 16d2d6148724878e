// A dialect of one op, `mini.attend`.
include "mlir/IR/OpBase.td"

def Mini_Dialect : Dialect {
  let name = "mini";
  let cppNamespace = "::mini";
}

def Mini_AttendOp : Op<Mini_Dialect, "attend"> {
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k,
                       AnyRankedTensor:$v);
  let results = (outs AnyRankedTensor:$o);
  let assemblyFormat = [{
    $q `,` $k `,` $v attr-dict `:` functional-type(operands, results)
  }];
}
