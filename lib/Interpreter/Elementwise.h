//===- Elementwise.h - Handlers made from functions of elements -----------===//

#ifndef TESSERA_LIB_INTERPRETER_ELEMENTWISE_H
#define TESSERA_LIB_INTERPRETER_ELEMENTWISE_H

#include "lib/Interpreter/Engine.h"

namespace tessera::interp {

using SetFloats = void (Frame::*)(mlir::Value, Floats);

/// OpT applies `function` to doubles; the loop is instantiated per function, so that it vectorises.
template <typename OpT, typename Fn>
void addFloatUnary(HandlerTable &table, Fn function, SetFloats set = &Frame::set) {
  table.add<OpT>([function, set](Frame &frame, mlir::Operation *op) {
    llvm::ArrayRef<double> x = frame.floats(op->getOperand(0));
    Floats out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = function(x[i]);
    (frame.*set)(op->getResult(0), std::move(out));
    return llvm::success();
  });
}

template <typename OpT, typename Fn>
void addFloatBinary(HandlerTable &table, Fn function, SetFloats set = &Frame::set) {
  table.add<OpT>([function, set](Frame &frame, mlir::Operation *op) {
    llvm::ArrayRef<double> x = frame.floats(op->getOperand(0)), y = frame.floats(op->getOperand(1));
    Floats out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = function(x[i], y[i]);
    (frame.*set)(op->getResult(0), std::move(out));
    return llvm::success();
  });
}

/// A sum or a difference, which takes one product at most before it is rounded.
template <typename OpT, typename Fn>
void addSum(HandlerTable &table, Fn function) {
  table.add<OpT>([function](Frame &frame, mlir::Operation *op) {
    llvm::ArrayRef<double> x = frame.floats(op->getOperand(0)), y = frame.floats(op->getOperand(1));
    if (const Floats *product = frame.getProduct(op->getOperand(0)))
      x = *product;
    else if (const Floats *product = frame.getProduct(op->getOperand(1)))
      y = *product;
    Floats out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = function(x[i], y[i]);
    frame.set(op->getResult(0), std::move(out));
    return llvm::success();
  });
}

/// `function(x, width)` on sign-extended integers of `width` bits; the result is wrapped.
template <typename OpT, typename Fn>
void addIntUnary(HandlerTable &table, Fn function) {
  table.add<OpT>([function](Frame &frame, mlir::Operation *op) {
    llvm::ArrayRef<int64_t> x = frame.ints(op->getOperand(0));
    unsigned width = intWidth(mlir::getElementTypeOrSelf(op->getOperand(0).getType()));
    Ints out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = function(x[i], width);
    frame.set(op->getResult(0), std::move(out));
    return llvm::success();
  });
}

/// `function(x, y, width)` as above.
template <typename OpT, typename Fn>
void addIntBinary(HandlerTable &table, Fn function) {
  table.add<OpT>([function](Frame &frame, mlir::Operation *op) {
    llvm::ArrayRef<int64_t> x = frame.ints(op->getOperand(0)), y = frame.ints(op->getOperand(1));
    unsigned width = intWidth(mlir::getElementTypeOrSelf(op->getOperand(0).getType()));
    Ints out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = function(x[i], y[i], width);
    frame.set(op->getResult(0), std::move(out));
    return llvm::success();
  });
}

} // namespace tessera::interp

#endif // TESSERA_LIB_INTERPRETER_ELEMENTWISE_H
