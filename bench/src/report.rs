//! The tables of results: a section for each kind of work, each renewed on its own.

use std::{fmt::Write, fs, path::Path};

/// The text above the sections.
const HEAD: &str = "# Measured\n\nWritten by `cargo xtask bench`, which renews the sections it is given. Figures are medians of rounds in which \
                    the contenders take turns, on one thread unless a table says otherwise. Compare ratios of one run: \
                    absolute times vary between machines and runs.\n";

/// One section, in Markdown.
pub(crate) struct Report {
    title: &'static str,
    text: String,
}

impl Report {
    /// The report, when its tables are in it.
    pub(crate) fn filled(mut self, fill: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> anyhow::Result<Self> {
        fill(&mut self)?;
        Ok(self)
    }

    /// A section without tables. `rivals` are the versions it is compared with, or empty.
    pub(crate) fn new(title: &'static str, rivals: &str) -> Self {
        let mut text = format!("{}{}.", title_line(title), machine());
        if !rivals.is_empty() {
            let _ = write!(text, " {rivals}.");
        }
        text.push('\n');
        Self { title, text }
    }

    /// A heading inside the section, for work with several tables.
    pub(crate) fn heading(&mut self, heading: &str) {
        // Writing to a string can't fail, here and below.
        let _ = write!(self.text, "\n### {heading}\n");
        println!("{heading}");
    }

    /// A sentence, and a table.
    pub(crate) fn table(&mut self, words: &str, header: &[&str], rows: &[Vec<String>]) {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header: Vec<String> = header.iter().map(|&cell| cell.to_owned()).collect();
        let rule: Vec<String> = header.iter().map(|_| "---".to_owned()).collect();
        let body: String = rows.iter().map(|row| line(row)).collect();
        let _ = write!(self.text, "\n{words}\n\n{}{}{body}", line(&header), line(&rule));
        println!("{}{body}", line(&header));
    }

    /// Tables already in Markdown.
    pub(crate) fn body(&mut self, markdown: &str) {
        let _ = write!(self.text, "\n{}\n", markdown.trim());
        println!("{markdown}");
    }

    /// Replaces or inserts the section in the file; `order` has the titles of all sections.
    pub(crate) fn write(&self, path: &Path, order: &[&str]) -> anyhow::Result<()> {
        let file = fs::read_to_string(path).unwrap_or_default();
        let new = path.with_extension("new");
        fs::write(&new, self.among(&file, order))?;
        Ok(fs::rename(new, path)?)
    }

    fn among(&self, file: &str, order: &[&str]) -> String {
        let section = |title: &str| {
            if title == self.title {
                return Some(self.text.as_str());
            }
            let start = file.find(&title_line(title))?;
            let rest = &file[start..];
            Some(rest[1..].find("\n## ").map_or(rest, |end| &rest[..=end]))
        };
        let sections: String = order.iter().filter_map(|&title| section(title)).collect();
        format!("{HEAD}{sections}")
    }
}

fn title_line(title: &str) -> String {
    format!("\n## {title}\n\n")
}

/// The machine in words.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("an unknown processor", |rest| rest.trim_start_matches([':', ' ', '\t']));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut words = format!("Machine: {model}, {cores} cores, {}", std::env::consts::ARCH);
    for cache in (0..8).map(|number| format!("/sys/devices/system/cpu/cpu0/cache/index{number}")) {
        let read = |file: &str| fs::read_to_string(format!("{cache}/{file}")).ok();
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) else { continue };
        if kind.trim() != "Instruction" {
            let _ = write!(words, ", L{} {}", level.trim(), size.trim());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_renewed_and_the_others_stay() {
        let section = |title, text: &str| Report { title, text: format!("{}{text}\n", title_line(title)) };
        let order = ["A", "B", "C"];
        let mut file = String::new();
        for report in [section("B", "old\n\n### part"), section("C", "c"), section("A", "a"), section("B", "new")] {
            file = report.among(&file, &order);
        }
        assert_eq!(file, format!("{HEAD}\n## A\n\na\n\n## B\n\nnew\n\n## C\n\nc\n"));
    }
}
