// tpu-sync's tiler beside ours: `compare right` reads layouts from standard input and counts those whose bytes it gets right;
// `compare time` measures both, and a plain copy, on large arrays. run.sh builds and runs it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "tilewise.hpp"
#include "tpu_sync/weight_sync/tiling_utils.h"

namespace theirs = tpu_raiden::weight_sync;

namespace {

/// A layout as both have it; the host's side is row-major, in whole bytes.
struct Case {
    tilewise::Layout device, host;
    xla::Shape shape;

    /// Nothing where PJRT's arrays, which tpu-sync gets layouts by, can't say it.
    static std::vector<Case> of(const std::string &text) {
        const tilewise::Layout device(text);
        const auto host = device.row_major();
        // `E(n)` is left out of what tpu-sync is given, as it is of PJRT's arrays.
        const auto plain = text.find("E(") == std::string::npos ? device : tilewise::Layout(text.substr(0, text.find("E(")) + "}");
        tw_pjrt_tiled parts{};
        if (tw_layout_pjrt(plain.get(), &parts, nullptr)) return {};
        std::vector<xla::Tile> tiles;
        for (std::size_t at = 0, from = 0; at < parts.num_tiles; from += parts.tile_dim_sizes[at++]) {
            tiles.emplace_back(std::vector<std::int64_t>(parts.tile_dims + from, parts.tile_dims + from + parts.tile_dim_sizes[at]));
        }
        std::vector<std::int64_t> dimensions;
        for (auto bound : device.dimensions()) dimensions.push_back(static_cast<std::int64_t>(bound));
        const std::vector<std::int64_t> order(parts.minor_to_major, parts.minor_to_major + parts.minor_to_major_size);
        const auto bytes = static_cast<std::int64_t>(host.stored_bits() / 8);
        return {Case{device, host, xla::Shape(bytes, dimensions, xla::Layout(order, tiles))}};
    }
};

std::vector<std::uint8_t> data(std::size_t bytes) {
    std::vector<std::uint8_t> data(bytes);
    std::uint64_t state = 1;
    for (auto &byte : data) byte = static_cast<std::uint8_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
    return data;
}

/// Whether what tpu-sync makes of an array has its size, its elements in their places, and comes back.
bool is_right(const Case &one) {
    const auto bytes = one.device.physical_bytes();
    const auto host = data(one.host.physical_bytes());
    const auto own = static_cast<std::uint64_t>(theirs::GetTiledBufferElements(one.shape) * one.shape.element_type());
    // Room for what it may write past the end.
    std::vector<std::uint8_t> tiled(std::max(bytes, own) + (1 << 20)), back(host.size() + (1 << 20));
    if (!theirs::TileBuffer(host.data(), tiled.data(), one.shape, one.shape.layout()).ok()) return false;
    if (!theirs::DetileBuffer(tiled.data(), back.data(), one.shape, one.shape.layout()).ok()) return false;
    if (own != bytes || !std::equal(host.begin(), host.end(), back.begin())) return false;
    std::vector<std::uint8_t> elements(host.size());
    tilewise::Relayout(one.device, one.host).run(tiled.data(), bytes, elements.data(), elements.size());
    return elements == host;
}

void right() {
    std::string text;
    long asked = 0, rights = 0, skipped = 0;
    while (std::getline(std::cin, text)) {
        const auto cases = Case::of(text);
        if (cases.empty() || cases[0].device.physical_bytes() > (16 << 20)) {
            skipped++;
            continue;
        }
        asked++;
        rights += is_right(cases[0]);
    }
    std::printf("tpu-sync's tiler gets %ld of %ld layouts right (%.0f %%); %ld larger than 16 MiB were not tried.\n", rights, asked,
                100.0 * static_cast<double>(rights) / static_cast<double>(std::max(asked, 1L)), skipped);
}

/// The shortest of some runs, in seconds.
template <class Work>
double shortest(Work &&work) {
    double least = 1e9;
    for (int round = 0; round < 9; round++) {
        const auto start = std::chrono::steady_clock::now();
        work();
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return least;
}

void times() {
    std::puts("| layout | copy, GB/s | tilewise, 1 thread | 4 threads | tpu-sync, 4 threads | tilewise 4 / tpu-sync |");
    std::puts("|---|---:|---:|---:|---:|---:|");
    for (const char *text : {
             "f32[4096,4096]{1,0:T(8,128)}",
             "bf16[8192,4096]{1,0:T(8,128)(2,1)}",
             "s8[8192,8192]{1,0:T(32,128)(4,1)}",
             "bf16[4093,8190]{1,0:T(8,128)(2,1)}",
             "f32[8,1021,4095]{2,1,0:T(8,128)}",
             "bf16[64,16,512,128]{3,2,1,0:T(8,128)(2,1)}",
             "bf16[512,6144]{0,1:T(8,128)(2,1)}",
         }) {
        const auto one = Case::of(text).at(0);
        const auto bytes = one.device.physical_bytes();
        const auto host = data(one.host.physical_bytes());
        std::vector<std::uint8_t> tiled(bytes + (1 << 20), 1), copied(host.size(), 1);
        const tilewise::Relayout plan(one.host, one.device);
        const auto ours = [&](unsigned threads) {
            return shortest([&] { plan.run(host.data(), host.size(), tiled.data(), bytes, threads); });
        };
        const double copy = shortest([&] { std::memcpy(copied.data(), host.data(), host.size()); });
        const double single = ours(1), four = ours(4);
        const double other = shortest([&] { (void)theirs::TileBuffer(host.data(), tiled.data(), one.shape, one.shape.layout()); });
        const auto rate = [&](double seconds) { return static_cast<double>(host.size()) * 2e-9 / seconds; };
        std::printf("| `%s` | %.1f | %.1f | %.1f | %.2f%s | %.1f |\n", text, rate(copy), rate(single), rate(four), rate(other),
                    is_right(one) ? "" : " (wrong)", other / four);
    }
    std::puts("\nBytes read and written; the shortest of nine runs, host to device.");
    // Runs of slices: short ones, and many of one.
    const tilewise::Layout cache("bf16[65536,8,100]{2,1,0:T(8,128)(2,1)}");
    const std::uint64_t start[] = {0, 0, 3}, limit[] = {65536, 8, 97};
    std::uint64_t runs = 0;
    const double all = shortest([&] {
        runs = 0;
        cache.for_each_run([&](const tilewise::Run &) { runs++; }, start, limit);
    });
    const double each = all * 1e9 / static_cast<double>(runs);
    const double few = shortest([&] {
        for (std::uint64_t token = 0; token < 10000; token++) {
            const std::uint64_t from[] = {token, 0, 3}, to[] = {token + 16, 8, 97};
            runs += cache.describe(from, to).runs;
        }
    });
    std::printf("Runs of slices: %.1f ns a run where there are many, %.2f million slices a second described.\n", each, 1e-2 / few);
}

}  // namespace

int main(int count, char **arguments) {
    const std::string what = count > 1 ? arguments[1] : "";
    if (what == "right") right();
    else if (what == "time") times();
    else return 2;
}
