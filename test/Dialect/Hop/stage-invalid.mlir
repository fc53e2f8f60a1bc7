// Tiles that threads write to shared memory, and parts of tiles there.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

!Wide = tensor<64x32xf32, #hop.layout<accumulator>>
func.func @transposed(%t: !Wide, %to: !hop.shared<tensor<32x64xf32>, rows = 32>) {
  // expected-error@+1 {{transposes tiles of 16 bits (stmatrix.trans), got 'tensor<64x32xf32, #hop.layout<accumulator>>'}}
  hop.stage %t, %to transposed : !Wide, !hop.shared<tensor<32x64xf32>, rows = 32>
  func.return
}

// -----

!Half = tensor<64x32xbf16, #hop.layout<accumulator>>
func.func @shape(%t: !Half, %to: !hop.shared<tensor<64x32xbf16>, rows = 64>) {
  // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its type and transposed shape}}
  hop.stage %t, %to transposed : !Half, !hop.shared<tensor<64x32xbf16>, rows = 64>
  func.return
}

// -----

func.func @chunks(%t: !hop.shared<tensor<64x128xbf16>, rows = 64>, %i: index) {
  // expected-error@+1 {{takes columns in whole chunks of 64, got 32}}
  %s = hop.slice %t[%i] : !hop.shared<tensor<64x128xbf16>, rows = 64> -> !hop.shared<tensor<64x32xbf16>, rows = 64>
  func.return
}

// -----

func.func @both(%t: !hop.shared<tensor<64x128xbf16>, rows = 64>, %i: index) {
  // expected-error@+1 {{takes parts of rows or of columns, not of both}}
  %s = hop.slice %t[%i] : !hop.shared<tensor<64x128xbf16>, rows = 64> -> !hop.shared<tensor<32x64xbf16>, rows = 64>
  func.return
}

// -----

hop.kernel @add attributes {argument_names = ["y"], argument_types = [!tile.view<[M, 64], bf16>],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !tile.view<[M, 64], bf16>, %m: index):
  %s = hop.staging "y" : !hop.shared<tensor<64x64xbf16>, rows = 64>
  hop.role @writer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{adds elements of f32, got 'bf16'}}
    hop.bulk_store %s, %y[%m, %c0] add : !hop.shared<tensor<64x64xbf16>, rows = 64>, !tile.view<[M, 64], bf16>
  }
}
