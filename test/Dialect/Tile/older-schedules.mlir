// Schedules as versions before wrote them are read as what they mean.
// RUN: tessera-opt %s | FileCheck %s

// CHECK-LABEL: @two
// CHECK-SAME: #tile.schedule<producer = operands, consumers = 2, stages = 3, outer_stages = 2, overlap = 2, polynomial_exp = 0, pingpong = false, speculate = true, store = direct, persistent = dynamic, {{.*}}placement = rows, transpose = 4>
tile.kernel @two() grid(%m = 4) schedule #tile.schedule<warp_specialize = true, consumers = 2, stages = 3, outer_stages = 2,
    overlap = 2, lead = 0, rescale = after, pack = after, operands = registers, polynomial_exp = 0, pin_waits = false,
    pingpong = false, split = true, speculate = true, store = direct, staging = own, persistent = dynamic, order = linear,
    section = 2, cluster = 1, pdl = false, producer_registers = 24, consumer_registers = 216, placement = rows,
    reducer_registers = 48, loads = direct, transpose = apart, transposer_warps = 4> {
}

// CHECK-LABEL: @scaled
// CHECK-SAME: #tile.schedule<overlap = scaled, store = tma, transpose = 0>
tile.kernel @scaled() grid(%m = 4) schedule #tile.schedule<overlap = 2, lead = 0, rescale = before, pack = after, store = tma,
    staging = own, transpose = own, transposer_warps = 4> {
}

// CHECK-LABEL: @three
// CHECK-SAME: #tile.schedule<overlap = 3>
tile.kernel @three() grid(%m = 4) schedule #tile.schedule<overlap = 3, lead = 1> {
}

// CHECK-LABEL: @one
// CHECK-SAME: #tile.schedule<overlap = 1>
tile.kernel @one() grid(%m = 4) schedule #tile.schedule<overlap = 1, lead = 0, rescale = before, pack = before> {
}

// CHECK-LABEL: @lead
// CHECK-SAME: #tile.schedule<overlap = lead>
tile.kernel @lead() grid(%m = 4) schedule #tile.schedule<overlap = 1, lead = 1> {
}

// CHECK-LABEL: @apart
// CHECK-SAME: #tile.schedule<transpose = 4>
tile.kernel @apart() grid(%m = 4) schedule #tile.schedule<transpose = apart> {
}

// CHECK-LABEL: @beside
// CHECK-SAME: #tile.schedule<transpose = 3>
tile.kernel @beside() grid(%m = 4) schedule #tile.schedule<reducer_registers = 40, transpose = apart, transposer_warps = 3> {
}

// What has one value now is left out.
// CHECK-LABEL: @fixed
// CHECK-SAME: #tile.schedule<stages = 2>
tile.kernel @fixed() grid(%m = 4) schedule #tile.schedule<split = true, operands = registers, stages = 2, pdl = false> {
}

// CHECK-LABEL: @exchanged
// CHECK-SAME: #tile.schedule<cluster = exchange, placement = apart>
tile.kernel @exchanged() grid(%m = 4) schedule #tile.schedule<cluster = 2, placement = apart, exchange = 1> {
}

// CHECK-LABEL: @pair
// CHECK-SAME: #tile.schedule<cluster = 2>
tile.kernel @pair() grid(%m = 4) schedule #tile.schedule<cluster = 2, exchange = 0> {
}

// CHECK-LABEL: @by_itself
// CHECK-SAME: #tile.schedule<cluster = 1>
tile.kernel @by_itself() grid(%m = 4) schedule #tile.schedule<exchange = 0> {
}

// CHECK-LABEL: @producer
// CHECK-SAME: #tile.schedule<producer = all, stages = 2>
tile.kernel @producer() grid(%m = 4) schedule #tile.schedule<warp_specialize = true, stages = 2, loads = pipe> {
}

// CHECK-LABEL: @fetched
// CHECK-SAME: #tile.schedule<producer = all>
tile.kernel @fetched() grid(%m = 4) schedule #tile.schedule<loads = pipe> {
}

// CHECK-LABEL: @alone
// CHECK-SAME: #tile.schedule<producer = none>
tile.kernel @alone() grid(%m = 4) schedule #tile.schedule<loads = direct, warp_specialize = false> {
}

// That there is a producer says nothing of what it loads.
// CHECK-LABEL: @whatever
// CHECK-SAME: #tile.schedule<stages = 2>
tile.kernel @whatever() grid(%m = 4) schedule #tile.schedule<warp_specialize = true, stages = 2> {
}

// CHECK-LABEL: @pinned
// CHECK-SAME: #tile.schedule<stages = 2, work = pinned>
tile.kernel @pinned() grid(%m = 4) schedule #tile.schedule<pin_waits = true, stages = 2> {
}

// CHECK-LABEL: @moved
// CHECK-SAME: #tile.schedule<work = elements>
tile.kernel @moved() grid(%m = 4) schedule #tile.schedule<pin_waits = false, work = elements> {
}
