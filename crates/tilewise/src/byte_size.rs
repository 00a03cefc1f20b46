//! Byte counts in human-readable form.

use core::{fmt, str::FromStr};

use crate::error::{Error, ErrorKind};

/// A number of bytes. It prints in the largest unit that leaves at least 1, with two decimals, and reads what it prints.
///
/// `K`, `M`, `G` and `T` are powers of 1024, as XLA prints them, as are `KiB` and so on; `kB`, `MB`, `GB` and `TB` are powers
/// of 1000. A bare number is bytes.
///
/// ```
/// use tilewise::ByteSize;
///
/// assert_eq!(ByteSize(1 << 34).to_string(), "16.00 GiB");
/// assert_eq!(ByteSize((1 << 20) - 1).to_string(), "1.00 MiB");
/// assert_eq!(ByteSize(512).to_string(), "512 B");
/// assert_eq!("1.5GiB".parse(), Ok(ByteSize(3 << 29)));
/// assert_eq!("16.00 GiB".parse(), Ok(ByteSize(1 << 34)));
/// assert_eq!("200 MB".parse(), Ok(ByteSize(200_000_000)));
/// assert!("5 furlongs".parse::<ByteSize>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    #[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0 as f64;
        let mut larger = None;
        for unit in UNITS {
            // A value that would print as 1024.00 belongs to the next unit.
            if value < 1023.995 {
                break;
            }
            value /= 1024.0;
            larger = Some(unit);
        }
        match larger {
            Some(unit) => f.pad(&alloc::format!("{value:.2} {unit}")),
            None => f.pad(&alloc::format!("{} B", self.0)),
        }
    }
}

impl FromStr for ByteSize {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Syntax`] for a text that isn't a size, [`ErrorKind::Overflow`] for more than 2^63 − 1 bytes.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let message = alloc::format!("`{text}` is not a size");
            Error::new(ErrorKind::Syntax, message).with_help("write a number and a unit, such as 512MiB or 1.5GiB")
        };
        let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let scale: u64 = match unit.trim() {
            "" | "B" => 1,
            "K" | "KiB" => 1 << 10,
            "M" | "MiB" => 1 << 20,
            "G" | "GiB" => 1 << 30,
            "T" | "TiB" => 1 << 40,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            _ => return Err(wrong()),
        };
        let bytes = product(number, scale).ok_or_else(wrong)?;
        match u64::try_from(bytes) {
            Ok(bytes) if bytes <= i64::MAX as u64 => Ok(Self(bytes)),
            _ => Err(Error::new(ErrorKind::Overflow, alloc::format!("`{text}` is more than 2^63 - 1 bytes"))),
        }
    }
}

/// A decimal number times a scale, rounded down; `None` for any other text, and for more than nine decimals.
fn product(number: &str, scale: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let tens = 10_u128.pow(u32::try_from(fraction.len()).ok().filter(|length| (1..=9).contains(length))?);
    let number = u128::from(digits(whole)?) * tens + u128::from(digits(fraction)?);
    Some(number.checked_mul(u128::from(scale))? / tens)
}
