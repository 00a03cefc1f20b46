// tilewise for C++17: the functions of tilewise.h as values that free themselves. docs/c.md explains; MIT OR Apache-2.0.
//
// Errors are thrown as tilewise::Error. With C++20, ranges are std::span; before, tilewise::Span is a pointer and a length, and converts from
// whatever has data() and size().
#ifndef TILEWISE_HPP
#define TILEWISE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_lib_span) || (defined(__has_include) && __cplusplus >= 202002L)
#include <span>
#endif

#include "tilewise.h"

namespace tilewise {

/// What went wrong: what() in words, code() as in tw_code, and the bytes of the text that are wrong.
class Error : public std::runtime_error {
  public:
    explicit Error(const tw_error &error) : std::runtime_error(error.message), code_(error.code), start_(error.start), end_(error.end) {}

    int code() const noexcept { return code_; }
    std::size_t start() const noexcept { return start_; }
    std::size_t end() const noexcept { return end_; }

  private:
    int code_;
    std::size_t start_, end_;
};

#if defined(__cpp_lib_span)
template <class T>
using Span = std::span<T>;
#else
/// Values that lie one behind the other and belong to somebody else.
template <class T>
class Span {
  public:
    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N>
    constexpr Span(T (&values)[N]) noexcept : data_(values), size_(N) {}
    /// Of a vector, an array, a string: of whatever has data() and size().
    template <class Values, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<Values &>().data()), T *>>>
    constexpr Span(Values &&values) noexcept : data_(values.data()), size_(values.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t at) const noexcept { return data_[at]; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

/// An index, or one number for each dimension.
using Index = Span<const std::uint64_t>;

/// A run of a slice, in bits of the buffer.
using Run = tw_run;

/// What all runs of a slice have in common.
using Slice = tw_slice;

/// The order in which runs come.
enum class Order : std::int32_t { memory = TW_MEMORY_ORDER, slice = TW_SLICE_ORDER };

namespace detail {

inline void check(std::int32_t code, const tw_error &error) {
    if (code != TW_OK) throw Error(error);
}

template <class Handle, void (*free)(Handle *)>
struct Free {
    void operator()(Handle *handle) const noexcept { free(handle); }
};

template <class Handle, void (*free)(Handle *)>
using Owned = std::unique_ptr<Handle, Free<Handle, free>>;

}  // namespace detail

/// A shape with its layout. Immutable: any number of threads may use one; a copy is another handle of the same.
class Layout {
  public:
    /// XLA's text, such as "bf16[8,128]{1,0:T(8,128)(2,1)}".
    explicit Layout(std::string_view text)
        : Layout(made([&](auto **out, auto *error) { return tw_layout_parse(text.data(), text.size(), out, error); })) {}

    /// The bytes of XLA's ShapeProto.
    static Layout from_proto(Span<const std::uint8_t> bytes) {
        return made([&](auto **out, auto *error) { return tw_layout_from_proto(bytes.data(), bytes.size(), out, error); });
    }

    /// The fields of PJRT_Buffer_MemoryLayout_Tiled; without tiles an order of dimensions, as hosts have.
    static Layout from_pjrt(const char *element_type, Index dimensions, Span<const std::int64_t> minor_to_major,
                            Span<const std::int64_t> tile_dims = {}, Span<const std::size_t> tile_dim_sizes = {}) {
        std::size_t sizes = 0;
        for (auto size : tile_dim_sizes) sizes += size;
        if (minor_to_major.size() != dimensions.size() || sizes != tile_dims.size()) throw std::invalid_argument("the arrays' lengths differ");
        return made([&](auto **out, auto *error) {
            return tw_layout_from_pjrt(element_type, dimensions.data(), dimensions.size(), minor_to_major.data(), tile_dims.data(),
                                       tile_dim_sizes.data(), tile_dim_sizes.size(), out, error);
        });
    }

    /// What a TPU generation ("v5e") gives an array by default.
    static Layout default_for(const char *element_type, Index dimensions, const char *tpu) {
        return made([&](auto **out, auto *error) {
            return tw_layout_default(element_type, dimensions.data(), dimensions.size(), tpu, out, error);
        });
    }

    /// The same where the order of dimensions is fixed.
    static Layout with_order(const char *element_type, Index dimensions, Index minor_to_major, const char *tpu) {
        if (minor_to_major.size() != dimensions.size()) throw std::invalid_argument("the order has another length than the dimensions");
        return made([&](auto **out, auto *error) {
            return tw_layout_with_order(element_type, dimensions.data(), dimensions.size(), minor_to_major.data(), tpu, out, error);
        });
    }

    /// The same array as hosts have it.
    Layout row_major() const {
        return made([&](auto **out, auto *error) { return tw_layout_row_major(get(), out, error); });
    }

    Layout(const Layout &other) : handle_(tw_layout_clone(other.get())) {}
    Layout(Layout &&) noexcept = default;
    Layout &operator=(Layout other) noexcept {
        handle_.swap(other.handle_);
        return *this;
    }

    std::size_t rank() const noexcept { return tw_layout_rank(get()); }
    std::uint64_t logical_bytes() const noexcept { return tw_layout_logical_bytes(get()); }
    std::uint64_t physical_bytes() const noexcept { return tw_layout_physical_bytes(get()); }
    std::uint64_t physical_elements() const noexcept { return tw_layout_physical_elements(get()); }
    std::uint64_t stored_bits() const noexcept { return tw_layout_stored_bits(get()); }
    bool same_bytes(const Layout &other) const noexcept { return tw_layout_same_bytes(get(), other.get()); }

    std::vector<std::uint64_t> dimensions() const {
        std::vector<std::uint64_t> dimensions(rank());
        checked([&](auto *error) { return tw_layout_dimensions(get(), dimensions.data(), error); });
        return dimensions;
    }

    /// XLA's text.
    std::string text() const {
        std::size_t length = 0;
        checked([&](auto *error) { return tw_layout_text(get(), nullptr, 0, &length, error); });
        std::string text(length + 1, '\0');
        checked([&](auto *error) { return tw_layout_text(get(), text.data(), text.size(), &length, error); });
        text.resize(length);
        return text;
    }

    /// PJRT's arrays, which live as long as this.
    tw_pjrt_tiled pjrt() const {
        tw_pjrt_tiled parts{};
        checked([&](auto *error) { return tw_layout_pjrt(get(), &parts, error); });
        return parts;
    }

    /// In elements from the start of the buffer.
    std::uint64_t offset_of(Index index) const {
        same_rank(index);
        std::uint64_t offset = 0;
        checked([&](auto *error) { return tw_layout_offset_of(get(), index.data(), &offset, error); });
        return offset;
    }

    /// Nothing where padding lies.
    std::optional<std::vector<std::uint64_t>> index_of(std::uint64_t offset) const {
        std::vector<std::uint64_t> index(rank());
        bool is_padding = false;
        checked([&](auto *error) { return tw_layout_index_of(get(), offset, index.data(), &is_padding, error); });
        if (is_padding) return std::nullopt;
        return index;
    }

    /// What the runs of a slice have in common, without making any.
    Slice describe(Index start, Index limit, Index strides = {}) const {
        same_rank(start), same_rank(limit);
        Slice slice{};
        checked([&](auto *error) {
            return tw_slice_describe(get(), start.data(), limit.data(), optional(strides), &slice, error);
        });
        return slice;
    }

    /// All runs of a slice. Of slices with millions, ask for_each_run.
    std::vector<Run> runs(Index start, Index limit, Index strides = {}, Order order = Order::memory) const {
        std::vector<Run> runs;
        for_each_run([&](const Run &run) { runs.push_back(run); }, start, limit, strides, order);
        return runs;
    }

    /// Calls `visit` with each run of a slice, some hundreds of which are held at a time.
    template <class Visit>
    void for_each_run(Visit &&visit, Index start, Index limit, Index strides = {}, Order order = Order::memory) const {
        same_rank(start), same_rank(limit);
        constexpr std::size_t batch = 512;
        Run some[batch];
        std::uint64_t count = 1;
        for (std::uint64_t first = 0; first < count; first += batch) {
            checked([&](auto *error) {
                return tw_slice_runs_strided(get(), start.data(), limit.data(), optional(strides), static_cast<std::int32_t>(order), first, some,
                                             batch, &count, error);
            });
            for (std::size_t i = 0; i < batch && first + i < count; i++) visit(some[i]);
        }
    }

    /// The handle, which stays this object's.
    const tw_layout *get() const noexcept { return handle_.get(); }

  private:
    explicit Layout(tw_layout *handle) noexcept : handle_(handle) {}

    template <class Make>
    static Layout made(Make &&make) {
        tw_layout *handle = nullptr;
        checked([&](auto *error) { return make(&handle, error); });
        return Layout(handle);
    }

    template <class Call>
    static void checked(Call &&call) {
        tw_error error{};
        detail::check(call(&error), error);
    }

    void same_rank(Index index) const {
        if (index.size() != rank()) throw std::invalid_argument("an index needs a number for each dimension");
    }

    const std::uint64_t *optional(Index strides) const {
        if (strides.empty()) return nullptr;
        same_rank(strides);
        return strides.data();
    }

    detail::Owned<tw_layout, tw_layout_free> handle_;
};

/// How buffers go from one layout of an array to another: made once, run any number of times, by any thread.
class Relayout {
  public:
    /// What becomes of the destination's padding.
    enum class Padding : std::uint32_t { zero = 0, leave = TW_LEAVE_PADDING };

    Relayout(const Layout &from, const Layout &to, Padding padding = Padding::zero) {
        tw_relayout *handle = nullptr;
        tw_error error{};
        detail::check(tw_relayout_new_with(from.get(), to.get(), static_cast<std::uint32_t>(padding), &handle, &error), error);
        handle_.reset(handle);
    }

    std::uint64_t source_bytes() const noexcept { return tw_relayout_source_bytes(handle_.get()); }
    std::uint64_t destination_bytes() const noexcept { return tw_relayout_destination_bytes(handle_.get()); }

    /// Buffers of exactly these lengths, apart from each other.
    void run(const void *source, std::size_t source_size, void *destination, std::size_t destination_size, unsigned threads = 1) const {
        tw_error error{};
        detail::check(tw_relayout_run(handle_.get(), source, source_size, destination, destination_size, threads, &error), error);
    }

    template <class From, class To>
    void run(Span<From> source, Span<To> destination, unsigned threads = 1) const {
        run(source.data(), source.size() * sizeof(From), destination.data(), destination.size() * sizeof(To), threads);
    }

    /// What a run costs.
    tw_cost cost() const {
        tw_cost cost{};
        tw_error error{};
        detail::check(tw_relayout_cost(handle_.get(), &cost, &error), error);
        return cost;
    }

    /// One of so many parts of the destination, which are run in order; the first byte that it has made, and the one behind the last.
    std::pair<std::uint64_t, std::uint64_t> run_part(std::size_t part, std::size_t parts, const void *source, std::size_t source_size,
                                                     void *destination, std::size_t destination_size) const {
        std::uint64_t start = 0, end = 0;
        tw_error error{};
        detail::check(tw_relayout_run_part(handle_.get(), part, parts, source, source_size, destination, destination_size, &start, &end,
                                           &error),
                      error);
        return {start, end};
    }

    const tw_relayout *get() const noexcept { return handle_.get(); }

  private:
    detail::Owned<tw_relayout, tw_relayout_free> handle_;
};

}  // namespace tilewise

#endif
