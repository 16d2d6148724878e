// One function per way to break a numbered constraint of the op; the number is
// in the function's name.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @forward_c1(%t: tensor<1x1x8x8xf16>, %m: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects operands to be all tensors or all memrefs, but got 'tensor<1x1x8x8xf16>' and 'memref<1x1x8x8xf16>'}}
  %o = attn.forward %t, %m, %m : tensor<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c1(%t: tensor<1x1x8x8xf16>, %m: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects operands to be all tensors or all memrefs, but got 'memref<1x1x8x8xf16>' and 'tensor<1x1x8x8xf16>'}}
  attn.forward %m, %m, %m outs(%t : tensor<1x1x8x8xf16>) : memref<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c1(%t: tensor<1x1x8x8xf16, "sparse">) {
  // expected-error @below {{expects tensors without encoding, but got 'tensor<1x1x8x8xf16, "sparse">'}}
  %o = attn.forward %t, %t, %t : tensor<1x1x8x8xf16, "sparse">, tensor<1x1x8x8xf16, "sparse">, tensor<1x1x8x8xf16, "sparse"> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c1(%t: f16) {
  // expected-error @below {{operand #0 must be ranked tensor or memref, but got 'f16'}}
  "attn.forward"(%t, %t, %t) : (f16, f16, f16) -> ()
  return
}

// -----

func.func @forward_c1(%t: tensor<*xf16>) {
  // expected-error @below {{operand #0 must be ranked tensor or memref, but got 'tensor<*xf16>'}}
  %o = "attn.forward"(%t, %t, %t) : (tensor<*xf16>, tensor<*xf16>, tensor<*xf16>) -> (tensor<1x1x8x8xf16>)
  return
}

// -----

func.func @forward_c2(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects one, two, three, four or five results, o, lse, lse_low, weights and block_rows, but got 0}}
  attn.forward %t, %t, %t : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c2(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects one, two, three, four or five results, o, lse, lse_low, weights and block_rows, but got 6}}
  %0:6 = attn.forward %t, %t, %t : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>, tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8x8xf16>, tensor<1x1x2x8xf32>, tensor<1x1x8xf32>
  return
}

// -----

func.func @forward_c2(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects outs to be absent or of the types of the results, but got 'tensor<1x1x8x8xf16>' and 'tensor<1x1x8x8xf16>', 'tensor<1x1x8xf32>'}}
  %0:2 = attn.forward %t, %t, %t outs(%t : tensor<1x1x8x8xf16>) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>, tensor<1x1x8xf32>
  return
}

// -----

func.func @forward_c2(%t: tensor<1x1x8x8xf16>, %d: tensor<1x1x?x8xf16>) {
  // expected-error @below {{expects outs to be absent or of the types of the results, but got 'tensor<1x1x?x8xf16>' and 'tensor<1x1x8x8xf16>'}}
  %0 = attn.forward %t, %t, %t outs(%d : tensor<1x1x?x8xf16>) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c2(%m: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects one, two, three, four or five outs, o, lse, lse_low, weights and block_rows, but got 0}}
  attn.forward %m, %m, %m : memref<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c2(%m: memref<1x1x8x8xf16>, %o: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects no results on memrefs, but got 1}}
  %0 = attn.forward %m, %m, %m outs(%o : memref<1x1x8x8xf16>) : memref<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c3(%t: tensor<1x1x8x8xf16>, %u: tensor<1x8x8xf16>) {
  // expected-error @below {{expects q of rank 4, but got rank 3}}
  %o = attn.forward %u, %t, %t : tensor<1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c3(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects o of rank 4, but got rank 0}}
  %o = attn.forward %t, %t, %t : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<f16>
  return
}

// -----

func.func @forward_c3(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects lse of rank 3, but got rank 4}}
  %o, %lse = attn.forward %t, %t, %t : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>, tensor<1x1x8x1xf32>
  return
}

// -----

func.func @forward_c4(%m: memref<1x1x8x8xf16>, %k: memref<1x1x8x8xf16, strided<[128, 128, 16, 2]>>, %o: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects k to have an innermost stride of 1, but got 'memref<1x1x8x8xf16, strided<[128, 128, 16, 2]>>'}}
  attn.forward %m, %k, %m outs(%o : memref<1x1x8x8xf16>) : memref<1x1x8x8xf16>, memref<1x1x8x8xf16, strided<[128, 128, 16, 2]>>, memref<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c4(%m: memref<1x1x8x8xf16>, %o: memref<1x1x8x8xf16, strided<[?, ?, ?, ?]>>) {
  // expected-error @below {{expects o to have an innermost stride of 1}}
  attn.forward %m, %m, %m outs(%o : memref<1x1x8x8xf16, strided<[?, ?, ?, ?]>>) : memref<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c4(%m: memref<1x1x8x8xf16>, %v: memref<1x1x8x8xf16, affine_map<(a, b, c, d) -> (a, b, c floordiv 2, c mod 2, d)>>, %o: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects v to have an innermost stride of 1}}
  attn.forward %m, %m, %v outs(%o : memref<1x1x8x8xf16>) : memref<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16, affine_map<(a, b, c, d) -> (a, b, c floordiv 2, c mod 2, d)>>
  return
}

// -----

func.func @forward_c5(%t: tensor<1x1x8x8xi8>) {
  // expected-error @below {{expects a supported element type, but got 'i8'}}
  // expected-note @below {{element types: bf16, f16, f32, f8E4M3FN}}
  %o = attn.forward %t, %t, %t : tensor<1x1x8x8xi8>, tensor<1x1x8x8xi8>, tensor<1x1x8x8xi8> -> tensor<1x1x8x8xi8>
  return
}

// -----

func.func @forward_c5(%q: tensor<1x1x8x8xf16>, %v: tensor<1x1x8x8xbf16>) {
  // expected-error @below {{expects v to have the element type 'f16' of q, but got 'bf16'}}
  %o = attn.forward %q, %q, %v : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xbf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c6(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects o to have the element type 'f16' of q, but got 'f32'}}
  %o = attn.forward %q, %q, %q : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf32>
  return
}

// -----

func.func @forward_c6(%q: tensor<1x1x8x8xf8E4M3FN>) {
  // expected-error @below {{expects o to have the element type 'bf16', but got 'f8E4M3FN'}}
  %o = attn.forward %q, %q, %q : tensor<1x1x8x8xf8E4M3FN>, tensor<1x1x8x8xf8E4M3FN>, tensor<1x1x8x8xf8E4M3FN> -> tensor<1x1x8x8xf8E4M3FN>
  return
}

// -----

func.func @forward_c6(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects lse to have the element type 'f32', but got 'f16'}}
  %o, %lse = attn.forward %q, %q, %q : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>, tensor<1x1x8xf16>
  return
}

// -----

func.func @forward_c7(%q: tensor<2x1x8x8xf16>, %k: tensor<3x1x8x8xf16>) {
  // expected-error @below {{expects q and k to have the same batch size, but got 2 and 3}}
  %o = attn.forward %q, %k, %k : tensor<2x1x8x8xf16>, tensor<3x1x8x8xf16>, tensor<3x1x8x8xf16> -> tensor<2x1x8x8xf16>
  return
}

// -----

// A dynamic size in between does not hide a difference.
func.func @forward_c7(%q: tensor<2x1x8x8xf16>, %k: tensor<?x1x8x8xf16>, %v: tensor<3x1x8x8xf16>) {
  // expected-error @below {{expects q and v to have the same batch size, but got 2 and 3}}
  %o = attn.forward %q, %k, %v : tensor<2x1x8x8xf16>, tensor<?x1x8x8xf16>, tensor<3x1x8x8xf16> -> tensor<2x1x8x8xf16>
  return
}

// -----

func.func @forward_c8(%q: tensor<1x6x8x8xf16>, %k: tensor<1x4x8x8xf16>) {
  // expected-error @below {{expects the head count of q to be a multiple of that of k, but got 6 and 4}}
  %o = attn.forward %q, %k, %k : tensor<1x6x8x8xf16>, tensor<1x4x8x8xf16>, tensor<1x4x8x8xf16> -> tensor<1x6x8x8xf16>
  return
}

// -----

func.func @forward_c8(%q: tensor<1x2x8x8xf16>, %k: tensor<1x4x8x8xf16>) {
  // expected-error @below {{expects the head count of q to be a multiple of that of k, but got 2 and 4}}
  %o = attn.forward %q, %k, %k : tensor<1x2x8x8xf16>, tensor<1x4x8x8xf16>, tensor<1x4x8x8xf16> -> tensor<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c8(%q: tensor<1x4x8x8xf16>, %v: tensor<1x2x8x8xf16>) {
  // expected-error @below {{expects k and v to have the same head count, but got 4 and 2}}
  %o = attn.forward %q, %q, %v : tensor<1x4x8x8xf16>, tensor<1x4x8x8xf16>, tensor<1x2x8x8xf16> -> tensor<1x4x8x8xf16>
  return
}

// -----

func.func @forward_c8(%q: tensor<1x?x8x8xf16>, %k: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects q to have a static and positive head count, but got ?}}
  %o = attn.forward %q, %k, %k : tensor<1x?x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x?x8x8xf16>
  return
}

// -----

func.func @forward_c8(%q: tensor<1x1x8x8xf16>, %k: tensor<1x0x8x8xf16>) {
  // expected-error @below {{expects k to have a static and positive head count, but got 0}}
  %o = attn.forward %q, %k, %k : tensor<1x1x8x8xf16>, tensor<1x0x8x8xf16>, tensor<1x0x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c8(%q: tensor<1x2x8x8xf16>) {
  // expected-error @below {{expects o to have a static and positive head count, but got ?}}
  %o = attn.forward %q, %q, %q : tensor<1x2x8x8xf16>, tensor<1x2x8x8xf16>, tensor<1x2x8x8xf16> -> tensor<1x?x8x8xf16>
  return
}

// -----

func.func @forward_c9(%q: tensor<1x1x8x8xf16>, %v: tensor<1x1x9x8xf16>) {
  // expected-error @below {{expects k and v to have the same number of rows, but got 8 and 9}}
  %o = attn.forward %q, %q, %v : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x9x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c10(%q: tensor<1x1x8x8xf16>, %k: tensor<1x1x8x16xf16>) {
  // expected-error @below {{expects q and k to have the same head dimension, but got 8 and 16}}
  %o = attn.forward %q, %k, %k : tensor<1x1x8x8xf16>, tensor<1x1x8x16xf16>, tensor<1x1x8x16xf16> -> tensor<1x1x8x16xf16>
  return
}

// -----

func.func @forward_c10(%q: tensor<1x1x8x0xf16>, %v: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects q to have a static and positive head dimension, but got 0}}
  %o = attn.forward %q, %q, %v : tensor<1x1x8x0xf16>, tensor<1x1x8x0xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c10(%q: tensor<1x1x8x8xf16>, %v: tensor<1x1x8x0xf16>) {
  // expected-error @below {{expects v to have a static and positive head dimension, but got 0}}
  %o = attn.forward %q, %q, %v : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x0xf16> -> tensor<1x1x8x0xf16>
  return
}

// -----

func.func @forward_c10(%q: tensor<1x1x8x?xf16>) {
  // expected-error @below {{expects q to have a static and positive head dimension, but got ?}}
  %o = attn.forward %q, %q, %q : tensor<1x1x8x?xf16>, tensor<1x1x8x?xf16>, tensor<1x1x8x?xf16> -> tensor<1x1x8x?xf16>
  return
}

// -----

func.func @forward_c11(%q: tensor<1x1x8x8xf16>, %v: tensor<1x1x8x16xf16>) {
  // expected-error @below {{expects o of shape 1x1x8x16, but got 1x1x8x8}}
  %o = attn.forward %q, %q, %v : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x16xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c11(%q: memref<?x2x8x8xf16>, %o: memref<?x2x9x8xf16>) {
  // expected-error @below {{expects o of shape ?x2x8x8, but got ?x2x9x8}}
  attn.forward %q, %q, %q outs(%o : memref<?x2x9x8xf16>) : memref<?x2x8x8xf16>, memref<?x2x8x8xf16>, memref<?x2x8x8xf16>
  return
}

// -----

func.func @forward_c12(%q: tensor<1x2x?x8xf16>) {
  // expected-error @below {{expects lse of shape 1x2x?, but got 1x1x8}}
  %o, %lse = attn.forward %q, %q, %q : tensor<1x2x?x8xf16>, tensor<1x2x?x8xf16>, tensor<1x2x?x8xf16> -> tensor<1x2x?x8xf16>, tensor<1x1x8xf32>
  return
}

// -----

func.func @forward_c13(%q: tensor<1x1x1073741824x8xf16>) {
  // expected-error @below {{expects queries between 0 and 1073741823, but got 1073741824}}
  %o = attn.forward %q, %q, %q : tensor<1x1x1073741824x8xf16>, tensor<1x1x1073741824x8xf16>, tensor<1x1x1073741824x8xf16> -> tensor<1x1x1073741824x8xf16>
  return
}

// -----

func.func @forward_c13(%q: tensor<1x9223372036854775807x8x8xf16>) {
  // expected-error @below {{expects heads between 1 and 1048576, but got 9223372036854775807}}
  %o = attn.forward %q, %q, %q : tensor<1x9223372036854775807x8x8xf16>, tensor<1x9223372036854775807x8x8xf16>, tensor<1x9223372036854775807x8x8xf16> -> tensor<1x9223372036854775807x8x8xf16>
  return
}

// -----

func.func @forward_c13(%q: tensor<1048576x1x1000000x8xf16>) {
  // expected-error @below {{expects at most 2^58 products}}
  %o = attn.forward %q, %q, %q : tensor<1048576x1x1000000x8xf16>, tensor<1048576x1x1000000x8xf16>, tensor<1048576x1x1000000x8xf16> -> tensor<1048576x1x1000000x8xf16>
  return
}

// -----

func.func @forward_c13(%q: tensor<131072x16384x1x8xf16>) {
  // expected-error @below {{expects at most 2^30 tiles of 16 queries (batch x heads x queries / 16), but got 2147483648}}
  %o = attn.forward %q, %q, %q : tensor<131072x16384x1x8xf16>, tensor<131072x16384x1x8xf16>, tensor<131072x16384x1x8xf16> -> tensor<131072x16384x1x8xf16>
  return
}

// -----

func.func @forward_c13(%q: tensor<?x1048576x16385x8xf16>, %k: tensor<?x1048576x8x8xf16>) {
  // expected-error @below {{expects at most 2^30 tiles of 16 queries (batch x heads x queries / 16), but got}}
  %o = attn.forward %q, %k, %k : tensor<?x1048576x16385x8xf16>, tensor<?x1048576x8x8xf16>, tensor<?x1048576x8x8xf16> -> tensor<?x1048576x16385x8xf16>
  return
}

// -----

func.func @forward_c13(%q: memref<3x1x8x8xf16, strided<[4611686018427387904, 64, 8, 1]>>, %k: memref<3x1x8x8xf16>) {
  // expected-error @below {{expects q to have an end within 17592186044416 bytes of its beginning, but got 'memref<3x1x8x8xf16, strided<[4611686018427387904, 64, 8, 1]>>'}}
  attn.forward %q, %k, %k outs(%k : memref<3x1x8x8xf16>) : memref<3x1x8x8xf16, strided<[4611686018427387904, 64, 8, 1]>>, memref<3x1x8x8xf16>, memref<3x1x8x8xf16>
  return
}

// -----

func.func @forward_c13(%q: memref<1x1x8x8xf16, strided<[64, 64, 8, 1], offset: 4611686018427387904>>, %k: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects q to have an end within 17592186044416 bytes of its beginning, but got 'memref<1x1x8x8xf16, strided<[64, 64, 8, 1], offset: 4611686018427387904>>'}}
  attn.forward %q, %k, %k outs(%k : memref<1x1x8x8xf16>) : memref<1x1x8x8xf16, strided<[64, 64, 8, 1], offset: 4611686018427387904>>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c14(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects the window's left side between 0 and 1073741824, but got -1}}
  %o = attn.forward %q, %q, %q mask(window<-1, 0>) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c14(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects the window's right side between 0 and 1073741824, but got 1073741825}}
  %o = attn.forward %q, %q, %q mask(window<0, 1073741825>) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c15(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects a finite scale, but got 0x7FC00000 : f32}}
  %o = attn.forward %q, %q, %q scale(0x7FC00000) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c15(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects a finite scale, but got 0x7F800000 : f32}}
  %o = attn.forward %q, %q, %q scale(1.0e300) : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c16(%q: memref<1x1x8x8xf16>, %k: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects outs in buffers of their own, but got that of k}}
  attn.forward %q, %k, %q outs(%k : memref<1x1x8x8xf16>) : memref<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c17(%q: tensor<1x1x8x8xf32>) {
  // expected-error @below {{expects an alignment that is a power of two from 4 to 16 bytes, but got 2}}
  %o = attn.forward %q, %q, %q {alignment = 2 : i64} : tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32> -> tensor<1x1x8x8xf32>
  return
}

// -----

func.func @forward_c17_above(%q: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects an alignment that is a power of two from 2 to 16 bytes, but got 32}}
  %o = attn.forward %q, %q, %q {alignment = 32 : i64} : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c18(%q: tensor<1x1x8x8xbf16>) {
  // expected-error @below {{expects a precision only for operands of f32, but got operands of 'bf16'}}
  %o = attn.forward %q, %q, %q precision(tf32) : tensor<1x1x8x8xbf16>, tensor<1x1x8x8xbf16>, tensor<1x1x8x8xbf16> -> tensor<1x1x8x8xbf16>
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
func.func @forward_c3(%q: !q) {
  // expected-error @below {{expects weights of rank 4, but got rank 3}}
  %0:4 = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, tensor<1x2x300xf16>, tensor<1x2x4x300xf32>
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
func.func @forward_c3(%q: !q) {
  // expected-error @below {{expects block_rows of rank 4, but got rank 3}}
  %0:4 = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, tensor<1x2x300x300xf16>, tensor<1x2x300xf32>
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
func.func @forward_c6(%q: !q) {
  // expected-error @below {{expects weights to have the element type 'f16' of q, but got 'f32'}}
  %0:4 = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, tensor<1x2x300x300xf32>, tensor<1x2x4x300xf32>
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
func.func @forward_c6(%q: !q) {
  // expected-error @below {{expects block_rows to have the element type 'f32', but got 'f16'}}
  %0:4 = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, tensor<1x2x300x300xf16>, tensor<1x2x4x300xf16>
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
func.func @forward_c11(%q: !q) {
  // expected-error @below {{expects weights of shape 1x2x300x300, but got 1x2x300x304}}
  %0:4 = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, tensor<1x2x300x304xf16>, tensor<1x2x4x300xf32>
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
func.func @forward_c12(%q: !q) {
  // expected-error @below {{expects block_rows of shape 1x2x4x300, but got 1x2x2x300}}
  %0:4 = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, tensor<1x2x300x300xf16>, tensor<1x2x2x300xf32>
  return
}

// -----

!q = tensor<1x2x300x8xf32>
!lse = tensor<1x2x300xf32>
func.func @forward_c19(%q: !q) {
  // expected-error @below {{expects bf16 or f16 to keep weights, but got f32}}
  %0:4 = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, tensor<1x2x300x300xf32>, tensor<1x2x4x300xf32>
  return
}

// -----

// All heads on one another.
func.func @forward_c20(%q: memref<1x2x8x8xf16>, %o: memref<1x2x8x8xf16, strided<[64, 0, 8, 1]>>) {
  // expected-error @below {{expects o to have rows that do not lie on each other, so a stride of 64 or more in dimension 1, but got 'memref<1x2x8x8xf16, strided<[64, 0, 8, 1]>>'}}
  attn.forward %q, %q, %q outs(%o : memref<1x2x8x8xf16, strided<[64, 0, 8, 1]>>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16>, memref<1x2x8x8xf16>
  return
}

// -----

// Rows of 64 columns, 8 apart, of which nobody knows how many.
func.func @forward_c20(%q: memref<1x2x?x64xf16>, %o: memref<1x2x?x64xf16, strided<[?, ?, 8, 1]>>) {
  // expected-error @below {{expects o to have rows that do not lie on each other, so a stride of 64 or more in dimension 2}}
  attn.forward %q, %q, %q outs(%o : memref<1x2x?x64xf16, strided<[?, ?, 8, 1]>>) : memref<1x2x?x64xf16>, memref<1x2x?x64xf16>, memref<1x2x?x64xf16>
  return
}

// -----

// Heads that begin among the rows of others.
func.func @forward_c20(%q: memref<1x2x8x8xf16>, %o: memref<1x2x8x8xf16, strided<[?, 16, 16, 1]>>) {
  // expected-error @below {{expects o to have rows that do not lie on each other, so a stride of 120 or more in dimension 1}}
  attn.forward %q, %q, %q outs(%o : memref<1x2x8x8xf16, strided<[?, 16, 16, 1]>>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c20(%q: memref<1x2x8x8xf16>, %o: memref<1x2x8x8xf16>, %lse: memref<1x2x8xf32, strided<[16, 4, 1]>>) {
  // expected-error @below {{expects lse to have rows that do not lie on each other, so a stride of 8 or more in dimension 1}}
  attn.forward %q, %q, %q outs(%o, %lse : memref<1x2x8x8xf16>, memref<1x2x8xf32, strided<[16, 4, 1]>>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c20(%q: memref<1x2x8x8xf16>, %k: memref<1x2x8x8xf16, strided<[128, -64, 8, 1]>>, %o: memref<1x2x8x8xf16>) {
  // expected-error @below {{expects k to have strides of 0 or more, but got 'memref<1x2x8x8xf16, strided<[128, -64, 8, 1]>>'}}
  attn.forward %q, %k, %q outs(%o : memref<1x2x8x8xf16>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16, strided<[128, -64, 8, 1]>>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c20(%q: memref<1x2x8x8xf16>, %k: memref<1x2x8x8xf16, strided<[128, 64, 8, 1], offset: -8>>, %o: memref<1x2x8x8xf16>) {
  // expected-error @below {{expects k to have an offset of 0 or more, but got 'memref<1x2x8x8xf16, strided<[128, 64, 8, 1], offset: -8>>'}}
  attn.forward %q, %k, %q outs(%o : memref<1x2x8x8xf16>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16, strided<[128, 64, 8, 1], offset: -8>>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c20(%q: memref<1x2x8x8xf16>, %k: memref<1x2x8x8xf16, strided<[128, 4611686018427387904, 8, 1]>>, %o: memref<1x2x8x8xf16>) {
  // expected-error @below {{expects k to have an end within 17592186044416 bytes of its beginning, but got}}
  attn.forward %q, %k, %q outs(%o : memref<1x2x8x8xf16>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16, strided<[128, 4611686018427387904, 8, 1]>>, memref<1x2x8x8xf16>
  return
}

// -----

// The largest stride there is, and the largest offset.
func.func @forward_c20(%q: memref<1x2x8x8xf16>, %k: memref<1x2x8x8xf16, strided<[128, 64, 9223372036854775807, 1]>>, %o: memref<1x2x8x8xf16>) {
  // expected-error @below {{expects k to have an end within 17592186044416 bytes of its beginning, but got}}
  attn.forward %q, %k, %q outs(%o : memref<1x2x8x8xf16>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16, strided<[128, 64, 9223372036854775807, 1]>>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c20(%q: memref<1x2x8x8xf16>, %k: memref<1x2x8x8xf16, strided<[128, 64, 8, 1], offset: 9223372036854775807>>, %o: memref<1x2x8x8xf16>) {
  // expected-error @below {{expects k to have an end within 17592186044416 bytes of its beginning, but got}}
  attn.forward %q, %k, %q outs(%o : memref<1x2x8x8xf16>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16, strided<[128, 64, 8, 1], offset: 9223372036854775807>>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c21(%q: memref<1x2x8x8xf16>, %k: memref<1x2x8x8xf16, 3>, %o: memref<1x2x8x8xf16>) {
  // expected-error @below {{expects k in global memory, but got memory space 3}}
  // expected-note @below {{memory spaces: none, 0, 1, #gpu.address_space<global>}}
  attn.forward %q, %k, %q outs(%o : memref<1x2x8x8xf16>) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16, 3>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c21(%q: memref<1x2x8x8xf16>, %o: memref<1x2x8x8xf16, "vram">) {
  // expected-error @below {{expects o in global memory, but got memory space "vram"}}
  // expected-note @below {{memory spaces: none, 0, 1, #gpu.address_space<global>}}
  attn.forward %q, %q, %q outs(%o : memref<1x2x8x8xf16, "vram">) : memref<1x2x8x8xf16>, memref<1x2x8x8xf16>, memref<1x2x8x8xf16>
  return
}

// -----

func.func @forward_c21(%q: memref<1x2x8x8xf16, #gpu.address_space<workgroup>>, %o: memref<1x2x8x8xf16>) {
  // expected-error @below {{expects q in global memory, but got memory space #gpu.address_space<workgroup>}}
  // expected-note @below {{memory spaces: none, 0, 1, #gpu.address_space<global>}}
  attn.forward %q, %q, %q outs(%o : memref<1x2x8x8xf16>) : memref<1x2x8x8xf16, #gpu.address_space<workgroup>>, memref<1x2x8x8xf16, #gpu.address_space<workgroup>>, memref<1x2x8x8xf16, #gpu.address_space<workgroup>>
  return
}
