// What the PTX of a kernel holds: the instructions that the design counts on,
// no calls and no local memory.  Of the output only the kernels are looked at,
// not the host's code behind them.
// RUN: attn-opt %s -attn-to-binary="format=isa machine=a100_80g schedule=flash" -split-input-file | sed 's/\\0A/\n/g' | sed '/^  func.func/,/^  }/d' > %t.mma
// RUN: FileCheck %s --input-file=%t.mma
// RUN: FileCheck %s --input-file=%t.mma --check-prefix=NEVER
// RUN: attn-opt %s -attn-to-binary='format=isa schedule="flash, overlap = 1"' -split-input-file | sed 's/\\0A/\n/g' | sed '/^  func.func/,/^  }/d' > %t.wgmma
// RUN: FileCheck %s --input-file=%t.wgmma --check-prefix=WGMMA
// RUN: FileCheck %s --input-file=%t.wgmma --check-prefix=PRODUCER
// RUN: FileCheck %s --input-file=%t.wgmma --check-prefix=NEVER
// RUN: attn-opt %s -attn-to-binary='format=isa machine=h200 schedule="flash, overlap = 1"' -split-input-file | sed 's/\\0A/\n/g' | sed '/^  func.func/,/^  }/d' | FileCheck %s --check-prefixes=WGMMA
// RUN: attn-opt %s -attn-to-binary="format=isa machine=rtx_5090" -split-input-file | sed 's/\\0A/\n/g' | FileCheck %s --check-prefix=NEVER

// NEVER: .visible .entry
// NEVER-NOT: {{[^a-z_]}}call{{[^a-z_]}}
// NEVER-NOT: {{(ld|st)}}.local
// NEVER-NOT: .local
// NEVER-NOT: __nv_
// NEVER-NOT: div.rn
// NEVER: .visible .entry
// NEVER-NOT: {{[^a-z_]}}call{{[^a-z_]}}
// NEVER-NOT: {{(ld|st)}}.local
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

// Maps come by value.  One thread makes the barriers; then a consumer takes its
// registers and a tile from the queue.
// WGMMA-LABEL: .visible .entry flash_wgmma_bf16_64_causal(
// WGMMA-COUNT-4: .param .align 64 .b8 flash_wgmma_bf16_64_causal_param_{{[0-3]}}[128],
// WGMMA: .maxntid {{(256|384|512)}}{{$}}
// WGMMA: .minnctapersm 1{{$}}
// WGMMA: mbarrier.init.shared::cta.b64
// WGMMA: fence.mbarrier_init.release.cluster;
// WGMMA-NEXT: bar.sync
// WGMMA: setmaxnreg.{{(inc|dec)}}.sync.aligned.u32 {{.*}}{{(240|160)}};
// WGMMA: mbarrier.try_wait.parity.shared::cta.b64
// WGMMA: ld.shared.v4.b32
// WGMMA: @p mbarrier.arrive.shared::cta.b64
// S of the first block: Q and K from shared memory, k along both their rows.
// WGMMA: mbarrier.try_wait.parity.shared::cta.b64
// WGMMA: wgmma.fence.sync.aligned;
// WGMMA: setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16 {{.*}}, p, 1, 1, 0, 0; }
// WGMMA-COUNT-3: setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16 {{.*}}, p, 1, 1, 0, 0; }
// WGMMA-NOT: wgmma.mma_async
// WGMMA: wgmma.commit_group.sync.aligned;
// WGMMA: wgmma.wait_group.sync.aligned {{.*}}0;
// WGMMA: shfl.sync.bfly
// WGMMA: ex2.approx.ftz.f32
// WGMMA: cvt.rn.bf16x2.f32
// The loop: S of a block beside P V of the one before, P from registers and k
// down the rows of V.  The first to end is S.
// WGMMA: wgmma.fence.sync.aligned;
// WGMMA: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16 {{.*}}, p, 1, 1, 0, 0; }
// WGMMA: wgmma.commit_group.sync.aligned;
// WGMMA-NOT: wgmma.wait_group
// WGMMA: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, p, 1, 1, 1; }
// WGMMA: wgmma.commit_group.sync.aligned;
// WGMMA: wgmma.wait_group.sync.aligned {{.*}}1;
// WGMMA: vote.sync.any.pred
// WGMMA: wgmma.wait_group.sync.aligned {{.*}}0;
// WGMMA-NOT: .f16.f16
// The output goes through shared memory, by the copy engine.
// WGMMA: cp.async.bulk.wait_group.read 0;
// WGMMA: bar.sync {{.*}}, 128;
// WGMMA-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// WGMMA: fence.proxy.async.shared::cta;
// WGMMA: bar.sync {{.*}}, 128;
// WGMMA: cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group
// WGMMA: cp.async.bulk.commit_group;
// WGMMA-NOT: {{ldmatrix|cp.async.cg|[^a-z]mma.sync}}

// One lane draws tiles, tells the queue and fills the slots.
// PRODUCER-LABEL: .visible .entry flash_wgmma_bf16_64_causal(
// PRODUCER: setmaxnreg.dec.sync.aligned.u32 {{.*}}{{(24|32)}};
// PRODUCER: elect.sync
// PRODUCER: mbarrier.try_wait.parity.shared::cta.b64
// PRODUCER: st.shared.v4.b32
// PRODUCER: mbarrier.arrive.shared::cta.b64
// PRODUCER: mbarrier.try_wait.parity.shared::cta.b64
// PRODUCER: mbarrier.arrive.expect_tx.shared::cta.b64
// PRODUCER: cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// PRODUCER: atom.{{.*}}inc.u32
// PRODUCER: mbarrier.try_wait.parity.shared::cta.b64
// PRODUCER: cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
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

// Eight steps of 16 along the head dimension, two panels of 64 columns a box.
// WGMMA-LABEL: .visible .entry flash_wgmma_f16_128_lse(
// WGMMA-NOT: bf16
// WGMMA: setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.f16.f16 {{.*}}, p, 1, 1, 0, 0; }
// WGMMA-COUNT-7: setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.f16.f16 {{.*}}, p, 1, 1, 0, 0; }
// WGMMA: wgmma.commit_group.sync.aligned;
// WGMMA: ex2.approx.ftz.f32
// WGMMA: cvt.rn.f16x2.f32
// WGMMA: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, p, 1, 1, 1; }
// WGMMA: cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group
// WGMMA: lg2.approx.ftz.f32
// WGMMA: st.global.b32
// WGMMA-NOT: bf16
// PRODUCER-LABEL: .visible .entry flash_wgmma_f16_128_lse(
// PRODUCER: elect.sync
// PRODUCER: mbarrier.arrive.expect_tx.shared::cta.b64
// PRODUCER-COUNT-2: cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// PRODUCER-NOT: cp.async.bulk.tensor
// PRODUCER: mbarrier.arrive.expect_tx.shared::cta.b64
func.func @f16(%q: tensor<1x2x256x128xf16>) -> (tensor<1x2x256x128xf16>, tensor<1x2x256xf32>) {
  %o:2 = attn.forward %q, %q, %q : tensor<1x2x256x128xf16>, tensor<1x2x256x128xf16>, tensor<1x2x256x128xf16> -> tensor<1x2x256x128xf16>, tensor<1x2x256xf32>
  return %o#0, %o#1 : tensor<1x2x256x128xf16>, tensor<1x2x256xf32>
}
