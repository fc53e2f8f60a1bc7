// Tiles that threads write to shared memory, and parts of tiles there.
// RUN: %cases %s | tessera-opt -split-input-file -verify-diagnostics

!Half = tensor<64x32xbf16, #hop.layout<accumulator>>
func.func @shape(%t: !Half, %to: !hop.shared<tensor<64x32xbf16>, rows = 64>) {
  // expected-error@+1 {{writes a tile of 16 or 32 bits to one of its type and transposed shape}}
  hop.stage %t, %to transposed : !Half, !hop.shared<tensor<64x32xbf16>, rows = 64>
  func.return
}

// -----
!Half = tensor<64x32xbf16, #hop.layout<accumulator>>
func.func @rounded(%t: !Half, %to: !hop.shared<tensor<64x32xbf16>, rows = 64>) {
  // expected-error@+1 {{rounds f32 to tf32, got 'tensor<64x32xbf16}}
  hop.stage %t, %to tf32 : !Half, !hop.shared<tensor<64x32xbf16>, rows = 64>
  func.return
}

// -----
func.func @chunks(%t: !hop.shared<tensor<64x128xbf16>, rows = 64>, %i: index) {
  // expected-error@+1 {{takes columns in whole chunks of 64, got 32}}
  %s = hop.slice %t[%i] : !hop.shared<tensor<64x128xbf16>, rows = 64> -> !hop.shared<tensor<64x32xbf16>, rows = 64>
  func.return
}

// -----
// Parts that begin amid a chunk are read transposed alone.
func.func @amid(%t: !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64>, %i: index) {
  // expected-error@+1 {{takes columns in whole chunks of 128, got 64}}
  %s = hop.slice %t[%i] : !hop.shared<tensor<64x128xf8E4M3FN>, rows = 64> -> !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64>
  %r = hop.fetch %s : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
  %c = hop.fetch %s transposed : !hop.shared<tensor<64x64xf8E4M3FN>, rows = 64> -> tensor<64x64xf8E4M3FN>
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

// -----
// What a tile of rank 1 in shared memory is not for.
func.func @slice_of_row(%t: !hop.shared<tensor<64xf32>, rows = 64>, %i: index) {
  // expected-error@+1 {{operand #0 must be a tile of rank 2 in shared memory}}
  %s = hop.slice %t[%i] : !hop.shared<tensor<64xf32>, rows = 64> -> !hop.shared<tensor<32xf32>, rows = 32>
  func.return
}

// -----
!Row = !hop.shared<tensor<64xf32>, rows = 64>
!Matrix = !hop.shared<tensor<64x64xbf16>, rows = 64>
func.func @product_of_row(%a: !Row, %b: !Matrix) {
  // expected-error@+1 {{operand #0 must be a tile of rank 2 in shared memory or}}
  %d = hop.mma %a, %b : !Row, !Matrix -> tensor<64x64xf32, #hop.layout<accumulator>>
  func.return
}

// -----
!Row = !hop.shared<tensor<64xi32>, rows = 64>
func.func @stage_integers(%t: tensor<64xi32, #hop.layout<row>>, %to: !Row) {
  // expected-error@+1 {{writes vectors of f32, got 'tensor<64xi32, #hop.layout<row>>'}}
  hop.stage %t, %to : tensor<64xi32, #hop.layout<row>>, !Row
  func.return
}

// -----
!Row = !hop.shared<tensor<64xf32>, rows = 64>
func.func @stage_transposed_row(%t: tensor<64xf32, #hop.layout<row>>, %to: !Row) {
  // expected-error@+1 {{transposes tiles of rank 2, got 'tensor<64xf32, #hop.layout<row>>'}}
  hop.stage %t, %to transposed : tensor<64xf32, #hop.layout<row>>, !Row
  func.return
}

// -----
func.func @fetch_matrix(%t: !hop.shared<tensor<64x64xf32>, rows = 64>) {
  // expected-error@+1 {{reads a tile as it is in shared memory, 'tensor<64x64xf32>', got 'tensor<64xf32, #hop.layout<column>>'}}
  %r = hop.fetch %t : !hop.shared<tensor<64x64xf32>, rows = 64> -> tensor<64xf32, #hop.layout<column>>
  func.return
}

// -----
func.func @fetch_length(%t: !hop.shared<tensor<64xf32>, rows = 64>) {
  // expected-error@+1 {{reads a tile as it is in shared memory, 'tensor<64xf32>', got 'tensor<32xf32, #hop.layout<column>>'}}
  %r = hop.fetch %t : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<32xf32, #hop.layout<column>>
  func.return
}

// -----
func.func @fetch_type(%t: !hop.shared<tensor<64xf32>, rows = 64>) {
  // expected-error@+1 {{got 'tensor<64xi32, #hop.layout<column>>'}}
  %r = hop.fetch %t : !hop.shared<tensor<64xf32>, rows = 64> -> tensor<64xi32, #hop.layout<column>>
  func.return
}

// -----
func.func @fetch_bytes(%t: !hop.shared<tensor<64x64xi8>, rows = 64>) {
  // expected-error@+1 {{reads elements of 2 or 4 bytes, floats of 1 as a tile of rank 2, or numbers of 8 as one of rank 1, got 'tensor<64x64xi8, #hop.layout<accumulator>>'}}
  %r = hop.fetch %t : !hop.shared<tensor<64x64xi8>, rows = 64> -> tensor<64x64xi8, #hop.layout<accumulator>>
  func.return
}

// -----
!View = !tile.view<[M, 64], f32>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>
hop.kernel @too_many attributes {argument_names = ["y"], argument_types = [!View],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !View, %m: index):
  %s = hop.staging "y" : !Part
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{leaves 0 to 7 copies in flight, got 8}}
    hop.bulk_store %s, %y[%m, %c0] add in_flight 8 : !Part, !View
  }
}

// -----
func.func @fetch_bytes(%t: !hop.shared<tensor<64x64xi8>, rows = 64>) {
  // expected-error@+1 {{reads elements of 2 or 4 bytes, floats of 1 as a tile of rank 2, or numbers of 8 as one of rank 1, got 'tensor<64x64xi8, #hop.layout<accumulator>>'}}
  %r = hop.fetch %t : !hop.shared<tensor<64x64xi8>, rows = 64> -> tensor<64x64xi8, #hop.layout<accumulator>>
  func.return
}

// -----
!View = !tile.view<[M, 64], f32>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>
hop.kernel @negative attributes {argument_names = ["y"], argument_types = [!View],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !View, %m: index):
  %s = hop.staging "y" : !Part
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    // expected-error@+1 {{leaves 0 to 7 copies in flight, got -1}}
    hop.bulk_store %s, %y[%m, %c0] add in_flight -1 : !Part, !View
  }
}

// -----
func.func @fetch_bytes(%t: !hop.shared<tensor<64x64xi8>, rows = 64>) {
  // expected-error@+1 {{reads elements of 2 or 4 bytes, floats of 1 as a tile of rank 2, or numbers of 8 as one of rank 1, got 'tensor<64x64xi8, #hop.layout<accumulator>>'}}
  %r = hop.fetch %t : !hop.shared<tensor<64x64xi8>, rows = 64> -> tensor<64x64xi8, #hop.layout<accumulator>>
  func.return
}

// FRAME
!View = !tile.view<[M, 64], f32>
!Part = !hop.shared<tensor<64x64xf32>, rows = 64>
hop.kernel @NAME attributes {argument_names = ["y"], argument_types = [!View],
    grid = [#tile.grid_dim<"M", 64>], schedule = #tile.schedule<>} {
^bb0(%y: !View, %m: index):
  // HERE
}

// CASE from_slot
  %p = hop.pipe.create "k" : !hop.pipe<tensor<64x64xf32>, 1>
  hop.role @reducer warpgroups(1) {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %s = hop.pipe.wait %p : !hop.pipe<tensor<64x64xf32>, 1> -> !Part
    // expected-error@+1 {{leaves copies in flight that read a slot, which another thread than the one that copies gives back; copy from hop.staging, or in a role of one thread}}
    hop.bulk_store %s, %y[%m, %c0] add in_flight 1 : !Part, !View
  }

// CASE unread
  %p = hop.pipe.create "k" : !hop.pipe<tensor<64x64xf32>, 1>
  hop.role @writer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %s = hop.pipe.wait %p : !hop.pipe<tensor<64x64xf32>, 1> -> !Part
    hop.bulk_store %s, %y[%m, %c0] add in_flight 1 : !Part, !View
    // expected-error@+1 {{gives a slot away that a copy in flight reads; put hop.bulk_read_wait before it}}
    hop.pipe.release %p, %s : !hop.pipe<tensor<64x64xf32>, 1>, !Part
    hop.bulk_read_wait
  }

// CASE later
// The second copy leaves one in flight, which is itself: the first one has been read, and not the second.
  %p = hop.pipe.create "k" : !hop.pipe<tensor<64x64xf32>, 2>
  hop.role @writer elected {
  ^bb0(%wg: index):
    %c0 = arith.constant 0 : index
    %s = hop.pipe.wait %p : !hop.pipe<tensor<64x64xf32>, 2> -> !Part
    hop.bulk_store %s, %y[%m, %c0] add in_flight 1 : !Part, !View
    %t = hop.pipe.wait %p : !hop.pipe<tensor<64x64xf32>, 2> -> !Part
    hop.bulk_store %t, %y[%m, %c0] add in_flight 1 : !Part, !View
    hop.pipe.release %p, %s : !hop.pipe<tensor<64x64xf32>, 2>, !Part
    // expected-error@+1 {{gives a slot away that a copy in flight reads; put hop.bulk_read_wait before it}}
    hop.pipe.release %p, %t : !hop.pipe<tensor<64x64xf32>, 2>, !Part
    hop.bulk_read_wait
  }

// -----
func.func @fetch_columns(%t: !hop.shared<tensor<64x64xf16>, rows = 64>) {
  // expected-error@+1 {{transposes floats of 1 byte, a multiple of 32 rows of them, to the layout row_pairs; got 'tensor<64x64xf16, #hop.layout<accumulator>>'}}
  %r = hop.fetch %t transposed : !hop.shared<tensor<64x64xf16>, rows = 64> -> tensor<64x64xf16, #hop.layout<accumulator>>
  func.return
}

// -----
func.func @fetch_few_rows(%t: !hop.shared<tensor<16x64xf8E4M3FN>, rows = 16>) {
  // expected-error@+1 {{a multiple of 32 rows of them, to the layout row_pairs; got 'tensor<64x16xf8E4M3FN, #hop.layout<row_pairs>>'}}
  %r = hop.fetch %t transposed : !hop.shared<tensor<16x64xf8E4M3FN>, rows = 16> -> tensor<64x16xf8E4M3FN, #hop.layout<row_pairs>>
  func.return
}

// -----
func.func @fetch_other_shape(%t: !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32>) {
  // expected-error@+1 {{reads a tile as it is in shared memory, 'tensor<32x64xf8E4M3FN>', got 'tensor<32x64xf8E4M3FN>'}}
  %r = hop.fetch %t transposed : !hop.shared<tensor<32x64xf8E4M3FN>, rows = 32> -> tensor<32x64xf8E4M3FN>
  func.return
}
