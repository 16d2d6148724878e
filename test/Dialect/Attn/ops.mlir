// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-LABEL: @output
// CHECK: attn.forward %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16> -> tensor<2x4x128x64xbf16>
func.func @output(%q: tensor<2x4x128x64xbf16>, %k: tensor<2x4x128x64xbf16>, %v: tensor<2x4x128x64xbf16>) -> tensor<2x4x128x64xbf16> {
  %o = attn.forward %q, %k, %v : tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16>, tensor<2x4x128x64xbf16> -> tensor<2x4x128x64xbf16>
  return %o : tensor<2x4x128x64xbf16>
}

// CHECK-LABEL: @output_and_lse
// CHECK: %{{.*}}:2 = attn.forward %{{.*}}, %{{.*}}, %{{.*}} mask(causal) scale(1.250000e-01) : {{.*}} -> tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>
func.func @output_and_lse(%q: tensor<4x32x4096x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %v: tensor<4x8x4096x128xbf16>) -> (tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal) scale(0.125)
      : tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
     -> tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>
  return %o, %lse : tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>
}

// CHECK-LABEL: @masks
// CHECK-NOT: mask
// CHECK: attn.forward {{.*}} mask(causal_bottom_right) :
// CHECK: attn.forward {{.*}} mask(window<128, 0>) :
// CHECK: attn.forward {{.*}} mask(window<1073741824, 7>) :
// CHECK: attn.forward {{.*}} mask(prefix<5>) :
func.func @masks(%q: tensor<1x1x8x8xf16>) -> tensor<1x1x8x8xf16> {
  %0 = attn.forward %q, %q, %q mask(none) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  %1 = attn.forward %0, %q, %q mask(causal_bottom_right) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  %2 = attn.forward %1, %q, %q mask(window<128, 0>) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  %3 = attn.forward %2, %q, %q mask(window<1073741824, 7>) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  %p = attn.forward %3, %q, %q mask(prefix<5>) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return %3 : tensor<1x1x8x8xf16>
}

// Any finite scale is mathematics, negative and zero included.
// CHECK-LABEL: @scales
// CHECK: scale(0.000000e+00)
// CHECK: scale(-2.500000e+00)
func.func @scales(%q: tensor<1x1x8x8xf16>) -> tensor<1x1x8x8xf16> {
  %0 = attn.forward %q, %q, %q scale(0.0) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  %1 = attn.forward %0, %q, %q scale(-2.5) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return %1 : tensor<1x1x8x8xf16>
}

// CHECK-LABEL: @destinations
// CHECK: attn.forward {{.*}} outs(%{{.*}}, %{{.*}} : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>) : {{.*}} -> tensor<1x2x?x16xf32>, tensor<1x2x?xf32>
func.func @destinations(%q: tensor<1x2x?x16xf32>, %k: tensor<1x1x?x16xf32>, %o: tensor<1x2x?x16xf32>, %lse: tensor<1x2x?xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x?xf32>) {
  %0:2 = attn.forward %q, %k, %k outs(%o, %lse : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>)
      : tensor<1x2x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32> -> tensor<1x2x?x16xf32>, tensor<1x2x?xf32>
  return %0#0, %0#1 : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>
}

// Head dimensions of K and V differ, sizes are dynamic or static at will.
// CHECK-LABEL: @shapes
// CHECK: tensor<?x6x?x192xbf16>, tensor<2x3x?x192xbf16>, tensor<?x3x77x128xbf16> -> tensor<2x6x?x128xbf16>
func.func @shapes(%q: tensor<?x6x?x192xbf16>, %k: tensor<2x3x?x192xbf16>, %v: tensor<?x3x77x128xbf16>) -> tensor<2x6x?x128xbf16> {
  %o = attn.forward %q, %k, %v : tensor<?x6x?x192xbf16>, tensor<2x3x?x192xbf16>, tensor<?x3x77x128xbf16> -> tensor<2x6x?x128xbf16>
  return %o : tensor<2x6x?x128xbf16>
}

// Without keys every row is fully masked; without queries there is no row.
// CHECK-LABEL: @nothing
// CHECK: tensor<1x1x8x8xf16>, tensor<1x1x0x8xf16>, tensor<1x1x0x8xf16>
// CHECK: tensor<1x1x0x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>
// CHECK: tensor<0x1x8x8xf16>
func.func @nothing(%some: tensor<1x1x8x8xf16>, %none: tensor<1x1x0x8xf16>, %empty: tensor<0x1x8x8xf16>) {
  %0 = attn.forward %some, %none, %none : tensor<1x1x8x8xf16>, tensor<1x1x0x8xf16>, tensor<1x1x0x8xf16> -> tensor<1x1x8x8xf16>
  %1 = attn.forward %none, %some, %some : tensor<1x1x0x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x0x8xf16>
  %2 = attn.forward %empty, %empty, %empty : tensor<0x1x8x8xf16>, tensor<0x1x8x8xf16>, tensor<0x1x8x8xf16> -> tensor<0x1x8x8xf16>
  return
}

// An f8 result would keep three bits of the mantissa: O is bf16.
// CHECK-LABEL: @f8
// CHECK: -> tensor<1x1x8x8xbf16>
func.func @f8(%q: tensor<1x1x8x8xf8E4M3FN>) -> tensor<1x1x8x8xbf16> {
  %o = attn.forward %q, %q, %q : tensor<1x1x8x8xf8E4M3FN>, tensor<1x1x8x8xf8E4M3FN>, tensor<1x1x8x8xf8E4M3FN> -> tensor<1x1x8x8xbf16>
  return %o : tensor<1x1x8x8xbf16>
}

// CHECK-LABEL: @buffers
// CHECK: attn.forward %{{.*}}, %{{.*}}, %{{.*}} mask(window<1024, 0>) outs(%{{.*}} : memref<1x8x?x64xf16>) : memref<1x8x?x64xf16>, memref<1x8x?x64xf16>, memref<1x8x?x64xf16>{{$}}
func.func @buffers(%q: memref<1x8x?x64xf16>, %k: memref<1x8x?x64xf16>, %o: memref<1x8x?x64xf16>) {
  attn.forward %q, %k, %k mask(window<1024, 0>) outs(%o : memref<1x8x?x64xf16>)
      : memref<1x8x?x64xf16>, memref<1x8x?x64xf16>, memref<1x8x?x64xf16>
  return
}

// [batch, rows, heads, head_dim] in memory is a matter of strides.
// CHECK-LABEL: @rows_before_heads
// CHECK: memref<2x4x128x64xf16, strided<[32768, 64, 256, 1]>>
func.func @rows_before_heads(%q: memref<2x4x128x64xf16, strided<[32768, 64, 256, 1]>>, %k: memref<2x4x128x64xf16>,
    %o: memref<2x4x128x64xf16, strided<[?, ?, ?, 1], offset: ?>, 1>, %lse: memref<2x4x128xf32>) {
  attn.forward %q, %k, %k outs(%o, %lse : memref<2x4x128x64xf16, strided<[?, ?, ?, 1], offset: ?>, 1>, memref<2x4x128xf32>)
      : memref<2x4x128x64xf16, strided<[32768, 64, 256, 1]>>, memref<2x4x128x64xf16>, memref<2x4x128x64xf16>
  return
}

// What is only read may lie on itself, and dimensions of one entry anywhere.
// CHECK-LABEL: @one_head_for_all
!all = memref<1x4x8x8xf16, strided<[7, 0, 2, 1]>>
!places = memref<1x4x8x8xf16, strided<[-5, 8, 32, 1], offset: 3>, #gpu.address_space<global>>
func.func @one_head_for_all(%q: memref<1x4x8x8xf16, 1>, %k: !all, %o: !places) {
  attn.forward %q, %k, %k outs(%o : !places) : memref<1x4x8x8xf16, 1>, !all, !all
  return
}

// Clauses come in any order, and are printed in one.
// CHECK-LABEL: @clauses
// CHECK: attn.forward %{{.*}} mask(causal) scale(5.000000e-01) precision(tf32) outs(%{{.*}} : tensor<1x1x8x8xf32>) {schedule = {{.*}}} : tensor<1x1x8x8xf32>
// CHECK: attn.forward %{{.*}} scale(2.000000e+00) : tensor<1x1x8x8xf32>
// CHECK: attn.backward %{{.*}} dlse(%{{.*}} : tensor<1x1x8xf32>) mask(causal) scale(5.000000e-01) outs(%{{.*}}, %{{.*}}, %{{.*}} : {{.*}}) {deterministic} : tensor<1x1x8x8xf32>
func.func @clauses(%q: tensor<1x1x8x8xf32>, %lse: tensor<1x1x8xf32>) {
  %0 = attn.forward %q, %q, %q outs(%q : tensor<1x1x8x8xf32>) precision(tf32) scale(0.5) mask(causal)
      {schedule = #attn.schedule<flash, query = 128, key = 64, stages = 2, warps = 4>}
      : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  %1 = attn.forward %q, %q, %q scale(2.0) mask(none) : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  %2:3 = attn.backward %q, %q, %q, %q, %q, %lse scale(0.5) outs(%q, %q, %q : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>)
      mask(causal) dlse(%lse : tensor<1x1x8xf32>) {deterministic}
      : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8xf32>
     -> tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>
  return
}

// CHECK-LABEL: @single_precision
// CHECK: attn.forward %{{.*}} mask(causal) scale(1.250000e-01) precision(tf32) : tensor<1x1x8x8xf32>
// CHECK: attn.forward %{{.*}} precision(tf32x3) : tensor<1x1x8x8xf32>
func.func @single_precision(%q: tensor<1x1x8x8xf32>) -> (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) {
  %0 = attn.forward %q, %q, %q mask(causal) scale(0.125) precision(tf32) : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  %1 = attn.forward %q, %q, %q precision(tf32x3) : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  return %0, %1 : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>
}

// CHECK-LABEL: @scheduled
// CHECK: {schedule = #attn.schedule<flash, query = 128, key = 64, stages = 2, warps = 4>} :
func.func @scheduled(%q: tensor<1x1x8x8xf16>) -> tensor<1x1x8x8xf16> {
  %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 128, key = 64, stages = 2, warps = 4>}
      : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return %o : tensor<1x1x8x8xf16>
}

// CHECK-LABEL: @gradients
// CHECK: %{{.*}}:3 = attn.backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask(causal) scale(1.250000e-01) : tensor<4x32x?x128xbf16>, tensor<4x32x?x192xbf16>, tensor<4x8x77x192xbf16>, tensor<4x8x77x128xbf16>, tensor<4x32x?x128xbf16>, tensor<4x32x?xf32> -> tensor<4x32x?x192xbf16>, tensor<4x8x77x192xbf16>, tensor<4x8x77x128xbf16>
!o = tensor<4x32x?x128xbf16>
!q = tensor<4x32x?x192xbf16>
!k = tensor<4x8x77x192xbf16>
!v = tensor<4x8x77x128xbf16>
func.func @gradients(%do: !o, %q: !q, %k: !k, %v: !v, %o: !o, %lse: tensor<4x32x?xf32>) -> (!q, !k, !v) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse mask(causal) scale(0.125)
      : !o, !q, !k, !v, !o, tensor<4x32x?xf32> -> !q, !k, !v
  return %dq, %dk, %dv : !q, !k, !v
}

// CHECK-LABEL: @gradient_of_lse
// CHECK: attn.backward {{.*}} dlse(%{{.*}} : tensor<1x1x8xf32>) mask(window<3, 0>) precision(tf32) outs(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) {deterministic} : tensor<1x1x8x8xf32>
func.func @gradient_of_lse(%q: tensor<1x1x8x8xf32>, %lse: tensor<1x1x8xf32>) {
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse dlse(%lse : tensor<1x1x8xf32>) mask(window<3, 0>) precision(tf32)
      outs(%q, %q, %q : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) {deterministic}
      : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8xf32>
     -> tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>
  return
}

// CHECK-LABEL: @gradients_in_buffers
// CHECK: attn.backward {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : memref<1x2x?x64xf16>, memref<1x1x?x64xf16>, memref<1x1x?x64xf16>) {alignment = 2 : i64} : memref<1x2x?x64xf16>, {{.*}}, memref<1x2x?xf32>{{$}}
func.func @gradients_in_buffers(%do: memref<1x2x?x64xf16>, %q: memref<1x2x?x64xf16>, %k: memref<1x1x?x64xf16>, %o: memref<1x2x?x64xf16>,
    %lse: memref<1x2x?xf32>, %dq: memref<1x2x?x64xf16>, %dk: memref<1x1x?x64xf16>, %dv: memref<1x1x?x64xf16>) {
  attn.backward %do, %q, %k, %k, %o, %lse outs(%dq, %dk, %dv : memref<1x2x?x64xf16>, memref<1x1x?x64xf16>, memref<1x1x?x64xf16>) {alignment = 2 : i64}
      : memref<1x2x?x64xf16>, memref<1x2x?x64xf16>, memref<1x1x?x64xf16>, memref<1x1x?x64xf16>, memref<1x2x?x64xf16>, memref<1x2x?xf32>
  return
}

// CHECK: module attributes {attn.machine = #attn.machine<h100_sxm>}
module attributes {attn.machine = #attn.machine<h100_sxm>} {}

// CHECK: #attn.machine<h100_sxm, smem_bytes_per_block = 65536, hbm_bytes_per_second = 3000000000000, clock_hz = 1500000000.5>
module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = 65536, hbm_bytes_per_second = 3.0e12, clock_hz = 1500000000.5>} {}

// CHECK: mask = #attn.mask<causal>, window = #attn.mask<window<1, 2>>
func.func private @mask_attributes() attributes {mask = #attn.mask<causal>, window = #attn.mask<window<1, 2>>}

// CHECK: precision = #attn.precision<tf32x3>
func.func private @precision_attribute() attributes {precision = #attn.precision<tf32x3>}

// CHECK-LABEL: @weights_that_are_kept
// CHECK: attn.forward {{.*}} -> tensor<1x4x300x64xbf16>, tensor<1x4x300xf32>, tensor<1x4x300x?xbf16>, tensor<1x4x?x300xf32>
// CHECK: attn.backward {{.*}} weights(%{{.*}}, %{{.*}} : tensor<1x4x300x?xbf16>, tensor<1x4x?x300xf32>) mask(causal) :
// CHECK: attn.backward {{.*}} dlse(%{{.*}} : tensor<1x4x300xf32>) weights(%{{.*}}, %{{.*}} : tensor<1x4x300x?xbf16>, tensor<1x4x?x300xf32>) :
!kept_q = tensor<1x4x300x64xbf16>
!kept_k = tensor<1x4x?x64xbf16>
!kept_lse = tensor<1x4x300xf32>
!kept_w = tensor<1x4x300x?xbf16>
!kept_r = tensor<1x4x?x300xf32>
func.func @weights_that_are_kept(%q: !kept_q, %k: !kept_k) -> (!kept_q, !kept_k, !kept_k) {
  %o, %lse, %w, %r = attn.forward %q, %k, %k mask(causal) : !kept_q, !kept_k, !kept_k -> !kept_q, !kept_lse, !kept_w, !kept_r
  %0:3 = attn.backward %q, %q, %k, %k, %o, %lse weights(%w, %r : !kept_w, !kept_r) mask(causal) : !kept_q, !kept_q, !kept_k, !kept_k, !kept_q, !kept_lse -> !kept_q, !kept_k, !kept_k
  %1:3 = attn.backward %q, %q, %k, %k, %o, %lse dlse(%lse : !kept_lse) weights(%w, %r : !kept_w, !kept_r) : !kept_q, !kept_q, !kept_k, !kept_k, !kept_q, !kept_lse -> !kept_q, !kept_k, !kept_k
  return %0#0, %1#1, %1#2 : !kept_q, !kept_k, !kept_k
}

// CHECK-LABEL: @low_word
// CHECK: %[[F:.*]]:3 = attn.forward %{{.*}} -> tensor<1x4x300x64xbf16>, tensor<1x4x300xf32>, tensor<1x4x300xf32>
// CHECK: attn.backward {{.*}}, %[[F]]#0, %[[F]]#1 lse_low(%[[F]]#2 : tensor<1x4x300xf32>) dlse(%[[F]]#1 : tensor<1x4x300xf32>) mask(causal) : tensor<1x4x300x64xbf16>
// CHECK: %[[K:.*]]:5 = attn.forward
// CHECK: attn.backward {{.*}}, %[[K]]#0, %[[K]]#1 lse_low(%[[K]]#2 : tensor<1x4x300xf32>) weights(%[[K]]#3, %[[K]]#4 : tensor<1x4x300x?xbf16>, tensor<1x4x?x300xf32>) : tensor<1x4x300x64xbf16>
func.func @low_word(%q: !kept_q, %k: !kept_k) -> (!kept_q, !kept_k, !kept_k) {
  %o, %lse, %low = attn.forward %q, %k, %k mask(causal) : !kept_q, !kept_k, !kept_k -> !kept_q, !kept_lse, !kept_lse
  %0:3 = attn.backward %q, %q, %k, %k, %o, %lse mask(causal) dlse(%lse : !kept_lse) lse_low(%low : !kept_lse) : !kept_q, !kept_q, !kept_k, !kept_k, !kept_q, !kept_lse -> !kept_q, !kept_k, !kept_k
  %1:5 = attn.forward %q, %k, %k : !kept_q, !kept_k, !kept_k -> !kept_q, !kept_lse, !kept_lse, !kept_w, !kept_r
  %2:3 = attn.backward %q, %q, %k, %k, %1#0, %1#1 lse_low(%1#2 : !kept_lse) weights(%1#3, %1#4 : !kept_w, !kept_r) : !kept_q, !kept_q, !kept_k, !kept_k, !kept_q, !kept_lse -> !kept_q, !kept_k, !kept_k
  return %0#0, %2#1, %2#2 : !kept_q, !kept_k, !kept_k
}
