// What types, roles, barriers and queues refuse.  A function or kernel is named
// for what is asked of it.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expects layout padded, staggered, sw128 or sw128_paired, but got sw64}}
func.func private @smem_layouts(!tile.smem<64x64xbf16, sw64>)

// -----

// expected-error @below {{expects element type bf16, f16 or f32, but got 'f8E4M3FN'}}
func.func private @smem_padded_element(!tile.smem<64x64xf8E4M3FN>)

// -----

// expected-error @below {{expects element type bf16, f16, f32 or f8E4M3FN, but got 'f64'}}
func.func private @smem_sw128_element(!tile.smem<64x64xf64, sw128>)

// -----

// expected-error @below {{expects element type bf16 or f16, but got 'f32'}}
func.func private @smem_staggered_element(!tile.smem<64x64xf32, staggered>)

// -----

// expected-error @below {{expects element type f8E4M3FN, but got 'bf16'}}
func.func private @smem_paired_element(!tile.smem<64x64xbf16, sw128_paired>)

// -----

// expected-error @below {{expects rows of a box x columns of the array, but got 3 extents}}
func.func private @map_extents(!tile.tensor_map<1x64x64xbf16>)

// -----

// expected-error @below {{expects element type bf16, f16, f32 or f8E4M3FN, but got 'f64'}}
func.func private @map_element(!tile.tensor_map<64x64xf64>)

// -----

// expected-error @below {{expects boxes of one row, or of 8 to 256 in steps of 8, but got 60}}
func.func private @map_rows_in_eights(!tile.tensor_map<60x64xbf16>)

// -----

// expected-error @below {{expects boxes of one row, or of 8 to 256 in steps of 8, but got 264}}
func.func private @map_rows_at_most(!tile.tensor_map<264x64xbf16>)

// -----

// expected-error @below {{expects columns in multiples of 8 up to 65536, but got 60}}
func.func private @map_columns(!tile.tensor_map<64x60xbf16>)

// -----

// expected-error @below {{expects columns in multiples of 16 up to 65536, but got 24}}
func.func private @map_columns_of_bytes(!tile.tensor_map<64x24xf8E4M3FN>)

// -----

// expected-error @below {{expects 1 to 64 slots, but got 0}}
func.func private @mbarrier_slots(!tile.mbarrier<0>)

// -----

// expected-error @below {{expects 1 to 64 slots, but got 65}}
func.func private @mbarrier_slots_at_most(!tile.mbarrier<65>)

// -----

// expected-error @below {{expects slots x values, but got 1 extents}}
func.func private @queue_extents(!tile.queue<2>)

// -----

// expected-error @below {{expects 1 to 64 slots, but got 65}}
func.func private @queue_slots(!tile.queue<65x4>)

// -----

// expected-error @below {{expects 1 to 8 values in a message, but got 9}}
func.func private @queue_values(!tile.queue<2x9>)

// -----

// expected-error @below {{expects rows x columns x f32}}
func.func private @pending_element(!tile.pending<16x64xbf16>)

// -----

// expected-error @below {{expects the 16 rows of a warp, but got 64}}
func.func private @pending_rows(!tile.pending<64x64xf32>)

// -----

// expected-error @below {{expects columns in multiples of 8 up to 512, but got 12}}
func.func private @pending_columns(!tile.pending<16x12xf32>)

// -----

// expected-error @below {{expects columns in multiples of 8 up to 512, but got 520}}
func.func private @pending_columns_at_most(!tile.pending<16x520xf32>)

// -----

tile.kernel @roles_for_all_warps() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'tile.roles' op expects roles for the 8 warps of the kernel, but got 4}}
  tile.roles {
    tile.role "a" warps 4 registers 64 {
    }
  }
  tile.return
}

// -----

tile.kernel @roles_hold_roles() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  tile.roles {
  // expected-error @below {{'tile.barrier' op expects to stand outside of tile.roles, which holds tile.role only}}
    tile.barrier
    tile.role "a" warps 8 registers 64 {
    }
  }
  tile.return
}

// -----

tile.kernel @registers_of_all_roles() attributes {warps = 12 : i32} {
  // expected-error @below {{'tile.roles' op expects at most 168 registers per thread on average, but got 171}}
  tile.roles {
    tile.role "a" warps 4 registers 32 {
    }
    tile.role "b" warps 8 registers 240 {
    }
  }
  tile.return
}

// -----

tile.kernel @role_of_warpgroups() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  tile.roles {
    tile.role "a" warps 2 registers 64 {
    }
  // expected-error @below {{'tile.role' op expects whole warpgroups of 4 warps, a part of one, or the rest of one and whole ones, but got warps 2 to 6}}
    tile.role "b" warps 5 registers 64 {
    }
    tile.role "c" warps 1 registers 64 {
    }
  }
  tile.return
}

// -----

tile.kernel @role_of_warpgroups_begins_one() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  tile.roles {
    tile.role "a" warps 1 registers 64 {
    }
  // expected-error @below {{'tile.role' op expects whole warpgroups of 4 warps, a part of one, or the rest of one and whole ones, but got warps 1 to 4}}
    tile.role "b" warps 4 registers 64 {
    }
    tile.role "c" warps 3 registers 64 {
    }
  }
  tile.return
}

// -----

tile.kernel @registers_of_shared_warpgroup() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  tile.roles {
    tile.role "a" warps 4 registers 64 {
    }
    tile.role "b" warps 1 registers 64 {
    }
  // expected-error @below {{'tile.role' op expects the 64 registers of the role it shares a warpgroup with, but got 56}}
    tile.role "c" warps 3 registers 56 {
    }
  }
  tile.return
}

// -----

tile.kernel @roles_fill_warpgroups() attributes {warps = 6 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'tile.roles' op expects roles that fill warpgroups of 4 warps, but got 6 warps}}
  tile.roles {
    tile.role "a" warps 4 registers 64 {
    }
    tile.role "b" warps 2 registers 64 {
    }
  }
  tile.return
}

// -----

tile.kernel @wgmma_of_warpgroups(%n: i32) attributes {warps = 4 : i32} {
  %s = tile.alloc "s" : <64x64xbf16, sw128>
  tile.roles {
    tile.role "a" warps 1 registers 64 {
    }
    tile.role "b" warps 3 registers 64 {
  // expected-error @below {{'tile.wgmma' op expects to stand in a role of whole warpgroups, but got one of 3 warps}}
      %p = tile.wgmma %s[%n, %n], %s[%n] transpose : !tile.smem<64x64xbf16, sw128>, <64x64xbf16, sw128> -> <16x64xf32>
    }
  }
  tile.return
}

// -----

tile.kernel @role_registers() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  tile.roles {
  // expected-error @below {{'tile.role' op expects registers in multiples of 8, but got 60}}
    tile.role "a" warps 8 registers 60 {
    }
  }
  tile.return
}

// -----

tile.kernel @role_of_a_lane(%x: f32) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.fill' op expects all lanes of a warp, but stands in a role of a single lane}}
      %f = tile.fill %x : f32 -> !tile.row<16xf32>
    }
  }
  tile.return
}

// -----

tile.kernel @mbarrier_name() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'tile.mbarrier' op expects a name for the barrier}}
  %b = tile.mbarrier "" arrivals 1 : <1>
  tile.return
}

// -----

tile.kernel @mbarrier_at_top() attributes {warps = 8 : i32} {
  %y = arith.constant true
  %c0 = arith.constant 0 : i32
  scf.if %y {
  // expected-error @below {{'tile.mbarrier' op expects to stand at the top of a kernel}}
    %b = tile.mbarrier "b" arrivals 1 : <1>
  }
  tile.return
}

// -----

tile.kernel @mbarrier_arrivals() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'tile.mbarrier' op attribute 'arrivals' failed to satisfy constraint: 32-bit signless integer attribute whose value is positive}}
  %b = tile.mbarrier "b" arrivals 0 : <1>
  tile.return
}

// -----

tile.kernel @queue_name() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'tile.queue' op expects a name for the queue}}
  %q = tile.queue "" readers 1 : <2x2>
  tile.return
}

// -----

tile.kernel @queue_rings() attributes {warps = 8 : i32} {
  // expected-error @below {{'tile.queue' op expects rings that divide the 4 slots, but got 3}}
  %q = tile.queue "next" readers 1 rings 3 : <4x2>
  tile.return
}

// -----

tile.kernel @queue_at_top() attributes {warps = 8 : i32} {
  %y = arith.constant true
  %c0 = arith.constant 0 : i32
  scf.if %y {
  // expected-error @below {{'tile.queue' op expects to stand at the top of a kernel}}
    %q = tile.queue "q" readers 1 : <2x2>
  }
  tile.return
}

// -----

tile.kernel @push_values() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %q = tile.queue "q" readers 1 : <2x2>
  // expected-error @below {{'tile.push' op expects 2 values, but got 1}}
  tile.push %q[%c0] parity %c0, %c0 : <2x2>
  tile.return
}

// -----

tile.kernel @pop_values() attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %q = tile.queue "q" readers 1 : <2x2>
  // expected-error @below {{'tile.pop' op expects 2 values, but got 3}}
  %v:3 = tile.pop %q[%c0] parity %c0 : <2x2> -> i32, i32, i32
  tile.return
}

// -----

tile.kernel @draw_counter(%p: !tile.ptr<f32>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'tile.draw' op expects a counter of i32, but got '!tile.ptr<f32>'}}
  %d = tile.draw %p below %c0 : <f32>
  tile.return
}

// -----

tile.kernel @put_draw_counter(%p: !tile.ptr<f32>) attributes {warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "tile" : <16x16xbf16>
  // expected-error @below {{'tile.put_draw' op expects a counter of i32, but got '!tile.ptr<f32>'}}
  tile.put_draw %p below %c0 to %s : <f32> to <16x16xbf16>
  tile.return
}

// -----

tile.kernel @registers_of_two_blocks() attributes {warps = 12 : i32, min_blocks_per_sm = 2 : i32} {
  // expected-error @below {{'tile.roles' op expects at most 80 registers per thread on average, but got 83}}
  tile.roles {
    tile.role "a" warps 4 registers 24 {
    }
    tile.role "b" warps 8 registers 112 {
    }
  }
  tile.return
}

// -----

tile.kernel @rank_array(%p: !tile.ptr<f32>, %at: i64, %n: i32) attributes {warps = 4 : i32} {
  %s = tile.alloc "ranks" : <8x32xf32, sw128>
  // expected-error @below {{'tile.rank' op expects arrays of i32 or i64, but got '!tile.ptr<f32>'}}
  tile.rank %p[%at, %at] by %p[%at, %at] differences count %n rows 64 to %s : <f32>, <f32> to <8x32xf32, sw128>
  tile.return
}

// -----

tile.kernel @rank_entries(%p: !tile.ptr<i32>, %at: i64, %n: i32) attributes {warps = 3 : i32} {
  %s = tile.alloc "ranks" : <8x32xf32, sw128>
  // expected-error @below {{'tile.rank' op expects a table of at most 96 entries, one for each thread, but got 128}}
  tile.rank %p[%at, %at] by %p[%at, %at] differences count %n rows 64 to %s : <i32>, <i32> to <8x32xf32, sw128>
  tile.return
}
