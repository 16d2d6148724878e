// Sequences one behind the other: text, shapes and buffers.
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s -one-shot-bufferize | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: @forward
// CHECK: attn.forward %{{.*}}, %{{.*}}, %{{.*}} mask(causal_bottom_right) ragged(%{{.*}}, %{{.*}}, longest 4000, 5000 : tensor<65xi32>, tensor<65xi32>) : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16> -> tensor<?x32x128xbf16>, tensor<32x?xf32>
// BUFFERS-LABEL: @forward
// BUFFERS: %[[N:.*]] = memref.dim %{{.*}}, %c0
// BUFFERS: memref.alloc(%[[N]]) {{.*}}: memref<?x32x128xbf16>
// BUFFERS: memref.alloc(%{{.*}}) {{.*}}: memref<32x?xf32>
// BUFFERS: attn.forward {{.*}} ragged({{.*}} : memref<65xi32{{.*}}>, memref<65xi32{{.*}}>) outs(
func.func @forward(%q: tensor<?x32x128xbf16>, %k: tensor<?x8x128xbf16>, %v: tensor<?x8x128xbf16>,
                   %cu_q: tensor<65xi32>, %cu_k: tensor<65xi32>)
    -> (tensor<?x32x128xbf16>, tensor<32x?xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right)
      ragged(%cu_q, %cu_k, longest 4000, 5000 : tensor<65xi32>, tensor<65xi32>)
      : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>
     -> tensor<?x32x128xbf16>, tensor<32x?xf32>
  return %o, %lse : tensor<?x32x128xbf16>, tensor<32x?xf32>
}

// CHECK-LABEL: @backward
// CHECK: attn.backward %{{.*}} mask(causal_bottom_right) ragged(%{{.*}}, %{{.*}}, longest 4000, 5000 : tensor<65xi64>, tensor<65xi64>) : tensor<?x32x128xbf16>, tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>, tensor<?x32x128xbf16>, tensor<32x?xf32> -> tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>
// BUFFERS-LABEL: @backward
// BUFFERS: attn.backward {{.*}} ragged({{.*}}) outs(%{{.*}} : memref<?x32x128xbf16{{.*}}>, memref<?x8x128xbf16{{.*}}>, memref<?x8x128xbf16{{.*}}>)
func.func @backward(%do: tensor<?x32x128xbf16>, %q: tensor<?x32x128xbf16>, %k: tensor<?x8x128xbf16>,
                    %v: tensor<?x8x128xbf16>, %o: tensor<?x32x128xbf16>, %lse: tensor<32x?xf32>,
                    %cu_q: tensor<65xi64>, %cu_k: tensor<65xi64>)
    -> (tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse mask(causal_bottom_right)
      ragged(%cu_q, %cu_k, longest 4000, 5000 : tensor<65xi64>, tensor<65xi64>)
      : tensor<?x32x128xbf16>, tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>, tensor<?x32x128xbf16>, tensor<32x?xf32>
     -> tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>
  return %dq, %dk, %dv : tensor<?x32x128xbf16>, tensor<?x8x128xbf16>, tensor<?x8x128xbf16>
}

// One value has one diagonal, so causal is clear.
// CHECK-LABEL: @causal
// CHECK: attn.forward {{.*}} mask(causal) ragged(%[[CU:.*]], %[[CU]], longest 10, 10 : tensor<?xi64>, tensor<?xi64>)
func.func @causal(%q: tensor<?x2x8xf16>, %cu: tensor<?xi64>) -> tensor<?x2x8xf16> {
  %o = attn.forward %q, %q, %q mask(causal) ragged(%cu, %cu, longest 10, 10 : tensor<?xi64>, tensor<?xi64>)
      : tensor<?x2x8xf16>, tensor<?x2x8xf16>, tensor<?x2x8xf16> -> tensor<?x2x8xf16>
  return %o : tensor<?x2x8xf16>
}

// Queries alone are ragged on a cache.
// CHECK-LABEL: @cache
// CHECK: attn.forward {{.*}} mask(causal_bottom_right) ragged(%{{.*}}, longest 512 : tensor<9xi32>) lengths(k %{{.*}} : tensor<8xi64>) : tensor<?x4x64xf16>, tensor<8x2x300x64xf16>, tensor<8x2x300x64xf16> -> tensor<?x4x64xf16>, tensor<4x?xf32>
// BUFFERS-LABEL: @cache
// BUFFERS: memref.alloc(%{{.*}}) {{.*}}: memref<?x4x64xf16>
// BUFFERS: memref.alloc(%{{.*}}) {{.*}}: memref<4x?xf32>
func.func @cache(%q: tensor<?x4x64xf16>, %k: tensor<8x2x300x64xf16>, %v: tensor<8x2x300x64xf16>,
                 %cu: tensor<9xi32>, %used: tensor<8xi64>) -> (tensor<?x4x64xf16>, tensor<4x?xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right)
      ragged(%cu, longest 512 : tensor<9xi32>) lengths(k %used : tensor<8xi64>)
      : tensor<?x4x64xf16>, tensor<8x2x300x64xf16>, tensor<8x2x300x64xf16> -> tensor<?x4x64xf16>, tensor<4x?xf32>
  return %o, %lse : tensor<?x4x64xf16>, tensor<4x?xf32>
}

// CHECK-LABEL: @pages
// CHECK: attn.forward {{.*}} ragged(%{{.*}}, longest 1 : tensor<?xi64>) lengths(k %{{.*}} : tensor<?xi32>) pages(%{{.*}} : tensor<?x20xi32>)
func.func @pages(%q: tensor<?x4x64xf16>, %k: tensor<?x2x16x64xf16>, %cu: tensor<?xi64>, %used: tensor<?xi32>,
                 %table: tensor<?x20xi32>) -> tensor<?x4x64xf16> {
  %o = attn.forward %q, %k, %k ragged(%cu, longest 1 : tensor<?xi64>)
      lengths(k %used : tensor<?xi32>) pages(%table : tensor<?x20xi32>)
      : tensor<?x4x64xf16>, tensor<?x2x16x64xf16>, tensor<?x2x16x64xf16> -> tensor<?x4x64xf16>
  return %o : tensor<?x4x64xf16>
}
