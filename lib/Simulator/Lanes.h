//===- Lanes.h - Handlers from scalar functions -----------------*- C++ -*-===//
//
// Registers of 8, 16 and 32 bits are arrays of 32-bit words, one per lane, the upper bits zero;
// 64-bit ones arrays of 64-bit words. These templates turn a function of scalars into a handler;
// all lanes are computed, the active ones stored, so the loops vectorise.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_LANES_H
#define TESSERA_SIMULATOR_LANES_H

#include "lib/Simulator/Decoder.h"
#include "lib/Simulator/Machine.h"
#include <type_traits>

namespace tessera::sim::detail {

/// How a value of type C lies in a register.
template <class C>
struct Lane {
  using Storage = std::conditional_t<
      std::is_same_v<C, float>, float,
      std::conditional_t<std::is_same_v<C, double>, double,
                         std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>>>;
  static C get(Storage s) { return static_cast<C>(s); }
  static Storage put(C c) {
    if constexpr (std::is_integral_v<C>)
      return static_cast<std::make_unsigned_t<C>>(c);
    else
      return c;
  }
};

/// F::f(a) with operands 0 (destination) and 1.
template <class R, class A, class F>
Step unary(Exec &exec, const Inst &inst) {
  const auto *a = exec.src<typename Lane<A>::Storage>(inst, 1);
  typename Lane<R>::Storage r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = Lane<R>::put(F::f(Lane<A>::get(a[lane])));
  exec.store(inst, 0, r);
  return Step::Next;
}

template <class R, class A, class B, class F>
Step binary(Exec &exec, const Inst &inst) {
  const auto *a = exec.src<typename Lane<A>::Storage>(inst, 1);
  const auto *b = exec.src<typename Lane<B>::Storage>(inst, 2);
  typename Lane<R>::Storage r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = Lane<R>::put(F::f(Lane<A>::get(a[lane]), Lane<B>::get(b[lane])));
  exec.store(inst, 0, r);
  return Step::Next;
}

template <class R, class A, class B, class C, class F>
Step ternary(Exec &exec, const Inst &inst) {
  const auto *a = exec.src<typename Lane<A>::Storage>(inst, 1);
  const auto *b = exec.src<typename Lane<B>::Storage>(inst, 2);
  const auto *c = exec.src<typename Lane<C>::Storage>(inst, 3);
  typename Lane<R>::Storage r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] =
        Lane<R>::put(F::f(Lane<A>::get(a[lane]), Lane<B>::get(b[lane]), Lane<C>::get(c[lane])));
  exec.store(inst, 0, r);
  return Step::Next;
}

/// An instruction that changes nothing which the simulator keeps.
inline Step nothing(Exec &, const Inst &) { return Step::Next; }

/// Calls `fn` with a value of the C++ type of an integer instruction type; returns null for other
/// types.
template <class Fn>
Handler forInteger(Ty ty, Fn fn) {
  switch (ty) {
  case Ty::U16:
  case Ty::B16:
    return fn(uint16_t());
  case Ty::S16:
    return fn(int16_t());
  case Ty::U32:
  case Ty::B32:
    return fn(uint32_t());
  case Ty::S32:
    return fn(int32_t());
  case Ty::U64:
  case Ty::B64:
    return fn(uint64_t());
  case Ty::S64:
    return fn(int64_t());
  default:
    return nullptr;
  }
}

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_LANES_H
