// RUN: tessera-opt %s --tile-inline-functions -split-input-file -verify-diagnostics

func.func @f(%x: f32) -> f32 {
  // expected-error @+1 {{the function 'f' calls itself (f -> f); functions are inlined and cannot recurse, a loop is an scf.for}}
  %y = func.call @f(%x) : (f32) -> f32
  func.return %y : f32
}

// -----

func.func @f(%x: f32) -> f32 {
  %y = func.call @g(%x) : (f32) -> f32
  func.return %y : f32
}

func.func @g(%x: f32) -> f32 {
  %y = func.call @h(%x) : (f32) -> f32
  func.return %y : f32
}

func.func @h(%x: f32) -> f32 {
  // expected-error @+1 {{the function 'g' calls itself (g -> h -> g)}}
  %y = func.call @g(%x) : (f32) -> f32
  func.return %y : f32
}

tile.kernel @k(%x: f32) grid(%m = 1) {
  %y = func.call @f(%x) : (f32) -> f32
}

// -----

// expected-error @+1 {{the function 'f' has no body; functions are inlined, so that each is written out in the source}}
func.func private @f(f32) -> f32

tile.kernel @k(%x: f32) grid(%m = 1) {
  %y = func.call @f(%x) : (f32) -> f32
}

// -----

// expected-error @+1 {{the function 'f' has 2 blocks; it has one, and branches and loops are those of scf}}
func.func @f(%x: f32) -> f32 {
  func.return %x : f32
^bb1:
  func.return %x : f32
}

// -----

tile.kernel @k(%x: f32) grid(%m = 1) {
  // expected-error @+1 {{'g' does not reference a valid function}}
  %y = func.call @g(%x) : (f32) -> f32
}

// -----

tile.kernel @g(%x: f32) grid(%m = 1) {
}

tile.kernel @k(%x: f32) grid(%m = 1) {
  // expected-error @+1 {{'g' does not reference a valid function}}
  func.call @g(%x) : (f32) -> ()
}

// -----

func.func @f(%x: f32) -> f32 {
  func.return %x : f32
}

tile.kernel @k(%x: f32) grid(%m = 1) {
  // expected-error @+1 {{operand type mismatch: expected operand type 'f32', but provided 'index' for operand number 0}}
  %y = func.call @f(%m) : (index) -> f32
}

// -----

func.func @f() {
  // expected-error @+1 {{'tile.kernel' op expects parent op 'builtin.module'}}
  tile.kernel @k(%x: f32) grid(%m = 1) {
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error @+1 {{'tile.speculate' op expects parent op to be one of 'tile.kernel, tile.split_reduce'}}
  tile.speculate {
    %c = arith.constant dense<true> : tensor<64xi1>
    tile.yield_if %c : tensor<64xi1>
  } exact {
    tile.yield
  }
  func.return
}

// -----

func.func @f() -> index {
  // expected-error @+1 {{'tile.dim' op names the dimension 'N', which no view of the kernel has; it has M}}
  %n = tile.dim "N"
  func.return %n : index
}

tile.kernel @k(%x: !tile.view<[M], f32>) grid(%m = M) {
  %n = func.call @f() : () -> index
}

// -----

func.func @f(%x: f32) -> f32 {
  func.return %x : f32
}

tile.kernel @k(%x: f32) grid(%m = 1) {
  // expected-error @+1 {{'func.constant' op is not available; functions are no values, and func.call names the one that it calls}}
  %f = func.constant @f : (f32) -> f32
  %y = func.call_indirect %f(%x) : (f32) -> f32
}

// -----

func.func @f() {
  func.return
}

// expected-error @+1 {{'func.call' op stands where it has no meaning; functions stand beside the kernels, and kernels and functions call them}}
func.call @f() : () -> ()

// -----

module @inner {
  // expected-error @+1 {{'func.func' op stands where it has no meaning}}
  func.func @f() {
    func.return
  }
}

tile.kernel @k(%x: f32) grid(%m = 1) {
}

// -----

tile.kernel @k(%x: f32) grid(%m = 1) {
  builtin.module {
    // expected-error @+1 {{'func.func' op stands where it has no meaning}}
    func.func @f() {
      func.call @f() : () -> ()
      func.return
    }
  }
}

// -----

// Each function holds its predecessor twice: 2^16 constants and more.
func.func @f0() {
  %c = arith.constant 0 : index
  func.return
}
func.func @f1() {
  func.call @f0() : () -> ()
  func.call @f0() : () -> ()
  func.return
}
func.func @f2() {
  func.call @f1() : () -> ()
  func.call @f1() : () -> ()
  func.return
}
func.func @f3() {
  func.call @f2() : () -> ()
  func.call @f2() : () -> ()
  func.return
}
func.func @f4() {
  func.call @f3() : () -> ()
  func.call @f3() : () -> ()
  func.return
}
func.func @f5() {
  func.call @f4() : () -> ()
  func.call @f4() : () -> ()
  func.return
}
func.func @f6() {
  func.call @f5() : () -> ()
  func.call @f5() : () -> ()
  func.return
}
func.func @f7() {
  func.call @f6() : () -> ()
  func.call @f6() : () -> ()
  func.return
}
func.func @f8() {
  func.call @f7() : () -> ()
  func.call @f7() : () -> ()
  func.return
}
func.func @f9() {
  func.call @f8() : () -> ()
  func.call @f8() : () -> ()
  func.return
}
func.func @f10() {
  func.call @f9() : () -> ()
  func.call @f9() : () -> ()
  func.return
}
func.func @f11() {
  func.call @f10() : () -> ()
  func.call @f10() : () -> ()
  func.return
}
func.func @f12() {
  func.call @f11() : () -> ()
  func.call @f11() : () -> ()
  func.return
}
func.func @f13() {
  func.call @f12() : () -> ()
  func.call @f12() : () -> ()
  func.return
}
func.func @f14() {
  func.call @f13() : () -> ()
  // expected-error @+1 {{with this call of 'f13' there are more than 65536 operations}}
  func.call @f13() : () -> ()
  func.return
}
func.func @f15() {
  func.call @f14() : () -> ()
  func.call @f14() : () -> ()
  func.return
}
func.func @f16() {
  func.call @f15() : () -> ()
  func.call @f15() : () -> ()
  func.return
}
