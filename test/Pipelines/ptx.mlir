// What the PTX of a kernel holds: the instructions that the design counts on,
// no calls and no local memory.
// RUN: attn-opt %s -attn-to-binary=format=isa -split-input-file | sed 's/\\0A/\n/g' > %t
// RUN: FileCheck %s --input-file=%t
// RUN: FileCheck %s --input-file=%t --check-prefix=NEVER
// RUN: attn-opt %s -attn-to-binary="format=isa machine=a100_80g" -split-input-file | sed 's/\\0A/\n/g' | FileCheck %s
// RUN: attn-opt %s -attn-to-binary="format=isa machine=rtx_5090" -split-input-file | sed 's/\\0A/\n/g' | FileCheck %s --check-prefix=NEVER

// NEVER: .visible .entry
// NEVER-NOT: {{[^a-z_]}}call{{[^a-z_]}}
// NEVER-NOT: {{(ld|st)}}.local
// NEVER-NOT: .local
// NEVER-NOT: __nv_
// NEVER-NOT: div.rn
// NEVER: .visible .entry
// NEVER-NOT: {{[^a-z_]}}call{{[^a-z_]}}
// NEVER-NOT: .local
// NEVER-NOT: __nv_
// NEVER-NOT: div.rn

// CHECK-LABEL: .visible .entry flash_mma_sync_bf16_64_causal(
// CHECK: .maxntid {{(32|64|96|128|192|256)}}{{$}}
// CHECK: .minnctapersm {{[1-9]}}
// CHECK: cp.async.cg.shared.global {{.*}}, 16,
// CHECK: cp.async.commit_group
// CHECK: cp.async.wait_group
// CHECK: bar.sync
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK-NOT: .f16.f16.
// CHECK: shfl.sync.bfly
// CHECK: ex2.approx.ftz.f32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: st.global.v4
func.func @bf16(%q: tensor<1x2x256x64xbf16>) -> tensor<1x2x256x64xbf16> {
  %o = attn.forward %q, %q, %q mask(causal) : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>
  return %o : tensor<1x2x256x64xbf16>
}

// -----

// CHECK-LABEL: .visible .entry flash_mma_sync_f16_128_lse(
// CHECK: cp.async.cg.shared.global {{.*}}, 16,
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: bf16
// CHECK: ex2.approx.ftz.f32
// CHECK: cvt.rn.f16x2.f32
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK: lg2.approx.ftz.f32
// CHECK-NOT: bf16
// CHECK: st.global.b32
func.func @f16(%q: tensor<1x2x256x128xf16>) -> (tensor<1x2x256x128xf16>, tensor<1x2x256xf32>) {
  %o:2 = attn.forward %q, %q, %q : tensor<1x2x256x128xf16>, tensor<1x2x256x128xf16>, tensor<1x2x256x128xf16> -> tensor<1x2x256x128xf16>, tensor<1x2x256xf32>
  return %o#0, %o#1 : tensor<1x2x256x128xf16>, tensor<1x2x256xf32>
}
