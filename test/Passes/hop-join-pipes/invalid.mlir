// RUN: tessera-opt %s --pass-pipeline='builtin.module(hop.kernel(hop-join-pipes))' -verify-diagnostics

// expected-error@+1 {{'hop.kernel' op has 'tessera.small_tile', which is a number of bytes}}
hop.kernel @small attributes {argument_names = [], argument_types = [], grid = [], schedule = #tile.schedule<>, tessera.small_tile = "few"} {
}
