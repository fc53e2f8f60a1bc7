"""What a variant's extra arithmetic explains of its time, beside the plain kernel's.

The instructions of the main loops, as `tessera inspect` counts them, are divided by the score elements that a thread
holds; what a variant has more of than the plain kernel takes issue slots of its own. A multiprocessor issues 4 warp
instructions, 128 of a thread, a cycle, and evaluates 16 special functions (CUDA C++ Programming Guide, throughput of
arithmetic instructions, compute capability 9.0); a kernel is never faster than its special functions. The rest of the
time is the plain kernel's, for each element of the blocks that are visited.
"""

ISSUED, SPECIAL = 128, 16


def elements_of_thread(loop, parameters):
    """The score elements of a thread in a pass through a loop: M = 64 rows of each product, in 128 threads.

    A pass has a product of depth D and one of depth BN for each of them, in steps of 16.
    """
    rows_of_64 = loop["HGMMA"] * 16 / (parameters["D"] + parameters["BN"])
    return rows_of_64 * 64 * parameters["BN"] / 128


def costs(loops, parameters):
    """{"unmasked": (instructions, special functions), "masked": ...} for each element, of the loops of a kernel: the
    one with the fewest instructions has no mask, the one with the most has all comparisons.

    A kernel that speculates has its exact loops too, for what is run again. They are those in which the threads of a row
    exchange its maximum.
    """
    per_element = []
    for loop in [loop for loop in loops if not loop.get("SHFL")] or loops:
        elements = elements_of_thread(loop, parameters)
        per_element.append((loop["instructions"] / elements, loop.get("MUFU", 0) / elements))
    return {"unmasked": min(per_element), "masked": max(per_element)}


def visited_blocks(seqlen, window, rows, columns):
    """(all, masked) blocks of `rows` x `columns` that a kernel visits for one head; a masked one has an element that no
    mask leaves. `window` is (left, right): row r sees the columns from r - left to r + right."""
    left, right = window
    visited = masked = 0
    for row in range(0, seqlen, rows):
        last_row = row + rows - 1
        first, end = max(0, row - left) // columns, -(-min(seqlen, last_row + right + 1) // columns)
        visited += end - first
        for block in range(first, end):
            begin, last = block * columns, block * columns + columns - 1
            sees_all = begin >= last_row - left and last <= min(seqlen - 1, row + right)
            masked += not sees_all
    return visited, masked


def elements(seqlen, window, parameters):
    """(unmasked, masked) score elements that a kernel computes for one head."""
    size = parameters["BM"] * parameters["BN"]
    visited, masked = visited_blocks(seqlen, window, parameters["BM"], parameters["BN"])
    return (visited - masked) * size, masked * size


def reference_elements(seqlen, parameters):
    """What the scores around the diagonal count as, that REFERENCE = diagonal computes before the loop of a tile: half of
    a block's elements, for they take one of its two products."""
    rows = -(-seqlen // parameters["BM"]) * parameters["BM"]
    return rows * parameters["BN"] / 2 if parameters.get("REFERENCE") == "diagonal" else 0


def explained_cycles(variant, base, base_cycles):
    """Cycles of a multiprocessor that a head should take.

    `variant` and `base` are (costs, elements); `base_cycles` is what the base took for its elements. A base with the
    same masked elements pays for the mask itself, so that masks are compared with masks.
    """
    (costs_of, (unmasked, masked)), (base_costs, base_elements) = variant, base
    of_base = base_cycles / sum(base_elements)
    base_masked = base_costs["masked" if base_elements[1] else "unmasked"]
    issue = special = 0.0
    for count, mine, theirs in (
        (unmasked, costs_of["unmasked"], base_costs["unmasked"]),
        (masked, costs_of["masked"], base_masked),
    ):
        issue += count * (of_base + max(0.0, mine[0] - theirs[0]) / ISSUED)
        special += count * mine[1] / SPECIAL
    return max(issue, special)
