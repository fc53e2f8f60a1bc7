// The fields of #tile.schedule, each declared once. From these records come the struct ScheduleFields, the
// accessors of ScheduleAttr, parser, printer and ranges, the defaults that the search starts from, what
// `tessera params --schedule-fields` and the tuner enumerate, and the table of the reference page.

#ifndef TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_TD
#define TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_TD

include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def Tile_StoreKind : I32EnumAttr<"StoreKind", "How a tile of results reaches global memory", [
    I32EnumAttrCase<"direct", 0>, I32EnumAttrCase<"tma", 1>, I32EnumAttrCase<"writer", 2>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_OverlapKind : I32EnumAttr<"OverlapKind", "Which iterations a step of a loop with dots works on", [
    I32EnumAttrCase<"One", 0, "1">, I32EnumAttrCase<"Two", 1, "2">, I32EnumAttrCase<"Three", 2, "3">,
    I32EnumAttrCase<"Lead", 3, "lead">, I32EnumAttrCase<"Scaled", 4, "scaled">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_ProducerKind : I32EnumAttr<"ProducerKind", "What a producer loads", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Operands", 1, "operands">,
    I32EnumAttrCase<"All", 2, "all">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_PersistentKind : I32EnumAttr<"PersistentKind", "How thread blocks get the tiles of the grid", [
    I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Static", 1, "static">,
    I32EnumAttrCase<"Dynamic", 2, "dynamic">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_OrderKind : I32EnumAttr<"OrderKind", "In which order the tiles of the grid run", [
    I32EnumAttrCase<"Linear", 0, "linear">, I32EnumAttrCase<"Ascending", 1, "ascending">,
    I32EnumAttrCase<"Descending", 2, "descending">, I32EnumAttrCase<"Narrow", 3, "narrow">,
    I32EnumAttrCase<"Turns", 4, "turns">, I32EnumAttrCase<"LastTurns", 5, "last_turns">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_ClusterKind : I32EnumAttr<"ClusterKind", "What the thread blocks of a cluster do together", [
    I32EnumAttrCase<"One", 0, "1">, I32EnumAttrCase<"Two", 1, "2">, I32EnumAttrCase<"Four", 2, "4">,
    I32EnumAttrCase<"Eight", 4, "8">, I32EnumAttrCase<"Sixteen", 5, "16">, I32EnumAttrCase<"Exchange", 3, "exchange">]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_PlacementKind : I32EnumAttr<"PlacementKind", "In which role each dot of a kernel runs", [
    I32EnumAttrCase<"rows", 0>, I32EnumAttrCase<"apart", 1>, I32EnumAttrCase<"divided", 2>]> {
  let cppNamespace = "::tessera::tile";
}

def Tile_WorkKind : I32EnumAttr<"WorkKind", "In which order a thread works through its tiles", [
    I32EnumAttrCase<"tiles", 0>, I32EnumAttrCase<"pinned", 1>, I32EnumAttrCase<"elements", 2>]> {
  let cppNamespace = "::tessera::tile";
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

/// "a, b or c".
class Alternatives<list<string> texts> {
  defvar last = !sub(!size(texts), 1);
  string text = !interleave(!foreach(i, !range(last), texts[i]), ", ") # " or " # texts[last];
}

/// "outerStages" of "outer_stages".
class CamelCase<string snake> {
  defvar underscore = !find(snake, "_");
  string text = !if(!lt(underscore, 0), snake,
                    !substr(snake, 0, underscore) # !toupper(!substr(snake, !add(underscore, 1), 1)) #
                    CamelCase<!substr(snake, !add(underscore, 2))>.text);
}

/// The values of a field as text, in their natural order, and how a message names them all.
class FieldDomain<string type, list<string> all, string says> {
  string cppType = type;
  list<string> values = all;
  string text = says;
}

def Flag : FieldDomain<"bool", ["false", "true"], "true or false">;
class OneOf<list<int> numbers, string says = Alternatives<!foreach(n, numbers, !cast<string>(n))>.text>
    : FieldDomain<"int64_t", !foreach(n, numbers, !cast<string>(n)), says>;
class Range<int low, int high>
    : OneOf<!range(low, !add(high, 1)), !cast<string>(low) # " to " # !cast<string>(high)>;
class Multiples<int step, int low, int high>
    : OneOf<!range(low, !add(high, 1), step), "a multiple of " # !cast<string>(step) # " from " #
            !cast<string>(low) # " to " # !cast<string>(high)>;
class CaseOf<EnumAttrInfo enum>
    : FieldDomain<enum.cppNamespace # "::" # enum.className, !foreach(c, enum.enumerants, c.str),
                  Alternatives<!foreach(c, enum.enumerants, c.str)>.text>;
/// One number for all or a list with one for each; the domain is that of each number.
class OneOrEach<OneOf each>
    : FieldDomain<"::tessera::tile::NumberList", each.values, each.text # ", or a list of at most 8 such numbers">;

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// What an absent field becomes: always `value`, or what the search decides by `rule`.
class FieldDefault<string fixedValue, string says> {
  string value = fixedValue;
  string rule = says;
}
class Always<string value> : FieldDefault<value, "`" # value # "`">;
class Chosen<string rule> : FieldDefault<"", rule>;

class ScheduleField<string spelling, FieldDomain values, FieldDefault whenAbsent, string meaning> {
  string name = spelling;
  string member = CamelCase<spelling>.text;
  string accessor = "get" # !toupper(!substr(member, 0, 1)) # !substr(member, 1);
  FieldDomain domain = values;
  FieldDefault absent = whenAbsent;
  string doc = meaning;
}

/// In the order in which they print.
defvar Tile_ScheduleFields = [
  ScheduleField<"producer", CaseOf<Tile_ProducerKind>,
    Chosen<"with `placement = apart`, and where a tile of rank 2 can come so, `all`, else `operands`; `none` where no such fits">,
    "what a warpgroup of its own loads ahead of time, through pipes (FlashAttention-3, section 3.1). `none`: there is no such "
    "warpgroup, and consumers load. `operands`: tiles that dots read; each thread loads what arithmetic reads of other tiles. `all`: "
    "also tiles that a loop with dots loads for arithmetic: of rank 2, of elements of 2 or 4 bytes, whose rows are multiples of "
    "32 bytes and their number one of 64, from a column on that is a multiple of 16 bytes; and rows of values for the "
    "columns of tiles: of rank 1, of up to 256 elements of 2, 4 or 8 bytes, a multiple of 128 bytes, that are only broadcast "
    "along axis 0, as they are or element by element, from a column on that is a multiple of 16 bytes. Both are of views that "
    "the kernel does not store to, whose strides are multiples of 16 bytes; threads load others whatever the field">,
  ScheduleField<"consumers", Range<1, 4>, Chosen<"the most that fit">,
    "warpgroups that compute; the rows of the tile are divided among them">,
  ScheduleField<"stages", OneOrEach<Range<1, 8>>, Chosen<"the most that fit, up to 3 or 4">,
    "slots of the pipes of tiles that are loaded in a loop: one number for all, or `[3, 2]` with one for each, in the "
    "order of the program">,
  ScheduleField<"outer_stages", OneOrEach<Range<1, 2>>,
    Chosen<"2 where a thread block has several tiles and it fits">,
    "slots of the pipes of tiles that are loaded once for each tile of the grid, likewise. What a `writer` stores then has "
    "as many as the last of these tiles">,
  ScheduleField<"overlap", CaseOf<Tile_OverlapKind>,
    Chosen<"`2`, or `scaled` with a wide accumulator, where a loop can be overlapped and it fits; `lead` with `placement = apart` "
           "where work between the dots is long; else `1`">,
    "which iterations a step of the loop works on. `1`: each dot waits before the work on its result (Algorithm 1). `2`: the "
    "later dots of an iteration run under the elementwise work of the next (Algorithm 2). `scaled`: likewise, and what a later dot "
    "accumulates onto is scaled before that dot, in its step, while the first dots run. `3`: as `2`, and the first dots of the "
    "iteration after that run there too, so that two of their results live in registers (Algorithm 4). `lead`: as `1`, and the "
    "first dot alone is issued an iteration ahead, beside the last dots, in registers that are free by then">,
  ScheduleField<"polynomial_exp", Range<0, 16>, Chosen<"what should take the fewest cycles of 0, 4, 8 and 16">,
    "of 16 exponentials, how many are polynomials (FMA pipes) and not special functions, where the results are only "
    "rounded to 16 bits and summed (`tile-polynomial-exp`)">,
  ScheduleField<"pingpong", Flag, Chosen<"`true` with several consumers, where turns pay and no dot runs ahead">,
    "consumer warpgroups take turns at issuing dots (section 3.1, Figure 1). With `placement = divided` the dots of one that gets "
    "a vector of rows from another wait for that one's dots of the next iteration">,
  ScheduleField<"speculate", Flag, Chosen<"`true` where the kernel has a `tile.speculate` and it fits">,
    "the fast region of a `tile.speculate` runs first; false: the exact one alone">,
  ScheduleField<"store", CaseOf<Tile_StoreKind>,
    Chosen<"`writer` for tiles that are added to a view whose rows are known to be multiples of 16 bytes, where it fits; else "
           "`direct`">,
    "results go from registers; through shared memory of their own and a bulk tensor store (`tma`); or through a pipe to a "
    "`writer`, a role of one thread beside a producer, that stores them in bulk while the consumers go on">,
  ScheduleField<"persistent", CaseOf<Tile_PersistentKind>,
    Chosen<"with a producer `dynamic` where tiles differ in work, or dots depend on each other and tiles are more than "
           "multiprocessors (`tile.few_tiles`); else `static`">,
    "a thread block for each tile of the grid; one for each multiprocessor that takes every n-th tile; or that takes "
    "the next tile from a counter">,
  ScheduleField<"order", CaseOf<Tile_OrderKind>,
    Chosen<"the longest tiles first; where loops load some tiles by the first grid index alone and others by other indices "
           "alone, `narrow` with two indices and `ascending` with more">,
    "which tile is the n-th: the first grid dimension fastest; or slowest, from its first or from its last index, "
    "within a section of the other indices. `descending` is longest first for a causal mask. `narrow`: of a grid of two "
    "dimensions, that of the smaller extent fastest, which a launch decides: tiles that run together then share the most of what "
    "they load. `turns`, with `fixed_sums`, is for loops that begin later as the first index grows: sections are `descending` "
    "and `ascending` in turn, and those of the latter go through the loops from their ends, so that blocks of neighbouring "
    "sections are long and short in turn. `last_turns`: likewise, but all sections are `descending` beside the last one, if that is not "
    "the first: the launch ends with short blocks, and neighbours begin at one tile once. With `persistent = none` the order is the launch's: `linear`">,
  // 2: docs/lab/blocks.md.
  ScheduleField<"section", OneOf<[1, 2, 4, 8, 16]>,
    Chosen<"1 with `fixed_sums` where the loops of grid points that add to one tile begin two or more steps apart; 4 where "
           "the order is so for tiles that loops share; else 2">,
    "in an order that is not linear, how many tiles a thread block has in a section: so many of the other grid indices "
    "run together. Less than half a section at the end belongs to the one before">,
  ScheduleField<"cluster", CaseOf<Tile_ClusterKind>, Always<"1">,
    "thread blocks that work together on tiles that neighbour in the first grid dimension; a tile that all of them "
    "load comes from global memory once, each block loading its part for all (TMA multicast), or two of them half of the rows "
    "that their threads gather. 1: each block by itself. "
    "`exchange`: two, which also add up what both add to memory. Each sends the computed operand of such a dot to the other, and makes "
    "half of the columns for both, so that half as much is added (`tile-exchange-sums`); it takes `placement = apart` or `divided`. "
    "Without dots the blocks of a cluster of 2 to 16 run one grid point: each has some of the columns of every tile, and what is "
    "reduced along them goes from block to block. So a tile may have as many more columns. 8 and 16 are for such kernels alone">,
  ScheduleField<"producer_registers", Multiples<8, 24, 256>, Chosen<"24, or 32 with 3 consumers">,
    "registers per thread of the producer (PTX `setmaxnreg`). `setmaxnreg` divides what the launch gives the block: a "
    "thread of the producer and one of each consumer have at most 496, 504, 512 and 480 together, with 1 to 4 "
    "consumers, and the producer no more than a thread starts with (248, 168, 128 and 96). Warps that transpose beside it "
    "have as many">,
  ScheduleField<"consumer_registers", OneOrEach<Multiples<8, 24, 256>>,
    Chosen<"240, 240, 160 and 112 with 1 to 4 consumers; beside a reducer, transposer or converter, which have what they need, what "
           "these leave; without dots those with which enough thread blocks run side by side to keep memory busy; with dots outside of loops those with which as "
           "many do as shared memory holds; with `placement = divided`, beside a converter, what each needs and equally "
           "many more, and where one consumer spills, more for it">,
    "registers per thread of each consumer, or with `placement = divided` a list with those of each in turn. Without a producer "
    "those of all threads of the block. A multiprocessor holds as many blocks at a time as the registers of all roles leave "
    "room for">,
  ScheduleField<"placement", CaseOf<Tile_PlacementKind>,
    Chosen<"`apart` where a sum leaves a loop with other dots and it fits, else `rows`, or `divided` where neither fits">,
    "in which role each dot runs. `rows`: the rows of all are divided among the consumers. `apart`: a dot of a computed "
    "tile whose result only leaves by a store that adds it runs with that store in a role of its own, a `reducer` of one "
    "warpgroup, which gets the tile through a pipe. There `store = tma` and `writer` are for these sums alone. "
    "`divided`: each consumer is a role of one warpgroup with all rows of some of the accumulators of loops and the dots "
    "that lead to them, where none has the registers for all; the columns of a single one are cut for them. Tiles that one makes "
    "and another needs go through pipes. "
    "Sums are apart there too, where the kernel has such. `apart` and `divided` take a producer and "
    "`overlap = 1`">,
  ScheduleField<"transpose", Range<0, 4>,
    Chosen<"4 where such tiles are loaded and there are registers for one more warpgroup, else 3; 0 where it does not fit">,
    "warps of a role of its own, a `transposer`, that transposes loaded tiles of 8-bit elements which a dot reads along the other "
    "dimension, each once, and hands them on through a pipe: 1 to 3 of the producer's warpgroup, which needs no registers of its "
    "own then, or 4, a warpgroup. 0: each consumer transposes all of each tile, for itself. 1 to 4 take a producer">,
  ScheduleField<"work", CaseOf<Tile_WorkKind>, Chosen<"`elements` where whole tiles and vectors do not fit, else `tiles`">,
    "in which order a thread works through its tiles between dots. `tiles`: one operation after the other, each on all elements. "
    "`pinned`: likewise, and work that the program has before a wait for a dot stays before it, under the dot, where the assembler "
    "would move the wait up. `elements`: all operations on the first elements, then all on the next. Vectors and single elements are then loaded where "
    "they are used, and what is made of an element is reduced at once, so that they take few registers">
];

#endif // TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_TD
