func.func @heads(%q: memref<1x70000x1x8xf16>, %k: memref<1x70000x1x8xf16>, %v: memref<1x70000x1x8xf16>,
    %o: memref<1x70000x1x8xf16>) {
  attn.forward %q, %k, %v outs(%o : memref<1x70000x1x8xf16>)
      : memref<1x70000x1x8xf16>, memref<1x70000x1x8xf16>, memref<1x70000x1x8xf16>
  return
}

func.func @gradients(%do: memref<70000x1x1x8xf16>, %q: memref<70000x1x1x8xf16>, %k: memref<70000x1x1x8xf16>,
    %v: memref<70000x1x1x8xf16>, %o: memref<70000x1x1x8xf16>, %lse: memref<70000x1x1xf32>,
    %dq: memref<70000x1x1x8xf16>, %dk: memref<70000x1x1x8xf16>, %dv: memref<70000x1x1x8xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<70000x1x1x8xf16>, memref<70000x1x1x8xf16>, memref<70000x1x1x8xf16>)
      : memref<70000x1x1x8xf16>, memref<70000x1x1x8xf16>, memref<70000x1x1x8xf16>,
        memref<70000x1x1x8xf16>, memref<70000x1x1x8xf16>, memref<70000x1x1xf32>
  return
}
