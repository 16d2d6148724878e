//===- TrafficInterface.td - Bytes an op moves -------------*- tablegen -*-===//

#ifndef ATTN_TILE_TRAFFICINTERFACE_TD
#define ATTN_TILE_TRAFFICINTERFACE_TD

include "mlir/IR/OpBase.td"

def Tile_TrafficInterface : OpInterface<"TrafficInterface"> {
  let cppNamespace = "::attn::tile";
  let description = [{
    Implemented by every op that moves bytes between levels of memory, so that
    an analysis can count a kernel's traffic without knowing any op by name.
  }];
  let methods = [
    InterfaceMethod<"Bytes that one execution moves: by the whole block when "
                    "collective, else by one warp.",
      "::attn::tile::Traffic", "getTraffic",
      (ins "const ::attn::tile::TrafficScalars &":$scalars)>,
    InterfaceMethod<"The run-time values that the count depends on.",
      "::llvm::SmallVector<::mlir::Value>", "getTrafficOperands", (ins),
      "", "return {};">,
    InterfaceMethod<"Whether the warps of a block execute the op together.",
      "bool", "isCollective", (ins), "", "return false;">,
  ];
}

#endif
