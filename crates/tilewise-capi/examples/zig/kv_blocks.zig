//! Moves blocks of a paged KV cache between two buffers, by the runs that a block takes in each.
//!
//! The cache is `bf16[tokens, heads, 128]`; a block is 16 tokens. Where the layout keeps a block together, a block is one run, and moving it
//! one copy; else it is as many copies as the library says.
const std = @import("std");
const tw = @import("tilewise");

const block = 16;

const Failure = error{Refused};

fn check(code: i32, said: *const tw.tw_error) Failure!void {
    if (code == tw.TW_OK) return;
    const words: [*:0]const u8 = @ptrCast(&said.message);
    std.debug.print("{s}\n", .{words});
    return error.Refused;
}

/// A cache, with its layout.
const Cache = struct {
    layout: *tw.tw_layout,
    bytes: []u8,

    fn init(allocator: std.mem.Allocator, text: []const u8) !Cache {
        var said: tw.tw_error = undefined;
        var layout: ?*tw.tw_layout = null;
        try check(tw.tw_layout_parse(text.ptr, text.len, &layout, &said), &said);
        errdefer tw.tw_layout_free(layout);
        const bytes = try allocator.alloc(u8, @intCast(tw.tw_layout_physical_bytes(layout)));
        @memset(bytes, 0);
        return .{ .layout = layout.?, .bytes = bytes };
    }

    fn deinit(cache: Cache, allocator: std.mem.Allocator) void {
        allocator.free(cache.bytes);
        tw.tw_layout_free(cache.layout);
    }

    fn bounds(number: u64) [2][3]u64 {
        return .{ .{ number * block, 0, 0 }, .{ (number + 1) * block, 8, 128 } };
    }

    /// How many copies a block is.
    fn copies(cache: Cache, number: u64) !u64 {
        const slice = bounds(number);
        var said: tw.tw_error = undefined;
        var told: tw.tw_slice = undefined;
        try check(tw.tw_slice_describe(cache.layout, &slice[0], &slice[1], null, &told, &said), &said);
        return told.runs;
    }

    /// A block's runs, from the first'th on.
    fn runs(cache: Cache, number: u64, first: u64, some: []tw.tw_run) !u64 {
        const slice = bounds(number);
        var said: tw.tw_error = undefined;
        var count: u64 = 0;
        try check(tw.tw_slice_runs(cache.layout, &slice[0], &slice[1], first, some.ptr, some.len, &count, &said), &said);
        return count;
    }
};

/// Copies a block to another place of a cache with the same layout. Blocks lie alike, so run for run.
fn move(from: Cache, source: u64, to: Cache, destination: u64) !void {
    var a: [64]tw.tw_run = undefined;
    var b: [64]tw.tw_run = undefined;
    var first: u64 = 0;
    var count: u64 = 1;
    while (first < count) : (first += a.len) {
        count = try from.runs(source, first, &a);
        if (try to.runs(destination, first, &b) != count) return error.Refused;
        for (a[0..@intCast(@min(a.len, count - first))], 0..) |run, i| {
            const length: usize = @intCast(run.length_bits / 8);
            if (b[i].length_bits != run.length_bits) return error.Refused;
            const start: usize = @intCast(run.offset_bits / 8);
            const end: usize = @intCast(b[i].offset_bits / 8);
            @memcpy(to.bytes[end..][0..length], from.bytes[start..][0..length]);
        }
    }
}

pub fn main() !void {
    const allocator = std.heap.page_allocator;
    // The same cache in two orders: tokens outermost, and heads outermost.
    for ([_][]const u8{ "bf16[256,8,128]{2,1,0:T(8,128)(2,1)}", "bf16[256,8,128]{2,0,1:T(8,128)(2,1)}" }) |text| {
        const from = try Cache.init(allocator, text);
        defer from.deinit(allocator);
        const to = try Cache.init(allocator, text);
        defer to.deinit(allocator);
        for (from.bytes, 0..) |*byte, i| byte.* = @truncate(i *% 31 +% i / 251);
        try move(from, 3, to, 9);
        // Each element of the block has arrived.
        var token: u64 = 0;
        while (token < block) : (token += 1) {
            const here = [3]u64{ 3 * block + token, 5, 77 };
            const there = [3]u64{ 9 * block + token, 5, 77 };
            var said: tw.tw_error = undefined;
            var a: u64 = 0;
            var b: u64 = 0;
            try check(tw.tw_layout_offset_of(from.layout, &here, &a, &said), &said);
            try check(tw.tw_layout_offset_of(to.layout, &there, &b, &said), &said);
            const x: usize = @intCast(2 * a);
            const y: usize = @intCast(2 * b);
            if (!std.mem.eql(u8, from.bytes[x..][0..2], to.bytes[y..][0..2])) return error.Refused;
        }
        std.debug.print("{s}: a block is {d} copies\n", .{ text, try from.copies(3) });
    }
}
