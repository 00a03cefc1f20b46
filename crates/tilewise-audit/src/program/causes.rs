//! Why an array takes more than it holds.

use tilewise::Tiled;

/// A cause that makes less than this part of the expansion, on a logarithmic scale, is not worth naming.
const WORTH_NAMING: f64 = 0.05;

/// What makes the array's padding, the largest cause first, in words with axes named; `None` without padding.
///
/// The causes multiply. Those that explain less than 5 % of the expansion, on a logarithmic scale, are left out.
///
/// ```
/// let tiled = tilewise::Tiled::new(&"s32[32768,8,4]{2,1,0:T(8,128)}".parse()?)?;
/// assert_eq!(
///     tilewise_audit::causes(&tiled),
///     ["dimension 2 (size 4) lies on the 128 lanes: 4 of 128 used"]
/// );
/// # Ok::<(), tilewise::Error>(())
/// ```
#[must_use]
pub fn causes(tiled: &Tiled) -> Vec<String> {
    if tiled.padding_bytes() == 0 {
        return Vec::new();
    }
    let array = tiled.array();
    let axes = tiled.padded_axes();
    let mut causes: Vec<(f64, String)> = axes.iter().map(|axis| (axis.expansion(), axis.to_string())).collect();
    let natural = u64::from(array.element_type().natural_bits());
    let bits = array.stored_bits();
    if bits > natural {
        causes.push((ratio(bits, natural), format!("each element takes {bits} bits instead of {natural}")));
    }
    if tiled.physical_elements() != tiled.tiled_elements() {
        let alignment = array.layout().map_or(1, |layout| layout.tail_padding_alignment());
        let words = format!("padded at the end to a multiple of {alignment} elements");
        causes.push((ratio(tiled.physical_elements(), tiled.tiled_elements()), words));
    }
    causes.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let whole: f64 = causes.iter().map(|(expansion, _)| expansion.ln()).sum();
    causes.into_iter().filter(|(expansion, _)| expansion.ln() >= WORTH_NAMING * whole).map(|(_, words)| words).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes_of(text: &str) -> Vec<String> {
        causes(&Tiled::new(&text.parse().expect(text)).expect(text))
    }

    #[test]
    fn negligible_causes_are_left_out() {
        // 100,000 rows are padded as well, by one in a thousand.
        assert_eq!(
            causes_of("f32[100001,12]{1,0:T(8,128)}"),
            ["dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used"]
        );
        assert_eq!(
            causes_of("f32[3,5]{1,0:T(8,128)}"),
            [
                "dimension 1 (size 5) lies on the 128 lanes: 5 of 128 used",
                "dimension 0 (size 3) lies on the 8 rows of a tile: 3 of 8 used"
            ]
        );
    }

    #[test]
    fn what_is_no_axis_is_named_too() {
        assert_eq!(causes_of("pred[64,512]{1,0:T(8,128)E(32)}"), ["each element takes 32 bits instead of 8"]);
        assert_eq!(causes_of("f32[7]{0:L(1024)}"), ["padded at the end to a multiple of 1024 elements"]);
        assert!(causes_of("f32[8,128]{1,0:T(8,128)}").is_empty());
    }
}
