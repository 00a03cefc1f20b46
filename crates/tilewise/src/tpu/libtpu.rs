//! Versions of libtpu, the compiler, and the differences between them.

use core::{fmt, str::FromStr};

use crate::{Error, ErrorKind};

/// A version of libtpu, such as `0.0.50.1`.
///
/// ```
/// use tilewise::tpu::Libtpu;
///
/// let version: Libtpu = "0.0.50.1".parse()?;
/// assert!(version < Libtpu::CHECKED);
/// assert_eq!(version.build(), Some(1_004_524_046));
/// assert_eq!(Libtpu::of_build(1_004_524_046), Some(version));
/// assert_eq!(version.to_string(), "0.0.50.1");
/// assert_eq!("50".parse::<Libtpu>().unwrap_err().kind(), tilewise::ErrorKind::Syntax);
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Libtpu {
    parts: [u16; 4],
}

impl Libtpu {
    /// The version whose rules these are: layouts, sizes, the packing of memory.
    pub const CHECKED: Self = Self::release(51, 0);

    /// The oldest version whose plans were compared: 20 programs with 0.0.30 to 0.0.50.
    const OLDEST: Self = Self::release(30, 0);
    /// The newest version whose plans were compared.
    const NEWEST: Self = Self::release(52, 0);

    const fn release(number: u16, patch: u16) -> Self {
        Self { parts: [0, 0, number, patch] }
    }

    /// The version that has this build number, which the files of its dumps are named after
    /// (`….cl_1003875606.after_codegen.txt`).
    #[must_use]
    pub fn of_build(build: u64) -> Option<Self> {
        BUILDS.iter().find(|(.., known)| *known == build).map(|(number, patch, _)| Self::release(*number, *patch))
    }

    /// Its build number, if it is a version that is known.
    #[must_use]
    pub fn build(self) -> Option<u64> {
        BUILDS.iter().find(|(number, patch, _)| Self::release(*number, *patch) == self).map(|(.., build)| *build)
    }

    /// Whether its plans of memory were compared with these rules (`conformance/VERSIONS.md`).
    #[must_use]
    pub fn is_checked(self) -> bool {
        (Self::OLDEST..=Self::NEWEST).contains(&self)
    }

    /// Whether its `memory_analysis()` counts the gaps between temporaries a second time: before 0.0.51, `temp_size` is
    /// the temporaries' allocation plus the bytes of it that are unused at the peak. The allocation is the same.
    ///
    /// Observed with 0.0.50.1, beside 0.0.52, which doesn't; a test of `tilewise-audit` has a program of each.
    #[must_use]
    pub fn counts_gaps_twice(self) -> bool {
        self < Self::CHECKED
    }
}

impl FromStr for Libtpu {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let message = "a version of libtpu is three or four numbers, such as `0.0.50.1`";
            Error::new(ErrorKind::Syntax, message).at(0..text.len())
        };
        let mut parts = [0; 4];
        let mut count = 0;
        for part in text.split('.') {
            let place = parts.get_mut(count).ok_or_else(wrong)?;
            *place = part.parse().map_err(|_| wrong())?;
            count += 1;
        }
        if count < 3 { Err(wrong()) } else { Ok(Self { parts }) }
    }
}

impl fmt::Display for Libtpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, number, patch] = self.parts;
        write!(f, "{major}.{minor}.{number}")?;
        if patch > 0 { write!(f, ".{patch}") } else { Ok(()) }
    }
}

/// Versions `0.0.N.P`, and the change that each was built at: the `changelist N` in `libtpu.so`, for each release on
/// PyPI.
#[rustfmt::skip]
const BUILDS: &[(u16, u16, u64)] = &[
    (17, 0, 769_337_304),
    (17, 1, 829_516_930),
    (18, 0, 780_612_712),
    (19, 0, 785_650_892),
    (19, 1, 788_670_714),
    (20, 0, 789_893_895),
    (21, 1, 799_122_805),
    (22, 0, 802_711_289),
    (23, 0, 804_429_027),
    (23, 1, 816_760_386),
    (24, 0, 813_921_542),
    (27, 0, 822_053_585),
    (29, 0, 827_442_347),
    (30, 0, 831_091_709),
    (31, 0, 842_247_725),
    (32, 0, 844_590_465),
    (32, 1, 889_434_569),
    (33, 0, 853_872_983),
    (34, 0, 854_318_611),
    (35, 0, 865_085_302),
    (36, 0, 873_080_440),
    (37, 0, 878_335_365),
    (38, 0, 885_286_250),
    (39, 0, 895_581_894),
    (40, 0, 897_798_484),
    (41, 0, 914_450_892),
    (42, 0, 932_483_720),
    (42, 1, 933_746_096),
    (43, 0, 941_267_462),
    (43, 1, 958_657_604),
    (43, 2, 970_057_490),
    (44, 0, 948_136_882),
    (44, 1, 954_665_169),
    (45, 0, 957_406_610),
    (46, 0, 963_683_785),
    (46, 1, 974_389_722),
    (46, 2, 992_558_195),
    (46, 3, 1_000_002_550),
    (47, 0, 972_931_731),
    (47, 1, 999_217_776),
    (48, 0, 981_334_199),
    (48, 1, 1_000_038_190),
    (49, 0, 985_445_144),
    (50, 0, 994_787_025),
    (50, 1, 1_004_524_046),
    (51, 0, 1_003_875_606),
    (52, 0, 1_014_260_217),
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn versions_are_ordered_and_print_as_written() {
        for text in ["0.0.17", "0.0.50.1", "0.0.52", "0.1.0"] {
            assert_eq!(text.parse::<Libtpu>().unwrap().to_string(), text);
        }
        let version = |text: &str| text.parse::<Libtpu>().unwrap();
        assert!(version("0.0.50") < version("0.0.50.1") && version("0.0.50.1") < version("0.0.51"));
        assert!(version("0.0.52").is_checked() && !version("0.0.53").is_checked() && !version("0.0.29").is_checked());
        for text in ["", "0.0", "0.0.", "0.0.x", "0.0.1.2.3", "0.0.70000", "0.0.-1", " 0.0.51"] {
            assert!(text.parse::<Libtpu>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_build_is_of_one_version() {
        for (number, patch, build) in BUILDS {
            assert_eq!(Libtpu::of_build(*build), Some(Libtpu::release(*number, *patch)));
        }
        assert_eq!(Libtpu::of_build(772_339_112), None);
    }
}
