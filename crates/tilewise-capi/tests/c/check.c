/* Each function: what it answers, what it refuses, and that it leaves alone what it must. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewise.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static tw_layout *parsed(const char *text) {
    tw_layout *layout = NULL;
    tw_error error;
    if (tw_layout_parse(text, strlen(text), &layout, &error)) {
        fprintf(stderr, "%s: %s\n", text, error.message);
        exit(1);
    }
    return layout;
}

static void is_text(const tw_layout *layout, const char *wanted) {
    char text[128];
    size_t length = 0;
    CHECK(tw_layout_text(layout, text, sizeof text, &length, NULL) == TW_OK);
    if (strcmp(text, wanted)) fprintf(stderr, "%s, not %s\n", text, wanted);
    CHECK(!strcmp(text, wanted) && length == strlen(wanted));
}

/* The tiled-layout document's Figure 1. */
static void figure_1(void) {
    tw_layout *layout = parsed("f32[3,5]{1,0:T(2,2)}");
    uint64_t index[2] = {2, 3}, offset = 0, dimensions[2];
    bool is_padding = true;
    CHECK(tw_layout_rank(layout) == 2);
    CHECK(tw_layout_logical_bytes(layout) == 60 && tw_layout_physical_bytes(layout) == 96);
    CHECK(tw_layout_physical_elements(layout) == 24 && tw_layout_stored_bits(layout) == 32);
    CHECK(tw_layout_dimensions(layout, dimensions, NULL) == TW_OK && dimensions[0] == 3 && dimensions[1] == 5);
    CHECK(tw_layout_offset_of(layout, index, &offset, NULL) == TW_OK && offset == 17);
    index[0] = index[1] = 9;
    CHECK(tw_layout_index_of(layout, 17, index, &is_padding, NULL) == TW_OK && !is_padding && index[0] == 2 && index[1] == 3);
    CHECK(tw_layout_index_of(layout, 9, index, &is_padding, NULL) == TW_OK && is_padding && index[0] == 2);

    const uint64_t indices[6] = {0, 4, 2, 3, 0, 0}, wanted[6] = {0, 4, 2, 3, UINT64_MAX, UINT64_MAX}, some[3] = {8, 17, 9};
    uint64_t offsets[3], back[6];
    CHECK(tw_layout_offsets(layout, indices, 3, offsets, NULL) == TW_OK && offsets[0] == 8 && offsets[1] == 17 && offsets[2] == 0);
    CHECK(tw_layout_indices(layout, some, 3, back, NULL) == TW_OK && !memcmp(back, wanted, sizeof wanted));
    tw_layout_free(layout);
}

/* An error tells its code, its place and its words; nothing else is written. */
static void errors(void) {
    tw_layout *layout = (tw_layout *)(uintptr_t)64;
    tw_error error;
    memset(&error, 0x55, sizeof error);
    CHECK(tw_layout_parse("bf61[2]", 7, &layout, &error) == TW_INVALID_ARGUMENT || error.code == TW_INVALID_LAYOUT);
    CHECK(error.start == 0 && error.end == 4 && strstr(error.message, "bf16") && layout == (tw_layout *)(uintptr_t)64);
    CHECK(tw_layout_parse("f32[2]{0:T(8,*)}", 16, &layout, &error) == TW_INVALID_LAYOUT && error.start > 6 && error.end <= 16);
    CHECK(tw_layout_parse("(f32[2], f32[2])", 16, &layout, &error) == TW_UNSUPPORTED);
    CHECK(tw_layout_parse("f32[?]", 6, &layout, &error) == TW_UNSUPPORTED);
    CHECK(tw_layout_parse("f32[9223372036854775807,2]", 26, &layout, &error) == TW_OVERFLOW);
    CHECK(tw_layout_parse("f32[2]\xff", 7, &layout, &error) == TW_INVALID_ARGUMENT && error.start == 6 && error.end == 7);
    CHECK(tw_layout_parse(NULL, 3, &layout, &error) == TW_INVALID_ARGUMENT && strstr(error.message, "text is NULL"));
    CHECK(tw_layout_parse("f32[2]", 6, NULL, NULL) == TW_INVALID_ARGUMENT);
    CHECK(tw_layout_parse("", 0, &layout, &error) == TW_INVALID_LAYOUT);
    CHECK(layout == (tw_layout *)(uintptr_t)64);

    /* A message longer than its place is cut off at a character. */
    static char long_text[4096];
    memset(long_text, 'x', sizeof long_text);
    CHECK(tw_layout_parse(long_text, sizeof long_text, &layout, &error) != TW_OK && memchr(error.message, 0, sizeof error.message));

    tw_layout *array = parsed("s8[4,6]{1,0:T(2,4)}");
    uint64_t index[2] = {4, 0}, offset = 77, count = 77;
    bool is_padding;
    CHECK(tw_layout_offset_of(array, index, &offset, &error) == TW_OUT_OF_RANGE && offset == 77 && error.code == TW_OUT_OF_RANGE);
    CHECK(tw_layout_offset_of(NULL, index, &offset, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_layout_offset_of(array, NULL, &offset, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_layout_index_of(array, 32, index, &is_padding, &error) == TW_OUT_OF_RANGE);
    const uint64_t zero[2] = {0, 0}, beyond[2] = {5, 6};
    tw_run run = {7, 7};
    CHECK(tw_slice_runs(array, zero, beyond, 0, &run, 1, &count, &error) == TW_OUT_OF_RANGE && count == 77 && run.offset_bits == 7);
    tw_layout_free(array);

    /* Questions without an error take NULL. */
    CHECK(tw_layout_rank(NULL) == 0 && tw_layout_physical_bytes(NULL) == 0 && tw_layout_logical_bytes(NULL) == 0);
    CHECK(tw_layout_clone(NULL) == NULL && !tw_layout_same_bytes(NULL, NULL) && tw_relayout_source_bytes(NULL) == 0);
    tw_layout_free(NULL);
    tw_relayout_free(NULL);
    CHECK(!strncmp(tw_version(), "0.", 2));
}

/* From parts, from PJRT's arrays, from messages, from a TPU's rule; and back. */
static void made_otherwise(void) {
    const uint64_t dimensions[2] = {300, 500};
    const int64_t order[2] = {1, 0}, tile_dims[4] = {8, 128, 2, 1};
    const size_t tile_dim_sizes[2] = {2, 2};
    tw_layout *layout = NULL, *same = NULL;
    tw_error error;
    CHECK(tw_layout_from_pjrt("bf16", dimensions, 2, order, tile_dims, tile_dim_sizes, 2, &layout, &error) == TW_OK);
    is_text(layout, "bf16[300,500]{1,0:T(8,128)(2,1)}");
    tw_pjrt_tiled parts;
    CHECK(tw_layout_pjrt(layout, &parts, &error) == TW_OK && parts.minor_to_major_size == 2 && parts.num_tiles == 2);
    CHECK(!memcmp(parts.tile_dims, tile_dims, sizeof tile_dims) && !memcmp(parts.minor_to_major, order, sizeof order));
    CHECK(tw_layout_default("bf16", dimensions, 2, "v5e", &same, &error) == TW_OK && tw_layout_same_bytes(layout, same));
    tw_layout_free(same);
    const uint64_t turned[2] = {0, 1};
    CHECK(tw_layout_with_order("bf16", dimensions, 2, turned, "v5e", &same, &error) == TW_OK);
    is_text(same, "bf16[300,500]{0,1:T(8,128)(2,1)}");
    CHECK(!tw_layout_same_bytes(layout, same));
    tw_layout_free(same);
    CHECK(tw_layout_row_major(layout, &same, &error) == TW_OK);
    is_text(same, "bf16[300,500]{1,0}");
    tw_layout_free(same);
    same = tw_layout_clone(layout);
    tw_layout_free(layout);
    is_text(same, "bf16[300,500]{1,0:T(8,128)(2,1)}");
    tw_layout_free(same);

    /* f32[2]{0}, as XLA serializes it; and the layout alone. */
    const uint8_t shape[] = {0x10, 0x0b, 0x1a, 0x01, 0x02, 0x2a, 0x06, 0x0a, 0x01, 0x00, 0x80, 0x01, 0x01, 0x32, 0x01, 0x00};
    CHECK(tw_layout_from_proto(shape, sizeof shape, &layout, &error) == TW_OK);
    is_text(layout, "f32[2]{0}");
    tw_layout_free(layout);
    const uint64_t two[1] = {2};
    CHECK(tw_layout_from_layout_proto("f32", two, 1, shape + 7, 6, &layout, &error) == TW_OK);
    is_text(layout, "f32[2]{0}");
    tw_layout_free(layout);
    CHECK(tw_layout_from_proto(shape, 7, &layout, &error) == TW_INVALID_LAYOUT);
    CHECK(tw_layout_default("bf17", dimensions, 2, "v5e", &layout, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_layout_default("bf16", dimensions, 2, "v99", &layout, &error) == TW_INVALID_ARGUMENT);
    const int64_t twice[2] = {0, 0};
    CHECK(tw_layout_from_pjrt("f32", dimensions, 2, twice, NULL, NULL, 0, &layout, &error) == TW_INVALID_LAYOUT);
    layout = parsed("s4[8]{0:E(4)}");
    CHECK(tw_layout_pjrt(layout, &parts, &error) == TW_UNSUPPORTED);
    tw_layout_free(layout);

    /* As snprintf: what fits, the whole length, NULL for the length alone. */
    layout = parsed("f32[3,5]{1,0:T(2,2)}");
    char text[8];
    size_t length = 0;
    CHECK(tw_layout_text(layout, text, sizeof text, &length, NULL) == TW_OK && length == 20 && !strcmp(text, "f32[3,5"));
    CHECK(tw_layout_text(layout, NULL, 0, &length, NULL) == TW_OK && length == 20);
    tw_layout_free(layout);
}

static void slices(void) {
    tw_layout *cache = parsed("bf16[4096,8,128]{2,1,0:T(8,128)(2,1)}");
    const uint64_t start[3] = {16, 0, 0}, limit[3] = {32, 8, 128}, heads[3] = {32, 4, 128}, strides[3] = {8, 1, 1};
    tw_slice slice;
    tw_run runs[3];
    uint64_t count = 0;
    CHECK(tw_slice_describe(cache, start, limit, NULL, &slice, NULL) == TW_OK);
    CHECK(slice.runs == 1 && slice.bits == 16 * 8 * 128 * 16 && slice.alignment_bits % (4096 * 8) == 0);
    CHECK(tw_slice_runs(cache, start, limit, 0, runs, 3, &count, NULL) == TW_OK && count == 1);
    CHECK(runs[0].offset_bits == 16 * 8 * 128 * 16 && runs[0].length_bits == slice.bits);
    CHECK(tw_slice_runs(cache, start, heads, 14, runs, 3, &count, NULL) == TW_OK && count == 16);
    CHECK(runs[1].offset_bits == 31 * 8 * 128 * 16 && runs[1].length_bits == 4 * 128 * 16);
    CHECK(tw_slice_runs(cache, start, heads, 99, runs, 3, &count, NULL) == TW_OK && count == 16);
    /* Pairs of rows share words, so each element is a run, but where an odd row's last is followed by an even row's first. */
    CHECK(tw_slice_runs_strided(cache, start, limit, strides, TW_SLICE_ORDER, 0, runs, 3, &count, NULL) == TW_OK);
    CHECK(count == 2 * (8 * 128 - 3));
    CHECK(tw_slice_runs_strided(cache, start, limit, NULL, TW_MEMORY_ORDER, 0, runs, 3, &count, NULL) == TW_OK && count == 1);
    CHECK(tw_slice_runs_strided(cache, start, limit, NULL, 7, 0, runs, 3, &count, NULL) == TW_INVALID_ARGUMENT);
    CHECK(tw_slice_runs(cache, limit, limit, 0, NULL, 0, &count, NULL) == TW_OK && count == 0);
    tw_layout_free(cache);
}

/* One plan, many threads. */
struct job {
    const tw_relayout *plan;
    const unsigned char *source;
    unsigned char destination[8];
};

static void *run(void *argument) {
    struct job *job = argument;
    for (int i = 0; i < 100; i++) CHECK(tw_relayout_run(job->plan, job->source, 6, job->destination, 8, 1, NULL) == TW_OK);
    return NULL;
}

static void relayouts(void) {
    tw_layout *from = parsed("s8[2,3]{1,0}"), *to = parsed("s8[2,3]{1,0:T(2,2)}"), *other = parsed("s8[3,2]");
    tw_relayout *plan = NULL, *leaving = NULL;
    tw_error error;
    CHECK(tw_relayout_new(from, other, &plan, &error) == TW_MISMATCH && !plan);
    CHECK(tw_relayout_new(from, NULL, &plan, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_relayout_new(from, to, &plan, &error) == TW_OK);
    CHECK(tw_relayout_new_with(from, to, TW_LEAVE_PADDING, &leaving, &error) == TW_OK);
    CHECK(tw_relayout_new_with(from, to, 64, &leaving, &error) == TW_INVALID_ARGUMENT);
    tw_layout_free(from), tw_layout_free(to), tw_layout_free(other);
    CHECK(tw_relayout_source_bytes(plan) == 6 && tw_relayout_destination_bytes(plan) == 8);

    const unsigned char source[6] = {1, 2, 3, 4, 5, 6}, tiled[8] = {1, 2, 4, 5, 3, 0, 6, 0}, left[8] = {1, 2, 4, 5, 3, 9, 6, 9};
    unsigned char destination[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    CHECK(tw_relayout_run(plan, source, 5, destination, 8, 1, &error) == TW_BUFFER_LENGTH && destination[0] == 9);
    CHECK(tw_relayout_run(plan, source, 6, destination, 7, 1, &error) == TW_BUFFER_LENGTH && destination[0] == 9);
    CHECK(tw_relayout_run(plan, NULL, 6, destination, 8, 1, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_relayout_run(plan, destination, 6, destination, 8, 1, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_relayout_run(leaving, source, 6, destination, 8, 0, &error) == TW_OK && !memcmp(destination, left, 8));
    CHECK(tw_relayout_run(plan, source, 6, destination, 8, 4, &error) == TW_OK && !memcmp(destination, tiled, 8));
    char text[4];
    size_t length = 0;
    CHECK(tw_relayout_text(plan, text, sizeof text, &length, &error) == TW_OK && strlen(text) == 3 && length > 3);

    tw_cost cost;
    CHECK(tw_relayout_cost(NULL, &cost, &error) == TW_INVALID_ARGUMENT && tw_relayout_cost(plan, NULL, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_relayout_cost(plan, &cost, &error) == TW_OK && cost.read_bytes == 6 && cost.written_bytes == 8 && cost.most_parts >= 1);
    CHECK(tw_relayout_cost(leaving, &cost, &error) == TW_OK && cost.written_bytes == 6);

    struct job jobs[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){plan, source, {0}};
        CHECK(!pthread_create(&threads[i], NULL, run, &jobs[i]));
    }
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL) && !memcmp(jobs[i].destination, tiled, 8));
    tw_relayout_free(plan), tw_relayout_free(leaving);
}

/* Part after part, each sent as soon as it is made: what it is said to have made is as the whole run leaves it. */
static void pipeline(void) {
    enum { BYTES = 300 * 500 * 4, TILED = 304 * 512 * 4, PARTS = 5 };
    tw_layout *from = parsed("f32[300,500]"), *to = parsed("f32[300,500]{1,0:T(8,128)}");
    tw_relayout *plan = NULL;
    tw_error error;
    CHECK(tw_relayout_new(from, to, &plan, &error) == TW_OK);
    tw_layout_free(from), tw_layout_free(to);
    unsigned char *source = malloc(BYTES), *whole = malloc(TILED), *parts = malloc(TILED), *sent = malloc(TILED);
    for (int i = 0; i < BYTES; i++) source[i] = (unsigned char)(i * 37 % 251);
    CHECK(tw_relayout_run(plan, source, BYTES, whole, TILED, 1, &error) == TW_OK);
    uint64_t start = 7, end = 0, done = 0;
    CHECK(tw_relayout_run_part(plan, PARTS, PARTS, source, BYTES, parts, TILED, &start, &end, &error) == TW_INVALID_ARGUMENT && start == 7);
    CHECK(tw_relayout_run_part(plan, 0, 0, source, BYTES, parts, TILED, NULL, NULL, &error) == TW_INVALID_ARGUMENT);
    CHECK(tw_relayout_run_part(plan, 0, PARTS, source, BYTES - 1, parts, TILED, NULL, NULL, &error) == TW_BUFFER_LENGTH);
    for (size_t part = 0; part < PARTS; part++) {
        CHECK(tw_relayout_run_part(plan, part, PARTS, source, BYTES, parts, TILED, &start, &end, &error) == TW_OK);
        CHECK(start == done && end > start && end <= TILED);
        memcpy(sent + start, parts + start, end - start);
        done = end;
    }
    CHECK(done == TILED && !memcmp(sent, whole, TILED));
    free(source), free(whole), free(parts), free(sent);
    tw_relayout_free(plan);
}

/* Two devices: rows become columns. */
static void resharding(void) {
    tw_layout *array = parsed("s8[2,4]{1,0}"), *shard = NULL;
    tw_reshard *plan = NULL;
    tw_error error;
    const char *rows = "{devices=[2,1]<=[2]}", *columns = "{devices=[1,2]<=[2]}", *wrong = "{devices=[1,3]<=[2]}";
    CHECK(tw_reshard_new(array, rows, strlen(rows), array, wrong, strlen(wrong), 0, &plan, &error) == TW_INVALID_ARGUMENT);
    CHECK(error.start > 10 && error.end <= strlen(wrong) && !plan);
    CHECK(tw_reshard_new(array, rows, strlen(rows), array, columns, strlen(columns), 2, &plan, &error) == TW_OK);
    tw_layout_free(array);
    CHECK(tw_reshard_devices(plan) == 2 && tw_reshard_shard(plan, true, &shard, &error) == TW_OK);
    is_text(shard, "s8[2,2]{1,0}");
    tw_layout_free(shard);

    tw_copy copies[3];
    uint64_t count = 0, from[2], to[2], sizes[2];
    CHECK(tw_reshard_copies(plan, 1, copies, 3, &count, &error) == TW_OK && count == 4);
    CHECK(copies[0].source == 1 && copies[0].destination == 0 && copies[0].elements == 2);
    CHECK(tw_reshard_copy_bounds(plan, 1, from, to, sizes, &error) == TW_OK);
    CHECK(from[0] == 0 && from[1] == 0 && to[0] == 1 && to[1] == 0 && sizes[0] == 1 && sizes[1] == 2);
    CHECK(tw_reshard_copy_bounds(plan, 4, from, to, sizes, &error) == TW_OUT_OF_RANGE);

    const unsigned char upper[4] = {0, 1, 2, 3}, lower[4] = {4, 5, 6, 7}, left[4] = {0, 1, 4, 5}, right[4] = {2, 3, 6, 7};
    unsigned char both[8] = {0};
    const void *sources[2] = {upper, lower};
    void *destinations[2] = {both, both + 4}, *overlapping[2] = {both, both + 3};
    CHECK(tw_reshard_run(plan, sources, overlapping, 2, &error) == TW_INVALID_ARGUMENT && both[1] == 0);
    CHECK(tw_reshard_run(plan, sources, destinations, 1, &error) == TW_BUFFER_LENGTH && both[1] == 0);
    CHECK(tw_reshard_run(plan, sources, destinations, 2, &error) == TW_OK && !memcmp(both, left, 4) && !memcmp(both + 4, right, 4));
    tw_reshard_free(plan);
    tw_reshard_free(NULL);
}

int main(void) {
    figure_1();
    errors();
    made_otherwise();
    slices();
    relayouts();
    pipeline();
    resharding();
    return 0;
}
