//===- Memory.cpp - The tensor behind a view, and who touched it ----------===//

#include "lib/Interpreter/Memory.h"

namespace tessera::interp {

static constexpr int32_t nobody = -1, several = -2;

Clip clip(int64_t start, int64_t size, int64_t extent) {
  // Compared before it is negated or added, since any index is allowed.
  if (start >= extent || start <= -size)
    return {0, 0};
  return {std::max<int64_t>(0, -start), std::min(size, extent - start)};
}

ViewMemory::ViewMemory(HostTensor &tensor, ViewUse use) : tensor(tensor), use(use) {
  if (use.added)
    return;
  if (use.stored) {
    writers = std::make_unique<std::atomic<int32_t>[]>(tensor.data.size());
    for (size_t i = 0; i < tensor.data.size(); ++i)
      writers[i].store(nobody, std::memory_order_relaxed);
  }
  if (needsOneThread())
    readers.assign(tensor.data.size(), nobody);
}

template <typename Visitor>
std::optional<Conflict> ViewMemory::forEachRow(llvm::ArrayRef<int64_t> indices, bool hasRows,
                                               int64_t rows, int64_t columns, Visitor visit) {
  size_t rank = tensor.shape.size(), tiled = hasRows ? 2 : 1;
  int64_t offset = 0, linear = 0;
  for (size_t i = 0; i < rank - tiled; ++i) {
    offset += indices[i] * tensor.strides[i];
    linear = linear * tensor.shape[i] + indices[i];
  }
  int64_t column = indices[rank - 1], width = tensor.shape[rank - 1];
  Clip inRow = clip(column, columns, width);
  int64_t count = inRow.last - inRow.first;
  if (count <= 0)
    return std::nullopt;
  column += inRow.first;
  if (!hasRows)
    return visit(offset + column, linear * width + column, inRow.first, count);
  int64_t row = indices[rank - 2], height = tensor.shape[rank - 2];
  Clip inColumn = clip(row, rows, height);
  for (int64_t i = inColumn.first; i < inColumn.last; ++i)
    if (auto conflict =
            visit(offset + (row + i) * tensor.strides[rank - 2] + column,
                  (linear * height + row + i) * width + column, i * columns + inRow.first, count))
      return conflict;
  return std::nullopt;
}

std::optional<Conflict> ViewMemory::load(int64_t point, llvm::ArrayRef<int64_t> indices,
                                         bool hasRows, int64_t rows, int64_t columns, double *out) {
  return forEachRow(indices, hasRows, rows, columns,
                    [&](int64_t offset, int64_t linear, int64_t tileIndex,
                        int64_t count) -> std::optional<Conflict> {
                      std::copy_n(&tensor.data[offset], count, out + tileIndex);
                      if (readers.empty())
                        return std::nullopt;
                      for (int64_t i = 0; i < count; ++i) {
                        int32_t writer = writers[offset + i].load(std::memory_order_relaxed);
                        if (writer != nobody && writer != point)
                          return Conflict{linear + i, writer, /*otherStored=*/true};
                        int32_t &reader = readers[offset + i];
                        reader = reader == nobody || reader == point ? point : several;
                      }
                      return std::nullopt;
                    });
}

std::optional<Conflict> ViewMemory::store(int64_t point, llvm::ArrayRef<int64_t> indices,
                                          bool hasRows, int64_t rows, int64_t columns,
                                          const double *in) {
  return forEachRow(
      indices, hasRows, rows, columns,
      [&](int64_t offset, int64_t linear, int64_t tileIndex,
          int64_t count) -> std::optional<Conflict> {
        for (int64_t i = 0; i < count; ++i) {
          int32_t writer = nobody;
          if (!writers[offset + i].compare_exchange_strong(writer, static_cast<int32_t>(point),
                                                           std::memory_order_relaxed) &&
              writer != point)
            return Conflict{linear + i, writer, /*otherStored=*/true};
          if (!readers.empty() && readers[offset + i] != nobody && readers[offset + i] != point)
            return Conflict{linear + i, readers[offset + i], /*otherStored=*/false};
          tensor.data[offset + i] = in[tileIndex + i];
        }
        return std::nullopt;
      });
}

void ViewMemory::add(llvm::ArrayRef<int64_t> indices, bool hasRows, int64_t rows, int64_t columns,
                     const double *in, bool rounds) {
  forEachRow(
      indices, hasRows, rows, columns,
      [&](int64_t offset, int64_t, int64_t tileIndex, int64_t count) -> std::optional<Conflict> {
        for (int64_t i = 0; i < count; ++i) {
          double sum = tensor.data[offset + i] + in[tileIndex + i];
          tensor.data[offset + i] = rounds ? static_cast<float>(sum) : sum;
        }
        return std::nullopt;
      });
}

} // namespace tessera::interp
