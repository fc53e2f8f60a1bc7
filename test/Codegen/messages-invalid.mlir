// RUN: env FAKE_RELEASE=12.3 FAKE_LOG=%S/Inputs/messages.log tessera-translate --mlir-to-cubin --ptxas=%S/Inputs/fake-ptxas \
// RUN:   %s -verify-diagnostics -o %t

// What ptxas says is reported at the line of the source, at the kernel, or at the module: the best that is known.

// expected-error@+4 {{ptxas did not honour the order of asynchronous work or the registers of the roles}}
// expected-note@+3 {{see the message of ptxas}}
// expected-note@+2 {{(C7599)}}
// expected-warning@+2 {{ptxas (C7600): Something else of the future}}
module {
llvm.func @first(%out: !llvm.ptr<1>, %a: f32) attributes {nvvm.kernel} {
  %b = llvm.fmul %a, %a : f32
  // expected-remark@+1 {{ptxas (C7517): warpgroup.wait is injected}}
  llvm.store %b, %out : f32, !llvm.ptr<1>
  llvm.return
}
// expected-error@+3 {{kernel 'second': wgmma is serialised because a register operand}}
// expected-note@+2 {{must be packed after the wait}}
// expected-note@+1 {{(C7513)}}
llvm.func @second() attributes {nvvm.kernel} {
  llvm.return
}
}
