// Fragments: ldmatrix, mma.sync, conversions, stores to shared memory.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// One ldmatrix loads 16 x 16 elements.  Rows of 32 bf16 are 96 bytes apart, so
// 16 rows down are 1536 bytes and 16 columns to the right are 32.
// CHECK-LABEL: llvm.func @lhs
// CHECK: nvvm.ldmatrix %[[FIRST:.*]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK: %[[DOWN:.*]] = llvm.getelementptr %[[FIRST]][1536]
// CHECK: nvvm.ldmatrix %[[DOWN]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK-NOT: nvvm.ldmatrix
// Rows of the right operand run along k: the instruction transposes.
// CHECK-LABEL: llvm.func @rhs
// CHECK: nvvm.ldmatrix %[[FIRST:.*]] {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK: %[[RIGHT:.*]] = llvm.getelementptr %[[FIRST]][32]
// CHECK: nvvm.ldmatrix %[[RIGHT]] {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK-NOT: nvvm.ldmatrix
// The transpose of a part is what ldmatrix gives without transposing; the
// next columns of the fragment are the next rows of the buffer.
// CHECK-LABEL: llvm.func @transposed
// CHECK: nvvm.ldmatrix %[[FIRST:.*]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK: %[[DOWN:.*]] = llvm.getelementptr %[[FIRST]][1536]
// CHECK: nvvm.ldmatrix %[[DOWN]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK-NOT: nvvm.ldmatrix
// So is that of a left operand, whose rows then run along k: the instruction
// transposes; 16 rows of the fragment are columns of the buffer.  Matrix 1 is 8
// columns to the right, matrix 2 is 8 rows down; rows 4 to 7 of eight swap what
// is right.
// CHECK-LABEL: llvm.func @transposed_lhs
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[DOWN:.*]] = arith.shrui %[[LANE]], %c4_i32
// CHECK: arith.muli %[[DOWN]], %c8_i32
// CHECK: %[[MATRIX:.*]] = arith.muli %[[LANE]], %c2_i32
// CHECK: %[[ROW:.*]] = arith.muli %[[LANE]], %c4_i32
// CHECK: %[[EITHER:.*]] = arith.xori %[[MATRIX]], %[[ROW]]
// CHECK: arith.andi %[[EITHER]], %c16_i32
// CHECK: nvvm.ldmatrix %[[FIRST:.*]] {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[FIRST]][32]
// CHECK: nvvm.ldmatrix %[[NEXT]] {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK-NOT: nvvm.ldmatrix
// What is known of the place is an immediate: stage 1 is 3072 bytes, row 16
// 1536, column 16 32.
// CHECK-LABEL: llvm.func @place
// CHECK: llvm.getelementptr %{{.*}}[4640]
// CHECK: nvvm.ldmatrix
// Rows that stagger are an odd number of 16 bytes apart, 80 instead of 96, and
// nothing in them is swapped.
// CHECK-LABEL: llvm.func @staggered
// CHECK-NOT: arith.xori
// CHECK: nvvm.ldmatrix %[[FIRST:.*]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK: %[[DOWN:.*]] = llvm.getelementptr %[[FIRST]][1280]
// CHECK: nvvm.ldmatrix %[[DOWN]] {{{.*}}layout = #nvvm.mma_layout<row>, num = 4 : i32
// CHECK-NOT: nvvm.ldmatrix
gpu.module @loads {
  tile.kernel @lhs(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <2x32x32xbf16>
    %f = tile.load_matrix %b[%n, %n, %n] : <2x32x32xbf16> -> <32x16xbf16, lhs>
    tile.return
  }
  tile.kernel @rhs(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <2x32x32xbf16>
    %f = tile.load_matrix %b[%n, %n, %n] : <2x32x32xbf16> -> <16x32xbf16, rhs>
    tile.return
  }
  tile.kernel @transposed(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <2x32x32xbf16>
    %f = tile.load_matrix %b[%n, %n, %n] transpose : <2x32x32xbf16> -> <16x32xbf16, rhs>
    tile.return
  }
  tile.kernel @transposed_lhs(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <2x32x32xbf16>
    %f = tile.load_matrix %b[%n, %n, %n] transpose : <2x32x32xbf16> -> <32x16xbf16, lhs>
    tile.return
  }
  tile.kernel @place() attributes {warps = 1 : i32} {
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %b = tile.alloc "b" : <2x32x32xbf16>
    %f = tile.load_matrix %b[%c1, %c16, %c16] : <2x32x32xbf16> -> <16x16xbf16, lhs>
    tile.return
  }
  tile.kernel @staggered(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <2x32x32xbf16, staggered>
    %f = tile.load_matrix %b[%n, %n, %n] : <2x32x32xbf16, staggered> -> <32x16xbf16, lhs>
    tile.return
  }
}

// -----

// The left operand, 32 x 32, is loaded as (0, 0), (0, 16), (16, 0), (16, 16), the
// right as (0, 0), (16, 0), of which registers 0 and 1 are columns 0 .. 7.  Two
// steps of k chain through the accumulator.
// CHECK-LABEL: llvm.func @multiply
// CHECK: %[[A00:.*]] = nvvm.ldmatrix %[[A:[0-9]+]]
// CHECK: %[[X00:.*]] = llvm.extractvalue %[[A00]][0]
// CHECK: llvm.getelementptr %[[A]][32]
// CHECK: %[[A01:.*]] = nvvm.ldmatrix
// CHECK: %[[X01:.*]] = llvm.extractvalue %[[A01]][0]
// CHECK: llvm.getelementptr %[[A]][1536]
// CHECK: %[[A10:.*]] = nvvm.ldmatrix
// CHECK: %[[X10:.*]] = llvm.extractvalue %[[A10]][0]
// CHECK: llvm.getelementptr %[[A]][1568]
// CHECK: %[[A11:.*]] = nvvm.ldmatrix
// CHECK: %[[X11:.*]] = llvm.extractvalue %[[A11]][0]
// CHECK: %[[B0:.*]] = nvvm.ldmatrix %[[B:[0-9]+]]
// CHECK: %[[Y00:.*]] = llvm.extractvalue %[[B0]][0]
// CHECK: %[[Y01:.*]] = llvm.extractvalue %[[B0]][2]
// CHECK: llvm.getelementptr %[[B]][1536]
// CHECK: %[[B1:.*]] = nvvm.ldmatrix
// CHECK: %[[Y10:.*]] = llvm.extractvalue %[[B1]][0]
// CHECK: %[[Y11:.*]] = llvm.extractvalue %[[B1]][2]
// CHECK-DAG: %[[C00:.*]] = nvvm.mma.sync A[%[[X00]], {{.*}} B[%[[Y00]], {{.*}}layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-DAG: %[[R00:.*]] = llvm.extractvalue %[[C00]][0]
// CHECK-DAG: nvvm.mma.sync A[%[[X01]], {{.*}} B[%[[Y10]], {{.*}} C[%[[R00]],
// CHECK-DAG: %[[C01:.*]] = nvvm.mma.sync A[%[[X00]], {{.*}} B[%[[Y01]],
// CHECK-DAG: %[[R01:.*]] = llvm.extractvalue %[[C01]][0]
// CHECK-DAG: nvvm.mma.sync A[%[[X01]], {{.*}} B[%[[Y11]], {{.*}} C[%[[R01]],
// CHECK-DAG: %[[C10:.*]] = nvvm.mma.sync A[%[[X10]], {{.*}} B[%[[Y00]],
// CHECK-DAG: %[[R10:.*]] = llvm.extractvalue %[[C10]][0]
// CHECK-DAG: nvvm.mma.sync A[%[[X11]], {{.*}} B[%[[Y10]], {{.*}} C[%[[R10]],
// CHECK-DAG: %[[C11:.*]] = nvvm.mma.sync A[%[[X10]], {{.*}} B[%[[Y01]],
// CHECK-DAG: %[[R11:.*]] = llvm.extractvalue %[[C11]][0]
// CHECK-DAG: nvvm.mma.sync A[%[[X11]], {{.*}} B[%[[Y11]], {{.*}} C[%[[R11]],
// CHECK-NOT: nvvm.mma.sync
// CHECK-LABEL: llvm.func @halves
// CHECK: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
gpu.module @products {
  tile.kernel @multiply(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <32x32xbf16>
    %l = tile.load_matrix %b[%n, %n, %n] : <32x32xbf16> -> <32x32xbf16, lhs>
    %r = tile.load_matrix %b[%n, %n, %n] : <32x32xbf16> -> <32x16xbf16, rhs>
    %c = tile.fill %x : f32 -> !tile.frag<32x16xf32, acc>
    %d = tile.mma %l, %r, %c : <32x32xbf16, lhs>, <32x16xbf16, rhs>, <32x16xf32, acc>
    tile.store_matrix %d to %b[%n] : <32x16xf32, acc> to <32x32xbf16>
    tile.return
  }
  tile.kernel @halves(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf16>
    %l = tile.load_matrix %b[%n, %n, %n] : <16x16xf16> -> <16x16xf16, lhs>
    %r = tile.load_matrix %b[%n, %n, %n] : <16x16xf16> -> <16x16xf16, rhs>
    %c = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %d = tile.mma %l, %r, %c : <16x16xf16, lhs>, <16x16xf16, rhs>, <16x16xf32, acc>
    tile.store_matrix %d to %b[%n] : <16x16xf32, acc> to <16x16xf16>
    tile.return
  }
}

// -----

// Registers 0 and 1 are columns c and c + 1 of row r, 2 and 3 of row r + 8,
// which lies 8 * 96 = 768 bytes further; the next piece lies 16 bytes on, or in
// rows 4 to 7 of eight before.
// CHECK-LABEL: llvm.func @store
// CHECK: %[[SHIFT:.*]] = arith.muli %{{.*}}, %c16_i32
// CHECK: arith.addi %[[PLACE:.*]], %[[SHIFT]]
// CHECK: arith.subi %[[PLACE]], %[[SHIFT]]
// CHECK: %[[A:.*]] = llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xf16>
// CHECK: %[[PAIR:.*]] = llvm.bitcast %[[A]] : vector<2xf16> to i32
// CHECK: llvm.store %[[PAIR]], %[[AT:.*]] {alignment = 4 : i64} : i32, !llvm.ptr<3>
// CHECK: %[[DOWN:.*]] = llvm.getelementptr %[[AT]][768]
// CHECK: llvm.store %{{.*}}, %[[DOWN]] {alignment = 4 : i64}
// CHECK: %[[RIGHT:.*]] = llvm.getelementptr %[[ODD:.*]][16]
// CHECK: llvm.store %{{.*}}, %[[RIGHT]] {alignment = 4 : i64}
// CHECK: %[[BOTH:.*]] = llvm.getelementptr %[[ODD]][784]
// CHECK: llvm.store %{{.*}}, %[[BOTH]] {alignment = 4 : i64}
// CHECK-NOT: llvm.store
gpu.module @stores {
  tile.kernel @store(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x32xf16>
    %f = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    tile.store_matrix %f to %b[%n] : <16x16xf32, acc> to <16x32xf16>
    tile.return
  }
}

// -----

// stmatrix puts 16 x 16 elements into a swizzled buffer: lane l addresses row
// l % 8 (+ 8 for odd l / 8) of 128 bytes, and there the piece of 16 bytes whose
// number is that of the columns, l / 16, exclusive-or row % 8.  Pieces 2, 4, 6 of
// a panel differ in those bits; the second panel lies 16 * 128 bytes further.
// CHECK-LABEL: llvm.func @swizzled(
// CHECK-SAME: %[[ROW:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[ROW8:.*]] = arith.andi %[[LANE]], %c7_i32
// CHECK: %[[MATRIX:.*]] = arith.shrui %[[LANE]], %c3_i32
// CHECK: %[[ODD:.*]] = arith.andi %[[MATRIX]], %c1_i32
// CHECK: %[[DOWN:.*]] = arith.muli %[[ODD]], %c8_i32
// CHECK: %[[RIGHT:.*]] = arith.shrui %[[MATRIX]], %c1_i32
// CHECK: %[[R:.*]] = arith.addi %[[ROW]], %[[ROW8]]
// CHECK: %[[R8:.*]] = arith.addi %[[R]], %[[DOWN]]
// CHECK: %[[BYTES:.*]] = arith.muli %[[R8]], %c128_i32
// CHECK: %[[START:.*]] = arith.addi %[[BASE]], %[[BYTES]]
// CHECK: %[[TWIST:.*]] = arith.xori %[[RIGHT]], %[[ROW8]]
// CHECK: %[[LEFT:.*]] = arith.muli %[[TWIST]], %c16_i32
// CHECK: %[[AT:.*]] = arith.addi %[[START]], %[[LEFT]]
// CHECK: %[[P0:.*]] = llvm.inttoptr %[[AT]]
// CHECK: nvvm.stmatrix %[[P0]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>}
// CHECK: %[[T2:.*]] = arith.xori %[[TWIST]], %c2_i32
// CHECK: arith.muli %[[T2]], %c16_i32
// CHECK: %[[P2:.*]] = llvm.inttoptr
// CHECK: nvvm.stmatrix %[[P2]],
// CHECK: arith.xori %[[TWIST]], %c4_i32
// CHECK: nvvm.stmatrix
// CHECK: arith.xori %[[TWIST]], %c6_i32
// CHECK: nvvm.stmatrix
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[P0]][2048]
// CHECK-NEXT: nvvm.stmatrix %[[NEXT]],
// CHECK-NOT: nvvm.stmatrix
// The matrices of an instruction: columns 0 of rows 0 and 8, columns 8 of both.
// Eight columns that are left over are two matrices.
// CHECK-LABEL: llvm.func @swizzled_rest(
// CHECK: %[[C0:.*]] = llvm.bitcast %{{.*}} : vector<2xf16> to i32
// CHECK: %[[C8:.*]] = llvm.bitcast %{{.*}} : vector<2xf16> to i32
// CHECK: nvvm.stmatrix %{{.*}}, %[[C0]], %[[C0]], %[[C8]], %[[C8]] {
// CHECK: %[[C16:.*]] = llvm.bitcast %{{.*}} : vector<2xf16> to i32
// CHECK: nvvm.stmatrix %{{.*}}, %[[C16]], %[[C16]] {
// CHECK-NOT: nvvm.stmatrix
gpu.module @stores {
  tile.kernel @swizzled(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x128xf16, sw128>
    %f = tile.fill %x : f32 -> !tile.frag<16x80xf32, acc>
    tile.store_matrix %f to %b[%n] : <16x80xf32, acc> to <16x128xf16, sw128>
    tile.return
  }
  tile.kernel @swizzled_rest(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x32xf16, sw128>
    %f = tile.map -> !tile.frag<16x24xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %v = arith.sitofp %column : i32 to f32
      tile.yield %v : f32
    }
    tile.store_matrix %f to %b[%n] : <16x24xf32, acc> to <16x32xf16, sw128>
    tile.return
  }
}

// -----

// The transpose of 16 x 32: lane l has the address of row l % 8 + 8 (l / 16) of
// the buffer, and of the piece of eight columns number column / 8 + l / 8 % 2,
// which lies where the row puts it.  The next 16 columns of the fragment are 16
// rows further, 2048 bytes.
// CHECK-LABEL: llvm.func @transposed(
// CHECK-SAME: %[[STAGE:[^:]*]]: i32, %[[ROW:[^:]*]]: i32, %[[COLUMN:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[P0:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
// CHECK: %[[P8:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
// CHECK: %[[P16:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
// CHECK: %[[P24:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
// CHECK: %[[MATRIX:.*]] = arith.shrui %[[LANE]], %c3_i32
// CHECK: %[[RIGHT:.*]] = arith.andi %[[MATRIX]], %c1_i32
// CHECK: %[[DOWN:.*]] = arith.shrui %[[MATRIX]], %c1_i32
// CHECK: %[[ROW8:.*]] = arith.andi %[[LANE]], %c7_i32
// CHECK: %[[DOWN8:.*]] = arith.muli %[[DOWN]], %c8_i32
// CHECK: %[[OWN:.*]] = arith.addi %[[ROW8]], %[[DOWN8]]
// CHECK: %[[LINE:.*]] = arith.addi %[[ROW]], %[[OWN]]
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c16384_i32
// CHECK: %[[START:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[BYTES:.*]] = arith.muli %[[LINE]], %c128_i32
// CHECK: %[[FIRST:.*]] = arith.addi %[[START]], %[[BYTES]]
// CHECK: %[[EIGHTS:.*]] = arith.divui %[[COLUMN]], %c8_i32
// CHECK: %[[PIECE:.*]] = arith.addi %[[EIGHTS]], %[[RIGHT]]
// CHECK: %[[INPANEL:.*]] = arith.remui %[[PIECE]], %c8_i32
// CHECK: %[[PLACE:.*]] = arith.xori %[[INPANEL]], %[[ROW8]]
// CHECK: %[[PANEL:.*]] = arith.divui %[[PIECE]], %c8_i32
// CHECK: %[[PANELS:.*]] = arith.muli %[[PANEL]], %c8192_i32
// CHECK: %[[PLACES:.*]] = arith.muli %[[PLACE]], %c16_i32
// CHECK: %[[INROW:.*]] = arith.addi %[[PANELS]], %[[PLACES]]
// CHECK: %[[ADDRESS:.*]] = arith.addi %[[FIRST]], %[[INROW]]
// CHECK: %[[OPAQUE:.*]] = llvm.inline_asm{{.*}} %[[ADDRESS]]
// CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[OPAQUE]]
// CHECK-NEXT: nvvm.stmatrix %[[POINTER]], %[[P0]], %[[P0]], %[[P8]], %[[P8]] {{.*}}mma_layout<col>
// CHECK-NEXT: %[[NEXT:.*]] = llvm.getelementptr %[[POINTER]][2048]
// CHECK-NEXT: nvvm.stmatrix %[[NEXT]], %[[P16]], %[[P16]], %[[P24]], %[[P24]] {{.*}}mma_layout<col>
// CHECK-NOT: nvvm.stmatrix
// Padded rows take 288 bytes here; the lower 16 rows of the fragment are 16
// columns further.
// CHECK-LABEL: llvm.func @transposed_padded(
// CHECK: nvvm.stmatrix %[[LEFT:[0-9]+]], {{.*}}mma_layout<col>
// CHECK: llvm.getelementptr %[[LEFT]][4608]
// CHECK-NEXT: nvvm.stmatrix
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %c16_i32
// CHECK: nvvm.stmatrix %[[RIGHT:[0-9]+]], {{.*}}mma_layout<col>
// CHECK: llvm.getelementptr %[[RIGHT]][4608]
// CHECK-NEXT: nvvm.stmatrix
// CHECK-NOT: nvvm.stmatrix
gpu.module @stores {
  tile.kernel @transposed(%stage: i32, %row: i32, %column: i32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <2x64x128xbf16, sw128>
    %v = tile.map -> !tile.frag<16x32xf32, acc> {
    ^bb0(%i: i32, %j: i32):
      %y = arith.sitofp %j : i32 to f32
      tile.yield %y : f32
    }
    %f = tile.cast %v : <16x32xf32, acc> -> <16x32xbf16, lhs>
    tile.store_transposed %f to %s[%stage, %row, %column] : <16x32xbf16, lhs> to <2x64x128xbf16, sw128>
    tile.return
  }
  tile.kernel @transposed_padded(%stage: i32, %row: i32, %column: i32, %x: f32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <2x64x128xbf16>
    %v = tile.fill %x : f32 -> !tile.frag<32x32xf32, acc>
    %f = tile.cast %v : <32x32xf32, acc> -> <32x32xbf16, lhs>
    tile.store_transposed %f to %s[%stage, %row, %column] : <32x32xbf16, lhs> to <2x64x128xbf16>
    tile.return
  }
}

// -----

// A stage of 2048 bytes in panels, of 512 padded.
// CHECK-LABEL: llvm.func @stages(
// CHECK-SAME: %[[STAGE:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c2048_i32
// CHECK: %[[START:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[ROW:.*]] = arith.addi %[[START]],
// CHECK: nvvm.stmatrix
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c512_i32
// CHECK: %[[START:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
// CHECK: %[[ROW:.*]] = arith.addi %[[START]],
// CHECK: llvm.store
gpu.module @stores {
  tile.kernel @stages(%stage: i32, %row: i32, %x: f32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <2x16x16xbf16, sw128>
    %t = tile.alloc "t" : <2x16x16xbf16>
    %v = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    tile.store_matrix %v to %s[%row] stage(%stage) : <16x16xf32, acc> to <2x16x16xbf16, sw128>
    tile.store_matrix %v to %t[%row] stage(%stage) : <16x16xf32, acc> to <2x16x16xbf16>
    tile.return
  }
}

// -----

// A cast rounds pairs that lie side by side already, and extracting selects
// registers, as joining puts them in order: the last 16 of 32 columns, which come
// before the others and are taken again, are the pieces of columns 16 and 24.
// The two pieces along n of the right operand are the halves of one ldmatrix.
// CHECK-LABEL: llvm.func @weights
// CHECK-DAG: %[[C16:.*]] = arith.constant 1.600000e+01 : f32
// CHECK-DAG: %[[C17:.*]] = arith.constant 1.700000e+01 : f32
// CHECK-DAG: %[[C24:.*]] = arith.constant 2.400000e+01 : f32
// CHECK-DAG: %[[C25:.*]] = arith.constant 2.500000e+01 : f32
// CHECK: %[[B:.*]] = nvvm.ldmatrix
// CHECK-DAG: %[[B0:.*]] = llvm.extractvalue %[[B]][0]
// CHECK-DAG: %[[B1:.*]] = llvm.extractvalue %[[B]][1]
// CHECK-DAG: %[[B2:.*]] = llvm.extractvalue %[[B]][2]
// CHECK-DAG: %[[B3:.*]] = llvm.extractvalue %[[B]][3]
// CHECK: %[[X:.*]] = arith.sitofp
// CHECK: %[[X16:.*]] = arith.addf %[[X]], %[[C16]]
// CHECK: %[[X17:.*]] = arith.addf %[[X]], %[[C17]]
// CHECK: %[[X24:.*]] = arith.addf %[[X]], %[[C24]]
// CHECK: %[[X25:.*]] = arith.addf %[[X]], %[[C25]]
// CHECK: %[[LOW:.*]] = llvm.insertelement %[[X16]], %{{.*}}[%c0_i32
// CHECK: %[[BOTH:.*]] = llvm.insertelement %[[X17]], %[[LOW]][%c1_i32
// CHECK: %[[ROUNDED:.*]] = llvm.fptrunc %[[BOTH]] : vector<2xf32> to vector<2xbf16>
// CHECK: %[[P16:.*]] = llvm.bitcast %[[ROUNDED]]
// CHECK: %[[LOW2:.*]] = llvm.insertelement %[[X24]], %{{.*}}[%c0_i32
// CHECK: %[[BOTH2:.*]] = llvm.insertelement %[[X25]], %[[LOW2]][%c1_i32
// CHECK: %[[ROUNDED2:.*]] = llvm.fptrunc %[[BOTH2]] : vector<2xf32> to vector<2xbf16>
// CHECK: %[[P24:.*]] = llvm.bitcast %[[ROUNDED2]]
// CHECK: nvvm.mma.sync A[%[[P16]], %[[P16]], %[[P24]], %[[P24]]] B[%[[B0]], %[[B1]]]
// CHECK: nvvm.mma.sync A[%[[P16]], %[[P16]], %[[P24]], %[[P24]]] B[%[[B2]], %[[B3]]]
// CHECK-NOT: nvvm.mma.sync
gpu.module @casts {
  tile.kernel @weights(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <32x32xbf16>
    %r = tile.load_matrix %b[%n, %n, %n] : <32x32xbf16> -> <16x16xbf16, rhs>
    %zero = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %s = tile.map -> !tile.frag<16x32xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %v = arith.sitofp %column : i32 to f32
      tile.yield %v : f32
    }
    %w = tile.cast %s : <16x32xf32, acc> -> <16x32xbf16, lhs>
    %upper = tile.extract %w[16] : <16x32xbf16, lhs> -> <16x16xbf16, lhs>
    %lower = tile.extract %w[0] : <16x32xbf16, lhs> -> <16x16xbf16, lhs>
    %turned = tile.concat %upper, %lower : <16x16xbf16, lhs>, <16x16xbf16, lhs> -> <16x32xbf16, lhs>
    %l = tile.extract %turned[0] : <16x32xbf16, lhs> -> <16x16xbf16, lhs>
    %d = tile.mma %l, %r, %zero : <16x16xbf16, lhs>, <16x16xbf16, rhs>, <16x16xf32, acc>
    tile.return
  }
}
