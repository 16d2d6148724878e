// Ops whose instructions the machine does not have: an error at the op, where
// LLVM would abort or ptxas speak of lines of PTX.
// RUN: attn-opt %s -convert-tile-to-nvvm -split-input-file -verify-diagnostics

module attributes {attn.machine = #attn.machine<t4>} {
  gpu.module @kernels {
    tile.kernel @cp_async() attributes {warps = 1 : i32} {
      // expected-error @below {{'tile.commit_group' op expects a machine with cp.async, compute capability 80 or more, but got t4, sm_75}}
      // expected-note @below {{machines that have it: a100_80g, rtx_a6000, l4, rtx_4090, rtx_5090, h100_sxm, h200, b200}}
      tile.commit_group
      tile.return
    }
  }
}

// -----

module attributes {attn.machine = #attn.machine<a100_80g>} {
  gpu.module @kernels {
    tile.kernel @mbarrier() attributes {warps = 1 : i32} {
      // expected-error @below {{'tile.mbarrier' op expects a machine with mbarrier.try_wait, compute capability 90 or more, but got a100_80g, sm_80}}
      // expected-note @below {{machines that have it: rtx_5090, h100_sxm, h200, b200}}
      %b = tile.mbarrier "full" arrivals 1 : <1>
      tile.return
    }
  }
}

// -----

// wgmma is of one architecture alone.
module attributes {attn.machine = #attn.machine<b200>} {
  gpu.module @kernels {
    tile.kernel @wgmma(%i: i32) attributes {warps = 4 : i32} {
      %s = tile.alloc "s" : <1x64x128xbf16, sw128>
      %k = tile.alloc "k" : <1x128x128xbf16, sw128>
      // expected-error @below {{'tile.wgmma' op expects a machine with wgmma, compute capability 90a, but got b200, sm_100a}}
      // expected-note @below {{machines that have it: h100_sxm, h200}}
      %p = tile.wgmma %s[%i, %i], %k[%i, %i] : !tile.smem<1x64x128xbf16, sw128>, <1x128x128xbf16, sw128> -> <16x64xf32>
      %x = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
      tile.return
    }
  }
}

// -----

// A kernel may say its machine itself, and a module only its chip.
module {
  gpu.module @kernels {
    tile.kernel @own() attributes {machine = #attn.machine<l4>, warps = 1 : i32} {
      // expected-error @below {{'tile.fence_async' op expects a machine with fence.proxy.async, compute capability 90 or more, but got l4, sm_89}}
      // expected-note @below {{machines that have it}}
      tile.fence_async
      tile.return
    }
  }
}

// -----

module {
  gpu.module @kernels [#nvvm.target<chip = "sm_86">] {
    // expected-error @below {{'tile.kernel' op expects a machine with barrier.cluster, compute capability 90 or more, but got sm_86}}
    // expected-note @below {{machines that have it}}
    tile.kernel @cluster() attributes {cluster = 2 : i32, warps = 1 : i32} {
      tile.return
    }
  }
}

// -----

// Of a machine that nobody names, nothing is known.
module {
  gpu.module @kernels {
    tile.kernel @anywhere() attributes {warps = 1 : i32} {
      tile.commit_group
      tile.return
    }
  }
}
