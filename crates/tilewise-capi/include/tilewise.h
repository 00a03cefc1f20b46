/* tilewise: the bytes of XLA's tiled arrays. docs/c.md explains; MIT OR Apache-2.0.
 *
 * Every function that can fail returns 0 (TW_OK) or a code, and then fills `error` unless it is NULL and leaves its outputs untouched.
 * Layouts and plans never change: any number of threads may use one at once. What a function returns as `**out` is the caller's
 * to free. Nothing is printed, and nothing is kept of what a function is given. */

#ifndef TILEWISE_H
#define TILEWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * A flag of `tw_relayout_new_with`: the destination's padding keeps what it holds, instead of becoming zero.
 */
#define TW_LEAVE_PADDING 1

/**
 * The code that a function returns. New codes may be added.
 */
typedef enum tw_code {
    /**
     * Done.
     */
    TW_OK = 0,
    /**
     * A pointer is NULL or not aligned, buffers overlap, a text is no UTF-8, or a name is unknown.
     */
    TW_INVALID_ARGUMENT = 1,
    /**
     * The text, the message or the parts are no layout: what is wrong is in the message, and where in `start` and `end`.
     */
    TW_INVALID_LAYOUT = 2,
    /**
     * A legal layout that the question has no answer for: a tuple, a missing layout, a dimension without a bound.
     */
    TW_UNSUPPORTED = 3,
    /**
     * A size above 2^63 - 1.
     */
    TW_OVERFLOW = 4,
    /**
     * An index, an offset or a slice outside the array.
     */
    TW_OUT_OF_RANGE = 5,
    /**
     * Two layouts are of different arrays.
     */
    TW_MISMATCH = 6,
    /**
     * A buffer has another length than its layout takes.
     */
    TW_BUFFER_LENGTH = 7,
    /**
     * A defect of this library.
     */
    TW_INTERNAL = 8,
} tw_code;

/**
 * The order in which runs come.
 */
typedef enum tw_order {
    /**
     * By rising offset.
     */
    TW_MEMORY_ORDER = 0,
    /**
     * Row-major over the slice's indices: one behind the other, the runs are the slice as a row-major array.
     */
    TW_SLICE_ORDER = 1,
} tw_order;

/**
 * A shape with its layout: opaque, immutable, usable from any thread.
 */
typedef struct tw_layout tw_layout;

/**
 * A plan: opaque, immutable, usable from any thread.
 */
typedef struct tw_relayout tw_relayout;

/**
 * A plan from one sharding to another: opaque, immutable, usable from any thread.
 */
typedef struct tw_reshard tw_reshard;

/**
 * An error: its code, its place in a text, and its message.
 */
typedef struct tw_error {
    /**
     * The function's answer, too.
     */
    int32_t code;
    /**
     * Where the bytes of the text begin that are wrong; 0 where no text is.
     */
    uint32_t start;
    /**
     * Where they end.
     */
    uint32_t end;
    /**
     * The problem and its remedy: UTF-8, NUL-terminated, cut off at a character where it is longer.
     */
    char message[256];
} tw_error;

/**
 * The fields of `PJRT_Buffer_MemoryLayout_Tiled`. What they point to is the layout's, and lives as long.
 */
typedef struct tw_pjrt_tiled {
    /**
     * The order of dimensions, the fastest-varying first.
     */
    const int64_t *minor_to_major;
    /**
     * How many there are.
     */
    size_t minor_to_major_size;
    /**
     * The sizes of all tiles, one tile behind the other; XLA's `*` is INT64_MIN.
     */
    const int64_t *tile_dims;
    /**
     * How many of them each tile has.
     */
    const size_t *tile_dim_sizes;
    /**
     * How many tiles there are.
     */
    size_t num_tiles;
} tw_pjrt_tiled;

/**
 * A run of a slice: bits of the buffer that lie one behind the other.
 */
typedef struct tw_run {
    /**
     * Where the run begins, in bits from the start of the buffer.
     */
    uint64_t offset_bits;
    /**
     * How long it is, in bits.
     */
    uint64_t length_bits;
} tw_run;

/**
 * Properties that all runs of a slice share.
 */
typedef struct tw_slice {
    /**
     * How many runs there are; 1 where a single copy moves the slice.
     */
    uint64_t runs;
    /**
     * How many elements the slice has.
     */
    uint64_t elements;
    /**
     * Bits of all runs together.
     */
    uint64_t bits;
    /**
     * Bits of the shortest run.
     */
    uint64_t shortest_bits;
    /**
     * Bits of the longest run.
     */
    uint64_t longest_bits;
    /**
     * The largest number of bits that divides where every run begins and ends: 8 * 4096 and its multiples are whole pages.
     */
    uint64_t alignment_bits;
} tw_slice;

/**
 * The cost of a run of a plan.
 */
typedef struct tw_cost {
    /**
     * Bytes of the source that hold elements; its padding isn't read.
     */
    uint64_t read_bytes;
    /**
     * Bytes of the destination that are written.
     */
    uint64_t written_bytes;
    /**
     * How often the innermost work is begun, at most: 1 for a plain copy, the number of elements where each is moved alone.
     */
    uint64_t pieces;
    /**
     * Into how many parts tw_relayout_run_part can cut the destination; 1 where nothing of it is done before the end.
     */
    uint64_t most_parts;
} tw_cost;

/**
 * One copy from a shard to another.
 */
typedef struct tw_copy {
    /**
     * The device whose shard is read.
     */
    uint64_t source;
    /**
     * The device whose shard is written; where it is the same, nothing goes over a link.
     */
    uint64_t destination;
    /**
     * How many elements are copied.
     */
    uint64_t elements;
} tw_copy;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, such as "0.1.0".
 */
const char *tw_version(void);

/**
 * Reads XLA's text, such as `bf16[8,128]{1,0:T(8,128)(2,1)}`: `length` bytes, with or without a NUL behind them.
 *
 * A missing layout is XLA's default, row-major without tiles. A tuple is TW_UNSUPPORTED.
 *
 * # Safety
 * `length` bytes may be read at `text`; `out` may be written; `error` is NULL or may be written.
 */
int32_t tw_layout_parse(const char *text, size_t length, struct tw_layout **out, struct tw_error *error);

/**
 * Reads the bytes of XLA's ShapeProto.
 *
 * # Safety
 * `length` bytes may be read at `bytes`; `out` may be written; `error` is NULL or may be written.
 */
int32_t tw_layout_from_proto(const uint8_t *bytes, size_t length, struct tw_layout **out, struct tw_error *error);

/**
 * Reads the bytes of XLA's LayoutProto, for an array of this element type (by XLA's name, NUL-terminated) and these dimensions.
 *
 * # Safety
 * `element_type` ends with NUL; `rank` numbers may be read at `dimensions`, and `length` bytes at `bytes`; `out` may be written;
 * `error` is NULL or may be written.
 */
int32_t tw_layout_from_layout_proto(const char *element_type,
                                    const uint64_t *dimensions,
                                    size_t rank,
                                    const uint8_t *bytes,
                                    size_t length,
                                    struct tw_layout **out,
                                    struct tw_error *error);

/**
 * A layout from the fields of `PJRT_Buffer_MemoryLayout_Tiled`: `minor_to_major`, the sizes of all tiles one behind the other (XLA's `*`
 * is INT64_MIN), and how many of them each tile has. Without tiles (`tile_count` 0) it is an order of dimensions, as hosts have.
 *
 * # Safety
 * `element_type` ends with NUL; `rank` numbers may be read at `dimensions` and `minor_to_major`, `tile_count` at `tile_dim_sizes`, and as
 * many as those add up to at `tile_dims`; `out` may be written; `error` is NULL or may be written.
 */
int32_t tw_layout_from_pjrt(const char *element_type,
                            const uint64_t *dimensions,
                            size_t rank,
                            const int64_t *minor_to_major,
                            const int64_t *tile_dims,
                            const size_t *tile_dim_sizes,
                            size_t tile_count,
                            struct tw_layout **out,
                            struct tw_error *error);

/**
 * The layout that a TPU generation ("v5e") gives an array by default, as libtpu 0.0.51 does.
 *
 * # Safety
 * `element_type` and `tpu` end with NUL; `rank` numbers may be read at `dimensions`; `out` may be written; `error` is NULL or may be
 * written.
 */
int32_t tw_layout_default(const char *element_type,
                          const uint64_t *dimensions,
                          size_t rank,
                          const char *tpu,
                          struct tw_layout **out,
                          struct tw_error *error);

/**
 * The layout that a TPU generation gives an array whose order of dimensions is fixed.
 *
 * # Safety
 * As for `tw_layout_default`, and `rank` numbers may be read at `minor_to_major`.
 */
int32_t tw_layout_with_order(const char *element_type,
                             const uint64_t *dimensions,
                             size_t rank,
                             const uint64_t *minor_to_major,
                             const char *tpu,
                             struct tw_layout **out,
                             struct tw_error *error);

/**
 * The array as hosts have it: row-major, without tiles and element size.
 *
 * # Safety
 * `layout` is a layout that is not freed; `out` may be written; `error` is NULL or may be written.
 */
int32_t tw_layout_row_major(const struct tw_layout *layout, struct tw_layout **out, struct tw_error *error);

/**
 * Another handle of the same layout, to be freed on its own; NULL for NULL.
 *
 * # Safety
 * `layout` is NULL or a layout that is not freed.
 */
struct tw_layout *tw_layout_clone(const struct tw_layout *layout);

/**
 * Frees a layout; NULL is fine.
 *
 * # Safety
 * `layout` is NULL, or a layout that is not freed and not used any more.
 */
void tw_layout_free(struct tw_layout *layout);

/**
 * The number of dimensions; 0 for NULL.
 *
 * # Safety
 * `layout` is NULL or a layout that is not freed.
 */
uint32_t tw_layout_rank(const struct tw_layout *layout);

/**
 * Bytes of the data alone, without padding; 0 for NULL.
 *
 * # Safety
 * `layout` is NULL or a layout that is not freed.
 */
uint64_t tw_layout_logical_bytes(const struct tw_layout *layout);

/**
 * Bytes of the buffer, all padding included; 0 for NULL.
 *
 * # Safety
 * `layout` is NULL or a layout that is not freed.
 */
uint64_t tw_layout_physical_bytes(const struct tw_layout *layout);

/**
 * Elements that the buffer holds, all padding included; 0 for NULL.
 *
 * # Safety
 * `layout` is NULL or a layout that is not freed.
 */
uint64_t tw_layout_physical_elements(const struct tw_layout *layout);

/**
 * Bits that an element takes in the buffer: 4 for `s4[…]{…E(4)}`, 8 for `s4` without; 0 for NULL.
 *
 * # Safety
 * `layout` is NULL or a layout that is not freed.
 */
uint64_t tw_layout_stored_bits(const struct tw_layout *layout);

/**
 * The bounds of the dimensions, `tw_layout_rank` of them.
 *
 * # Safety
 * `layout` is a layout that is not freed; its rank of numbers may be written at `dimensions`; `error` is NULL or may be written.
 */
int32_t tw_layout_dimensions(const struct tw_layout *layout,
                             uint64_t *dimensions,
                             struct tw_error *error);

/**
 * Whether two layouts put every element of equal arrays at the same bits of buffers of the same length; false for NULL, and where it
 * isn't known.
 *
 * # Safety
 * Each is NULL or a layout that is not freed.
 */
bool tw_layout_same_bytes(const struct tw_layout *a,
                          const struct tw_layout *b);

/**
 * Writes XLA's text of the shape and its layout as snprintf does: what fits into `capacity` bytes, NUL-terminated. `length` is set to the
 * whole text's length without the NUL; it may be NULL.
 *
 * # Safety
 * `layout` is a layout that is not freed; `capacity` bytes may be written at `buffer`; `length` and `error` are NULL or may be written.
 */
int32_t tw_layout_text(const struct tw_layout *layout,
                       char *buffer,
                       size_t capacity,
                       size_t *length,
                       struct tw_error *error);

/**
 * The layout as PJRT's arrays. TW_UNSUPPORTED for what they can't say: an element size, a memory space, tail padding.
 *
 * # Safety
 * `layout` is a layout that is not freed; `out` may be written; `error` is NULL or may be written.
 */
int32_t tw_layout_pjrt(const struct tw_layout *layout, struct tw_pjrt_tiled *out, struct tw_error *error);

/**
 * The offset of an index, in elements from the start of the buffer.
 *
 * # Safety
 * `layout` is a layout that is not freed; its rank of numbers may be read at `index`; `offset` may be written; `error` is NULL or may
 * be written.
 */
int32_t tw_layout_offset_of(const struct tw_layout *layout,
                            const uint64_t *index,
                            uint64_t *offset,
                            struct tw_error *error);

/**
 * The index of the element at an offset, or that padding lies there: then `is_padding` is set, and `index` left alone.
 *
 * # Safety
 * `layout` is a layout that is not freed; its rank of numbers may be written at `index`; `is_padding` may be written; `error` is NULL or
 * may be written.
 */
int32_t tw_layout_index_of(const struct tw_layout *layout,
                           uint64_t offset,
                           uint64_t *index,
                           bool *is_padding,
                           struct tw_error *error);

/**
 * The offsets of `count` indices, which lie one behind the other at `indices`. On an error, what `offsets` holds is unspecified.
 *
 * # Safety
 * `layout` is a layout that is not freed; `count` times its rank of numbers may be read at `indices`, and `count` may be written at
 * `offsets`, elsewhere; `error` is NULL or may be written.
 */
int32_t tw_layout_offsets(const struct tw_layout *layout,
                          const uint64_t *indices,
                          size_t count,
                          uint64_t *offsets,
                          struct tw_error *error);

/**
 * The indices at `count` offsets, one behind the other; all numbers of an index are UINT64_MAX where padding lies. On an error, what
 * `indices` holds is unspecified.
 *
 * # Safety
 * `layout` is a layout that is not freed; `count` numbers may be read at `offsets`, and `count` times its rank written at `indices`,
 * elsewhere; `error` is NULL or may be written.
 */
int32_t tw_layout_indices(const struct tw_layout *layout,
                          const uint64_t *offsets,
                          size_t count,
                          uint64_t *indices,
                          struct tw_error *error);

/**
 * The runs that elements start <= i < limit take, in order of memory, adjacent ones merged.
 *
 * `count` is set to how many there are, which takes no longer for many. `runs` may be NULL; else at most `capacity` are written, from the
 * `first`'th on, which is found in one step.
 *
 * # Safety
 * `layout` is a layout that is not freed; its rank of numbers may be read at `start` and at `limit`; `runs` is NULL or `capacity` of them
 * may be written there; `count` may be written; `error` is NULL or may be written.
 */
int32_t tw_slice_runs(const struct tw_layout *layout,
                      const uint64_t *start,
                      const uint64_t *limit,
                      uint64_t first,
                      struct tw_run *runs,
                      size_t capacity,
                      uint64_t *count,
                      struct tw_error *error);

/**
 * The runs of every `strides[d]`'th index from `start[d]` on (NULL: of every index), in a `tw_order`.
 *
 * # Safety
 * As for `tw_slice_runs`; `strides` is NULL or the layout's rank of numbers may be read there.
 */
int32_t tw_slice_runs_strided(const struct tw_layout *layout,
                              const uint64_t *start,
                              const uint64_t *limit,
                              const uint64_t *strides,
                              int32_t order,
                              uint64_t first,
                              struct tw_run *runs,
                              size_t capacity,
                              uint64_t *count,
                              struct tw_error *error);

/**
 * The shared properties of a slice's runs, without making any: whether it is one, their shortest, their alignment.
 *
 * # Safety
 * As for `tw_slice_runs_strided`; `slice` may be written.
 */
int32_t tw_slice_describe(const struct tw_layout *layout,
                          const uint64_t *start,
                          const uint64_t *limit,
                          const uint64_t *strides,
                          struct tw_slice *slice,
                          struct tw_error *error);

/**
 * Plans how buffers go from one layout of an array to another. The destination's padding becomes zero.
 *
 * # Safety
 * `from` and `to` are layouts that are not freed; they are not needed any more afterwards. `out` may be written; `error` is NULL or may be
 * written.
 */
int32_t tw_relayout_new(const struct tw_layout *from,
                        const struct tw_layout *to,
                        struct tw_relayout **out,
                        struct tw_error *error);

/**
 * As `tw_relayout_new`, with flags: 0 or TW_LEAVE_PADDING.
 *
 * # Safety
 * As for `tw_relayout_new`.
 */
int32_t tw_relayout_new_with(const struct tw_layout *from,
                             const struct tw_layout *to,
                             uint32_t flags,
                             struct tw_relayout **out,
                             struct tw_error *error);

/**
 * Bytes of the buffer to read; 0 for NULL.
 *
 * # Safety
 * `plan` is NULL or a plan that is not freed.
 */
uint64_t tw_relayout_source_bytes(const struct tw_relayout *plan);

/**
 * Bytes of the buffer to write; 0 for NULL.
 *
 * # Safety
 * `plan` is NULL or a plan that is not freed.
 */
uint64_t tw_relayout_destination_bytes(const struct tw_relayout *plan);

/**
 * Writes the plan in words, as snprintf does; `length` is set to the whole text's length and may be NULL.
 *
 * # Safety
 * `plan` is a plan that is not freed; `capacity` bytes may be written at `buffer`; `length` and `error` are NULL or may be written.
 */
int32_t tw_relayout_text(const struct tw_relayout *plan,
                         char *buffer,
                         size_t capacity,
                         size_t *length,
                         struct tw_error *error);

/**
 * Converts a buffer on up to `threads` threads (0 is 1). The buffers must have exactly the plan's lengths and must not overlap; on an
 * error nothing is written. Threads live as long as the call.
 *
 * # Safety
 * `plan` is a plan that is not freed; `source_bytes` may be read at `source`, and aren't written meanwhile;
 * `destination_bytes` may be written at `destination`, and aren't used otherwise meanwhile; `error` is NULL or may be
 * written.
 */
int32_t tw_relayout_run(const struct tw_relayout *plan,
                        const void *source,
                        size_t source_bytes,
                        void *destination,
                        size_t destination_bytes,
                        uint32_t threads,
                        struct tw_error *error);

/**
 * The cost of a run, without running.
 *
 * # Safety
 * `plan` is a plan that is not freed; `cost` may be written; `error` is NULL or may be written.
 */
int32_t tw_relayout_cost(const struct tw_relayout *plan, struct tw_cost *cost, struct tw_error *error);

/**
 * Converts part `part` of the `parts` that the destination is cut into, on the calling thread, for pipelines that send what is done while the
 * rest is converted. The buffers are the whole ones. Parts are run in order, each once.
 *
 * `start` and `end` are set to the bytes of the destination that this part has made, which no later part writes; they may be NULL. One behind
 * the other, the parts make all of it; of more than the plan's `most_parts`, some make nothing, and of a plan that can't be cut, all but the
 * last.
 *
 * # Safety
 * As for `tw_relayout_run`; `start` and `end` are NULL or may be written.
 */
int32_t tw_relayout_run_part(const struct tw_relayout *plan,
                             size_t part,
                             size_t parts,
                             const void *source,
                             size_t source_bytes,
                             void *destination,
                             size_t destination_bytes,
                             uint64_t *start,
                             uint64_t *end,
                             struct tw_error *error);

/**
 * Frees a plan; NULL is fine.
 *
 * # Safety
 * `plan` is NULL, or a plan that is not freed and not used any more.
 */
void tw_relayout_free(struct tw_relayout *plan);

/**
 * Plans how an array's shards become those of another sharding.
 *
 * `from` and `to` are the whole array, with the layouts of its shards; the shardings are in XLA's notation, such as
 * `{devices=[2,2]<=[4]}`. `devices` is how many there are; 0 where the shardings say it. Every element comes from the device itself where it has it already, so no fewer bytes could go over links.
 *
 * # Safety
 * `from` and `to` are layouts that are not freed; `from_length` and `to_length` bytes may be read at the shardings; `out` may be written;
 * `error` is NULL or may be written.
 */
int32_t tw_reshard_new(const struct tw_layout *from,
                       const char *from_sharding,
                       size_t from_length,
                       const struct tw_layout *to,
                       const char *to_sharding,
                       size_t to_length,
                       uint64_t devices,
                       struct tw_reshard **out,
                       struct tw_error *error);

/**
 * How many devices there are; 0 for NULL.
 *
 * # Safety
 * `plan` is NULL or a plan that is not freed.
 */
uint64_t tw_reshard_devices(const struct tw_reshard *plan);

/**
 * The layout of every device's shard: before (`after` false), or afterwards.
 *
 * # Safety
 * `plan` is a plan that is not freed; `out` may be written; `error` is NULL or may be written.
 */
int32_t tw_reshard_shard(const struct tw_reshard *plan, bool after, struct tw_layout **out, struct tw_error *error);

/**
 * The copies, by destination. `count` is set to how many there are; at most `capacity` are written, from the `first`'th on; `copies` may be
 * NULL.
 *
 * # Safety
 * `plan` is a plan that is not freed; `copies` is NULL or `capacity` of them may be written there; `count` may be written; `error` is NULL
 * or may be written.
 */
int32_t tw_reshard_copies(const struct tw_reshard *plan,
                          uint64_t first,
                          struct tw_copy *copies,
                          size_t capacity,
                          uint64_t *count,
                          struct tw_error *error);

/**
 * Which elements a copy takes: from where in the source's shard to where in the destination's, and how many along each dimension. The runs
 * are those of `tw_slice_runs` on the shards' layouts.
 *
 * # Safety
 * `plan` is a plan that is not freed; as many numbers as the array has dimensions may be written at each of the three; `error` is NULL or
 * may be written.
 */
int32_t tw_reshard_copy_bounds(const struct tw_reshard *plan,
                               uint64_t number,
                               uint64_t *source_start,
                               uint64_t *destination_start,
                               uint64_t *sizes,
                               struct tw_error *error);

/**
 * Does all copies between buffers of this process: `devices` pointers on either side, each to as many bytes as a shard takes
 * (`tw_layout_physical_bytes` of `tw_reshard_shard`). A device that neither gives nor gets anything may have NULL. What no copy writes becomes
 * zero. The destinations must overlap nothing; on an error nothing is written.
 *
 * # Safety
 * `plan` is a plan that is not freed; `devices` pointers may be read at `sources` and at `destinations`; each that
 * isn't NULL points to a shard's bytes, which aren't written meanwhile, those of destinations not used at all
 * otherwise; `error` is NULL or may be written.
 */
int32_t tw_reshard_run(const struct tw_reshard *plan,
                       const void *const *sources,
                       void *const *destinations,
                       size_t devices,
                       struct tw_error *error);

/**
 * Frees a plan; NULL is fine.
 *
 * # Safety
 * `plan` is NULL, or a plan that is not freed and not used any more.
 */
void tw_reshard_free(struct tw_reshard *plan);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TILEWISE_H */
