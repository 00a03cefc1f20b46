//! Software that is built on XLA, and the options of its own with which it takes less of a device's or the host's memory.

/// Software in brackets with its signs, one of which in a text is enough; below it its options, those that free most without
/// other results first: the memory, whether results stay but for rounding, the change, its effect, and the source, a
/// repository and a file of it.
const TABLE: &str = include_str!("software.tsv");

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

impl SoftwareOption {
    /// The options of the software that a text names, but for those that it has already; a number can still be lowered.
    pub(crate) fn all(text: &str) -> Vec<Self> {
        let is_named = |(_, signs, _): &(&str, &str, &str)| signs.split(" | ").any(|sign| text.contains(sign));
        let Some((software, _, options)) = table().find(is_named) else { return Vec::new() };
        let is_number = |option: &Self| ["Lower", "Raise", "Shorten"].iter().any(|of| option.change.starts_with(of));
        let is_there = |option: &Self| option.codes().any(|code| text.contains(code));
        let own = options.lines().filter_map(|line| Self::of(software, line));
        own.filter(|option| is_number(option) || !is_there(option)).collect()
    }

    /// A line of the table.
    fn of(software: &'static str, line: &'static str) -> Option<Self> {
        let mut fields = line.split('\t');
        let (memory, results) = (fields.next()?, fields.next()?);
        let (of_device, of_host) = (memory != "host", memory != "device");
        let keeps_results = results == "same";
        Some(Self { software, of_device, of_host, change: fields.next()?, effect: fields.next()?, keeps_results })
    }

    /// The code in a change.
    fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.change.split('`').skip(1).step_by(2)
    }
}

/// The table's software, with its signs and its options' lines.
fn table() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TABLE.split("\n[").filter_map(|part| {
        let (head, options) = part.trim_start_matches('[').split_once('\n')?;
        let (software, signs) = head.split_once("] ")?;
        Some((software, signs, options))
    })
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
        let mut count = 0;
        for (software, signs, options) in table() {
            assert!(!signs.is_empty(), "{software}");
            for line in options.lines() {
                assert_eq!(line.split('\t').filter(|field| !field.is_empty()).count(), 5, "{line}");
                assert!(["device\t", "host\t", "any\t"].iter().any(|memory| line.starts_with(memory)), "{line}");
                assert!(["same", "other"].contains(&line.split('\t').nth(1).unwrap()), "{line}");
                let option = SoftwareOption::of(software, line).unwrap();
                assert!(option.change.split_whitespace().count() <= 12, "{line}");
                assert!(!option.effect.ends_with('.') && !option.change.ends_with('.'), "{line}");
                count += 1;
            }
        }
        assert_eq!(count, TABLE.lines().filter(|line| !line.starts_with('[')).count());
    }
}
