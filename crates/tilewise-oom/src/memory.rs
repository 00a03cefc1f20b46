//! Memories by their capacity.

/// Capacities of VMEM, and limits of one kernel in it: 16 MiB on a v5e, 128 MiB on a v6e.
const VMEM: [u64; 4] = [16 << 20, 32 << 20, 64 << 20, 128 << 20];

const SMEM: u64 = 1 << 20;

/// Least HBM of a core: a v2's leaves 7.48 GiB to programs.
const LEAST_HBM: u64 = 7 << 30;

/// The memory of this capacity, if a message names none. A part of it may be reserved: of 64 MiB a few KiB.
pub(crate) fn of_capacity(bytes: u64) -> Option<&'static str> {
    let is = |whole: u64| (whole - whole / 128..=whole).contains(&bytes);
    if is(SMEM) {
        Some("smem")
    } else if VMEM.into_iter().any(is) {
        Some("vmem")
    } else {
        (bytes >= LEAST_HBM).then_some("hbm")
    }
}

#[cfg(test)]
mod tests {
    use super::of_capacity;

    #[test]
    fn capacities() {
        for (bytes, memory) in [
            (1 << 20, Some("smem")),
            ((1 << 20) - 2048, Some("smem")),
            (16 << 20, Some("vmem")),
            (67_045_949, Some("vmem")), // 63.94M
            (48 << 20, None),
            (8_031_588_844, Some("hbm")), // 7.48G
            (17_179_869_184, Some("hbm")),
            (0, None),
        ] {
            assert_eq!(of_capacity(bytes), memory, "{bytes}");
        }
    }
}
