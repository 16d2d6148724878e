// Elementwise functions and row reductions, register by register.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// A lane holds rows l / 4 and + 8, columns 2 (l % 4) and + 1 of every 8.  A row
// operand gives both columns one value.  Of a number that is made of indices one
// conversion serves all elements.
// CHECK-LABEL: llvm.func @indices
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant 8.000000e+00 : f32
// CHECK-DAG: %[[NINE:.*]] = arith.constant 9.000000e+00 : f32
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[ROW:.*]] = arith.shrui %[[LANE]], %c2_i32
// CHECK: %[[QUAD:.*]] = arith.andi %[[LANE]], %c3_i32
// CHECK: %[[COLUMN:.*]] = arith.muli %[[QUAD]], %c2_i32
// CHECK: %[[SUM:.*]] = arith.addi %[[ROW]], %[[COLUMN]] : i32
// CHECK: %[[NUMBER:.*]] = arith.sitofp %[[SUM]]
// CHECK: arith.addf %[[NUMBER]], %[[ONE]]
// CHECK: arith.addf %[[NUMBER]], %[[EIGHT]]
// CHECK: arith.addf %[[NUMBER]], %[[NINE]]
// CHECK-COUNT-2: llvm.fptrunc
// CHECK-NOT: llvm.fptrunc
gpu.module @maps {
  tile.kernel @indices(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf16>
    %f = tile.map -> !tile.frag<16x8xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %s = arith.addi %row, %column : i32
      %v = arith.sitofp %s : i32 to f32
      tile.yield %v : f32
    }
    tile.store_matrix %f to %b[%n] : <16x8xf32, acc> to <16x16xf16>
    tile.return
  }
}

// -----

// A row operand of a fragment: its first register goes with row l / 4, the
// second with the row 8 further down.
// CHECK-LABEL: llvm.func @broadcast
// CHECK: %[[R0:.*]] = arith.sitofp %[[ROW:.*]] : i32 to f32
// CHECK: %[[DOWN:.*]] = arith.addi %[[ROW]], %c8_i32
// CHECK: %[[R1:.*]] = arith.sitofp %[[DOWN]] : i32 to f32
// CHECK: %[[M0:.*]] = arith.mulf %{{.*}}, %[[R0]] : f32
// CHECK: %[[M1:.*]] = arith.mulf %{{.*}}, %[[R1]] : f32
// CHECK-NOT: arith.mulf
gpu.module @maps {
  tile.kernel @broadcast(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf16>
    %r = tile.map -> !tile.row<16xf32> {
    ^bb0(%row: i32):
      %v = arith.sitofp %row : i32 to f32
      tile.yield %v : f32
    }
    %f = tile.fill %x : f32 -> !tile.frag<16x8xf32, acc>
    %g = tile.map %f, %r : !tile.frag<16x8xf32, acc>, !tile.row<16xf32> -> !tile.frag<16x8xf32, acc> {
    ^bb0(%row: i32, %column: i32, %a: f32, %c: f32):
      %v = arith.mulf %a, %c : f32
      tile.yield %v : f32
    }
    tile.store_matrix %g to %b[%n] : <16x8xf32, acc> to <16x16xf16>
    tile.return
  }
}

// -----

// Comparisons in a fragment keep the constant on its own side: column <= limit
// is 0, 1 <= limit - the lane's column.
// CHECK-LABEL: llvm.func @compare(
// CHECK-SAME: %{{[^:]*}}: i32, %[[LIMIT:[^:]*]]: i32,
// CHECK: arith.cmpi sle, %[[COLUMN:.*]], %[[LIMIT]] : i32
// CHECK: %[[LEFT:.*]] = arith.subi %[[LIMIT]], %[[COLUMN]] : i32
// CHECK: arith.cmpi sge, %[[LEFT]], %c1_i32 : i32
// CHECK-NOT: arith.addi %[[COLUMN]]
// CHECK: llvm.store
gpu.module @maps {
  tile.kernel @compare(%n: i32, %limit: i32, %x: f32, %y: f32) attributes {warps = 1 : i32} {
    %b = tile.alloc "b" : <16x16xf16>
    %f = tile.map -> !tile.frag<16x8xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %s = arith.cmpi sle, %column, %limit : i32
      %v = arith.select %s, %x, %y : f32
      tile.yield %v : f32
    }
    tile.store_matrix %f to %b[%n] : <16x8xf32, acc> to <16x16xf16>
    tile.return
  }
}

// -----

// The four lanes of a row combine at distances 1 and 2; a maximum passes over
// NaN and takes in the start, last of all rows; sums stay partial until they
// are combined.
// CHECK-LABEL: llvm.func @maximum
// CHECK: arith.maxnumf
// CHECK: %[[ONE:.*]] = nvvm.shfl.sync bfly %c-1_i32, %[[V:.*]], %c1_i32, %c31_i32 : f32 -> f32
// CHECK: %[[V1:.*]] = arith.maxnumf %[[V]], %[[ONE]]
// CHECK: %[[TWO:.*]] = nvvm.shfl.sync bfly %c-1_i32, %[[V1]], %c2_i32, %c31_i32 : f32 -> f32
// CHECK: %[[V2:.*]] = arith.maxnumf %[[V1]], %[[TWO]]
// CHECK: %[[W3:.*]] = nvvm.shfl.sync bfly %c-1_i32, %[[W:.*]], %c1_i32, %c31_i32 : f32 -> f32
// CHECK: %[[W1:.*]] = arith.maxnumf %[[W]], %[[W3]]
// CHECK: %[[W4:.*]] = nvvm.shfl.sync bfly %c-1_i32, %[[W1]], %c2_i32, %c31_i32 : f32 -> f32
// CHECK: %[[W2:.*]] = arith.maxnumf %[[W1]], %[[W4]]
// CHECK-NOT: nvvm.shfl
// CHECK: %[[M0:.*]] = arith.maxnumf %[[START:.*]], %[[V2]]
// CHECK: %[[M1:.*]] = arith.maxnumf %[[START]], %[[W2]]
// CHECK: llvm.store %[[M0]]
// CHECK: llvm.store %[[M1]]
// CHECK-NOT: nvvm.shfl
// CHECK-LABEL: llvm.func @sum
// CHECK-NOT: nvvm.shfl
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: nvvm.shfl.sync bfly %c-1_i32, %{{.*}}, %c1_i32, %c31_i32
// CHECK-NEXT: arith.addf
// CHECK-NEXT: nvvm.shfl.sync bfly %c-1_i32, %{{.*}}, %c2_i32, %c31_i32
// CHECK-NEXT: arith.addf
gpu.module @reductions {
  tile.kernel @maximum(%p: !tile.ptr<f32>, %s: i64, %n: i32, %x: f32) attributes {warps = 1 : i32} {
    %v = tile.view %p[%s] rows(%n) stride(%s) : <f32> -> <?xf32, align = 4>
    %f = tile.map -> !tile.frag<16x16xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %a = arith.addi %row, %column : i32
      %b = arith.sitofp %a : i32 to f32
      tile.yield %b : f32
    }
    %i = tile.fill %x : f32 -> !tile.row<16xf32>
    %m = tile.row_reduce max %f init(%i : !tile.row<16xf32>) : <16x16xf32, acc> -> <16xf32>
    tile.store_row %m to %v[%n] : <16xf32> to <?xf32, align = 4>
    tile.return
  }
  tile.kernel @sum(%p: !tile.ptr<f32>, %s: i64, %n: i32, %x: f32) attributes {warps = 1 : i32} {
    %v = tile.view %p[%s] rows(%n) stride(%s) : <f32> -> <?xf32, align = 4>
    %f = tile.map -> !tile.frag<16x16xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %a = arith.addi %row, %column : i32
      %b = arith.sitofp %a : i32 to f32
      tile.yield %b : f32
    }
    %m = tile.row_reduce add %f : <16x16xf32, acc> -> <16xf32, partial>
    %w = tile.row_combine %m : <16xf32, partial> -> <16xf32>
    tile.store_row %w to %v[%n] : <16xf32> to <?xf32, align = 4>
    tile.return
  }
}

// -----

// A partial maximum stays in its lane until it is combined.
// CHECK-LABEL: llvm.func @parts
// CHECK: %[[P:.*]] = arith.maxnumf
// CHECK-NOT: arith.maxnumf
// CHECK: %[[ONE:.*]] = nvvm.shfl.sync bfly %c-1_i32, %[[P]], %c1_i32, %c31_i32
// CHECK: %[[P1:.*]] = arith.maxnumf %[[P]], %[[ONE]]
// CHECK: %[[TWO:.*]] = nvvm.shfl.sync bfly %c-1_i32, %[[P1]], %c2_i32, %c31_i32
// CHECK: %[[M:.*]] = arith.maxnumf %[[P1]], %[[TWO]]
// Values of rows are compared one by one with the limit of their row (a NaN does
// not exceed it); the warp has one answer, most likely no.
// CHECK: %[[A0:.*]] = arith.cmpf ogt, %[[P]], %[[M]] : f32
// CHECK: %[[A8:.*]] = arith.cmpf ogt, %[[P]], %{{.*}} : f32
// CHECK: %[[MINE:.*]] = arith.ori %[[A0]], %[[A8]] : i1
// CHECK: %[[ANY:.*]] = nvvm.vote.sync any %c-1_i32, %[[MINE]] -> i1
// CHECK: llvm.intr.expect %[[ANY]], %false : i1
gpu.module @limits {
  tile.kernel @parts(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.mbarrier "b" arrivals 1 : <1>
    %f = tile.map -> !tile.frag<16x8xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %v = arith.sitofp %column : i32 to f32
      tile.yield %v : f32
    }
    %parts = tile.row_reduce max %f : <16x8xf32, acc> -> <16xf32, partial>
    %m = tile.row_combine max %parts : <16xf32, partial> -> <16xf32>
    %above = tile.any_above %parts, %m : !tile.row<16xf32, partial>, <16xf32>
    tile.mbarrier_arrive %b[%n] if %above : <1>
    tile.return
  }
}

// -----

// The values of an accumulator are compared as integers, three at a time: the
// bits of floats order like signed integers above a limit that is not negative.
// A negative limit is a yes.  Both rows of the lane take part.
// CHECK-LABEL: llvm.func @accumulator(
// CHECK-SAME: %[[LIMIT:[^:]*]]: f32
// CHECK: %[[V0:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK: %[[V1:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK: %[[V2:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK: %[[V3:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK: %[[M01:.*]] = arith.maxsi %[[V0]], %[[V1]]
// CHECK: %[[M012:.*]] = arith.maxsi %[[M01]], %[[V2]]
// CHECK: %[[MOST:.*]] = arith.maxsi %[[M012]], %[[V3]]
// CHECK: %[[LEAST:.*]] = arith.bitcast %[[LIMIT]] : f32 to i32
// CHECK: %[[EXCEEDS:.*]] = arith.cmpi sgt, %[[MOST]], %[[LEAST]]
// CHECK: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[LEAST]], %c0_i32
// CHECK: %[[ROW0:.*]] = arith.ori %[[EXCEEDS]], %[[NEGATIVE]]
// CHECK-COUNT-3: arith.maxsi
// CHECK-NOT: arith.maxsi
// CHECK: %[[EXCEEDS8:.*]] = arith.cmpi sgt, %{{.*}}, %[[LEAST]]
// CHECK: %[[ROW8:.*]] = arith.ori %[[EXCEEDS8]], %[[NEGATIVE]]
// CHECK: %[[MINE:.*]] = arith.ori %[[ROW0]], %[[ROW8]]
// CHECK: nvvm.vote.sync any %c-1_i32, %[[MINE]] -> i1
// CHECK-NOT: arith.cmpf
gpu.module @limits {
  tile.kernel @accumulator(%l: f32, %n: i32) attributes {warps = 1 : i32} {
    %b = tile.mbarrier "b" arrivals 1 : <1>
    %f = tile.map -> !tile.frag<16x16xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %a = arith.addi %row, %column : i32
      %v = arith.sitofp %a : i32 to f32
      tile.yield %v : f32
    }
    %m = tile.fill %l : f32 -> !tile.row<16xf32>
    %above = tile.any_above %f, %m : !tile.frag<16x16xf32, acc>, <16xf32>
    tile.mbarrier_arrive %b[%n] if %above : <1>
    tile.return
  }
}

// -----

// Columns outside of a run become -inf: a lane has two of every eight, so its
// part of the run is one mask of bits per row.
// CHECK-LABEL: llvm.func @keep(
// CHECK: %[[HIDDEN:.*]] = arith.constant 0xFF800000 : f32
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: %[[MASK:.*]] = llvm.call_intrinsic "llvm.nvvm.bmsk.clamp"(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// The lane's other row has a mask of its own.
// CHECK: "llvm.nvvm.bmsk.clamp"
// CHECK-NOT: "llvm.nvvm.bmsk.clamp"
// CHECK: %[[BIT:.*]] = arith.andi %[[MASK]], %c1_i32
// CHECK: %[[KEPT:.*]] = arith.cmpi ne, %[[BIT]], %c0_i32
// CHECK: arith.select %[[KEPT]], %{{.*}}, %[[HIDDEN]] : f32
// CHECK: arith.andi %[[MASK]], %c2_i32
gpu.module @limits {
  tile.kernel @keep(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.mbarrier "b" arrivals 1 : <1>
    %f = tile.map -> !tile.frag<16x16xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %v = arith.sitofp %column : i32 to f32
      tile.yield %v : f32
    }
    %end = tile.fill %n : i32 -> !tile.row<16xi32>
    %kept = tile.keep_columns %f from %end : !tile.row<16xi32> to %end : !tile.frag<16x16xf32, acc>, !tile.row<16xi32>
    %zero = arith.constant 0.0 : f32
    %m = tile.fill %zero : f32 -> !tile.row<16xf32>
    %above = tile.any_above %kept, %m : !tile.frag<16x16xf32, acc>, <16xf32>
    tile.mbarrier_arrive %b[%n] if %above : <1>
    tile.return
  }
}

// -----

// Rows that end alike share a mask, which LLVM can not take apart.
// CHECK-LABEL: llvm.func @keep_alike(
// CHECK: %[[BITS:.*]] = llvm.call_intrinsic "llvm.nvvm.bmsk.clamp"
// CHECK-NEXT: %[[MASK:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "", "=r,0" %[[BITS]]
// CHECK-NOT: "llvm.nvvm.bmsk.clamp"
// CHECK: arith.andi %[[MASK]], %c1_i32
// CHECK-NOT: arith.andi %[[BITS]]
gpu.module @limits {
  tile.kernel @keep_alike(%n: i32) attributes {warps = 1 : i32} {
    %b = tile.mbarrier "b" arrivals 1 : <1>
    %f = tile.map -> !tile.frag<16x16xf32, acc> {
    ^bb0(%row: i32, %column: i32):
      %v = arith.sitofp %column : i32 to f32
      tile.yield %v : f32
    }
    %end = tile.fill %n : i32 -> !tile.row<16xi32>
    %kept = tile.keep_columns %f to %end : !tile.frag<16x16xf32, acc>, !tile.row<16xi32>
    %zero = arith.constant 0.0 : f32
    %m = tile.fill %zero : f32 -> !tile.row<16xf32>
    %above = tile.any_above %kept, %m : !tile.frag<16x16xf32, acc>, <16xf32>
    tile.mbarrier_arrive %b[%n] if %above : <1>
    tile.return
  }
}

// -----

// The first lane of four stores a row, if the row is in the view.
// CHECK-LABEL: llvm.func @store
// CHECK: %[[LEADS:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW:.*]], %arg{{[0-9]+}} : i32
// CHECK: %[[BOTH:.*]] = arith.andi %[[LEADS]], %[[INSIDE]] : i1
// CHECK: scf.if %[[BOTH]] {
// CHECK: %[[AT:.*]] = llvm.getelementptr
// CHECK-NEXT: llvm.store %{{.*}}, %[[AT]] {alignment = 4 : i64} : f32, !llvm.ptr<1>
// CHECK: %[[DOWN:.*]] = arith.addi %{{.*}}, %c8_i32
// CHECK: arith.cmpi ult, %[[DOWN]]
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<1>
gpu.module @vectors {
  tile.kernel @store(%p: !tile.ptr<f32>, %s: i64, %n: i32, %rows: i32, %x: f32) attributes {warps = 1 : i32} {
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <f32> -> <?xf32, align = 4>
    %r = tile.fill %x : f32 -> !tile.row<16xf32>
    tile.store_row %r to %v[%n] : <16xf32> to <?xf32, align = 4>
    tile.return
  }
}

// -----

// Exponential and logarithm are one instruction each.
// CHECK-LABEL: llvm.func @approximate
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz{{(\.f)?}}"(%{{.*}}) : (f32) -> f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"(%{{.*}}) : (f32) -> f32
// CHECK-NOT: math.
gpu.module @functions {
  tile.kernel @approximate(%p: !tile.ptr<f32>, %s: i64, %n: i32, %x: f32) attributes {warps = 1 : i32} {
    %v = tile.view %p[%s] rows(%n) stride(%s) : <f32> -> <?xf32, align = 4>
    %e = math.exp2 %x : f32
    %l = math.log2 %e : f32
    %r = tile.fill %l : f32 -> !tile.row<16xf32>
    tile.store_row %r to %v[%n] : <16xf32> to <?xf32, align = 4>
    tile.return
  }
}

// -----

// Statistics of columns: a lane loads its two of every eight columns once, for
// all rows.  Values of rows behind a view are dropped; what is read instead is
// the last row.  Of the ten pieces of a row that a lane has four arrive before
// the first is multiplied, twice, and then two.
// CHECK-LABEL: llvm.func @statistics
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %c-1_i32
// CHECK: arith.minsi %{{.*}}, %[[LAST]]
// CHECK: %[[VALUE:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK: arith.select %{{.*}}, %[[VALUE]],
// CHECK: scf.for %{{.*}} = %c0_i32 to %c2_i32
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-COUNT-32: llvm.intr.fma
// CHECK: scf.yield
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-COUNT-16: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: nvvm.shfl.sync bfly
// CHECK: nvvm.shfl.sync bfly
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-NOT: llvm.load {{.*}}vector<2xf32>
gpu.module @statistics_of_rows_and_columns {
  tile.kernel @statistics(%p: !tile.ptr<bf16>, %l: !tile.ptr<f32>, %n: i32, %s: i64) attributes {warps = 1 : i32} {
    %none = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %rows = tile.view %p[%none] rows(%n) stride(%s) : <bf16> -> <?x320xbf16, align = 16>
    %vector = tile.view %l[%none] rows(%n) stride(%one) : <f32> -> <?xf32, align = 4>
    %line = tile.alloc "line" : <1x16xf32>
    %b = tile.alloc "b" : <16x16xf16>
    %loaded = tile.load_row %vector[%n] : <?xf32, align = 4> -> <16xf32>
    %dot = tile.row_dot %rows, %rows[%n] : <?x320xbf16, align = 16>, <?x320xbf16, align = 16> -> <16xf32>
    %columns = tile.get_columns %line[%n, %n, %n] : <1x16xf32> -> <16x16xf32, acc>
    %f = tile.map %columns, %loaded, %dot : !tile.frag<16x16xf32, acc>, !tile.row<16xf32>, !tile.row<16xf32> -> !tile.frag<16x16xf32, acc> {
    ^bb0(%row: i32, %column: i32, %x: f32, %y: f32, %z: f32):
      %u = arith.addf %x, %y : f32
      %v = arith.addf %u, %z : f32
      tile.yield %v : f32
    }
    tile.store_matrix %f to %b[%n] : <16x16xf32, acc> to <16x16xf16>
    tile.return
  }
}

// -----

// Rows of O at multiples of 16 bytes, of its gradient at multiples of 2: pieces
// of both are of 2 bytes.
// CHECK-LABEL: llvm.func @two_alignments
// CHECK-NOT: {alignment = 16 : i64}
// CHECK: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> vector<1xbf16>
// CHECK-NOT: {alignment = 16 : i64}
// CHECK: llvm.return
gpu.module @rows_of_two_alignments {
  tile.kernel @two_alignments(%p: !tile.ptr<bf16>, %n: i32, %s: i64) attributes {warps = 1 : i32} {
    %none = arith.constant 0 : i64
    %o = tile.view %p[%none] rows(%n) stride(%s) : <bf16> -> <?x64xbf16, align = 16>
    %do = tile.view %p[%none] rows(%n) stride(%s) : <bf16> -> <?x64xbf16, align = 2>
    %b = tile.alloc "b" : <16x16xf16>
    %dot = tile.row_dot %o, %do[%n] : <?x64xbf16, align = 16>, <?x64xbf16, align = 2> -> <16xf32>
    %nothing = arith.constant 0.0 : f32
    %zero = tile.fill %nothing : f32 -> !tile.frag<16x16xf32, acc>
    %f = tile.map %zero, %dot : !tile.frag<16x16xf32, acc>, !tile.row<16xf32> -> !tile.frag<16x16xf32, acc> {
    ^bb0(%row: i32, %column: i32, %x: f32, %y: f32):
      %u = arith.addf %x, %y : f32
      tile.yield %u : f32
    }
    tile.store_matrix %f to %b[%n] : <16x16xf32, acc> to <16x16xf16>
    tile.return
  }
}

// -----

// Two halves of a row of a ring: pairs of columns, 8 bytes at a time.
// CHECK-LABEL: llvm.func @halves(
// CHECK-SAME: %[[STAGE:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c528_i32
// CHECK: %[[PAIR:.*]] = arith.muli %{{.*}}, %c8_i32
// CHECK: %[[BYTES:.*]] = arith.addi %[[OFFSET]], %[[PAIR]]
// CHECK: %[[ADDRESS:.*]] = arith.addi %[[BASE]], %[[BYTES]]
// CHECK: %[[FIRST:.*]] = llvm.inttoptr %[[ADDRESS]]
// CHECK-NEXT: llvm.load %[[FIRST]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[FIRST]][32]
// CHECK-NEXT: llvm.load %[[NEXT]] {alignment = 8 : i64}
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %c64_i32
// CHECK: arith.muli %[[COLUMN]], %c4_i32
// CHECK: %[[SECOND:.*]] = llvm.inttoptr
// CHECK-NEXT: llvm.load %[[SECOND]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
gpu.module @m {
  tile.kernel @halves(%stage: i32) attributes {warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %s = tile.alloc "s" : <3x1x128xf32>
    %b = tile.alloc "b" : <16x16xf32>
    %x = tile.get_columns %s[%stage, %c0, %c0] : <3x1x128xf32> -> <16x16xf32, acc>
    %y = tile.get_columns %s[%stage, %c0, %c64] : <3x1x128xf32> -> <16x16xf32, acc>
    %f = tile.map %x, %y : !tile.frag<16x16xf32, acc>, !tile.frag<16x16xf32, acc> -> !tile.frag<16x16xf32, acc> {
    ^bb0(%i: i32, %j: i32, %p: f32, %q: f32):
      %u = arith.addf %p, %q : f32
      tile.yield %u : f32
    }
    tile.store_matrix %f to %b[%c0] : <16x16xf32, acc> to <16x16xf32>
    tile.return
  }
}
