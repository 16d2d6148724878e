// What the ops between blocks refuse.  A kernel is named for what is asked of it.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

gpu.module @kernels {
  tile.kernel @multicast_parts(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<128x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // expected-error @below {{expects panels for 2 blocks, but got 1}}
        tile.tma_load %map[%c, %c, %c, %c] to %s[%c] multicast(%c) arrive %full[%c] : <128x512xbf16> to <2x128x64xbf16, sw128>, <2>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @multicast_rows(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<32x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // expected-error @below {{expects a buffer for 2 boxes of 32 x 512, but got}}
        tile.tma_load %map[%c, %c, %c, %c] to %s[%c] multicast(%c) arrive %full[%c] : <32x512xbf16> to <2x128x64xbf16, sw128>, <2>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @multicast_columns(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // expected-error @below {{expects columns in steps of 64 up to 64, but got 128}}
        tile.tma_load %map[%c, %c, %c, %c] to %s[%c] columns 128 multicast(%c) arrive %full[%c] : <64x512xbf16> to <2x128x64xbf16, sw128>, <2>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @await_cooperative(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // expected-error @below {{expects a cooperative kernel, whose blocks all run, one whose blocks draw what they do, or a flag that they count}}
        %x = tile.await %flags[%c] at_least %c : <i32>
      }
      tile.role "consumer" warps 4 registers 240 {
        tile.count %scratch[%c] below %c : <i32>
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @await_flags(%scratch: !tile.ptr<f32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // expected-error @below {{expects flags of i32, but got '!tile.ptr<f32>'}}
        %x = tile.await %scratch[%c] at_least %c : <f32>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @publish_flags(%scratch: !tile.ptr<f32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // expected-error @below {{expects flags of i32, but got '!tile.ptr<f32>'}}
        tile.publish %scratch[%c], %c : <f32>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @count_flags(%scratch: !tile.ptr<f32>, %c: i32) attributes {warps = 4 : i32} {
    // expected-error @below {{expects flags of i32, but got '!tile.ptr<f32>'}}
    tile.count %scratch[%c] below %c : <f32>
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @image_registers(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %row = tile.fill %f : f32 -> !tile.row<16xf32>
        // expected-error @below {{expects values with registers in multiples of 2, but got 0}}
        "tile.store_registers"(%scratch, %c) : (!tile.ptr<i32>, i32) -> ()
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @image_registers_back(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        // expected-error @below {{expects values with registers in multiples of 2, but got 0}}
        "tile.load_registers"(%scratch, %c) : (!tile.ptr<i32>, i32) -> ()
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @scale_layout(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %row = tile.fill %f : f32 -> !tile.row<16xf32>
        %acc = tile.fill %f : f32 -> !tile.frag<16x16xf32, acc>
        // expected-error @below {{expects a fragment of 16-bit elements in layout lhs, but got}}
        %x = tile.scale_rows %acc by %row : <16x16xf32, acc>, <16xf32>
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @scale_whole_row(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %row = tile.fill %f : f32 -> !tile.row<16xf32, partial>
        %acc = tile.fill %f : f32 -> !tile.frag<16x16xf32, acc>
        %p = tile.cast %acc : <16x16xf32, acc> -> <16x16xbf16, lhs>
        // expected-error @below {{expects a whole row of 16 f32, but got}}
        %x = tile.scale_rows %p by %row : <16x16xbf16, lhs>, <16xf32, partial>
      }
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @goes_on_shape(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %map: !tile.tensor_map<64x512xbf16>, %c: i32, %f: f32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %t = tile.alloc "t" : <64x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %a = tile.wgmma %s[%c, %c], %t[%c] : !tile.smem<2x128x64xbf16, sw128>, <64x64xbf16, sw128> -> <16x32xf32>
        // expected-error @below {{expects an accumulator of the shape of '!tile.pending<16x64xf32>', but got '!tile.pending<16x32xf32>'}}
        %b = tile.wgmma %s[%c, %c], %t[%c] acc(%a : !tile.pending<16x32xf32>) : !tile.smem<2x128x64xbf16, sw128>, <64x64xbf16, sw128> -> <16x64xf32>
      }
    }
    tile.return
  }
}

// -----

// expected-error @below {{expects clusters of 1 to 8 blocks, but got 16}}
tile.kernel @cluster_at_most() attributes {cluster = 16 : i32, warps = 4 : i32} {
  tile.return
}

// -----

func.func @scratch_bytes() {
  // expected-error @below {{expects a row-major memref of i32, f32, bf16 or f16, but got 'memref<4xf64>'}}
  %s = tile.scratch : memref<4xf64>
  return
}

// -----

func.func @counter_words() {
  // expected-error @below {{expects a memref of a number of i32, but got 'memref<?xi32>'}}
  %s = tile.counter : memref<?xi32>
  return
}

// -----

func.func @put_row_partial(%r: !tile.row<16xf32, partial>, %b: !tile.smem<2x16xf32>, %i: i32) {
  // expected-error @below {{'tile.put_row' op expects a whole row and a buffer of f32, but got '!tile.row<16xf32, partial>' and '!tile.smem<2x16xf32>'}}
  tile.put_row %r to %b[%i, %i] : <16xf32, partial> to <2x16xf32>
  return
}

// -----

func.func @get_row_element(%b: !tile.smem<16x16xbf16>, %i: i32) {
  // expected-error @below {{'tile.get_row' op expects a whole row and a buffer of f32, but got '!tile.row<16xf32>' and '!tile.smem<16x16xbf16>'}}
  %r = tile.get_row %b[%i, %i] : <16x16xbf16> -> <16xf32>
  return
}

// -----

func.func @get_row_inside(%b: !tile.smem<2x16xf32>, %i: i32) {
  // expected-error @below {{'tile.get_row' op expects at most 16 values, but got '!tile.row<32xf32>'}}
  %r = tile.get_row %b[%i, %i] : <2x16xf32> -> <32xf32>
  return
}

// -----

func.func @store_fragment_view(%f: !tile.frag<16x16xf32, acc>, %v: !tile.view<?x16xf8E4M3FN, align = 16>, %i: i32) {
  // expected-error @below {{'tile.store_fragment' op expects a view of 16-bit or 32-bit elements, but got '!tile.view<?x16xf8E4M3FN, align = 16>'}}
  tile.store_fragment %f to %v[%i, %i] : <16x16xf32, acc> to <?x16xf8E4M3FN, align = 16>
  return
}

// -----

func.func @load_fragment_view(%v: !tile.view<?xf32, align = 4>, %i: i32) {
  // expected-error @below {{'tile.load_fragment' op expects a view of 16-bit or 32-bit elements, but got '!tile.view<?xf32, align = 4>'}}
  %f = tile.load_fragment %v[%i, %i] : <?xf32, align = 4> -> <16x16xf32, acc>
  return
}

// -----

func.func @load_fragment_layout(%v: !tile.view<?x16xbf16, align = 16>, %i: i32) {
  // expected-error @below {{'tile.load_fragment' op expects a fragment in layout acc, but got lhs}}
  %f = tile.load_fragment %v[%i, %i] : <?x16xbf16, align = 16> -> <16x16xbf16, lhs>
  return
}

// -----

gpu.module @kernels {
  tile.kernel @nothing_before(%flags: !tile.ptr<i32>, %i: i32) attributes {warps = 4 : i32} {
    // expected-error @below {{expects to touch global memory behind tile.await_launch only}}
    tile.publish %flags[%i], %i : <i32>
    tile.await_launch
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @nothing_inside_before(%flags: !tile.ptr<i32>, %i: i32, %c: i32) attributes {warps = 4 : i32} {
    %is = arith.cmpi slt, %i, %c : i32
    // expected-error @below {{expects to touch global memory behind tile.await_launch only}}
    scf.if %is {
      %drawn = tile.draw %flags below %i : <i32>
    }
    tile.await_launch
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @one_wait() attributes {warps = 4 : i32} {
    tile.await_launch
    // expected-error @below {{expects to be the only one of its kernel}}
    tile.await_launch
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @release_behind() attributes {warps = 4 : i32} {
    // expected-error @below {{expects to stand behind the kernel's own wait}}
    tile.release_launch
    tile.await_launch
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @wait_of_all(%i: i32, %c: i32) attributes {warps = 4 : i32} {
    %is = arith.cmpi slt, %i, %c : i32
    scf.if %is {
      // expected-error @below {{expects parent op 'tile.kernel'}}
      tile.await_launch
    }
    tile.return
  }
}

// -----

gpu.module @kernels {
  tile.kernel @any_columns_whole(%map: !tile.tensor_map<64x?xbf16>, %c: i32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <1x64x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <1>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // expected-error @below {{expects a column of '!tile.tensor_map<64x?xbf16>', but got none}}
        tile.tma_load %map[%c, %c, %c] to %s[%c] arrive %full[%c] : <64x?xbf16> to <1x64x64xbf16, sw128>, <1>
      }
    }
    tile.return
  }
}
