//===- BundleKeys.h - The keys of a bundle's description ------------------===//
//
// Those of docs/bundle.md, and the words that are values of some, which the compiler writes and the
// launcher, the simulator's launch and the reader of timelines read.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BUNDLEKEYS_H
#define TESSERA_BUNDLEKEYS_H

namespace tessera::key {

inline constexpr char above[] = "above";
inline constexpr char access[] = "access";
inline constexpr char alignment[] = "alignment";
inline constexpr char alternatives[] = "alternatives";
inline constexpr char argument[] = "argument";
inline constexpr char arguments[] = "arguments";
inline constexpr char atMost[] = "at_most";
inline constexpr char barriers[] = "barriers";
inline constexpr char base64[] = "base64";
inline constexpr char block[] = "block";
inline constexpr char blocks[] = "blocks";
inline constexpr char blocksPerMultiprocessor[] = "blocks_per_multiprocessor";
inline constexpr char box[] = "box";
inline constexpr char bytes[] = "bytes";
inline constexpr char choices[] = "choices";
inline constexpr char cluster[] = "cluster";
inline constexpr char column[] = "column";
inline constexpr char derivedDims[] = "derived_dims";
inline constexpr char dim[] = "dim";
inline constexpr char dims[] = "dims";
inline constexpr char dividend[] = "dividend";
inline constexpr char divisor[] = "divisor";
inline constexpr char element[] = "element";
inline constexpr char endsUs[] = "ends_us";
inline constexpr char events[] = "events";
inline constexpr char extent[] = "extent";
inline constexpr char factor[] = "factor";
inline constexpr char factors[] = "factors";
inline constexpr char file[] = "file";
inline constexpr char first[] = "first";
inline constexpr char firstWarp[] = "first_warp";
inline constexpr char flat[] = "flat";
inline constexpr char format[] = "format";
inline constexpr char from[] = "from";
inline constexpr char furtherImages[] = "further_images";
inline constexpr char grid[] = "grid";
inline constexpr char id[] = "id";
inline constexpr char image[] = "image";
inline constexpr char instructions[] = "instructions";
inline constexpr char iterationUs[] = "iteration_us";
inline constexpr char iterations[] = "iterations";
inline constexpr char kernel[] = "kernel";
inline constexpr char kernels[] = "kernels";
inline constexpr char kind[] = "kind";
inline constexpr char label[] = "label";
inline constexpr char launchParameters[] = "launch_parameters";
inline constexpr char launchUs[] = "launch_us";
inline constexpr char launches[] = "launches";
inline constexpr char line[] = "line";
inline constexpr char model[] = "model";
inline constexpr char models[] = "models";
inline constexpr char multiple[] = "multiple";
inline constexpr char name[] = "name";
inline constexpr char namedBarriers[] = "named_barriers";
inline constexpr char offset[] = "offset";
inline constexpr char order[] = "order";
inline constexpr char parameters[] = "parameters";
inline constexpr char pdl[] = "pdl";
inline constexpr char persistent[] = "persistent";
inline constexpr char places[] = "places";
inline constexpr char products[] = "products";
inline constexpr char registers[] = "registers";
inline constexpr char registersPerThread[] = "registers_per_thread";
inline constexpr char report[] = "report";
inline constexpr char requirements[] = "requirements";
inline constexpr char resources[] = "resources";
inline constexpr char role[] = "role";
inline constexpr char roles[] = "roles";
inline constexpr char schedule[] = "schedule";
inline constexpr char section[] = "section";
inline constexpr char sequence[] = "sequence";
inline constexpr char sequences[] = "sequences";
inline constexpr char sharedMap[] = "shared_map";
inline constexpr char sharedMemory[] = "shared_memory";
inline constexpr char slots[] = "slots";
inline constexpr char spillLoadBytes[] = "spill_load_bytes";
inline constexpr char spillStoreBytes[] = "spill_store_bytes";
inline constexpr char stackBytes[] = "stack_bytes";
inline constexpr char stages[] = "stages";
inline constexpr char strideBytes[] = "stride_bytes";
inline constexpr char strideOfDim[] = "stride_of_dim";
inline constexpr char swizzle[] = "swizzle";
inline constexpr char symbol[] = "symbol";
inline constexpr char target[] = "target";
inline constexpr char tilesAtATime[] = "tiles_at_a_time";
inline constexpr char timeline[] = "timeline";
inline constexpr char type[] = "type";
inline constexpr char unaligned[] = "unaligned";
inline constexpr char value[] = "value";
inline constexpr char views[] = "views";
inline constexpr char version[] = "version";
inline constexpr char warpgroups[] = "warpgroups";
inline constexpr char warps[] = "warps";
inline constexpr char workspaces[] = "workspaces";
inline constexpr char wraps[] = "wraps";
inline constexpr char zeroed[] = "zeroed";

} // namespace tessera::key

/// What an argument or a parameter of a launch is: values of `key::kind`.
namespace tessera::kinds {

inline constexpr char dim[] = "dim";
inline constexpr char pointer[] = "pointer";
inline constexpr char scalar[] = "scalar";
inline constexpr char stride[] = "stride";
inline constexpr char tensorMap[] = "tensor_map";
inline constexpr char tickets[] = "tickets";
inline constexpr char timeline[] = "timeline";
inline constexpr char view[] = "view";
inline constexpr char workspace[] = "workspace";

} // namespace tessera::kinds

/// What a kernel does with a view: values of `key::access`.
namespace tessera::accesses {

inline constexpr char read[] = "read";
inline constexpr char readWrite[] = "readwrite";
inline constexpr char write[] = "write";

} // namespace tessera::accesses

/// The element of a tensor map, beside that of its argument.
namespace tessera::elements {
inline constexpr char tf32[] = "tf32";
} // namespace tessera::elements

#endif // TESSERA_BUNDLEKEYS_H
