// K and V of 8 bits under a Q of 16, as a cache has them, and what is refused.
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @cache
func.func @cache(%q: tensor<2x8x1x128xbf16>, %k: tensor<2x2x512x128xf8E4M3FN>,
                 %v: tensor<2x2x512x64xf8E4M3FN>, %s: tensor<2x2xf32>)
    -> tensor<2x8x1x64xbf16> {
  // CHECK: attn.forward %{{.*}}, %{{.*}}, %{{.*}} scales(k %{{.*}}, v %{{.*}} : tensor<2x2xf32>, tensor<2x2xf32>)
  %o = attn.forward %q, %k, %v scales(k %s, v %s : tensor<2x2xf32>, tensor<2x2xf32>)
      : tensor<2x8x1x128xbf16>, tensor<2x2x512x128xf8E4M3FN>, tensor<2x2x512x64xf8E4M3FN>
     -> tensor<2x8x1x64xbf16>
  return %o : tensor<2x8x1x64xbf16>
}

// -----

func.func @forward_c5(%q: tensor<1x1x64x64xf16>, %k: tensor<1x1x64x64xf8E4M3FN>,
                      %v: tensor<1x1x64x64xf16>) -> tensor<1x1x64x64xf16> {
  // expected-error @below {{'attn.forward' op expects v to have the element type 'f8E4M3FN' of k, but got 'f16'}}
  %o = attn.forward %q, %k, %v
      : tensor<1x1x64x64xf16>, tensor<1x1x64x64xf8E4M3FN>, tensor<1x1x64x64xf16> -> tensor<1x1x64x64xf16>
  return %o : tensor<1x1x64x64xf16>
}

// -----

func.func @forward_c5(%q: tensor<1x1x64x64xbf16>, %k: tensor<1x1x64x64xbf16>,
                      %v: tensor<1x1x64x64xf8E4M3FN>) -> tensor<1x1x64x64xbf16> {
  // expected-error @below {{'attn.forward' op expects v to have the element type 'bf16' of q, but got 'f8E4M3FN'}}
  // expected-note @below {{k and v may both be 'f8E4M3FN' too}}
  %o = attn.forward %q, %k, %v
      : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xf8E4M3FN> -> tensor<1x1x64x64xbf16>
  return %o : tensor<1x1x64x64xbf16>
}

// -----

func.func @forward_c5(%q: tensor<1x1x64x64xf32>, %k: tensor<1x1x64x64xf8E4M3FN>,
                      %v: tensor<1x1x64x64xf8E4M3FN>) -> tensor<1x1x64x64xf32> {
  // expected-error @below {{'attn.forward' op expects k to have the element type 'f32' of q, but got 'f8E4M3FN'}}
  %o = attn.forward %q, %k, %v
      : tensor<1x1x64x64xf32>, tensor<1x1x64x64xf8E4M3FN>, tensor<1x1x64x64xf8E4M3FN> -> tensor<1x1x64x64xf32>
  return %o : tensor<1x1x64x64xf32>
}

// -----

func.func @backward_c5(%do: tensor<1x1x64x64xbf16>, %q: tensor<1x1x64x64xbf16>, %k: tensor<1x1x64x64xf8E4M3FN>,
                       %v: tensor<1x1x64x64xf8E4M3FN>, %o: tensor<1x1x64x64xbf16>, %lse: tensor<1x1x64xf32>)
    -> (tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>) {
  // expected-error @below {{'attn.backward' op expects k to have the element type 'bf16' of q, but got 'f8E4M3FN'}}
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse
      : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xf8E4M3FN>, tensor<1x1x64x64xf8E4M3FN>, tensor<1x1x64x64xbf16>, tensor<1x1x64xf32>
     -> tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>
  return %dq, %dk, %dv : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>
}
