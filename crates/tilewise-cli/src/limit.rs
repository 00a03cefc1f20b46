//! `--fail-above`: how much padding is too much.

use std::str::FromStr;
use tilewise_audit::SpaceTotal;

/// A share of the bytes taken, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    Share(f64),
    Bytes(u64),
}

impl Limit {
    pub(crate) fn is_exceeded_by(self, total: Option<&SpaceTotal>) -> bool {
        total.is_some_and(|total| match self {
            Self::Share(share) => total.padding_share() > share,
            Self::Bytes(bytes) => total.padding_bytes() > bytes,
        })
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let explain = || format!("`{text}` is neither a share such as 10% nor a size such as 512MiB or 1GiB");
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let value: f64 = number.parse().map_err(|_| explain())?;
        let scale = match unit.trim() {
            "%" => return Ok(Self::Share(value / 100.0)),
            "" | "B" => 1u64,
            "KiB" | "K" => 1 << 10,
            "MiB" | "M" => 1 << 20,
            "GiB" | "G" => 1 << 30,
            "TiB" | "T" => 1 << 40,
            _ => return Err(explain()),
        };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a limit typed by hand"
        )]
        Ok(Self::Bytes((value * scale as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_sizes_are_read() {
        assert_eq!("10%".parse(), Ok(Limit::Share(0.1)));
        assert_eq!("1.5GiB".parse(), Ok(Limit::Bytes(3 << 29)));
        assert_eq!("512".parse(), Ok(Limit::Bytes(512)));
        for bad in ["", "x", "10 %%", "-1%", "5 furlongs"] {
            assert!(bad.parse::<Limit>().is_err(), "{bad}");
        }
    }
}
