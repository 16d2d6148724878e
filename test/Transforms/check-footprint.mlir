// Kernels against the shared memory of their machine and of their plan.
// RUN: attn-opt %s -attn-check-footprint -split-input-file -verify-diagnostics

// 64 rows of 128 columns take 64 * 288 = 18432 bytes, so one such buffer fits
// into 20000 bytes, and exactly 18432 are enough.
module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = 18432>} {
  gpu.module @kernels {
    tile.kernel @fits() attributes {warps = 4 : i32} {
      %q = tile.alloc "query" : <64x128xbf16>
      tile.return
    }
    tile.kernel @fits_under_another_shape() attributes {warps = 4 : i32} {
      %q = tile.alloc "query" : <64x128xbf16>
      %o = tile.alias %q : <64x128xbf16> -> <64x128xbf16>
      tile.return
    }
    tile.kernel @fits_without_buffers() attributes {warps = 4 : i32} {
      tile.return
    }
  }
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = 20000>} {
  gpu.module @kernels {
    // 18432 + 2 * 16 * 288 = 27648.
    // expected-error @below {{'tile.kernel' op expects at most 20000 bytes of shared memory on h100_sxm, but got 27648; the largest is 'query' with 18432}}
    tile.kernel @too_large() attributes {warps = 4 : i32} {
      // expected-note @below {{'key' takes 9216 bytes}}
      %k = tile.alloc "key" : <2x16x128xbf16>
      // expected-note @below {{'query' takes 18432 bytes}}
      %q = tile.alloc "query" : <64x128xbf16>
      tile.return
    }
  }
}

// -----

// Buffers start at multiples of 128 bytes: c at 4096, the sum of a and b.
module attributes {attn.machine = #attn.machine<l4, smem_bytes_per_block = 4607>} {
  gpu.module @kernels {
    // expected-error @below {{expects at most 4607 bytes of shared memory on l4, but got 4608; the largest is 'b' with 2560}}
    tile.kernel @padding_counts() attributes {warps = 1 : i32} {
      // expected-note @below {{'a' takes 1536 bytes}}
      %a = tile.alloc "a" : <16x32xf16>
      // expected-note @below {{'b' takes 2560 bytes}}
      %b = tile.alloc "b" : <16x64xf16>
      // expected-note @below {{'c' takes 512 bytes}}
      %c = tile.alloc "c" : <16x16xf16>
      tile.return
    }
  }
}

// -----

// The machine that the kernel names comes before the module's.
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @kernels {
    // expected-error @below {{expects at most 100 bytes of shared memory on rtx_a6000, but got 512; the largest is 'a' with 512}}
    tile.kernel @machine_of_the_kernel() attributes {warps = 1 : i32, machine = #attn.machine<rtx_a6000, smem_bytes_per_block = 100>} {
      // expected-note @below {{'a' takes 512 bytes}}
      %a = tile.alloc "a" : <16x16xf16>
      tile.return
    }
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'tile.kernel' op expects a machine, on the kernel or the module}}
  tile.kernel @no_machine() attributes {warps = 1 : i32} {
    tile.return
  }
}

// -----

// flash with these tiles promises 64 * 32 for Q and O and 32 * 32 for K and V.
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @kernels {
    tile.kernel @promise_kept() attributes {warps = 4 : i32,
        schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>,
        problem = {batch = 1 : i64, dtype = "bf16", head_dim = 16 : i64, head_dim_v = 16 : i64, heads = 2 : i64, keys = 64 : i64, kv_heads = 2 : i64, lse = false, mask = "none", queries = 64 : i64}} {
      %q = tile.alloc "query" : <64x16xbf16>
      %k = tile.alloc "key" : <32x16xbf16>
      %v = tile.alloc "value" : <32x16xbf16>
      tile.return
    }
    // expected-error @below {{'tile.kernel' op expects the 4096 bytes of shared memory of its plan, but got 5120}}
    tile.kernel @promise_broken() attributes {warps = 4 : i32,
        schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>,
        problem = {batch = 1 : i64, dtype = "bf16", head_dim = 16 : i64, head_dim_v = 16 : i64, heads = 2 : i64, keys = 64 : i64, kv_heads = 2 : i64, lse = false, mask = "none", queries = 64 : i64}} {
      %q = tile.alloc "query" : <64x16xbf16>
      %k = tile.alloc "key" : <2x32x16xbf16>
      %v = tile.alloc "value" : <32x16xbf16>
      tile.return
    }
  }
}

// -----

// A promise of less is broken too.
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @kernels {
    // expected-error @below {{'tile.kernel' op expects the 4096 bytes of shared memory of its plan, but got 3072}}
    tile.kernel @promise_broken() attributes {warps = 4 : i32,
        schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>,
        problem = {batch = 1 : i64, dtype = "bf16", head_dim = 16 : i64, head_dim_v = 16 : i64, heads = 2 : i64, keys = 64 : i64, kv_heads = 2 : i64, lse = false, mask = "none", queries = 64 : i64}} {
      %q = tile.alloc "query" : <64x16xbf16>
      %k = tile.alloc "key" : <32x16xbf16>
      tile.return
    }
  }
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @kernels {
    // expected-error @below {{'tile.kernel' op expects a legal problem, but got {batch = 1 : i64}}}
    tile.kernel @problem_is_legal() attributes {warps = 4 : i32, problem = {batch = 1 : i64},
        schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>} {
      tile.return
    }
  }
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @kernels {
    // expected-error @below {{'tile.kernel' op expects 16 or 32 rows per warp, but got 64 rows and 8 warps}}
    tile.kernel @schedule_is_legal() attributes {warps = 4 : i32,
        schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 8>,
        problem = {batch = 1 : i64, dtype = "bf16", head_dim = 16 : i64, head_dim_v = 16 : i64, heads = 2 : i64, keys = 64 : i64, kv_heads = 2 : i64, lse = false, mask = "none", queries = 64 : i64}} {
      tile.return
    }
  }
}
