// RUN: %cases %s | tessera-opt -split-input-file -verify-diagnostics -allow-unregistered-dialect

// FRAME
tile.kernel @copy(%x: !tile.view<[M], f32>, %y: !tile.view<[M], f32>) grid(%m = M ceildiv 64) {
  %c64 = arith.constant 64 : index
  %at = arith.muli %m, %c64 : index
  %t = tile.load %x[%at] : !tile.view<[M], f32> -> tensor<64xf32>
  tile.store %t, %y[%at] : tensor<64xf32>, !tile.view<[M], f32>
}

// HERE

// CASE
tile.sequence @unknown_kernel(%x: !tile.view<[M], f32>) {
  // expected-error@+1 {{'tile.launch' op launches 'cpy', which is no kernel; the source has copy}}
  tile.launch @cpy(%x, %x) : !tile.view<[M], f32>, !tile.view<[M], f32>
}

// CASE
tile.sequence @too_few(%x: !tile.view<[M], f32>) {
  // expected-error@+1 {{'tile.launch' op passes 1 operands to kernel 'copy', which takes 2}}
  tile.launch @copy(%x) : !tile.view<[M], f32>
}

// CASE
// The kernel has one name for what the sequence has two for.
tile.sequence @two_extents(%x: !tile.view<[M], f32>, %y: !tile.view<[N], f32>) {
  // expected-error@+1 {{'tile.launch' op passes %y as 'y', whose dimension 0 is N; kernel 'copy' has one extent for 'M', which an earlier argument makes M}}
  tile.launch @copy(%x, %y) : !tile.view<[M], f32>, !tile.view<[N], f32>
}

// CASE
tile.sequence @element_type(%x: !tile.view<[M], f16>, %y: !tile.view<[M], f32>) {
  // expected-error@+1 {{'tile.launch' op passes %x of type '!tile.view<[M], f16>' as 'x' of kernel 'copy', which takes '!tile.view<[M], f32>'}}
  tile.launch @copy(%x, %y) : !tile.view<[M], f16>, !tile.view<[M], f32>
}

// CASE
tile.sequence @twice(%x: !tile.view<[M], f32>) {
  // expected-error@+1 {{'tile.launch' op passes %x twice, and kernel 'copy' stores to 'y'; views of a kernel are different memory: give it a workspace, and another kernel what follows}}
  tile.launch @copy(%x, %x) : !tile.view<[M], f32>, !tile.view<[M], f32>
}

// CASE
tile.sequence @never_stored(%x: !tile.view<[M], f32>, %y: !tile.view<[M], f32>) {
  %w = tile.workspace : !tile.view<[M], f32>
  // expected-error@+1 {{'tile.launch' op passes %w as 'x', which kernel 'copy' loads, and no earlier launch stores; launch the kernel that stores it before, or make the workspace `zeroed`}}
  tile.launch @copy(%w, %y) : !tile.view<[M], f32>, !tile.view<[M], f32>
  tile.launch @copy(%x, %w) : !tile.view<[M], f32>, !tile.view<[M], f32>
}

// -----
tile.kernel @fixed(%x: !tile.view<[64], f32>, %a: f32) grid(%m = 1) {
}

tile.sequence @run_time_extent(%x: !tile.view<[M], f32>, %a: f32) {
  // expected-error@+1 {{'tile.launch' op passes %x as 'x', whose dimension 0 is M; kernel 'fixed' is compiled for 64}}
  tile.launch @fixed(%x, %a) : !tile.view<[M], f32>, f32
}

// -----
tile.kernel @fixed(%x: !tile.view<[64], f32>, %a: f32) grid(%m = 1) {
}

tile.sequence @scalar(%x: !tile.view<[64], f32>, %a: i32) {
  // expected-error@+1 {{'tile.launch' op passes %a of type 'i32' as 'a' of kernel 'fixed', which takes 'f32'}}
  tile.launch @fixed(%x, %a) : !tile.view<[64], f32>, i32
}

// -----
tile.kernel @fixed(%x: !tile.view<[64], f32>, %a: f32) grid(%m = 1) {
}

tile.sequence @unknown_shape(%x: !tile.view<[64], f32>, %a: f32) dims(PARTS = 4) {
  // expected-error@+1 {{'tile.workspace' op has the dimension 'N', whose extent is unknown at launch; known are PARTS; others follow from these in dims(...) of the sequence}}
  %w = tile.workspace : !tile.view<[PARTS, N], f32>
  tile.launch @fixed(%x, %a) : !tile.view<[64], f32>, f32
}

// -----
tile.kernel @fixed(%x: !tile.view<[64], f32>, %a: f32) grid(%m = 1) {
}

// expected-error@+1 {{'tile.sequence' op dims makes 'PARTS' of 'K', whose extent is unknown at launch; known before it are none}}
tile.sequence @unknown_factor(%x: !tile.view<[64], f32>, %a: f32) dims(PARTS = K ceildiv 4) {
  tile.launch @fixed(%x, %a) : !tile.view<[64], f32>, f32
}

// -----
tile.kernel @fixed(%x: !tile.view<[64], f32>, %a: f32) grid(%m = 1) {
}

// expected-error@+1 {{'tile.sequence' op dims names 'M', which is a dimension already; give it another name}}
tile.sequence @known_name(%x: !tile.view<[64], f32>, %y: !tile.view<[M], f32>, %a: f32) dims(M = 4) {
  tile.launch @fixed(%x, %a) : !tile.view<[64], f32>, f32
}

// -----
// expected-error@+1 {{the divisor of an extent is at least 1, got 0}}
tile.sequence @divisor(%y: !tile.view<[M], f32>) dims(N = M ceildiv 0) {
}

// -----
// expected-error@+1 {{a factor of the extent 'N' is the name of a dimension or an integer of at least 1, got 0 : i64}}
tile.sequence @factor(%y: !tile.view<[M], f32>) dims(N = 0 * M) {
}

// -----
// expected-error@+1 {{'tile.sequence' op launches no kernel; add a tile.launch}}
tile.sequence @empty(%y: !tile.view<[M], f32>) {
  %w = tile.workspace : !tile.view<[M], f32>
}

// -----
tile.sequence @computes(%x: !tile.view<[64], f32>, %a: f32) {
  // expected-error@+1 {{'arith.addf' op is not what a sequence does: it holds tile.workspace and tile.launch; compute in a kernel}}
  %b = arith.addf %a, %a : f32
}
