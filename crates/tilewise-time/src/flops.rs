//! Operations of matrix multiplications and convolutions.

use tilewise::Shape;
use tilewise_hlo::{Instruction, Opcode};

/// Floating-point operations of one `dot` or `convolution`: a multiplication and an addition for each pair of elements
/// that meet, as `HloCostAnalysis` in xla/service/hlo_cost_analysis.cc counts them. `None` for other instructions, and
/// if the text lacks shapes or dimensions.
///
/// ```
/// let text = "a = f32[8,16] parameter(0)\nb = f32[16,4] parameter(1)\n\
///             c = f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
/// let module = tilewise_hlo::Module::parse(text)?;
/// let dot = module.instructions().last().unwrap();
/// assert_eq!(tilewise_time::flops(&dot), Some(2 * 8 * 16 * 4));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[must_use]
pub fn flops(instruction: &Instruction<'_>) -> Option<u64> {
    match instruction.opcode() {
        Opcode::Dot => dot(instruction),
        Opcode::Convolution => convolution(instruction),
        _ => None,
    }
}

/// Bounds of an operand's dimensions.
fn operand(instruction: &Instruction<'_>, number: usize) -> Option<Vec<u64>> {
    let operand = instruction.operands().nth(number)?;
    let shape = match operand.shape_text() {
        Some(text) => Shape::parse_as_written(text).ok()?,
        None => operand.instruction()?.shape().ok()?,
    };
    bounds(&shape)
}

fn bounds(shape: &Shape) -> Option<Vec<u64>> {
    shape.bounds()
}

fn product(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(1, u64::saturating_mul)
}

/// Two operations for each element of the result and each contracted index.
fn dot(instruction: &Instruction<'_>) -> Option<u64> {
    let left = operand(instruction, 0)?;
    let summed = instruction.dot_dimensions()?.lhs_contracting;
    let summed = summed.into_iter().filter_map(|number| left.get(number).copied());
    let result = product(bounds(&instruction.shape().ok()?)?);
    Some(product(summed).saturating_mul(result).saturating_mul(2))
}

/// Two operations for each pair of elements that meet; padding and the holes of dilation meet none. libtpu writes most
/// matrix multiplications as convolutions, batched ones with dilated windows.
fn convolution(instruction: &Instruction<'_>) -> Option<u64> {
    let (left, right) = (operand(instruction, 0)?, operand(instruction, 1)?);
    let result = bounds(&instruction.shape().ok()?)?;
    let found = instruction.convolution_dimensions()?;
    let at = |bounds: &[u64], dimension: usize| bounds.get(dimension).copied();

    let features = at(&right, found.kernel.feature)?;
    let mut meetings = product([at(&result, found.output.batch)?, at(&result, found.output.feature)?, features]);
    meetings /= found.batch_groups;
    // A convolution without spatial dimensions may be printed without a window.
    let window = instruction.window().unwrap_or_default();
    let spatial = found.input.spatial.iter().zip(&found.kernel.spatial).zip(&found.output.spatial);
    for (number, ((input, kernel), output)) in spatial.enumerate() {
        let along = window.get(number)?;
        let places = Places {
            input: i128::from(at(&left, *input)?),
            output: i128::from(at(&result, *output)?),
            window: i128::from(at(&right, *kernel)?),
            stride: i128::from(along.stride),
            padding: i128::from(along.pad_low),
            input_dilation: i128::from(along.base_dilation),
            window_dilation: i128::from(along.window_dilation),
        };
        meetings = meetings.saturating_mul(places.meetings()?);
    }
    Some(meetings.saturating_mul(2))
}

/// One spatial dimension of a convolution.
struct Places {
    input: i128,
    output: i128,
    window: i128,
    stride: i128,
    padding: i128,
    input_dilation: i128,
    window_dilation: i128,
}

/// The most places that are walked through, of the window or the result.
const MOST: i128 = 1 << 16;

impl Places {
    /// The number of pairs of a place in the result and a place in the window that meet an element; `None` if too many.
    fn meetings(&self) -> Option<u64> {
        // Window and result have the same role here: the shorter one is walked.
        let (walked, counted, step, other_step) = if self.window <= self.output {
            (self.window, self.output, self.window_dilation, self.stride)
        } else {
            (self.output, self.window, self.stride, self.window_dilation)
        };
        if walked > MOST {
            return None;
        }
        let end = (self.input - 1) * self.input_dilation;
        let sum: i128 = (0..walked)
            .map(|place| {
                let start = place * step - self.padding;
                progression(start, other_step, counted, end, self.input_dilation)
            })
            .sum();
        u64::try_from(sum).ok()
    }
}

/// How many of `start + k * step`, with k from 0 to `count - 1`, are from 0 to `end` and multiples of `of`.
fn progression(start: i128, step: i128, count: i128, end: i128, of: i128) -> i128 {
    if step <= 0 {
        return if (0..=end).contains(&start) && start % of == 0 { count } else { 0 };
    }
    let first = (-start).div_euclid(step) + i128::from((-start).rem_euclid(step) != 0);
    let (first, last) = (first.max(0), (end - start).div_euclid(step).min(count - 1));
    let (divisor, inverse) = divisor_and_inverse(step, of);
    if last < first || start % divisor != 0 {
        return 0;
    }
    // Those that are multiples are a period apart: k * step = -start, modulo `of`.
    let period = of / divisor;
    let one = (-start / divisor).rem_euclid(period) * inverse;
    let hit = first + (one - first).rem_euclid(period);
    if hit > last { 0 } else { (last - hit) / period + 1 }
}

/// The greatest common divisor of two numbers, and the inverse of `left` / divisor modulo `right` / divisor.
fn divisor_and_inverse(left: i128, right: i128) -> (i128, i128) {
    let (mut divisor, mut rest) = (left, right);
    let (mut inverse, mut next) = (1, 0);
    while rest != 0 {
        let times = divisor / rest;
        (divisor, rest) = (rest, divisor - times * rest);
        (inverse, next) = (next, inverse - times * next);
    }
    (divisor, inverse.rem_euclid(right / divisor))
}

#[cfg(test)]
mod tests {
    use super::{Places, progression};

    #[test]
    fn meetings_are_those_of_a_walk() {
        let mut number = 1u64;
        let mut next = |below: i128| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i128::from(number >> 33) % below
        };
        for _ in 0..2000 {
            let places = Places {
                input: 1 + next(9),
                output: 1 + next(9),
                window: 1 + next(9),
                stride: 1 + next(4),
                padding: next(9) - 4,
                input_dilation: 1 + next(4),
                window_dilation: 1 + next(3),
            };
            let mut met = 0;
            for output in 0..places.output {
                for window in 0..places.window {
                    let at = output * places.stride + window * places.window_dilation - places.padding;
                    let inside = at >= 0 && at <= (places.input - 1) * places.input_dilation;
                    met += u64::from(inside && at % places.input_dilation == 0);
                }
            }
            assert_eq!(places.meetings(), Some(met));
        }
        assert_eq!(progression(3, 0, 5, 10, 3), 5);
        // A batch of 20,000 products, as libtpu writes it.
        let batch = Places {
            input: 20_000,
            output: 20_000,
            window: 20_000,
            stride: 19_999,
            padding: 0,
            input_dilation: 20_000,
            window_dilation: 1,
        };
        assert_eq!(batch.meetings(), Some(20_000));
    }
}
