// Every pass of Tessera, in the order of the pipeline.

include "passes/TilePasses.td"
include "passes/HopPasses.td"
