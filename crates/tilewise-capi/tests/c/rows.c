/* Answers rows of questions: kind, layout, two more fields; the format of tests/data/rows.tsv without its last field. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewise.h"

#define BATCH 5

static void numbers(char *text, uint64_t *out) {
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) *out++ = strtoull(word, NULL, 10);
}

/* FNV-1a, as the rows were made with. */
static uint64_t hash(uint64_t so_far, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) so_far = (so_far ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return so_far;
}

#define HASH_OF_NOTHING 1469598103934665603u

static int runs(const tw_layout *layout, const uint64_t *start, const uint64_t *limit) {
    uint64_t count = 0, again = 0, bits = 0, found = HASH_OF_NOTHING;
    tw_run batch[BATCH];
    tw_slice slice;
    if (tw_slice_runs(layout, start, limit, 0, NULL, 0, &count, NULL)) return 1;
    for (uint64_t first = 0; first < count; first += BATCH) {
        if (tw_slice_runs(layout, start, limit, first, batch, BATCH, &again, NULL) || again != count) return 1;
        for (uint64_t i = 0; i < BATCH && first + i < count; i++) {
            const uint64_t words[2] = {batch[i].offset_bits, batch[i].length_bits};
            found = hash(found, words, sizeof words);
            bits += batch[i].length_bits;
        }
    }
    if (tw_slice_describe(layout, start, limit, NULL, &slice, NULL)) return 1;
    if (slice.runs != count || slice.bits != bits) return 1;
    printf("%" PRIu64 " %" PRIu64 " %016" PRIx64 "\n", count, bits, found);
    return 0;
}

static int relayout(const tw_layout *from, const char *text) {
    tw_layout *to = NULL;
    tw_relayout *plan = NULL;
    if (tw_layout_parse(text, strlen(text), &to, NULL)) return 1;
    const size_t n = tw_layout_physical_bytes(from), m = tw_layout_physical_bytes(to);
    unsigned char *source = malloc(n + 1), *destination = malloc(m + 1);
    for (size_t i = 0; i < n; i++) source[i] = (unsigned char)(i * 2654435761u >> 13);
    int failed = tw_relayout_new(from, to, &plan, NULL);
    tw_layout_free(to);
    failed = failed || tw_relayout_run(plan, source, n, destination, m, 2, NULL);
    if (!failed) {
        const int refused = tw_relayout_run(plan, source, n ? n - 1 : 1, destination, m, 1, NULL);
        printf("%016" PRIx64 " %s\n", hash(HASH_OF_NOTHING, destination, m), refused ? "kept" : "took a short buffer");
    }
    tw_relayout_free(plan);
    free(source), free(destination);
    return failed;
}

static int answer(const char *kind, const tw_layout *layout, char *more, char *last) {
    uint64_t a[64] = {0}, b[64] = {0}, offset = 0;
    if (!strcmp(kind, "sizes")) {
        printf("%" PRIu64 " %" PRIu64 " %u\n", tw_layout_logical_bytes(layout), tw_layout_physical_bytes(layout), tw_layout_rank(layout));
        return 0;
    }
    if (!strcmp(kind, "offset")) {
        bool is_padding = true;
        numbers(more, a);
        if (tw_layout_offset_of(layout, a, &offset, NULL)) return 1;
        if (tw_layout_index_of(layout, offset, b, &is_padding, NULL) || is_padding) return 1;
        printf("%" PRIu64 " %s\n", offset, memcmp(a, b, tw_layout_rank(layout) * sizeof *a) ? "differs" : "same");
        return 0;
    }
    if (!strcmp(kind, "runs")) {
        numbers(more, a), numbers(last, b);
        return runs(layout, a, b);
    }
    return relayout(layout, more);
}

int main(void) {
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char empty[1] = "", *fields[4] = {line, empty, empty, empty};
        for (int i = 1; i < 4; i++) {
            char *tab = strchr(fields[i - 1], '\t');
            if (!tab) break;
            *tab = 0, fields[i] = tab + 1;
        }
        tw_layout *layout = NULL;
        tw_error error;
        if (tw_layout_parse(fields[1], strlen(fields[1]), &layout, &error)) {
            printf("error 1 %s\n", error.code && error.message[0] ? "said" : "silent");
            continue;
        }
        if (answer(fields[0], layout, fields[2], fields[3])) printf("error\n");
        tw_layout_free(layout);
    }
    return 0;
}
