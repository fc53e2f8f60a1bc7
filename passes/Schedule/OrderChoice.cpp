//===- OrderChoice.cpp - How thread blocks go over the grid ----------------===//
//
// The part of ScheduleSearch that decides how thread blocks get the tiles of the grid, and in which
// order.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ExchangedSums.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Schedule/ScheduleSearch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Tiles of unequal work are handed out one by one, the longest first. Where there is work between
/// dots those of equal work are too, but for a grid with hardly more tiles than multiprocessors:
/// asking for another one takes longer than it gains there (docs/lab/tiles.md).
void ScheduleSearch::chooseWalk(ScheduleFields &fields) const {
  if (ordersSums(fields))
    chooseOrderOfSums(fields);
  KernelOp own = kernel; // accessors of operations are not const
  Trend trend = workTrend(kernel, 0);
  bool varies = trend != Trend::Constant;
  // Without work between dots all blocks keep step, and taking turns at the tiles keeps what they
  // share in the L2 cache.
  // An order that the author asks for needs blocks that walk over tiles, producer or not.
  bool ordered = fields.order && *fields.order != OrderKind::Linear;
  bool isFew = TileDialect::FewTilesAttrHelper(own.getContext()).isAttrPresent(own),
       handsOut = varies || (worksBetweenDots && !isFew);
  if (!fields.persistent)
    fields.persistent = *fields.warpSpecialize && !work.gathers && handsOut
                            ? PersistentKind::Dynamic
                        : *fields.warpSpecialize || ordered ? PersistentKind::Static
                                                            : PersistentKind::None;
  bool walks = *fields.persistent != PersistentKind::None, ofTwo = own.getGrid().size() == 2;
  // Of a sliding window the first tiles are short, as nothing is before the sequence.
  bool shortFirst = walks && (trend == Trend::Increasing || trend == Trend::Sliding),
       longFirst = walks && trend == Trend::Decreasing,
       shares = walks && !shortFirst && !longFirst && sharesAlongBoth(kernel);
  if (!fields.section)
    fields.section = shares && !ofTwo ? model.sectionOfShared : 2;
  if (!fields.order)
    fields.order = shortFirst        ? OrderKind::Descending
                   : longFirst       ? OrderKind::Ascending
                   : shares && ofTwo ? OrderKind::Narrow
                   : shares          ? OrderKind::Ascending
                                     : OrderKind::Linear;
}

/// Tiles begin with the grid point that comes to them first, where each walks up: so the one whose
/// loop begins last goes first, and nobody waits for one that has further to go. Where all begin
/// alike, those of other indices come in between, so that neighbours do not start together. Where
/// they do not, the longest of a section come last and wait for each other at its end; a smaller
/// section has fewer of them. That pays where they begin several steps apart
/// (docs/lab/backward.md).
void ScheduleSearch::chooseOrderOfSums(ScheduleFields &fields) const {
  if (!fields.persistent)
    fields.persistent = PersistentKind::Dynamic;
  Trend begin = Trend::Constant;
  int64_t apart = 0;
  for (const OrderedSum &sum : ordered.sums)
    if (sum.dim == 0 && begin == Trend::Constant) {
      begin = beginTrend(kernel, sum);
      apart = tilesApart(kernel, sum) * (exchangesSums(fields) ? exchangingBlocks : 1);
    }
  if (!fields.order)
    fields.order = begin == Trend::Increasing ? OrderKind::Descending : OrderKind::Ascending;
  if (!fields.section)
    fields.section = begin == Trend::Constant || apart <= 1 ? 2 : 1;
}
