// Static sizes of 0: an empty result, or 0 and -inf where there are no keys,
// and gradients that are 0.
// RUN: attn-run %s --on interpreter --guard --machine h100_sxm --function no_queries | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine h100_sxm --function gradients_without_queries | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine a100_80g --function no_queries | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine a100_80g --function gradients_without_queries | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine h100_sxm --function no_keys | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine h100_sxm --function gradients_without_keys | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine a100_80g --function no_keys | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine a100_80g --function gradients_without_keys | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine h100_sxm --function no_batch | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine h100_sxm --function gradients_without_batch | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine a100_80g --function no_batch | FileCheck %s
// RUN: attn-run %s --on interpreter --guard --machine a100_80g --function gradients_without_batch | FileCheck %s
// CHECK-NOT: WRONG
// CHECK: moved

func.func @no_queries(%q: memref<2x4x0x64xbf16>, %k: memref<2x2x30x64xbf16>, %v: memref<2x2x30x64xbf16>,
    %o: memref<2x4x0x64xbf16>, %lse: memref<2x4x0xf32>) {
  attn.forward %q, %k, %v mask(causal) outs(%o, %lse : memref<2x4x0x64xbf16>, memref<2x4x0xf32>)
      : memref<2x4x0x64xbf16>, memref<2x2x30x64xbf16>, memref<2x2x30x64xbf16>
  return
}

func.func @gradients_without_queries(%do: memref<2x4x0x64xbf16>, %q: memref<2x4x0x64xbf16>,
    %k: memref<2x2x30x64xbf16>, %v: memref<2x2x30x64xbf16>, %o: memref<2x4x0x64xbf16>, %lse: memref<2x4x0xf32>,
    %dq: memref<2x4x0x64xbf16>, %dk: memref<2x2x30x64xbf16>, %dv: memref<2x2x30x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<2x4x0x64xbf16>, memref<2x2x30x64xbf16>, memref<2x2x30x64xbf16>)
      : memref<2x4x0x64xbf16>, memref<2x4x0x64xbf16>, memref<2x2x30x64xbf16>,
        memref<2x2x30x64xbf16>, memref<2x4x0x64xbf16>, memref<2x4x0xf32>
  return
}

func.func @no_keys(%q: memref<2x4x20x64xbf16>, %k: memref<2x2x0x64xbf16>, %v: memref<2x2x0x64xbf16>,
    %o: memref<2x4x20x64xbf16>, %lse: memref<2x4x20xf32>) {
  attn.forward %q, %k, %v mask(causal) outs(%o, %lse : memref<2x4x20x64xbf16>, memref<2x4x20xf32>)
      : memref<2x4x20x64xbf16>, memref<2x2x0x64xbf16>, memref<2x2x0x64xbf16>
  return
}

func.func @gradients_without_keys(%do: memref<2x4x20x64xbf16>, %q: memref<2x4x20x64xbf16>,
    %k: memref<2x2x0x64xbf16>, %v: memref<2x2x0x64xbf16>, %o: memref<2x4x20x64xbf16>, %lse: memref<2x4x20xf32>,
    %dq: memref<2x4x20x64xbf16>, %dk: memref<2x2x0x64xbf16>, %dv: memref<2x2x0x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<2x4x20x64xbf16>, memref<2x2x0x64xbf16>, memref<2x2x0x64xbf16>)
      : memref<2x4x20x64xbf16>, memref<2x4x20x64xbf16>, memref<2x2x0x64xbf16>,
        memref<2x2x0x64xbf16>, memref<2x4x20x64xbf16>, memref<2x4x20xf32>
  return
}

func.func @no_batch(%q: memref<0x4x20x64xbf16>, %k: memref<0x2x30x64xbf16>, %v: memref<0x2x30x64xbf16>,
    %o: memref<0x4x20x64xbf16>, %lse: memref<0x4x20xf32>) {
  attn.forward %q, %k, %v mask(causal) outs(%o, %lse : memref<0x4x20x64xbf16>, memref<0x4x20xf32>)
      : memref<0x4x20x64xbf16>, memref<0x2x30x64xbf16>, memref<0x2x30x64xbf16>
  return
}

func.func @gradients_without_batch(%do: memref<0x4x20x64xbf16>, %q: memref<0x4x20x64xbf16>,
    %k: memref<0x2x30x64xbf16>, %v: memref<0x2x30x64xbf16>, %o: memref<0x4x20x64xbf16>, %lse: memref<0x4x20xf32>,
    %dq: memref<0x4x20x64xbf16>, %dk: memref<0x2x30x64xbf16>, %dv: memref<0x2x30x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<0x4x20x64xbf16>, memref<0x2x30x64xbf16>, memref<0x2x30x64xbf16>)
      : memref<0x4x20x64xbf16>, memref<0x4x20x64xbf16>, memref<0x2x30x64xbf16>,
        memref<0x2x30x64xbf16>, memref<0x4x20x64xbf16>, memref<0x4x20xf32>
  return
}
