// More heads and batch entries than 65535, which is what CUDA allows along the
// second and third dimension of a grid: they are in the first.
// RUN: attn-opt %s -attn-to-tile=machine=h100_sxm | FileCheck %s
// RUN: attn-opt %s -attn-to-tile=machine=a100_80g | FileCheck %s
// RUN: attn-opt %s -attn-to-tile="machine=h100_sxm schedule=flash,stages=1,warps=4" | FileCheck %s --check-prefix=SYNC

// CHECK-LABEL: func.func @windows_of_an_image
// CHECK: tile.launch {{.*}} grid(%{{[a-z0-9]*}}, %c1{{[_0-9]*}}, %c1{{[_0-9]*}})
// CHECK-LABEL: func.func @their_gradients
// CHECK-COUNT-2: tile.launch {{.*}} grid(%{{[a-z0-9]*}}, %c1{{[_0-9]*}}, %c1{{[_0-9]*}})
// CHECK-LABEL: func.func @split_again
// SYNC-LABEL: func.func @windows_of_an_image
// SYNC: tile.launch {{.*}}mma_sync{{.*}} grid(%c196608, %c1, %c1)
func.func @windows_of_an_image(%q: tensor<65536x3x49x32xbf16>, %k: tensor<65536x3x49x32xbf16>,
    %v: tensor<65536x3x49x32xbf16>) -> (tensor<65536x3x49x32xbf16>, tensor<65536x3x49xf32>) {
  %o, %lse = attn.forward %q, %k, %v : tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>
    -> tensor<65536x3x49x32xbf16>, tensor<65536x3x49xf32>
  return %o, %lse : tensor<65536x3x49x32xbf16>, tensor<65536x3x49xf32>
}

func.func @their_gradients(%do: tensor<65536x3x49x32xbf16>, %q: tensor<65536x3x49x32xbf16>,
    %k: tensor<65536x3x49x32xbf16>, %v: tensor<65536x3x49x32xbf16>,
    %o: tensor<65536x3x49x32xbf16>, %lse: tensor<65536x3x49xf32>)
    -> (tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse
    : tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>,
      tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>, tensor<65536x3x49xf32>
    -> tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>
  return %dq, %dk, %dv : tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>, tensor<65536x3x49x32xbf16>
}

// Heads of few rows, whose dQ fits memory; a representative of 8 x 4096 rows
// would need 87 GB for it, and asks nobody.
func.func @split_again(%do: memref<?x10000x?x64xf32>, %q: memref<?x10000x?x64xf32>,
    %k: memref<?x10000x?x64xf32>, %v: memref<?x10000x?x64xf32>,
    %o: memref<?x10000x?x64xf32>, %lse: memref<?x10000x?xf32>,
    %dq: memref<?x10000x?x64xf32>, %dk: memref<?x10000x?x64xf32>, %dv: memref<?x10000x?x64xf32>) {
  attn.backward %do, %q, %k, %v, %o, %lse
    outs(%dq, %dk, %dv : memref<?x10000x?x64xf32>, memref<?x10000x?x64xf32>, memref<?x10000x?x64xf32>)
    : memref<?x10000x?x64xf32>, memref<?x10000x?x64xf32>, memref<?x10000x?x64xf32>,
      memref<?x10000x?x64xf32>, memref<?x10000x?x64xf32>, memref<?x10000x?xf32>
  return
}
