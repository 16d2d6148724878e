// What looks like softmax(Q K^T) V and is not, or is more than attn.forward
// expresses, stays, and a remark says why.
// RUN: attn-opt %s -attn-raise=linalg=1 -verify-diagnostics
// RUN: attn-opt %s > %t.before
// RUN: attn-opt %s -attn-raise=linalg=1 2>/dev/null > %t.after
// RUN: diff %t.before %t.after

#a = affine_map<(m, n, k) -> (m, k)>
#bt = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @axis(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %c = arith.constant dense<0.25> : tensor<6x6xf16>
  %x = arith.mulf %s, %c : tensor<6x6xf16>
  %p = linalg.softmax dimension(0) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: the softmax is over another dimension than the keys}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @scale(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>, %f: tensor<f16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %c = linalg.broadcast ins(%f : tensor<f16>) outs(%e : tensor<6x6xf16>) dimensions = [0, 1]
  %x = arith.mulf %s, %c : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: the scale is not a constant}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @mask(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>, %m: tensor<6x6xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %x = arith.addf %s, %m : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: the mask is neither a constant nor made of row numbers, so it may be no band}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @bias(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %m = arith.constant dense<[[0.0, 0.5, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf16>
  %x = arith.addf %s, %m : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: the mask adds other numbers than 0 and -inf to scores}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @holes(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %m = arith.constant dense<[[true, false, true, true, true, true], [true, true, true, true, true, true], [true, true, true, true, true, true], [true, true, true, true, true, true], [true, true, true, true, true, true], [true, true, true, true, true, true]]> : tensor<6x6xi1>
  %n = arith.constant dense<0xFC00> : tensor<6x6xf16>
  %x = arith.select %m, %s, %n : tensor<6x6xi1>, tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: the mask hides other keys than those beyond two offsets from the diagonal}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @small(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %m = arith.constant dense<true> : tensor<6x6xi1>
  %n = arith.constant dense<-10.0> : tensor<6x6xf16>
  %x = arith.select %m, %s, %n : tensor<6x6xi1>, tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: a mask puts something else than -inf in the place of scores}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @softcap(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %x = math.tanh %s : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: 'math.tanh' changes the scores}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @accumulates(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>, %b: tensor<6x6xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%b : tensor<6x6xf16>) -> tensor<6x6xf16>
  %c = arith.constant dense<0.25> : tensor<6x6xf16>
  %x = arith.mulf %s, %c : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: a product adds to something that is not 0}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @weights_used(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>) -> (tensor<6x16xf16>, tensor<6x6xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %c = arith.constant dense<0.25> : tensor<6x6xf16>
  %x = arith.mulf %s, %c : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: the scores or weights are also used by 'func.return'}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o, %p : tensor<6x16xf16>, tensor<6x6xf16>
}

func.func @turned(%q: tensor<6x16xf16>, %k: tensor<6x16xf16>, %v: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %k : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %m = arith.constant dense<[[0.0, 0xFC00, 0xFC00, 0xFC00, 0xFC00, 0xFC00], [0.0, 0.0, 0xFC00, 0xFC00, 0xFC00, 0xFC00], [0.0, 0.0, 0.0, 0xFC00, 0xFC00, 0xFC00], [0.0, 0.0, 0.0, 0.0, 0xFC00, 0xFC00], [0.0, 0.0, 0.0, 0.0, 0.0, 0xFC00], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf16>
  %y = arith.addf %s, %m : tensor<6x6xf16>
  %c = arith.constant dense<-1.0> : tensor<6x6xf16>
  %x = arith.mulf %y, %c : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{softmax(Q K^T) V is not raised: a scale that is not above 0 turns the mask around}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

func.func @no_product(%x: tensor<6x6xf16>, %v: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x6xf16>) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{is not raised: the scores are no product}}
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

// attn.forward gives O in the type of Q.
func.func @wide_result(%q: tensor<6x16xf16>) -> tensor<6x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %q : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf32>) -> tensor<6x6xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %h = arith.truncf %p : tensor<6x6xf32> to tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf32>
  %o1 = linalg.fill ins(%zero : f32) outs(%o0 : tensor<6x16xf32>) -> tensor<6x16xf32>
  // expected-remark @+1 {{is not raised: the result is f32, but attn.forward gives that of q, f16}}
  %o = linalg.matmul ins(%h, %q : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf32>) -> tensor<6x16xf32>
  return %o : tensor<6x16xf32>
}

// Exponentials that are divided by a sum of something else.
func.func @other_sum(%q: tensor<6x16xf16>, %y: tensor<6x6xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %q : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %x = math.exp %s : tensor<6x6xf16>
  %l0 = tensor.empty() : tensor<6xf16>
  %l1 = linalg.fill ins(%zero : f16) outs(%l0 : tensor<6xf16>) -> tensor<6xf16>
  %l = linalg.reduce { arith.addf } ins(%y : tensor<6x6xf16>) outs(%l1 : tensor<6xf16>) dimensions = [1]
  %ls = linalg.broadcast ins(%l : tensor<6xf16>) outs(%e : tensor<6x6xf16>) dimensions = [1]
  %p = arith.divf %x, %ls : tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{is not raised: the sum of the softmax is not of its exponentials}}
  %o = linalg.matmul ins(%p, %q : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

// A sum over queries.
func.func @sum_axis(%q: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %q : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %x = math.exp %s : tensor<6x6xf16>
  %l0 = tensor.empty() : tensor<6xf16>
  %l1 = linalg.fill ins(%zero : f16) outs(%l0 : tensor<6xf16>) -> tensor<6xf16>
  %l = linalg.reduce { arith.addf } ins(%x : tensor<6x6xf16>) outs(%l1 : tensor<6xf16>) dimensions = [0]
  %ls = linalg.broadcast ins(%l : tensor<6xf16>) outs(%e : tensor<6x6xf16>) dimensions = [0]
  %p = arith.divf %x, %ls : tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  // expected-remark @+1 {{is not raised: the softmax is over another dimension than the keys}}
  %o = linalg.matmul ins(%p, %q : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}

// No softmax: no remark.
func.func @products(%q: tensor<6x16xf16>) -> tensor<6x16xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<6x6xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<6x6xf16>) -> tensor<6x6xf16>
  %s = linalg.matmul indexing_maps = [#a, #bt, #c] ins(%q, %q : tensor<6x16xf16>, tensor<6x16xf16>) outs(%z : tensor<6x6xf16>) -> tensor<6x6xf16>
  %o0 = tensor.empty() : tensor<6x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<6x16xf16>) -> tensor<6x16xf16>
  %o = linalg.matmul ins(%s, %q : tensor<6x6xf16>, tensor<6x16xf16>) outs(%o1 : tensor<6x16xf16>) -> tensor<6x16xf16>
  return %o : tensor<6x16xf16>
}
