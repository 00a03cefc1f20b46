// What tpu-sync's tiling_utils.cc uses of XLA and of its own thread pool, in the least that answers as they do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <numeric>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace xla {

inline int64_t CeilOfRatio(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Tile {
  public:
    explicit Tile(std::vector<int64_t> dimensions) : dimensions_(std::move(dimensions)) {}
    absl::Span<const int64_t> dimensions() const { return dimensions_; }
    int64_t dimension(int at) const { return dimensions_[at]; }

  private:
    std::vector<int64_t> dimensions_;
};

class Layout {
  public:
    Layout() = default;
    Layout(std::vector<int64_t> minor_to_major, std::vector<Tile> tiles) : order_(std::move(minor_to_major)), tiles_(std::move(tiles)) {}
    absl::Span<const int64_t> minor_to_major() const { return order_; }
    int64_t minor_to_major(int at) const { return order_[at]; }
    absl::Span<const Tile> tiles() const { return tiles_; }
    const Tile &tiles(int at) const { return tiles_[at]; }

  private:
    std::vector<int64_t> order_;
    std::vector<Tile> tiles_;
};

/// Its element type is the number of whole bytes that ShapeUtil::ByteSizeOfPrimitiveType gives.
class Shape {
  public:
    Shape(int64_t element_type, std::vector<int64_t> dimensions, Layout layout)
        : element_type_(element_type), dimensions_(std::move(dimensions)), layout_(std::move(layout)) {}
    int64_t element_type() const { return element_type_; }
    absl::Span<const int64_t> dimensions() const { return dimensions_; }
    int64_t dimensions(int at) const { return dimensions_[at]; }
    const Layout &layout() const { return layout_; }

  private:
    int64_t element_type_;
    std::vector<int64_t> dimensions_;
    Layout layout_;
};

struct ShapeUtil {
    static int64_t ByteSizeOfPrimitiveType(int64_t element_type) { return element_type; }
    static int64_t ByteSizeOf(const Shape &shape) {
        int64_t bytes = shape.element_type();
        for (int64_t bound : shape.dimensions()) bytes *= bound;
        return bytes;
    }
    static Shape MakeShape(int64_t element_type, absl::Span<const int64_t> dimensions) {
        return Shape(element_type, {dimensions.begin(), dimensions.end()}, Layout());
    }
    template <class Visit>
    static void ForEachIndexNoStatus(const Shape &shape, Visit &&visit) {
        std::vector<int64_t> index(shape.dimensions().size());
        for (int64_t bound : shape.dimensions())
            if (bound == 0) return;
        for (;;) {
            if (!visit(absl::Span<const int64_t>(index))) return;
            int at = static_cast<int>(index.size()) - 1;
            while (at >= 0 && ++index[at] == shape.dimensions(at)) index[at--] = 0;
            if (at < 0) return;
        }
    }
};

struct IndexUtil {
    static int64_t MultidimensionalIndexToLinearIndex(const Shape &shape, absl::Span<const int64_t> index) {
        int64_t linear = 0;
        for (size_t at = 0; at < index.size(); at++) linear = linear * shape.dimensions(static_cast<int>(at)) + index[at];
        return linear;
    }
};

struct LayoutUtil {
    /// Every tile in turn; sizes are those of the tiles, `*` included, as in XLA.
    static int64_t LinearIndexForNestedTiling(const Shape &shape, absl::Span<const int64_t> index) {
        std::vector<int64_t> bounds, place;
        const Layout &layout = shape.layout();
        for (int at = static_cast<int>(index.size()) - 1; at >= 0; at--) {
            bounds.push_back(shape.dimensions(static_cast<int>(layout.minor_to_major(at))));
            place.push_back(index[layout.minor_to_major(at)]);
        }
        for (const Tile &tile : layout.tiles()) {
            const size_t rank = tile.dimensions().size();
            while (bounds.size() < rank) bounds.insert(bounds.begin(), 1), place.insert(place.begin(), 0);
            const size_t start = bounds.size() - rank;
            for (size_t at = 0; at < rank; at++) {
                const int64_t size = tile.dimension(static_cast<int>(at));
                bounds.push_back(size), place.push_back(place[start + at] % size);
                bounds[start + at] = CeilOfRatio(bounds[start + at], size), place[start + at] /= size;
            }
        }
        int64_t linear = 0;
        for (size_t at = 0; at < place.size(); at++) linear = linear * bounds[at] + place[at];
        return linear;
    }
};

}  // namespace xla

namespace tpu_raiden {

/// Threads that take tasks from a queue; without NUMA nodes.
class NumaThreadPool {
  public:
    explicit NumaThreadPool(size_t threads) {
        for (size_t at = 0; at < threads; at++) workers_.emplace_back([this] { work(); });
    }
    ~NumaThreadPool() {
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        waiting_.notify_all();
        for (auto &worker : workers_) worker.join();
    }
    template <class Task>
    void Schedule(Task &&task) {
        {
            const std::lock_guard lock(mutex_);
            tasks_.emplace(std::forward<Task>(task));
        }
        waiting_.notify_one();
    }

  private:
    void work() {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock lock(mutex_);
                waiting_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
                if (tasks_.empty()) return;
                task = std::move(tasks_.front());
                tasks_.pop();
            }
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable waiting_;
    std::queue<std::function<void()>> tasks_;
    std::vector<std::thread> workers_;
    bool stopped_ = false;
};

}  // namespace tpu_raiden
