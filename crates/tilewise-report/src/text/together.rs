//! Programs that are loaded at once, for people.

use super::{SHOWN, Terminal, WriteText, write_wrapped};
use crate::{
    ProgramSet,
    findings::{OF_LARGEST_CALL, set_change},
    style::{FAINT, STRONG, bytes, cut, percent, share, styled},
};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{self, Write},
};
use tilewise::visible;
use tilewise_audit::{Alternative, PageArrays, ResidentArray, Together};

/// The memory that no compiler knows, but a running server.
const OUTSIDE: &str = "Not counted, because only a running server shows it: arrays that it holds beside these programs' \
                       arguments, copies made while weights are loaded, and the state of its allocator.";

impl WriteText for ProgramSet {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let together = &self.0;
        writeln!(out, "{}", styled(STRONG, self.verdict_in_words()))?;
        write_parts(together, terminal, out)?;
        if let Some(pages) = &together.pages {
            write_pages(pages, together, terminal, out)?;
        }
        write_programs(together, terminal, out)?;
        write_options(together, terminal, out)?;
        write_residents(together, terminal, out)?;
        writeln!(out)?;
        write_wrapped(OUTSIDE, FAINT, ["", ""], terminal.width, out)
    }
}

fn write_parts(together: &Together, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let largest = together.programs.iter().max_by_key(|program| program.temporary_bytes);
    let largest = largest.filter(|program| program.temporary_bytes > 0);
    let of_largest = largest.map_or_else(String::new, |program| {
        let gaps = match program.fragmentation_bytes {
            0 => String::new(),
            lost => format!(", {} of them fragmentation", bytes(lost)),
        };
        format!("of {}{gaps}", visible(&program.name))
    });
    let arrays = together.residents.len();
    let code = match together.code_bytes {
        Some(_) => "of all programs".to_owned(),
        None => "not in a text; FILE.py:FACTORY is compiled".to_owned(),
    };
    let rows = [
        ("arrays", Some(together.resident_bytes), format!("{arrays}, each once")),
        ("temporaries", Some(together.largest_temporaries), of_largest),
        ("calls", Some(together.call_bytes), OF_LARGEST_CALL.to_owned()),
        ("constants", Some(together.constant_bytes), "of all programs".to_owned()),
        ("code", together.code_bytes, code),
    ];
    for (name, count, words) in rows {
        let count = count.map_or(Cow::Borrowed("unknown"), |count| bytes(count).into());
        writeln!(out, "{}", cut(&format!("  {name:<12}{count:>12}  {words}"), terminal.width))?;
    }
    Ok(())
}

fn write_pages(pages: &PageArrays, together: &Together, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let others = match pages.arrays {
        1 => String::new(),
        count => format!(" and {} more arrays", count - 1),
    };
    let padding = match pages.page_padding_bytes {
        0 => String::new(),
        padding => format!(", {} of them padding", bytes(padding)),
    };
    let (count, page) = (pages.count, bytes(pages.page_bytes));
    let fitting = match pages.fitting {
        None => format!("{count} pages"),
        Some(fitting) => {
            let code = if together.code_bytes.is_none() { " at most, without code" } else { "" };
            let decides = pages.decided_by.and_then(|number| together.programs.get(number));
            let decides = decides.map_or_else(String::new, |program| format!("; `{}` decides", visible(&program.name)));
            format!("{fitting} pages fit{code}{decides}; compiled for {count}")
        }
    };
    writeln!(out, "\n{}", styled(STRONG, fitting))?;
    let what = format!(
        "a page takes {page}{padding}: dimension {} of {} `{}`{others}",
        pages.dimension,
        pages.shape,
        visible(&pages.name)
    );
    write_wrapped(&what, FAINT, ["  ", "    "], terminal.width, out)
}

fn write_programs(together: &Together, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let has_pages = together.pages.as_ref().is_some_and(|pages| pages.fitting.is_some());
    let is_several = together.programs.len() > 1;
    let last = if is_several { "costs" } else { "" };
    let header =
        format!("  {:>11}  {:>10}  {:>10}  {:>10}  {last:>11}  program", "temporaries", "calls", "constants", "code");
    writeln!(out, "\n{}", styled(FAINT, header))?;
    for program in &together.programs {
        let code = program.code_bytes.map_or(Cow::Borrowed("-"), |count| bytes(count).into());
        let costs = match program.costs_pages.filter(|_| has_pages) {
            Some(1) => "1 page".to_owned(),
            Some(pages) => format!("{pages} pages"),
            None if is_several => bytes(program.freed_bytes),
            None => String::new(),
        };
        let [temporaries, call, constants] =
            [program.temporary_bytes, program.call_bytes, program.constant_bytes].map(bytes);
        let grows = match program.bytes_per_page {
            0 => String::new(),
            grown => format!(", {} more a page", bytes(grown)),
        };
        let name = visible(&program.name);
        let line = format!("  {temporaries:>11}  {call:>10}  {constants:>10}  {code:>10}  {costs:>11}  {name}{grows}");
        writeln!(out, "{}", cut(&line, terminal.width))?;
    }
    Ok(())
}

fn write_options(together: &Together, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    if together.options.is_empty() {
        return Ok(());
    }
    let has_pages = together.options.iter().any(|option| option.pages.is_some());
    let title = if has_pages { "What makes room" } else { "What frees memory" };
    writeln!(out, "\n{}", styled(STRONG, title))?;
    let fitting = together.pages.as_ref().and_then(|pages| pages.fitting).unwrap_or(0);
    for option in together.options.iter().take(SHOWN) {
        let Alternative { is_bound, freed_bytes, pages, .. } = option;
        let up_to = if *is_bound { "up to " } else { "" };
        let gain = match pages {
            Some(pages) => format!("{up_to}{} more pages, {pages}", pages.saturating_sub(fitting)),
            None => format!("{up_to}{}", bytes(*freed_bytes)),
        };
        let line = format!("{}: {gain}", visible(&set_change(option, together)));
        write_wrapped(&line, STRONG, ["  ", "    "], terminal.width, out)?;
    }
    Ok(())
}

/// The bytes of the arrays of one tree and the same programs.
#[derive(Default)]
struct Group {
    arrays: usize,
    bytes: u64,
    padding: u64,
}

fn write_residents(together: &Together, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let mut groups: BTreeMap<(&str, &[usize], bool), Group> = BTreeMap::new();
    for array in &together.residents {
        let ResidentArray { name, programs, is_laid_out_otherwise, .. } = array;
        let tree = name.split(['[', '.']).next().unwrap_or(name);
        let group = groups.entry((tree, programs, *is_laid_out_otherwise)).or_default();
        group.arrays += 1;
        group.bytes = group.bytes.saturating_add(array.bytes);
        group.padding = group.padding.saturating_add(array.padding_bytes);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.bytes));
    writeln!(out, "\n{}", styled(STRONG, "Arrays that are held once"))?;
    for ((tree, programs, is_otherwise), group) in groups.iter().take(SHOWN) {
        let names: Vec<_> = programs.iter().map(|at| visible(&together.programs[*at].name)).collect();
        let of = if programs.len() == together.programs.len() { "all programs".into() } else { names.join(", ") };
        let otherwise = if *is_otherwise { "; others have it in another layout" } else { "" };
        let padding = match group.padding {
            0 => String::new(),
            padding => format!(", {} of it padding", percent(share(padding, group.bytes))),
        };
        let (count, plural) = (group.arrays, if group.arrays == 1 { "array" } else { "arrays" });
        let tree = if tree.is_empty() { Cow::Borrowed("without a name") } else { visible(tree) };
        let line = format!("  {:>12}  {tree}: {count} {plural}{padding}; {of}{otherwise}", bytes(group.bytes));
        writeln!(out, "{}", cut(&line, terminal.width))?;
    }
    if let Some(left) = groups.len().checked_sub(SHOWN).filter(|left| *left > 0) {
        let rest = groups[SHOWN..].iter().map(|(_, group)| group.bytes).fold(0, u64::saturating_add);
        writeln!(out, "  {:>12}  in {left} more groups", bytes(rest))?;
    }
    Ok(())
}
