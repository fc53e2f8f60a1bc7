// Every pass of Tessera, in the order of the pipeline.

include "passes/Tile/TilePasses.td"
include "passes/Schedule/SchedulePasses.td"
include "passes/WarpSpecialize/WarpSpecializePasses.td"
include "passes/Hop/HopPasses.td"
