// Tensor maps and counters on the host, and that upstream's lowering takes them.
// RUN: attn-opt %s -convert-tile-to-nvvm | FileCheck %s
// RUN: attn-opt %s -convert-tile-to-nvvm > %t
// RUN: mlir-opt %t -convert-scf-to-cf -gpu-to-llvm | FileCheck %s --check-prefix=UPSTREAM

// CHECK: llvm.func @attn_encode_tensor_map(!llvm.ptr, i32, i64, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
// CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %{{.*}}: !llvm.ptr<1>,
// CHECK-LABEL: func.func @host(
// CHECK-SAME: %[[X:[^:]*]]: index, %[[Q:[^:]*]]: memref<2x8x?x96xbf16, strided<[?, ?, ?, 1], offset: ?>>, %[[O:[^:]*]]: memref
module {
  gpu.module @kernels {
    tile.kernel @kernel(%q: !tile.tensor_map<128x96xbf16>, %c: !tile.ptr<i32>,
                        %o: !tile.tensor_map<64x64xf8E4M3FN>)
        attributes {warps = 12 : i32} {
      tile.return
    }
  }
  func.func @host(%x: index, %q: memref<2x8x?x96xbf16, strided<[?, ?, ?, 1], offset: ?>>, %o: memref<1x1x40x64xf8E4M3FN>) {
    // CHECK: %[[BEGIN:.*]] = gpu.wait async
    // CHECK: %[[COUNTER:.*]], %[[THERE:.*]] = gpu.alloc async [%[[BEGIN]]] () : memref<1xi32>
    // CHECK: %[[ZERO:.*]] = gpu.memset async [%[[THERE]]] %[[COUNTER]], %c0{{.*}} : memref<1xi32>, i32
    // CHECK: gpu.wait [%[[ZERO]]]
    %c = tile.counter : memref<1xi32>
    // The address of element zero, sizes and strides in elements.
    // CHECK: %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[Q]]
    // CHECK: %[[START:.*]] = memref.extract_aligned_pointer_as_index %[[Q]]
    // CHECK: %[[TWO:.*]] = arith.constant 2 : index
    // CHECK: %[[BYTES:.*]] = arith.muli %[[OFFSET]], %[[TWO]]
    // CHECK: %[[SUM:.*]] = arith.addi %[[START]], %[[BYTES]]
    // CHECK: %[[ADDRESS:.*]] = arith.index_cast %[[SUM]] : index to i64
    // CHECK: %[[BATCH:.*]] = arith.index_cast %[[SIZES]]#0
    // CHECK: llvm.insertvalue %[[BATCH]], %{{.*}}[0]
    // CHECK: %[[COLUMNS:.*]] = arith.index_cast %[[SIZES]]#3
    // CHECK: %[[ALLSIZES:.*]] = llvm.insertvalue %[[COLUMNS]], %{{.*}}[3]
    // CHECK: %[[SIZEPLACE:.*]] = llvm.alloca %{{.*}} x !llvm.array<4 x i64>
    // CHECK: llvm.store %[[ALLSIZES]], %[[SIZEPLACE]]
    // CHECK: %[[INNERMOST:.*]] = arith.index_cast %[[STRIDES]]#3
    // CHECK: %[[ALLSTRIDES:.*]] = llvm.insertvalue %[[INNERMOST]], %{{.*}}[3]
    // CHECK: %[[STRIDEPLACE:.*]] = llvm.alloca %{{.*}} x !llvm.array<4 x i64>
    // CHECK: llvm.store %[[ALLSTRIDES]], %[[STRIDEPLACE]]
    // CHECK-DAG: %[[BF16:.*]] = arith.constant 0 : i32
    // CHECK-DAG: %[[ROWS:.*]] = arith.constant 128 : i32
    // CHECK: %[[PLACE:.*]] = llvm.alloca %{{.*}} x !llvm.array<16 x i64> {alignment = 64 : i64}
    // CHECK: %[[NULL:.*]] = llvm.mlir.zero
    // CHECK: %[[CODE:.*]] = llvm.call @attn_encode_tensor_map(%[[PLACE]], %[[BF16]], %[[ADDRESS]], %[[SIZEPLACE]], %[[STRIDEPLACE]], %[[ROWS]], %[[NULL]])
    // CHECK: %[[OK:.*]] = arith.cmpi eq, %[[CODE]], %
    // CHECK: cf.assert %[[OK]], "expects an array that has a tensor map"
    // CHECK: %[[MAP:.*]] = llvm.load %[[PLACE]] : !llvm.ptr -> !llvm.array<16 x i64>
    // CHECK: %[[F8:.*]] = arith.constant 2 : i32
    // CHECK: llvm.call @attn_encode_tensor_map(%{{.*}}, %[[F8]],
    // CHECK: gpu.launch_func @kernels::@kernel
    // CHECK-SAME: args(%[[MAP]] : !llvm.array<16 x i64>, %{{.*}} : !llvm.ptr<1>, %{{.*}} : !llvm.array<16 x i64>)
    // CHECK: %[[END:.*]] = gpu.wait async
    // CHECK: %[[FREE:.*]] = gpu.dealloc async [%[[END]]] %[[COUNTER]]
    // CHECK: gpu.wait [%[[FREE]]]
    tile.launch @kernels::@kernel grid(%x, %x, %x) args(%q, %c, %o)
        : memref<2x8x?x96xbf16, strided<[?, ?, ?, 1], offset: ?>>, memref<1xi32>, memref<1x1x40x64xf8E4M3FN>
    return
  }

  // Launches in rounds share maps of the same arrays: they are made once.
  // CHECK-LABEL: func.func @rounds(
  // CHECK-COUNT-2: llvm.call @attn_encode_tensor_map(
  // CHECK: scf.for
  // CHECK-NEXT: scf.for
  // CHECK-NOT: llvm.alloca
  // CHECK: gpu.launch_func @kernels::@kernel
  // CHECK: gpu.dealloc
  func.func @rounds(%n: index, %q: memref<2x8x4x96xbf16>, %o: memref<1x1x40x64xf8E4M3FN>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c = tile.counter : memref<1xi32>
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        tile.launch @kernels::@kernel grid(%c1, %c1, %c1) args(%q, %c, %o)
            : memref<2x8x4x96xbf16>, memref<1xi32>, memref<1x1x40x64xf8E4M3FN>
      }
    }
    return
  }
}

// UPSTREAM-LABEL: llvm.func @host
// UPSTREAM: llvm.call @mgpuMemset32
// UPSTREAM: gpu.launch_func {{.*}} args(%{{.*}} : !llvm.array<16 x i64>, %{{.*}} : !llvm.ptr<1>, %{{.*}} : !llvm.array<16 x i64>)
// UPSTREAM: llvm.call @mgpuMemFree
