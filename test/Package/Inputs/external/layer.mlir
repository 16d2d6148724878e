!t = tensor<1x8x512x64xbf16>
func.func @layer(%q: !t, %k: !t, %v: !t) -> !t {
  %o = mini.attend %q, %k, %v : (!t, !t, !t) -> !t
  return %o : !t
}
