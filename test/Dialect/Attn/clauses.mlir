// The clauses of attention: what is printed is parsed again, short forms too.
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>

// Captures may have any rank, and regions name their arguments as they like.
// CHECK-LABEL: @regions
// CHECK: attn.forward %{{.*}} mask(causal) scale(1.250000e-01) captures(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<8xf32>, tensor<f32>) sees (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[J:.*]], %[[NQ:.*]], %[[NK:.*]], %[[D:.*]], %{{.*}}, %{{.*}}) {
// CHECK-NEXT:   %[[X:.*]] = attn.read %[[D]][%[[I]]] : tensor<?xi32>
// CHECK-NEXT:   %[[Y:.*]] = attn.read %[[D]][%[[J]]] : tensor<?xi32>
// CHECK-NEXT:   %[[R:.*]] = arith.cmpi ule, %[[X]], %[[Y]] : i32
// CHECK-NEXT:   attn.yield %[[R]] : i1
// CHECK-NEXT: } score (%[[Z:.*]]: f32, %{{.*}}, %[[SH:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[S:.*]], %[[C:.*]]) {
// CHECK-NEXT:   %[[A:.*]] = attn.read %[[S]][%[[SH]]] : tensor<8xf32>
// CHECK-NEXT:   %[[T:.*]] = attn.read %[[C]][] : tensor<f32>
// CHECK-NEXT:   %[[M:.*]] = math.fma %[[A]], %[[Z]], %[[T]] : f32
// CHECK-NEXT:   attn.yield %[[M]] : f32
// CHECK-NEXT: } : tensor<2x8x300x64xbf16>
func.func @regions(%q: !q, %k: !k, %doc: tensor<?xi32>, %slope: tensor<8xf32>, %t: tensor<f32>) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k scale(0.125) captures(%doc, %slope, %t : tensor<?xi32>, tensor<8xf32>, tensor<f32>)
    sees (%b, %h, %i, %j, %nq, %nk, %d, %s, %u) {
      %x = attn.read %d[%i] : tensor<?xi32>
      %y = attn.read %d[%j] : tensor<?xi32>
      %r = arith.cmpi ule, %x, %y : i32
      attn.yield %r : i1
    } mask(causal)
    score (%z : f32, %b, %h, %i, %j, %nq, %nk, %d, %s, %u) {
      %a = attn.read %s[%h] : tensor<8xf32>
      %c = attn.read %u[] : tensor<f32>
      %m = math.fma %a, %z, %c : f32
      attn.yield %m : f32
    } : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

// The same names inside and outside, and index ops.
// CHECK-LABEL: @names
// CHECK: sees (%{{.*}}) {
// CHECK: index.add
// CHECK: index.cmp sle
func.func @names(%q: !q, %k: !k, %j: tensor<4xi64>) -> !q {
  %o = attn.forward %q, %k, %k captures(%j : tensor<4xi64>)
    sees (%q, %k, %b, %i, %nq, %nk, %j) {
      %c = index.constant 3
      %e = index.add %b, %c
      %r = index.cmp sle(%i, %e)
      attn.yield %r : i1
    } : !q, !k, !k -> !q
  return %o : !q
}

// CHECK-LABEL: @short_forms
// CHECK: attn.forward %{{.*}} softcap(5.000000e+01) :
// CHECK: attn.forward %{{.*}} alibi(%{{.*}} : tensor<8xf32>) :
// CHECK: attn.forward %{{.*}} document(%[[IDS:.*]] : tensor<?xi32>) softcap(3.000000e+01) alibi(%[[SLOPES:.*]] : tensor<2x8xbf16>) bias(%[[BIAS:.*]] : tensor<1x8x300x400xf16>) :
// CHECK: attn.forward %{{.*}} document(%[[IDS]] : tensor<?xi32>) bias(%[[BIAS]] : tensor<1x8x300x400xf16>) softcap(3.000000e+01) :
func.func @short_forms(%q: !q, %k: !k, %ids: tensor<?xi32>, %slopes: tensor<8xf32>, %more: tensor<2x8xbf16>, %bias: tensor<1x8x300x400xf16>) -> (!q, !q, !q, !q) {
  %0 = attn.forward %q, %k, %k softcap(50.0) : !q, !k, !k -> !q
  %1 = attn.forward %q, %k, %k alibi(%slopes : tensor<8xf32>) : !q, !k, !k -> !q
  %2 = attn.forward %q, %k, %k softcap(30.0) alibi(%more : tensor<2x8xbf16>) bias(%bias : tensor<1x8x300x400xf16>) document(%ids : tensor<?xi32>) : !q, !k, !k -> !q
  %3 = attn.forward %q, %k, %k bias(%bias : tensor<1x8x300x400xf16>) softcap(30.0) document(%ids : tensor<?xi32>) : !q, !k, !k -> !q
  return %0, %1, %2, %3 : !q, !q, !q, !q
}

// Short by structure, not by how it was written: ops in another order, and a
// region with another capture that has no short form.
// CHECK-LABEL: @short_by_structure
// CHECK: attn.forward %{{.*}} alibi(%{{.*}} : tensor<8xf32>) :
// CHECK: attn.forward %{{.*}} captures(%{{.*}} : tensor<4xi1>) sees (%{{.*}}, %[[X:.*]]) {
// CHECK-NEXT: attn.read %[[X]][%{{.*}}] : tensor<4xi1>
// CHECK: } alibi(%{{.*}} : tensor<8xf32>) :
func.func @short_by_structure(%q: !q, %k: !k, %slopes: tensor<8xf32>, %on: tensor<4xi1>) -> (!q, !q) {
  %0 = attn.forward %q, %k, %k captures(%slopes : tensor<8xf32>)
    score (%z : f32, %b, %h, %i, %j, %nq, %nk, %s) {
      %t = arith.subi %j, %i : index
      %u = arith.index_cast %t : index to i32
      %w = arith.sitofp %u : i32 to f32
      %a = attn.read %s[%h] : tensor<8xf32>
      %m = arith.mulf %a, %w : f32
      %n = arith.addf %z, %m : f32
      attn.yield %n : f32
    } : !q, !k, !k -> !q
  %1 = attn.forward %q, %k, %k alibi(%slopes : tensor<8xf32>) captures(%on : tensor<4xi1>)
    sees (%b, %h, %i, %j, %nq, %nk, %o) {
      %r = attn.read %o[%b] : tensor<4xi1>
      attn.yield %r : i1
    } : !q, !k, !k -> !q
  return %0, %1 : !q, !q
}

// Nearly one: (i - j), a cap that is another number, and a form whose capture
// is read by the other region too.
// CHECK-LABEL: @not_short
// CHECK-NOT: alibi
// CHECK-NOT: softcap
// CHECK-NOT: bias(
// CHECK: return
func.func @not_short(%q: !q, %k: !k, %slopes: tensor<8xf32>, %bias: tensor<300x400xf32>) -> (!q, !q, !q) {
  %0 = attn.forward %q, %k, %k captures(%slopes : tensor<8xf32>)
    score (%z : f32, %b, %h, %i, %j, %nq, %nk, %s) {
      %a = attn.read %s[%h] : tensor<8xf32>
      %t = arith.subi %i, %j : index
      %u = arith.index_cast %t : index to i32
      %w = arith.sitofp %u : i32 to f32
      %m = arith.mulf %a, %w : f32
      %n = arith.addf %z, %m : f32
      attn.yield %n : f32
    } : !q, !k, !k -> !q
  %1 = attn.forward %q, %k, %k
    score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
      %c = arith.constant 50.0 : f32
      %d = arith.constant 49.0 : f32
      %t = arith.divf %z, %d : f32
      %u = math.tanh %t : f32
      %m = arith.mulf %u, %c : f32
      attn.yield %m : f32
    } : !q, !k, !k -> !q
  %2 = attn.forward %q, %k, %k captures(%bias : tensor<300x400xf32>)
    sees (%b, %h, %i, %j, %nq, %nk, %x) {
      %y = attn.read %x[%i, %j] : tensor<300x400xf32>
      %c = arith.constant 0.0 : f32
      %r = arith.cmpf ogt, %y, %c : f32
      attn.yield %r : i1
    }
    score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x) {
      %y = attn.read %x[%i, %j] : tensor<300x400xf32>
      %n = arith.addf %z, %y : f32
      attn.yield %n : f32
    } : !q, !k, !k -> !q
  return %0, %1, %2 : !q, !q, !q
}

// CHECK-LABEL: @blocks
// CHECK: attn.forward %{{.*}} blocks(partial %[[PC:.*]], %[[PI:.*]], full %[[FC:.*]], %[[FI:.*]], size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5x3xi32>, tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) sinks(%{{.*}} : tensor<8xf32>) : tensor
// CHECK: attn.forward %{{.*}} blocks(full %[[FC]], %[[FI]], size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) : tensor
!counts = tensor<1x8x5xi32>
!some = tensor<1x8x5x3xi32>
!all = tensor<1x8x5x4xi32>
func.func @blocks(%q: !q, %k: !k, %pc: !counts, %pi: !some, %fc: !counts, %fi: !all, %s: tensor<8xf32>) -> (!q, !q) {
  %0 = attn.forward %q, %k, %k sinks(%s : tensor<8xf32>) blocks(full %fc, %fi, partial %pc, %pi, size 64 x 128 : !counts, !all, !counts, !some) : !q, !k, !k -> !q
  %1 = attn.forward %q, %k, %k blocks(size 64 x 128, full %fc, %fi : !counts, !all) : !q, !k, !k -> !q
  return %0, %1 : !q, !q
}

// CHECK-LABEL: @gradients
// CHECK: attn.backward %{{.*}} dlse(%{{.*}} : tensor<2x8x300xf32>) mask(causal) alibi(%[[S:.*]] : tensor<8xf32>) blocks(partial %{{.*}}, %{{.*}}, size 64 x 128 : {{.*}}) transposed(partial %{{.*}}, %{{.*}} : tensor<1x8x4xi32>, tensor<1x8x4x5xi32>) sinks(%[[T:.*]] : tensor<8xf32>) gradients(%[[T]], %[[S]]) :
// CHECK-SAME: -> tensor<2x8x300x64xbf16>, tensor<2x2x400x64xbf16>, tensor<2x2x400x64xbf16>, tensor<8xf32>, tensor<8xf32>
// The same array twice has numbers.
// CHECK: attn.backward %{{.*}} captures(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>) score {{.*}}
// CHECK: } gradients(1) :
!tc = tensor<1x8x4xi32>
!ti = tensor<1x8x4x5xi32>
func.func @gradients(%q: !q, %k: !k, %lse: !lse, %pc: !counts, %pi: !some, %tc: !tc, %ti: !ti, %s: tensor<8xf32>, %sink: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0:5 = attn.backward %q, %q, %k, %k, %q, %lse dlse(%lse : !lse) mask(causal) alibi(%s : tensor<8xf32>)
    blocks(partial %pc, %pi, size 64 x 128 : !counts, !some) transposed(partial %tc, %ti : !tc, !ti)
    sinks(%sink : tensor<8xf32>) gradients(%sink, %s)
    : !q, !q, !k, !k, !q, !lse -> !q, !k, !k, tensor<8xf32>, tensor<8xf32>
  %1:4 = attn.backward %q, %q, %k, %k, %q, %lse captures(%s, %s : tensor<8xf32>, tensor<8xf32>)
    score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x, %y) {
      %a = attn.read %x[%h] : tensor<8xf32>
      %c = attn.read %y[%h] : tensor<8xf32>
      %m = math.fma %a, %z, %c : f32
      attn.yield %m : f32
    } gradients(1) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k, tensor<8xf32>
  return %0#3, %0#4, %1#3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @memrefs
// CHECK: attn.forward %{{.*}} captures(%{{.*}} : memref<?x8xi8, strided<[?, 1]>>) sees (%{{.*}}, %[[X:.*]]) {
// CHECK-NEXT: attn.read %[[X]][%{{.*}}, %{{.*}}] : memref<?x8xi8, strided<[?, 1]>>
// CHECK: } softcap(2.000000e+00) outs(%{{.*}} : memref<1x8x?x64xf16>) {alignment = 16 : i64} : memref<1x8x?x64xf16>
!m = memref<1x8x?x64xf16>
!x = memref<?x8xi8, strided<[?, 1]>>
func.func @memrefs(%q: !m, %k: !m, %o: !m, %x: !x) {
  attn.forward %q, %k, %k captures(%x : !x) softcap(2.0)
    sees (%b, %h, %i, %j, %nq, %nk, %c) {
      %r = attn.read %c[%i, %h] : !x
      %t = arith.trunci %r : i8 to i1
      attn.yield %t : i1
    } outs(%o : !m) {alignment = 16 : i64} : !m, !m, !m
  return
}
