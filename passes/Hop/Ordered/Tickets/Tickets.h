//===- Tickets.h - The steps of hop-schedule-tickets ----------------------===//
//
// Each changes what threads do that wait for tickets (fixed_sums), and nothing of what they add.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_ORDERED_TICKETS_TICKETS_H
#define TESSERA_PASSES_HOP_ORDERED_TICKETS_TICKETS_H

#include "dialects/Hop/Hop.h"

namespace tessera {

/// Joins the pieces of a loop that do the same, in roles of one thread.
void joinLoops(hop::KernelOp kernel);

/// Makes one loop of a loop over others of the same iterations, in all roles.
void flattenLoops(hop::KernelOp kernel);

/// Asks for the ticket of the next step while the copies of this one are written.
void peekTickets(hop::KernelOp kernel);

/// Lets a thread of its own pass tickets on, where a warp is free for it.
void passTickets(hop::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_HOP_ORDERED_TICKETS_TICKETS_H
