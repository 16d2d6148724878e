// Factors of 32 bits: which lane gets what, and how tf32 is made of f32.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse | FileCheck %s

// A row of an 8 x 8 matrix of 16-bit elements is one of four f32, of which a
// lane gets one: ldmatrix loads 16 x 8.  Rows of 16 f32 are 80 bytes apart, so
// 8 columns to the right are 32 bytes and 16 rows down 1280.
// CHECK-LABEL: llvm.func @rows
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[EIGHTH:.*]] = arith.shrui %[[LANE]], %c3_i32
// CHECK: %[[LOW:.*]] = arith.andi %[[EIGHTH]], %c1_i32
// CHECK: arith.muli %[[LOW]], %c8_i32
// CHECK: %[[RIGHT:.*]] = arith.andi %[[LANE]], %c16_i32
// CHECK: nvvm.ldmatrix %[[FIRST:.*]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK: llvm.getelementptr %[[FIRST]][32]
// CHECK: nvvm.ldmatrix
// CHECK: llvm.getelementptr %[[FIRST]][1280]
// CHECK: nvvm.ldmatrix
// CHECK: llvm.getelementptr %[[FIRST]][1312]
// CHECK: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// Rows along k: first the four columns to the right, then the rows below.
// CHECK-LABEL: llvm.func @transposed
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[HIGH:.*]] = arith.shrui %[[LANE]], %c4_i32
// CHECK: arith.muli %[[HIGH]], %c8_i32
// CHECK: %[[TWICE:.*]] = arith.muli %[[LANE]], %c2_i32
// CHECK: arith.andi %[[TWICE]], %c16_i32
// CHECK: nvvm.ldmatrix %[[FIRST:.*]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK: llvm.getelementptr %[[FIRST]][1280]
// CHECK: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// Rows across k: a lane has rows 2 (l % 4) and the next, 80 bytes further, of
// column l / 4; the next eight columns are 32 bytes further.
// CHECK-LABEL: llvm.func @paired(
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[INQUAD:.*]] = arith.andi %[[LANE]], %c3_i32
// CHECK: %[[QUAD:.*]] = arith.shrui %[[LANE]], %c2_i32
// CHECK: %[[ROW:.*]] = arith.muli %[[INQUAD]], %c160_i32
// CHECK: %[[COLUMN:.*]] = arith.muli %[[QUAD]], %c4_i32
// CHECK: arith.addi %[[ROW]], %[[COLUMN]]
// CHECK: %[[V0:.*]] = llvm.load %[[AT:.*]] {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: llvm.getelementptr %[[AT]][80]
// CHECK: %[[V1:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[AT]][32]
// CHECK: llvm.load
// CHECK: llvm.getelementptr %[[AT]][112]
// CHECK: llvm.load
// CHECK: %[[F0:.*]] = llvm.bitcast %[[V0]] : i32 to f32
// CHECK: %[[F1:.*]] = llvm.bitcast %[[V1]] : i32 to f32
// CHECK: %[[R0:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[F0]])
// CHECK: %[[R1:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[F1]])
// CHECK: nvvm.mma.sync {{.*}} B[%[[R0]], %[[R1]]] {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>, multiplicandBPtxType = #nvvm.mma_type<tf32>, shape = #nvvm.shape<m = 16, n = 8, k = 8>
// Two columns of a row are side by side; row and row + 8 of the first come
// before both of the second.
// CHECK-LABEL: llvm.func @paired_rows(
// CHECK: %[[UPPER:.*]] = llvm.load %[[AT:.*]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: llvm.getelementptr %[[AT]][640]
// CHECK: %[[LOWER:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: %[[U0:.*]] = llvm.extractelement %[[UPPER]][%c0_i32
// CHECK: %[[L0:.*]] = llvm.extractelement %[[LOWER]][%c0_i32
// CHECK: %[[U1:.*]] = llvm.extractelement %[[UPPER]][%c1_i32
// CHECK: %[[L1:.*]] = llvm.extractelement %[[LOWER]][%c1_i32
// CHECK: %[[FU0:.*]] = llvm.bitcast %[[U0]]
// CHECK: %[[FL0:.*]] = llvm.bitcast %[[L0]]
// CHECK: %[[FU1:.*]] = llvm.bitcast %[[U1]]
// CHECK: %[[FL1:.*]] = llvm.bitcast %[[L1]]
// CHECK: %[[A0:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[FU0]])
// CHECK: %[[A1:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[FL0]])
// CHECK: %[[A2:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[FU1]])
// CHECK: %[[A3:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[FL1]])
// CHECK: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]]
// Where rows of the buffer run along k, what was side by side is one below the
// other: 16 columns are 80 bytes, eight of them 32.
// CHECK-LABEL: llvm.func @paired_columns(
// CHECK: %[[L0:.*]] = llvm.load %[[AT:.*]] {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: llvm.getelementptr %[[AT]][32]
// CHECK: %[[L1:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[AT]][80]
// CHECK: %[[L2:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[AT]][112]
// CHECK: %[[L3:.*]] = llvm.load
// CHECK: %[[F0:.*]] = llvm.bitcast %[[L0]]
// CHECK: %[[F1:.*]] = llvm.bitcast %[[L1]]
// CHECK: %[[F2:.*]] = llvm.bitcast %[[L2]]
// CHECK: %[[F3:.*]] = llvm.bitcast %[[L3]]
// CHECK: %[[A0:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[F0]])
// CHECK: %[[A1:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[F1]])
// CHECK: %[[A2:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[F2]])
// CHECK: %[[A3:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[F3]])
// CHECK: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]]
// An accumulator's columns 2c and 2c + 1 are the k of registers 0 and 2.  The
// high part of a number is a product cut off, the low part a difference.
// CHECK-LABEL: llvm.func @product(
// CHECK-DAG: %[[MASK:.*]] = arith.constant -8192 : i32
// CHECK-DAG: %[[FACTOR:.*]] = arith.constant 1.00036621 : f32
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8.000000e+00 : f32
// CHECK-DAG: %[[EVEN:.*]] = arith.muli %{{.*}}, %c2_i32
// CHECK-DAG: %[[R0:.*]] = arith.addi %[[QUAD:.*]], %[[EVEN]]
// CHECK-DAG: %[[X0:.*]] = arith.sitofp %[[R0]]
// CHECK-DAG: %[[X1:.*]] = arith.addf %[[X0]], %[[EIGHT]]
// CHECK: %[[M0:.*]] = arith.mulf %[[X0]], %[[FACTOR]]
// CHECK: %[[B0:.*]] = llvm.bitcast %[[M0]] : f32 to i32
// CHECK: %[[C0:.*]] = arith.andi %[[B0]], %[[MASK]]
// CHECK: %[[H0:.*]] = llvm.bitcast %[[C0]] : i32 to f32
// CHECK: %[[D0:.*]] = arith.subf %[[X0]], %[[H0]]
// CHECK: %[[L0:.*]] = llvm.bitcast %[[D0]] : f32 to i32
// CHECK: %[[M1:.*]] = arith.mulf %[[X1]], %[[FACTOR]]
// CHECK: %[[D1:.*]] = arith.subf %[[X1]],
// CHECK: %[[L1:.*]] = llvm.bitcast %[[D1]] : f32 to i32
// CHECK: nvvm.mma.sync A[%[[L0]], %[[L1]], %{{.*}}, %{{.*}}]
// Stores of two columns are 8 bytes, rows 8 further 640, columns 8 further 32.
// CHECK: llvm.store %{{.*}}, %[[TO:.*]] {alignment = 8 : i64} : vector<2xf32>
// CHECK: llvm.getelementptr %[[TO]][640]
// CHECK: llvm.getelementptr %[[TO]][32]
// CHECK: llvm.getelementptr %[[TO]][672]
gpu.module @single {
  tile.kernel @rows(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <32x16xf32>
    %q = tile.load_matrix %b[%n, %n, %n] : <32x16xf32> -> <32x16xf32, lhs>
    tile.return
  }
  tile.kernel @transposed(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <32x16xf32>
    %k = tile.load_matrix %b[%n, %n, %n] transpose : <32x16xf32> -> <8x32xf32, rhs>
    tile.return
  }
  tile.kernel @paired(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf32>
    %c = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %p = tile.cast %c : <16x16xf32, acc> -> <16x16xtf32, lhs_paired>
    %l = tile.extract %p[0] : <16x16xtf32, lhs_paired> -> <16x8xtf32, lhs_paired>
    %v = tile.load_matrix %b[%n, %n, %n] : <16x16xf32> -> <8x16xf32, rhs_paired>
    %r = tile.cast %v : <8x16xf32, rhs_paired> -> <8x16xtf32, rhs_paired>
    %o = tile.mma %l, %r, %c : <16x8xtf32, lhs_paired>, <8x16xtf32, rhs_paired>, <16x16xf32, acc>
    tile.store_matrix %o to %b[%n] : <16x16xf32, acc> to <16x16xf32>
    tile.return
  }
  tile.kernel @paired_rows(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf32>
    %c = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %p = tile.load_matrix %b[%n, %n, %n] : <16x16xf32> -> <16x8xf32, lhs_paired>
    %l = tile.cast %p : <16x8xf32, lhs_paired> -> <16x8xtf32, lhs_paired>
    %v = tile.load_matrix %b[%n, %n, %n] : <16x16xf32> -> <8x16xf32, rhs_paired>
    %r = tile.cast %v : <8x16xf32, rhs_paired> -> <8x16xtf32, rhs_paired>
    %o = tile.mma %l, %r, %c : <16x8xtf32, lhs_paired>, <8x16xtf32, rhs_paired>, <16x16xf32, acc>
    tile.store_matrix %o to %b[%n] : <16x16xf32, acc> to <16x16xf32>
    tile.return
  }
  tile.kernel @paired_columns(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf32>
    %c = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %p = tile.load_matrix %b[%n, %n, %n] transpose : <16x16xf32> -> <16x8xf32, lhs_paired>
    %l = tile.cast %p : <16x8xf32, lhs_paired> -> <16x8xtf32, lhs_paired>
    %v = tile.load_matrix %b[%n, %n, %n] : <16x16xf32> -> <8x16xf32, rhs_paired>
    %r = tile.cast %v : <8x16xf32, rhs_paired> -> <8x16xtf32, rhs_paired>
    %o = tile.mma %l, %r, %c : <16x8xtf32, lhs_paired>, <8x16xtf32, rhs_paired>, <16x16xf32, acc>
    tile.store_matrix %o to %b[%n] : <16x16xf32, acc> to <16x16xf32>
    tile.return
  }
  tile.kernel @product(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf32>
    %v = tile.load_matrix %b[%n, %n, %n] : <16x16xf32> -> <8x16xf32, rhs_paired>
    %s = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %m = tile.map -> !tile.frag<16x8xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %r = arith.addi %row, %column : i32
      %y = arith.sitofp %r : i32 to f32
      tile.yield %y : f32
    }
    %ph, %pl = tile.split %m : <16x8xf32, acc> -> <16x8xtf32, lhs_paired>
    %vh, %vl = tile.split %v : <8x16xf32, rhs_paired> -> <8x16xtf32, rhs_paired>
    %o = tile.mma %pl, %vh, %s : <16x8xtf32, lhs_paired>, <8x16xtf32, rhs_paired>, <16x16xf32, acc>
    tile.store_matrix %o to %b[%n] : <16x16xf32, acc> to <16x16xf32>
    tile.return
  }
}
