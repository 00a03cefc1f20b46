//! The table of results.

use crate::rivals::Rivals;
use std::{fmt::Write, fs, path::Path};

/// Markdown, section by section.
pub(crate) struct Report {
    text: String,
}

impl Report {
    pub(crate) fn new(rivals: &Rivals) -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .map_or("unknown", |rest| rest.trim_start_matches([':', ' ', '\t']));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let text = format!(
            "# Measured\n\nWritten by `cargo xtask bench`: medians of rounds in which the contenders take turns, one thread. A ratio in one \
             run is what counts; absolute times drift between machines.\n\nMachine: {model}, {cores} cores, {}. {}.\n",
            std::env::consts::ARCH,
            rivals.versions(),
        );
        Self { text }
    }

    /// A heading, a sentence, and a table.
    pub(crate) fn table(&mut self, heading: &str, words: &str, header: &[&str], rows: &[Vec<String>]) {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
        let rule: Vec<String> = header.iter().map(|_| "---".to_owned()).collect();
        let body: String = rows.iter().map(|row| line(row)).collect();
        // Writing to a string can't fail.
        let _ = write!(self.text, "\n## {heading}\n\n{words}\n\n{}{}{body}", line(&header), line(&rule));
        println!("{heading}\n{body}");
    }

    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        Ok(fs::write(path, &self.text)?)
    }
}
