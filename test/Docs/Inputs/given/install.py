import numpy as np
import pathlib

pathlib.Path("mine.tile").write_text("""param N : int = 64
tile.kernel @scale(%x: !tile.view<[M, $N], f32>, %y: !tile.view<[M, $N], f32>, %by: f32) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %a = tile.load %x[%row, %c0] : !tile.view<[M, $N], f32> -> tensor<64x$(N)xf32>
  %s = tile.splat %by : f32 -> tensor<64x$(N)xf32>
  %b = arith.mulf %a, %s : tensor<64x$(N)xf32>
  tile.store %b, %y[%row, %c0] : tensor<64x$(N)xf32>, !tile.view<[M, $N], f32>
}
""")
x, y = np.ones((3, 64), np.float32), np.zeros((3, 64), np.float32)
