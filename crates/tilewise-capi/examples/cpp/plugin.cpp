// What a PJRT plugin does with tiles: an array from the host becomes a device buffer and comes back, and raw copies take a part of it.
//
// The device here is a vector of bytes; the names are those of PJRT's C API, whose structs are passed as their fields.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tilewise.hpp"

namespace {

/// Plans are made once for each pair of layouts and used by any number of threads.
class Plans {
  public:
    const tilewise::Relayout &between(const tilewise::Layout &from, const tilewise::Layout &to) {
        const std::lock_guard lock(mutex_);
        auto key = std::make_pair(from.text(), to.text());
        auto found = plans_.find(key);
        if (found == plans_.end()) found = plans_.emplace(std::move(key), tilewise::Relayout(from, to)).first;
        return found->second;
    }

  private:
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, tilewise::Relayout> plans_;
};

/// A buffer of a device.
struct Buffer {
    tilewise::Layout layout;
    std::vector<std::uint8_t> memory;
};

/// PJRT_Client_BufferFromHostBuffer: the host's array in its own order, the device's in the layout that this TPU picks.
Buffer buffer_from_host(Plans &plans, const std::vector<std::uint8_t> &data, const char *type, tilewise::Index dimensions,
                        tilewise::Span<const std::int64_t> host_minor_to_major) {
    const auto host = tilewise::Layout::from_pjrt(type, dimensions, host_minor_to_major);
    Buffer buffer{tilewise::Layout::default_for(type, dimensions, "v5e"), {}};
    buffer.memory.resize(buffer.layout.physical_bytes());
    plans.between(host, buffer.layout).run(data.data(), data.size(), buffer.memory.data(), buffer.memory.size());
    return buffer;
}

/// PJRT_Buffer_ToHostBuffer, with the layout that its `host_layout` asks for.
std::vector<std::uint8_t> to_host(Plans &plans, const Buffer &buffer, const tilewise::Layout &host) {
    std::vector<std::uint8_t> data(host.physical_bytes());
    plans.between(buffer.layout, host).run(buffer.memory.data(), buffer.memory.size(), data.data(), data.size());
    return data;
}

/// PJRT_Buffer_CopyRawToHost for some rows: which bytes to copy, without looking at any.
std::vector<std::uint8_t> copy_raw(const Buffer &buffer, tilewise::Index start, tilewise::Index limit) {
    std::vector<std::uint8_t> bytes;
    buffer.layout.for_each_run(
        [&](const tilewise::Run &run) {
            const auto *from = buffer.memory.data() + run.offset_bits / 8;
            bytes.insert(bytes.end(), from, from + run.length_bits / 8);
        },
        start, limit);
    return bytes;
}

int failed(const char *what) {
    std::cerr << what << '\n';
    return 1;
}

}  // namespace

int main() {
    Plans plans;
    const std::uint64_t dimensions[] = {300, 500};
    const std::int64_t row_major[] = {1, 0};
    std::vector<std::uint8_t> data(300 * 500 * 2);
    for (std::size_t i = 0; i < data.size(); i++) data[i] = static_cast<std::uint8_t>(i * 7 + i / 256);

    const auto buffer = buffer_from_host(plans, data, "bf16", dimensions, row_major);
    std::cout << buffer.layout.text() << ": " << buffer.layout.logical_bytes() << " bytes of data take " << buffer.memory.size() << '\n';
    if (to_host(plans, buffer, buffer.layout.row_major()) != data) return failed("a round trip changed the data");

    // Element (1, 0) lies beside (0, 0): two rows share 32-bit words.
    const std::uint64_t second_row[] = {1, 0};
    const auto offset = buffer.layout.offset_of(second_row);
    if (offset != 1 || std::memcmp(&buffer.memory[offset * 2], &data[500 * 2], 2) != 0) return failed("(1, 0) is elsewhere");

    // A row of tiles is one run up to the last tile, where pairs of rows have padding behind them.
    const std::uint64_t start[] = {8, 0}, limit[] = {16, 500};
    const auto slice = buffer.layout.describe(start, limit);
    std::cout << "rows 8 to 15: " << slice.runs << " runs of " << slice.shortest_bits / 8 << " bytes at least\n";
    if (copy_raw(buffer, start, limit).size() != 8 * 500 * 2) return failed("a raw copy has another size");

    try {
        tilewise::Layout("bf16[300,500]{1,0:T(8,0)}");
        return failed("a tile of 0 was taken");
    } catch (const tilewise::Error &error) {
        std::cout << "bytes " << error.start() << " to " << error.end() << ": " << error.what() << '\n';
    }
    return 0;
}
