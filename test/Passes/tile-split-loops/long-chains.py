# Masks in which every value is used twice by the next: time and memory stay linear in their length.
#
# RUN: %python %s > %t.mlir
# RUN: tessera-opt %t.mlir --tile-choose-schedule --tile-split-loops 2>&1 | FileCheck %s

# CHECK: remark: mask kept in every iteration: it combines too many comparisons
# CHECK: remark: mask kept in every iteration: it compares integers that may have wrapped in 32 bits
# CHECK: remark: mask kept in every iteration: it compares quotients of too many quotients

LENGTH = 80
KERNEL = """
tile.kernel @chain(%x: !tile.view<[S, 64], f16>, %z: !tile.view<[S, 64], f32>) grid(%m = S ceildiv 64)
    schedule #tile.schedule<> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tile.dim "S"
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %q = tile.load %x[%m, %c0] : !tile.view<[S, 64], f16> -> tensor<64x64xf16>
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<64x64xf32>) {
    %d = tile.dot %q, %q, %a : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %rows = tile.iota %c0 axis 0 : tensor<64x64xi32>
    %i0 = tile.iota %j axis 1 : tensor<64x64xi32>
@SUMS@
    %two = arith.constant dense<2> : tensor<64x64xi32>
    %three = arith.constant dense<3> : tensor<64x64xi32>
    %d0 = arith.addi %i0, %two : tensor<64x64xi32>
@QUOTIENTS@
    %k0 = arith.cmpi slt, %i0, %rows : tensor<64x64xi32>
@MASKS@
    %e = arith.cmpi slt, %i@LENGTH@, %rows : tensor<64x64xi32>
    %s = arith.select %k@LENGTH@, %d, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %t = arith.select %e, %s, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %f = arith.cmpi slt, %d@LENGTH@, %rows : tensor<64x64xi32>
    %u = arith.select %f, %t, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    scf.yield %u : tensor<64x64xf32>
  }
  tile.store %r, %z[%m, %c0] : tensor<64x64xf32>, !tile.view<[S, 64], f32>
}
"""
sums = [f"    %i{i + 1} = arith.addi %i{i}, %i{i} : tensor<64x64xi32>" for i in range(LENGTH)]
quotients = [
    f"    %by_two{i} = arith.floordivsi %d{i}, %two : tensor<64x64xi32>\n"
    f"    %by_three{i} = arith.floordivsi %d{i}, %three : tensor<64x64xi32>\n"
    f"    %d{i + 1} = arith.addi %by_two{i}, %by_three{i} : tensor<64x64xi32>"
    for i in range(LENGTH)
]
masks = [f"    %k{i + 1} = arith.andi %k{i}, %k{i} : tensor<64x64xi1>" for i in range(LENGTH)]
text = KERNEL.replace("@SUMS@", "\n".join(sums)).replace("@MASKS@", "\n".join(masks))
text = text.replace("@QUOTIENTS@", "\n".join(quotients))
print(text.replace("@LENGTH@", str(LENGTH)))
