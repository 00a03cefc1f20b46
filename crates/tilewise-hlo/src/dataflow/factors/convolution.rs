//! The factors of a `convolution`, the form in which a TPU's compiler writes all matrix products.

use crate::{Instruction, WindowDimension};

use super::{Array, FactorKind, Factors};

/// The kind of a spatial dimension of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spatial {
    /// Each place of the output has a window of its own: the input's dimension is the output's times the window. Without window
    /// it is the output's; with one place, it is summed over.
    Windows,
    /// As `Windows`, with a window in reverse.
    ReversedWindows,
    /// Each place of the input is spread over a window of the output: the output's dimension is the input's times the
    /// window. With one place of the input, it is the kernel's.
    Spread,
    /// Each place of the output is made of the same place of the input and of the kernel.
    Batch,
    /// Neighbours meet.
    Neighbours,
}

pub(super) fn add_convolution(at: &Instruction<'_>, arrays: &[&Array], found: &mut Factors) -> Option<()> {
    use FactorKind::{Mix, Pass, Sum};
    let dimensions = at.convolution_dimensions()?;
    let (input, kernel, output) = (&dimensions.input, &dimensions.kernel, &dimensions.output);
    let [left, right, result] = arrays else { return None };
    let size = |array: &Array, dimension: usize| array.bounds.get(dimension).copied();
    let (batch, feature) = (size(left, input.batch)?, size(left, input.feature)?);
    let (outputs, result_batch) = (size(right, kernel.batch)?, size(result, output.batch)?);

    let groups = dimensions.feature_groups;
    let batch_groups = dimensions.batch_groups;
    // Groups are the major part of the dimensions they divide.
    found.add(Pass, groups, [(0, input.feature), (1, kernel.batch), (2, output.feature)]);
    found.add(Pass, batch_groups, [(0, input.batch), (1, kernel.batch), (2, output.feature)]);
    found.add(Pass, result_batch.min(batch), [(0, input.batch), (2, output.batch)]);
    found.add(Pass, outputs / groups.max(batch_groups), [(1, kernel.batch), (2, output.feature)]);
    found.add(Sum, feature / groups, [(0, input.feature), (1, kernel.feature)]);

    let window = at.window().unwrap_or_default();
    let spatial = input.spatial.iter().zip(&kernel.spatial).zip(&output.spatial);
    for (number, ((&from, &of_kernel), &to)) in spatial.enumerate() {
        let (l, w, o) = (size(left, from)?, size(right, of_kernel)?, size(result, to)?);
        let place = (0, from);
        match window.get(number).map_or(Spatial::Neighbours, |along| spatial_of(along, l, o)) {
            Spatial::Windows => {
                found.add(Pass, o, [place, (2, to)]);
                found.add(Sum, w, [place, (1, of_kernel)]);
            }
            Spatial::ReversedWindows => {
                found.add(Pass, o, [place, (2, to)]);
                found.add(Mix, w, [place]);
            }
            Spatial::Spread => {
                found.add(Pass, l, [place, (2, to)]);
                found.add(Pass, w, [(1, of_kernel), (2, to)]);
            }
            Spatial::Batch => {
                found.add(Pass, l, [place, (1, of_kernel), (2, to)]);
            }
            // One axis still, such as the rows of a picture.
            Spatial::Neighbours if l == o => {
                found.add(Mix, l, [place, (2, to)]);
            }
            Spatial::Neighbours => {}
        }
    }
    Some(())
}

/// An element of the output is a sum over the kernel: output `j` and kernel `k` meet input `i` where j · stride + k · window dilation −
/// padding = i · base dilation, and `k` counts from the end in reverse.
fn spatial_of(along: &WindowDimension, input: u64, output: u64) -> Spatial {
    let signed = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
    let (l, w, o) = (signed(input), signed(along.size), signed(output));
    let WindowDimension { stride, pad_low, base_dilation, window_dilation, .. } = *along;
    let is_reversed = along.is_reversed && w > 1;
    // i = j · window + k
    let is_own_window = o.checked_mul(w) == Some(l)
        && pad_low == 0
        && (o == 1 || base_dilation.checked_mul(w) == Some(stride))
        && (w == 1 || window_dilation == base_dilation);
    if is_own_window {
        return if is_reversed { Spatial::ReversedWindows } else { Spatial::Windows };
    }
    // j = i · window + k
    let is_spread = l.checked_mul(w) == Some(o)
        && is_reversed
        && stride == window_dilation
        && (w - 1).checked_mul(stride) == Some(pad_low)
        && (l == 1 || stride.checked_mul(w) == Some(base_dilation));
    if is_spread {
        return Spatial::Spread;
    }
    // Along the diagonal i = j = k.
    let is_diagonal = if is_reversed {
        stride - window_dilation == base_dilation && (w - 1).checked_mul(window_dilation) == Some(pad_low)
    } else {
        stride.checked_add(window_dilation) == Some(base_dilation) && pad_low == 0
    };
    if (l, o) == (w, w) && is_diagonal && w > 1 && is_diagonal_only(w, base_dilation, window_dilation, is_reversed) {
        return Spatial::Batch;
    }
    Spatial::Neighbours
}

/// Whether elements meet only on the diagonal: off it, i − j = ±(k − j) · window dilation / base dilation has a
/// solution in whole numbers below the size only if the smallest one fits.
fn is_diagonal_only(size: i64, base_dilation: i64, window_dilation: i64, is_reversed: bool) -> bool {
    let divisor = {
        let (mut one, mut other) = (base_dilation, window_dilation);
        while other != 0 {
            (one, other) = (other, one % other);
        }
        one.max(1)
    };
    let (of_kernel, of_input) = (base_dilation / divisor, window_dilation / divisor);
    // In reverse, the kernel's place falls where the input's rises.
    let smallest = if is_reversed { of_kernel.saturating_add(of_input) } else { of_kernel.max(of_input) };
    smallest > size - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exactly those small windows are classified as a kind whose elements meet as in that kind.
    #[test]
    fn kinds_are_those_of_a_walk() {
        let mut known = 0;
        for number in 0..5_u64.pow(3) * 6 * 6 * 5 * 4 * 2 {
            let mut rest = number;
            let mut next = |below: u64| {
                let digit = rest % below;
                rest /= below;
                digit
            };
            let (l, w, o) = (1 + next(5), 1 + next(5), 1 + next(5));
            let (stride, base_dilation, pad_low, window_dilation) = (1 + next(6), 1 + next(6), next(5), 1 + next(4));
            let is_reversed = next(2) == 1;
            let signed = |number: u64| number.cast_signed();
            let along = WindowDimension {
                size: w,
                stride: signed(stride),
                pad_low: signed(pad_low),
                pad_high: 0,
                base_dilation: signed(base_dilation),
                window_dilation: signed(window_dilation),
                is_reversed,
            };
            let mut met = Vec::new();
            for (j, k) in (0..o).flat_map(|j| (0..w).map(move |k| (j, k))) {
                let of_window = if is_reversed { w - 1 - k } else { k };
                let place = signed(j * stride + of_window * window_dilation) - signed(pad_low);
                if place >= 0 && place % signed(base_dilation) == 0 && place / signed(base_dilation) < signed(l) {
                    met.push(((place / signed(base_dilation)).cast_unsigned(), j, k));
                }
            }
            let all = |meets: &dyn Fn(u64, u64, u64) -> bool| {
                let places = (0..o).flat_map(|j| (0..w).flat_map(move |k| (0..l).map(move |i| (i, j, k))));
                let expected: Vec<_> = places.filter(|(i, j, k)| meets(*i, *j, *k)).collect();
                let mut met = met.clone();
                met.sort_unstable();
                let mut expected = expected;
                expected.sort_unstable();
                met == expected
            };
            let windows = l == o * w && all(&|i, j, k| i == j * w + k);
            let reversed = l == o * w && w > 1 && all(&|i, j, k| i == j * w + (w - 1 - k));
            let spread = o == l * w && all(&|i, j, k| j == i * w + k);
            let batch = (l, o) == (w, w) && all(&|i, j, k| i == j && j == k);
            let said = spatial_of(&along, l, o);
            let is_so = match said {
                Spatial::Windows => windows,
                Spatial::ReversedWindows => reversed,
                Spatial::Spread => spread,
                Spatial::Batch => batch,
                Spatial::Neighbours => !(windows || reversed || batch || spread && w > 1),
            };
            known += usize::from(said != Spatial::Neighbours);
            assert!(is_so, "{along:?} of {l} to {o}: {said:?}, {met:?}");
        }
        assert!(known > 700, "{known}");
    }
}
