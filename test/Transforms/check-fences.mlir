// A proxy fence of global memory stands before TMA loads what was written.
// RUN: attn-opt %s -attn-check-fences -split-input-file -verify-diagnostics

!words = !tile.smem<1x1x256xf32>
!acc = !tile.frag<16x16xf32, acc>
!bar = !tile.mbarrier<1>

gpu.module @kernels {
  // The fence lies behind the await, in a loop too, and nothing is written that
  // is loaded before it.
  tile.kernel @fenced(%flags: !tile.ptr<i32>, %data: !tile.ptr<f32>,
                      %other: !tile.ptr<f32>, %n: i32)
      attributes {cooperative, warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %is = arith.cmpi eq, %n, %c1 : i32
    %seven = arith.constant 7.0 : f32
    %s = tile.alloc "words" : !words
    %full = tile.mbarrier "full" arrivals 1 : !bar
    tile.roles {
      tile.role "loader" warps 4 registers 24 single_lane {
        scf.for %i = %c0 to %n step %c1 : i32 {
          tile.load_words %other[%c0] to %s[%c0] arrive %full[%c0] : !tile.ptr<f32> to !words, !bar
          scf.if %is {
            %x = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32>
            tile.fence_async global
          }
          tile.load_words %data[%c0] to %s[%c0] arrive %full[%c0] : !tile.ptr<f32> to !words, !bar
        }
      }
      tile.role "worker" warps 4 registers 240 {
        %x = tile.fill %seven : f32 -> !acc
        tile.store_registers %x to %data[%c0] : !acc to !tile.ptr<f32>
      }
    }
    tile.return
  }
}

// -----

!words = !tile.smem<1x1x256xf32>
!acc = !tile.frag<16x16xf32, acc>
!bar = !tile.mbarrier<1>

// A fence of shared memory is none.
tile.kernel @shared(%flags: !tile.ptr<i32>, %data: !tile.ptr<f32>)
    attributes {cooperative, warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %seven = arith.constant 7.0 : f32
  %s = tile.alloc "words" : !words
  %full = tile.mbarrier "full" arrivals 1 : !bar
  tile.roles {
    tile.role "loader" warps 4 registers 24 single_lane {
      // expected-note @below {{the await is here}}
      %x = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32>
      tile.fence_async
      // expected-error @below {{'tile.load_words' op expects tile.fence_async global between the await and this load of an array that the kernel writes, but got none}}
      tile.load_words %data[%c0] to %s[%c0] arrive %full[%c0] : !tile.ptr<f32> to !words, !bar
    }
    tile.role "worker" warps 4 registers 240 {
      %x = tile.fill %seven : f32 -> !acc
      // expected-note @below {{the array is written here}}
      tile.store_registers %x to %data[%c0] : !acc to !tile.ptr<f32>
    }
  }
  tile.return
}

// -----

!words = !tile.smem<1x1x256xf32>
!acc = !tile.frag<16x16xf32, acc>
!bar = !tile.mbarrier<1>

// One branch has a fence, the other one has none; the await is of the turn
// before.
tile.kernel @branches(%flags: !tile.ptr<i32>, %data: !tile.ptr<f32>, %n: i32)
    attributes {cooperative, warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %is = arith.cmpi eq, %n, %c1 : i32
  %seven = arith.constant 7.0 : f32
  %s = tile.alloc "words" : !words
  %full = tile.mbarrier "full" arrivals 1 : !bar
  tile.roles {
    tile.role "loader" warps 4 registers 24 single_lane {
      scf.for %i = %c0 to %n step %c1 : i32 {
        scf.if %is {
          tile.fence_async global
        }
        // expected-error @below {{between the await and this load}}
        tile.load_words %data[%c0] to %s[%c0] arrive %full[%c0] : !tile.ptr<f32> to !words, !bar
        // expected-note @below {{the await is here}}
        %x = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32>
      }
    }
    tile.role "worker" warps 4 registers 240 {
      %x = tile.fill %seven : f32 -> !acc
      // expected-note @below {{the array is written here}}
      tile.store_registers %x to %data[%c0] : !acc to !tile.ptr<f32>
    }
  }
  tile.return
}

// -----

!words = !tile.smem<1x1x256xf32>
!acc = !tile.frag<16x16xf32, acc>
!bar = !tile.mbarrier<1>

// What was stored before the roles began needs a fence as well.
tile.kernel @before(%data: !tile.ptr<f32>)
    attributes {cooperative, warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %seven = arith.constant 7.0 : f32
  %s = tile.alloc "words" : !words
  %full = tile.mbarrier "full" arrivals 1 : !bar
  %x = tile.fill %seven : f32 -> !acc
  // expected-note @below {{the array is written here}}
  tile.store_registers %x to %data[%c0] : !acc to !tile.ptr<f32>
  tile.roles {
    tile.role "loader" warps 4 registers 24 single_lane {
      // expected-error @below {{between the store and this load}}
      tile.load_words %data[%c0] to %s[%c0] arrive %full[%c0] : !tile.ptr<f32> to !words, !bar
    }
    tile.role "worker" warps 4 registers 240 {
    }
  }
  tile.return
}
