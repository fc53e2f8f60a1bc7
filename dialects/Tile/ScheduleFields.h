//===- ScheduleFields.h - The fields of a schedule as a struct ------------===//
//
// Names for what ScheduleFields.td declares of #tile.schedule.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_H
#define TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_H

#include "dialects/Tile/Tile.h"

namespace tessera::tile {

/// #tile.schedule with fields that can be set one at a time.
using ScheduleFields = ScheduleAttr::Fields;

/// The name and the domain of one of them.
using ScheduleFieldInfo = ScheduleAttr::FieldInfo;

/// The thread blocks of a cluster.
inline int64_t countBlocks(ClusterKind cluster) {
  switch (cluster) {
  case ClusterKind::One:
    return 1;
  case ClusterKind::Two:
  case ClusterKind::Exchange:
    return 2;
  case ClusterKind::Four:
    return 4;
  case ClusterKind::Eight:
    return 8;
  case ClusterKind::Sixteen:
    return 16;
  }
  return 1;
}

/// Whether some sections of the grid go through their loops from their ends.
inline bool turnsSections(OrderKind order) {
  return order == OrderKind::Turns || order == OrderKind::LastTurns;
}

/// The fields that are set, as "consumers = 2, stages = 2": what ScheduleAttr::parseText reads.
std::string printScheduleFields(ScheduleAttr schedule);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_H
