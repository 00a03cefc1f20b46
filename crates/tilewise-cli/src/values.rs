//! Values of options: limits, sizes, machines, slices.

use clap::ValueEnum;
use std::{fmt, str::FromStr};
use tilewise::{ByteSize, tpu::Generation};
use tilewise_audit::{Report, SpaceTotal};
use tilewise_report::style::{bytes, percent};

/// A share of the bytes taken, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    Share(f64),
    Bytes(u64),
}

impl Limit {
    /// The message if a memory space has more padding than the limit: at its peak if known, otherwise in all buffers.
    pub(crate) fn excess(self, total: Option<&SpaceTotal>) -> Option<String> {
        let total = total?;
        let (padding, share, of) = match &total.peak {
            Some(peak) => (peak.padding_bytes, peak.padding_share(), "at the peak"),
            None => (total.padding_bytes(), total.padding_share(), "in all buffers"),
        };
        let is_exceeded = match self {
            Self::Share(most) => share > most,
            Self::Bytes(most) => padding > most,
        };
        let space = total.memory_space_name();
        is_exceeded
            .then(|| format!("{} of padding in {space} {of}, {}, is more than {self}", bytes(padding), percent(share)))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => f.write_str(&percent(*share)),
            Self::Bytes(most) => f.write_str(&bytes(*most)),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = text.strip_suffix('%').map(|number| number.trim().parse::<f64>());
        match share {
            Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => Ok(Self::Share(percent / 100.0)),
            Some(_) => Err(format!("`{text}` is not a share from 0% to 100%, such as 10%")),
            None if text.trim().parse::<f64>().is_ok_and(|number| number != 0.0) => {
                Err(format!("`{text}` has no unit: write {text}% or {text}MiB"))
            }
            None => parse_size(text).map(Self::Bytes),
        }
    }
}

/// `--fail-on-copies 1MiB,into=gmm`: the most bytes copied, in all or into kernels of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyLimit {
    most: u64,
    kernel: Option<String>,
}

impl CopyLimit {
    /// The message if a program copies more than the limit, or lacks the named kernel.
    pub(crate) fn excess(&self, report: &Report) -> Option<String> {
        let most = bytes(self.most);
        let Some(kernel) = &self.kernel else {
            let copied = report.copied_bytes();
            return (copied > self.most).then(|| format!("{} are copied, more than {most}", bytes(copied)));
        };
        let Some(copied) = report.copied_into(kernel) else {
            return Some(format!("no kernel is called `{kernel}`, so what is copied into it can't be known"));
        };
        (copied > self.most).then(|| format!("{} are copied into `{kernel}`, more than {most}", bytes(copied)))
    }
}

impl FromStr for CopyLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, kernel) = match text.split_once(',') {
            Some((size, kernel)) => match kernel.trim().strip_prefix("into=").filter(|kernel| !kernel.is_empty()) {
                Some(kernel) => (size, Some(kernel.to_owned())),
                None => return Err(format!("`{kernel}` is not `into=KERNEL`")),
            },
            None => (text, None),
        };
        Ok(Self { most: parse_size(size)?, kernel })
    }
}

/// A size in bytes, such as `512`, `512MiB` or `1.5GiB`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    text.parse().map(|ByteSize(bytes)| bytes).map_err(in_words)
}

/// `--tolerance 1%` or `0.01`.
pub(crate) fn parse_tolerance(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map(|number| number / unit);
    let share = share.ok().filter(|share| share.is_finite() && *share >= 0.0);
    share.ok_or_else(|| format!("`{text}` is not a share such as 1%"))
}

/// `--tpu TPU`.
pub(crate) fn parse_generation(text: &str) -> Result<Generation, String> {
    text.parse().map_err(in_words)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn in_words(error: tilewise::Error) -> String {
    match error.help() {
        Some(help) => format!("{error}: {help}"),
        None => error.to_string(),
    }
}

/// One generation, or all of them, a row each.
#[derive(Clone, Copy)]
pub(crate) enum Tpu {
    One(Generation),
    All,
}

impl FromStr for Tpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        parse_generation(text).map(Self::One)
    }
}

/// Colours of a picture.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawTheme {
    /// Follow the viewer's colour scheme (SVG); otherwise light
    #[default]
    Auto,
    /// Dark on light
    Light,
    /// Light on dark
    Dark,
}

/// `--slice DIM=N`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slice {
    pub(crate) dimension: i64,
    pub(crate) index: u64,
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (dimension, index) = text.split_once('=')?;
            // The documents' letters count from the end, whatever the rank: yx, zyx, pzyx.
            let letter = |letter| Some(-1 - i64::try_from("xyzp".find(letter)?).ok()?);
            let dimension = match dimension {
                "x" | "y" | "z" | "p" => letter(dimension)?,
                number => number.parse().ok()?,
            };
            Some(Self { dimension, index: index.parse().ok()? })
        };
        parse().ok_or_else(|| format!("`{text}` is not DIMENSION=INDEX, such as 0=3, -1=3 or z=1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_sizes_are_read() {
        assert_eq!("10%".parse(), Ok(Limit::Share(0.1)));
        assert_eq!("1.5GiB".parse(), Ok(Limit::Bytes(3 << 29)));
        assert_eq!("0".parse(), Ok(Limit::Bytes(0)));
        for bad in ["", "x", "10", "0.5", "10 %%", "-1%", "inf%", "NaN%", "100.1%", "5 furlongs"] {
            assert!(bad.parse::<Limit>().is_err(), "{bad}");
        }
    }
}
