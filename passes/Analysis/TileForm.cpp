#include "passes/Analysis/TileForm.h"

using namespace mlir;
using namespace tessera;

bool TileForm::add(const TileForm &other, int64_t factor) {
  bool fits = same.add(other.same, factor);
  nesting = std::max(nesting, other.nesting);
  for (auto [axis, coefficient] : other.axes)
    fits = fits && addProduct(axes[axis], coefficient, factor);
  for (auto [tile, coefficient] : other.loaded)
    fits = fits && addProduct(loaded[tile], coefficient, factor);
  for (const TileQuotient &quotient : other.quotients) {
    auto *known = llvm::find_if(quotients, [&](const TileQuotient &own) {
      return own.dividend == quotient.dividend && own.divisor == quotient.divisor;
    });
    if (known == quotients.end())
      known = quotients.insert(known, {0, quotient.dividend, quotient.divisor});
    fits = fits && addProduct(known->coefficient, quotient.coefficient, factor);
  }
  llvm::erase_if(quotients, [](const TileQuotient &own) { return own.coefficient == 0; });
  return fits;
}

bool TileForm::isConstant() const {
  auto isZero = [](const auto &entry) { return entry.second == 0; };
  return same.slope == 0 && llvm::all_of(axes, isZero) && llvm::all_of(same.symbols, isZero) &&
         llvm::all_of(loaded, isZero) && quotients.empty();
}

bool TileForm::moves() const {
  return same.slope != 0 || llvm::any_of(quotients, [](const TileQuotient &quotient) {
           return quotient.dividend->moves();
         });
}

void TileForm::exchangeAxes() {
  llvm::SmallMapVector<AxisIndex, int64_t, 2> exchanged;
  for (auto [index, coefficient] : axes)
    exchanged[{1 - index.first, index.second}] = coefficient;
  axes = std::move(exchanged);
  for (TileQuotient &quotient : quotients) {
    auto dividend = std::make_shared<TileForm>(*quotient.dividend);
    dividend->exchangeAxes();
    quotient.dividend = std::move(dividend);
  }
}
