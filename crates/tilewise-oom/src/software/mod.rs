//! Software that is built on XLA, and the options of its own with which it takes less of a device's or the host's memory.

mod table;

/// An option of a text's software with which it takes less memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SoftwareOption {
    /// The software.
    pub software: &'static str,
    /// Whether it takes less of a TPU's or GPU's memory.
    pub of_device: bool,
    /// Whether it takes less of the host's.
    pub of_host: bool,
    /// The change, in the imperative, with the option as users write it.
    pub change: &'static str,
    /// The memory that it frees, or what that costs.
    pub effect: &'static str,
    /// Whether results stay the same, but for rounding.
    pub keeps_results: bool,
}

/// Software with options of its own.
struct Software {
    name: &'static str,
    /// Signs of it in a text, one of which is enough.
    signs: &'static [&'static str],
    options: &'static [SoftwareOption],
}

impl SoftwareOption {
    /// The options of the software that a text names, but for those that it has already; a number can still be lowered.
    pub(crate) fn all(text: &str) -> Vec<Self> {
        let is_named = |software: &&Software| software.signs.iter().any(|sign| text.contains(sign));
        let Some(software) = table::SOFTWARE.iter().find(is_named) else { return Vec::new() };
        let own = software.options.iter().map(|option| Self { software: software.name, ..*option });
        let is_number = |option: &Self| ["Lower", "Raise", "Shorten"].iter().any(|of| option.change.starts_with(of));
        own.filter(|option| is_number(option) || !option.codes().any(|code| text.contains(code))).collect()
    }

    /// The code in a change.
    fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.change.split('`').skip(1).step_by(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_texts_software() {
        let all = SoftwareOption::all("File \"/home/me/keypoint_moseq/fitting.py\", line 3");
        assert_eq!(all[0].software, "keypoint-MoSeq");
        assert!(all[0].change.contains("set_mixed_map_iters(4)"));
        // Options that a text sets.
        let set = SoftwareOption::all("python3 -m MaxText.train MaxText/configs/base.yml remat_policy=full");
        assert!(!set.is_empty() && set.iter().all(|option| !option.change.contains("remat_policy=full")));
        assert_eq!(SoftwareOption::all("import jax"), []);
    }

    /// A first screen has room for 12 words.
    #[test]
    fn options_fit_a_first_screen() {
        for software in &table::SOFTWARE {
            assert!(!software.signs.is_empty() && !software.options.is_empty(), "{}", software.name);
            for option in software.options {
                assert!(option.change.split_whitespace().count() <= 12, "{}", option.change);
                assert!(option.of_device || option.of_host, "{}", option.change);
                assert!(option.codes().count() > 0 || option.change.len() < 60, "{}", option.change);
                assert!(!option.effect.ends_with('.') && !option.change.ends_with('.'), "{}", option.change);
            }
        }
    }
}
