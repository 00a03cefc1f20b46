//! Sizes as the TPU compiler prints them.

use std::fmt;

const UNITS: [char; 7] = ['B', 'K', 'M', 'G', 'T', 'P', 'E'];

/// Prints a number of bytes as the TPU compiler does in its messages.
///
/// Under 1024: a whole number of bytes. Otherwise the number is divided by 1024 *with integer division* while it is
/// 1024 · 1024 or more, and what is left is printed as 1024ths: one decimal for `K`, two for the units above, ties to
/// the even digit. The integer steps matter: they round down, so 18 576 000 bytes are `17.71M`, not `17.72M`.
///
/// The rule was found by experiment, with libtpu 0.0.51; all sizes in its messages agree.
///
/// ```
/// use tilewise_oom::format_size;
///
/// assert_eq!(format_size(1020), "1020B");
/// assert_eq!(format_size(488_960), "477.5K");
/// assert_eq!(format_size(18_576_000), "17.71M");
/// assert_eq!(format_size(34_359_738_368), "32.00G");
/// ```
#[must_use]
pub fn format_size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let (mut rest, mut unit) = (bytes, 1);
    while rest >= 1024 * 1024 {
        rest /= 1024;
        unit += 1;
    }
    let scale = decimals(unit);
    let (whole, remainder) = (rest * scale / 1024, rest * scale % 1024);
    let up = remainder > 512 || (remainder == 512 && whole % 2 == 1);
    let hundredths = whole + u64::from(up);
    let width = if scale == 10 { 1 } else { 2 };
    format!("{}.{:0width$}{}", hundredths / scale, hundredths % scale, UNITS[unit])
}

/// The power of ten that the compiler rounds to, for a unit other than `B`.
fn decimals(unit: usize) -> u64 {
    if unit == 1 { 10 } else { 100 }
}

/// The power of 1024 of the unit that `text` begins with, and the unit's length.
fn unit(text: &str, by_people: bool) -> Option<(usize, usize)> {
    let gap = usize::from(by_people && text.starts_with(' '));
    let word = &text[gap..];
    // No unit is longer than `Bytes`, and words without end are not walked for each size.
    let length = word.bytes().take(8).take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let (first, more) = word[..length].split_at_checked(1)?;
    // Linux writes `kB`, and means 1024.
    let first = if by_people && word[..length] == *"kB" { "K" } else { first };
    let power = UNITS.iter().position(|unit| first.starts_with(*unit));
    let power = match more {
        "" => power?,
        "iB" => power.filter(|power| *power > 0)?,
        // Retold figures of the compiler never mean powers of 1000.
        "B" if by_people => power.filter(|power| *power > 0)?,
        "ytes" | "yte" if by_people && first.eq_ignore_ascii_case("b") => 0,
        _ => return None,
    };
    Some((power, gap + length))
}

/// A size as a message prints it: `195.31M`, `512B`, or plain bytes (`4000256`) in a one-line message.
///
/// The text stands for many numbers of bytes; [`low`](PrintedSize::low) and [`high`](PrintedSize::high) are the least
/// and the greatest, and [`bytes`](PrintedSize::bytes) is the value of the digits.
///
/// ```
/// use tilewise_oom::PrintedSize;
///
/// let size = PrintedSize::parse("17.71M").unwrap();
/// assert_eq!(size.text(), "17.71M");
/// assert_eq!(size.bytes(), 18_570_281);
/// assert!(size.agrees_with(18_576_000));
/// assert!(!size.agrees_with(18_580_480));
/// assert_eq!((size.low(), size.high()), (18_565_120, 18_576_383));
/// assert_eq!(PrintedSize::parse("17.71"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrintedSize {
    text: String,
    bytes: u64,
    low: u64,
    high: u64,
}

impl PrintedSize {
    /// Reads a size with its unit, `B`, `K`, `M`, `G`, `T`, `P` or `E`, each 1024 times the one before; `None` for
    /// anything else. `MiB` is read as `M`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (size, end) = Self::prefix(text)?;
        (end == text.len()).then_some(size)
    }

    /// Reads the size that `text` begins with, and returns its end, too.
    pub(crate) fn prefix(text: &str) -> Option<(Self, usize)> {
        Self::read(text, false)
    }

    /// As [`prefix`](Self::prefix), as people write sizes, too: `19.12 GiB`, `1,048,576 bytes`, `48 GB`.
    pub(crate) fn figure(text: &str) -> Option<(Self, usize)> {
        Self::read(text, true)
    }

    fn read(text: &str, by_people: bool) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take(32).take_while(|byte| byte.is_ascii_digit()).count();
        let mut whole = digits(0);
        while by_people && whole > 0 && bytes.get(whole) == Some(&b',') && digits(whole + 1) == 3 {
            whole += 4;
        }
        let point = whole > 0 && bytes.get(whole) == Some(&b'.');
        let fraction = if point { digits(whole + 1) } else { 0 };
        let number = whole + usize::from(point) + fraction;
        let (unit, length) = unit(&text[number..], by_people)?;
        let is_odd = fraction > if by_people { 6 } else { 4 } || (point && fraction == 0) || (unit == 0 && point);
        if whole == 0 || whole > 20 || is_odd {
            return None;
        }
        let value: u128 = text[..number].replace(['.', ','], "").parse().ok()?;
        let end = number + length;
        Self::new(&text[..end], value, u32::try_from(fraction).ok()?, unit).map(|size| (size, end))
    }

    /// A whole number of bytes, without a unit, that `text` begins with, and where it ends.
    pub(crate) fn plain_prefix(text: &str) -> Option<(Self, usize)> {
        let end = text.bytes().take_while(u8::is_ascii_digit).count();
        let bytes = text[..end].parse().ok()?;
        Some((Self { text: text[..end].to_owned(), ..Self::exact(bytes) }, end))
    }

    /// A whole number of bytes, decimal or after `0x`, that `text` begins with, and where it ends.
    pub(crate) fn count(text: &str) -> Option<(Self, usize)> {
        let Some(digits) = text.strip_prefix("0x") else { return Self::plain_prefix(text) };
        let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        Some((Self::exact(u64::from_str_radix(&digits[..length], 16).ok()?), "0x".len() + length))
    }

    /// An exact number of bytes.
    pub(crate) fn exact(bytes: u64) -> Self {
        Self { text: bytes.to_string(), bytes, low: bytes, high: bytes }
    }

    /// A number of bytes, printed as the compiler would.
    pub(crate) fn rounded(bytes: u64) -> Self {
        Self { text: format_size(bytes), ..Self::exact(bytes) }
    }

    /// Whether it is one number of bytes, not a rounded one.
    pub(crate) fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Whether it may be the same number of bytes as another.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Two sizes together, printed as the compiler would.
    pub(crate) fn sum(a: &Self, b: &Self) -> Self {
        let bytes = a.bytes.saturating_add(b.bytes);
        let (low, high) = (a.low.saturating_add(b.low), a.high.saturating_add(b.high));
        Self { text: format_size(bytes), bytes, low, high }
    }

    /// `value` / 10^`fraction` of `unit`, read back through the formatting.
    fn new(text: &str, value: u128, fraction: u32, unit: usize) -> Option<Self> {
        let scale = 10_u128.pow(fraction);
        let unit_bytes = 1_u128 << (10 * unit);
        let bytes = u64::try_from((value.checked_mul(unit_bytes)? + scale / 2) / scale).unwrap_or(u64::MAX);
        if unit == 0 {
            return Some(Self { text: text.to_owned(), bytes, low: bytes, high: bytes });
        }
        // 1024ths of the unit that round to `value`: a tie only to an even one.
        let (twice, tie) = (2 * value, u128::from(value % 2 == 1));
        let least = ((twice.saturating_sub(1) * 1024 + tie).div_ceil(2 * scale)).max(u128::from(value > 0));
        let most = ((twice + 1) * 1024 - tie) / (2 * scale);
        let (least, most) = if least >= 1 << 20 || most < 1024 {
            (least, most) // not a number that the compiler prints
        } else {
            (least.max(1024), if unit + 1 < UNITS.len() { most.min((1 << 20) - 1) } else { most })
        };
        let step = unit_bytes / 1024;
        let low = u64::try_from(least * step).ok()?;
        let high = u64::try_from((most + 1) * step - 1).unwrap_or(u64::MAX);
        Some(Self { text: text.to_owned(), bytes, low: low.min(bytes), high: high.max(bytes) })
    }

    /// The size as printed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The printed number times its unit, rounded to whole bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The least number of bytes that prints like this.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.low
    }

    /// The greatest number of bytes that prints like this.
    #[must_use]
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Whether this number of bytes prints like this, digit for digit under [`format_size`]. Sizes with other decimals,
    /// such as the `512M` of older compilers, agree within their own precision.
    #[must_use]
    pub fn agrees_with(&self, bytes: u64) -> bool {
        (self.low..=self.high).contains(&bytes)
    }
}

impl fmt::Display for PrintedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_follows_the_integer_steps() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0K"),
            (1_048_575, "1024.0K"),
            (1_048_576, "1.00M"),
            (5_898_240, "5.62M"), // 5.625: a tie goes to the even digit
            (1952, "1.9K"),
            (3840, "3.8K"),
            (18_576_000, "17.71M"),
            (1 << 40, "1.00T"),
            (u64::MAX, "16.00E"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }

    #[test]
    fn reading_inverts_printing() {
        let mut bytes = 1_u64;
        for step in 0..4000_u64 {
            let size = PrintedSize::parse(&format_size(bytes)).unwrap();
            assert!(size.agrees_with(bytes), "{bytes} {size:?}");
            for (edge, inside) in [(size.low(), true), (size.high(), true)] {
                assert_eq!(format_size(edge) == size.text(), inside, "{edge} {size}");
            }
            assert!(size.low() == 0 || format_size(size.low() - 1) != size.text(), "{size}");
            assert!(size.high() == u64::MAX || format_size(size.high() + 1) != size.text(), "{size}");
            assert!((size.low()..=size.high()).contains(&size.bytes()), "{size:?}");
            bytes = bytes.saturating_add(bytes / 97 + step % 7 + 1);
        }
    }

    #[test]
    fn other_precisions_are_taken_at_their_word() {
        let whole = PrintedSize::parse("512M").unwrap();
        assert!(whole.agrees_with(512 << 20) && !whole.agrees_with(513 << 20));
        assert!(PrintedSize::parse("40.5M").unwrap().agrees_with(42_467_328));
        assert!(PrintedSize::parse("0.5G").unwrap().agrees_with(1 << 29));
        assert_eq!(PrintedSize::parse("32.00MiB").unwrap().bytes(), 32 << 20);
        for bad in ["", "B", "1", "1.", "1.M", ".5M", "1.5B", "1.23456M", "1Mx", "99999999999E", "1 M"] {
            assert_eq!(PrintedSize::parse(bad), None, "{bad}");
        }
    }
}
