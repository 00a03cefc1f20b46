//! Out-of-memory messages of our own programs, whole, cut and wrapped; see `data/README.md`.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use std::collections::BTreeMap;
use std::fs;

use tilewise_oom::{Entry, Form, Interface, Message, PrintedSize, Section, format_size};

fn path(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Rows by column name; quotes are doubled inside quotes.
fn rows(name: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path(name)).unwrap();
    let (mut records, mut record, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().filter(|c| *c != '\r').peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    let header = records.remove(0);
    records.into_iter().map(|record| header.iter().cloned().zip(record).collect()).collect()
}

fn messages() -> Vec<(String, String)> {
    let file = |row: &BTreeMap<String, String>| row["file"].clone();
    rows("summary.csv").iter().map(file).map(|name| (name.clone(), fs::read_to_string(path(&name)).unwrap())).collect()
}

fn text(size: Option<&PrintedSize>) -> String {
    size.map(|size| size.text().to_owned()).unwrap_or_default()
}

fn texts(entry: &Entry) -> [String; 8] {
    [
        entry.shape.as_ref().map(|shape| shape.text.clone()).unwrap_or_default(),
        text(entry.size.as_ref()),
        text(entry.unpadded.as_ref()),
        text(entry.padding.as_ref()),
        entry.expansion.map(|expansion| format!("{expansion:.1}")).unwrap_or_default(),
        entry.allocation_type.clone().unwrap_or_default(),
        entry.label.clone().unwrap_or_default(),
        entry.tag.clone().unwrap_or_default(),
    ]
}

#[test]
fn every_field_is_read_as_printed() {
    let mut facts: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for row in rows("facts.csv") {
        facts.entry(row["file"].clone()).or_default().push(row);
    }
    let (mut fields, mut entries) = (0, 0);
    for (name, source) in messages() {
        let message = Message::parse(&source).unwrap();
        let Some(facts) = facts.remove(&name) else { continue };
        assert_eq!(message.entries.len(), facts.len(), "{name}");
        for (entry, fact) in message.entries.iter().zip(&facts) {
            let columns =
                ["shape", "size", "unpadded_size", "extra_padding", "expansion", "allocation_type", "xla_label", "tag"];
            assert_eq!(texts(entry), columns.map(|column| fact[column].clone()), "{name}");
            let operator = entry.operator.as_ref().map(|operator| operator.text.clone());
            assert_eq!(operator.unwrap_or_default(), fact["operator"]);
            assert_eq!(entry.number.unwrap().to_string(), fact["order"]);
            assert_eq!(entry.section == Section::ArgumentsAndOutputs, fact["section"].contains("arguments"));
            assert_eq!(entry.interface().is_some(), entry.section == Section::ArgumentsAndOutputs);
            assert!(entry.complete);
            fields += 10;
            entries += 1;
        }
    }
    assert!(facts.is_empty());
    assert_eq!((entries, fields), (89, 890));
}

#[test]
fn every_figure_is_read_as_printed() {
    for row in rows("summary.csv") {
        let message = Message::parse(&fs::read_to_string(path(&row["file"])).unwrap()).unwrap();
        let usage = |name| text(message.usage.as_ref().and_then(|usage| usage.get(name)));
        let requirement = message.requirement.as_ref();
        let use_ = requirement.and_then(|requirement| requirement.utilization.as_ref());
        let output = message.output.as_ref();
        let percent = |value: Option<f64>| value.map(|value| format!("{value:.1}%")).unwrap_or_default();
        let got = [
            message.code.clone().unwrap_or_default(),
            message.memory_space.clone().unwrap(),
            text(message.used.as_ref()),
            text(message.limit.as_ref()),
            text(message.exceeded.as_ref()),
            text(requirement.and_then(|requirement| requirement.get("HLO temp"))),
            percent(use_.map(|use_| use_.percent)),
            text(use_.map(|use_| &use_.unpadded)),
            text(use_.map(|use_| &use_.padded)),
            percent(use_.and_then(|use_| use_.fragmentation_percent)),
            text(use_.and_then(|use_| use_.fragmentation.as_ref())),
            usage("reserved"),
            usage("program"),
            usage("arguments"),
            text(output.map(|output| &output.size)),
            text(output.and_then(|output| output.shared.as_ref())),
        ];
        let columns = [
            "code",
            "memory_space",
            "used",
            "capacity",
            "exceeded",
            "hlo_temp",
            "utilization",
            "unpadded",
            "padded",
            "fragmentation_percent",
            "fragmentation",
            "reserved",
            "program",
            "arguments",
            "output",
            "output_shared",
        ];
        assert_eq!(got, columns.map(|column| row[column].clone()), "{}", row["file"]);
        assert!(!message.truncated, "{}", row["file"]);
    }
}

#[test]
fn sizes_follow_from_shapes_digit_for_digit() {
    let (mut sizes, mut unpadded, mut expansions) = (0, 0, 0);
    for (name, source) in messages() {
        for entry in Message::parse(&source).unwrap().entries {
            let Some(Ok(bytes)) = entry.computed_bytes() else { continue };
            if name == "scoped_vmem_fusion.txt" {
                continue; // the size is that of the instruction's stack, not of its result
            }
            let size = entry.size.as_ref().unwrap();
            assert_eq!(entry.agrees(), Some(true), "{name} {size}");
            assert!(size.text() == format_size(bytes) || size.text() == bytes.to_string());
            sizes += 1;
            let logical = entry.computed_unpadded_bytes().unwrap().unwrap();
            if let Some(printed) = &entry.unpadded {
                assert_eq!(printed.text(), format_size(logical), "{name}");
                unpadded += 1;
            }
            if let (Some(extra), Some(expansion)) = (&entry.padding, entry.expansion) {
                assert_eq!(extra.text(), format_size(bytes - logical), "{name}");
                #[expect(clippy::cast_precision_loss, reason = "one decimal is compared")]
                let quotient = bytes as f64 / logical as f64;
                assert_eq!(format!("{quotient:.1}"), format!("{expansion:.1}"), "{name}");
                expansions += 1;
            }
        }
    }
    assert_eq!((sizes, unpadded, expansions), (59, 12, 8));
}

#[test]
fn the_forms_are_told_apart() {
    let forms: BTreeMap<_, _> =
        messages().into_iter().map(|(name, source)| (name, Message::parse(&source).unwrap().form)).collect();
    let of = |form| forms.values().filter(|found| **found == form).count();
    assert_eq!(of(Form::Bound), 2);
    assert_eq!(of(Form::Assignment), 11);
    assert_eq!(of(Form::Scoped), 1);
    assert_eq!(of(Form::Allocation), 3);

    let parse = |name: &str| Message::parse(&fs::read_to_string(path(name)).unwrap()).unwrap();
    assert_eq!(parse("bound_v4.txt").module.as_deref(), Some("jit_prefix"));
    let scoped = parse("scoped_vmem_fusion.txt");
    let [entry] = &scoped.entries[..] else { panic!("{:?}", scoped.entries) };
    assert_eq!(entry.instruction(), Some(("fusion", "fusion")));
    assert_eq!(entry.shape.as_ref().unwrap().text, "bf16[4096,4096]{1,0:T(8,128)(2,1)S(1)}");
    assert_eq!(entry.operator.as_ref().unwrap().op_name(), Some("jit(<lambda>)/dot_general"));
    assert_eq!(entry.size.as_ref().unwrap().bytes(), 192 << 10);
    let kernel = parse("scoped_vmem_kernel_v7x.txt");
    assert_eq!(kernel.entries[0].label.as_deref(), Some("doubled.1"));
    assert!(kernel.entries[0].tag.as_ref().unwrap().ends_with("2 buffering levels."));
    assert_eq!(kernel.memory_space_number(), Some(1));
    let donated = parse("donated_optimizer.txt");
    assert_eq!(donated.entries[4].interface(), Some(Interface::Output(vec![2])));
    assert_eq!(donated.entries[1].interface(), Some(Interface::Argument(2, vec![])));
}

#[test]
fn a_cut_anywhere_gives_what_is_there() {
    let messages = messages();
    std::thread::scope(|scope| {
        for (name, source) in &messages {
            scope.spawn(|| cut_anywhere(name, source));
        }
    });
}

fn cut_anywhere(name: &str, source: &str) {
    let whole = Message::parse(source).unwrap();
    let mut last = 0;
    for cut in (0..source.len()).filter(|cut| source.is_char_boundary(*cut)) {
        let Ok(message) = Message::parse(&source[..cut]) else {
            assert_eq!(last, 0, "{name} {cut}");
            continue;
        };
        let count = message.entries.len();
        assert!(count >= last && count <= whole.entries.len(), "{name} {cut}");
        // The owner's name ends a one-line message: nothing shows that it is cut.
        let is_complete = |entry: &&Entry| entry.complete && whole.form != Form::Allocation;
        let (complete, open): (Vec<_>, Vec<_>) = message.entries.iter().partition(is_complete);
        for (number, entry) in complete.iter().enumerate() {
            assert_eq!(**entry, whole.entries[number], "{name} {cut}");
        }
        for entry in open {
            let full = &whole.entries[count - 1];
            for (part, full) in texts(entry).iter().zip(texts(full)) {
                assert!(full.starts_with(part.as_str()), "{name} {cut}: {part} in {full}");
            }
        }
        for (part, full) in
            [(&message.used, &whole.used), (&message.limit, &whole.limit), (&message.exceeded, &whole.exceeded)]
        {
            assert!(part.is_none() || part == full, "{name} {cut}");
        }
        // The quote ends where the text does.
        let (part, full) = (message.quote.as_deref().unwrap_or_default(), whole.quote.as_deref().unwrap_or_default());
        let mut quoted = message.clone();
        quoted.quote.clone_from(&whole.quote);
        let is_whole = full.starts_with(part) && quoted == whole;
        let may_be_whole = matches!(whole.form, Form::Assignment | Form::Allocation) || is_whole;
        assert!(message.truncated || may_be_whole, "{name} {cut}");
        last = count;
    }
    assert_eq!(last, whole.entries.len(), "{name}");
}

#[test]
fn the_back_may_be_cut_and_the_front_too() {
    for (name, source) in messages() {
        for cut in (0..source.len()).step_by(7).filter(|cut| source.is_char_boundary(*cut)) {
            if let Ok(message) = Message::parse(&source[cut..]) {
                let whole = Message::parse(&source).unwrap();
                assert!(message.entries.len() <= whole.entries.len(), "{name} {cut}");
            }
        }
    }
}

fn each_line(source: &str, prefix: impl Fn(usize) -> String) -> String {
    source.lines().enumerate().map(|(number, line)| format!("{}{line}\n", prefix(number))).collect()
}

/// Python's `repr` of a text.
fn repr(source: &str) -> String {
    let quote = if source.contains('\'') && !source.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in source.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

fn wrappings(source: &str) -> Vec<(&'static str, String)> {
    let entities = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#39;")
    };
    let json = source.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('<', "\\u003c");
    let traceback = format!(
        "Traceback (most recent call last):\n  File \"model.py\", line 12, in <module>\n    f(x)\n  File \"jax/pjit.py\", \
         line 340\njaxlib._jax.XlaRuntimeError: {source}\n--------------------\nFor simplicity, JAX has removed its \
         internal frames from the traceback of the following exception. Set JAX_TRACEBACK_FILTERING=off.\n"
    );
    let log = |number: usize| {
        format!("2026-05-12 10:{:02}:01.{number}2: E {:>6} xla.cc:{}] ", number % 60, 7 * number, number)
    };
    vec![
        ("traceback", traceback.clone()),
        ("timestamps", each_line(source, log)),
        ("processes", each_line(&traceback, |_| "[process 0] ".to_owned())),
        ("glog", each_line(source, |number| format!("E0512 10:00:{:02}.000123   4711 xla.cc:123] ", number % 60))),
        ("ranks", each_line(source, |number| format!("(pid={number}) [rank{}]: ", number % 8))),
        ("markdown quote", each_line(source, |_| "> ".to_owned())),
        ("trimmed quote", each_line(source, |_| "> ".to_owned()).replace("> \n", ">\n")),
        ("nested quote", each_line(&traceback, |_| "> > ".to_owned())),
        ("code fence", format!("I get this:\n\n```\n{source}```\nWhat now?\n")),
        ("fence in a quote", each_line(&format!("```python\n{source}\n```"), |_| "> ".to_owned())),
        ("entities", entities(source)),
        ("entities in a quote", entities(&each_line(source, |_| "> ".to_owned()))),
        ("repr", format!("XlaRuntimeError({})", repr(source))),
        ("repr of a repr", repr(&format!("XlaRuntimeError({})", repr(source)))),
        ("json", format!("{{\"severity\": \"ERROR\", \"message\": \"{json}\"}}")),
        ("crlf", source.replace('\n', "\r\n")),
        ("cr", source.replace('\n', "\r")),
        ("indented", each_line(source, |_| "        ".to_owned())),
        ("tabs", each_line(source, |_| "\t".to_owned())),
        ("unindented", source.lines().map(|line| format!("{}\n", line.trim())).collect()),
        ("no blank lines", source.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()),
        ("one line", source.replace('\n', " ")),
        ("one line, blanks folded", source.split_whitespace().collect::<Vec<_>>().join(" ")),
        ("colours", each_line(source, |_| "\u{1b}[1;31m".to_owned()).replace('\n', "\u{1b}[0m\n")),
        ("box", each_line(source, |_| "│ ".to_owned()).replace('\n', "  │\n")),
        ("hard spaces", source.replace("  ", "\u{a0} ")),
        ("byte order mark", format!("\u{feff}{source}")),
        ("twice", format!("{source}\n{source}")),
        ("after its headline", format!("{}\n{source}", source.lines().next().unwrap_or(""))),
    ]
}

#[test]
fn surroundings_change_nothing() {
    let mut tried = 0;
    for (name, source) in messages() {
        let whole = Message::parse(&source).unwrap();
        for (wrapping, text) in wrappings(&source) {
            let mut message = Message::parse(&text).unwrap_or_else(|error| panic!("{name}, {wrapping}: {error}"));
            // A traceback or a log may tell of a framework and of a line, which the message itself doesn't.
            (message.framework, message.raised_at, message.requested_at) = (whole.framework, None, None);
            assert_eq!(message, whole, "{name}, {wrapping}");
            tried += 1;
        }
    }
    assert_eq!(tried, 17 * 29);
}

#[test]
fn lines_may_be_wrapped_between_words() {
    for (name, source) in messages() {
        let whole = Message::parse(&source).unwrap();
        for width in [20, 40, 72, 100] {
            let (mut text, mut column) = (String::new(), 0);
            for word in source.split_whitespace() {
                let breaks = column > 0 && column + word.len() > width;
                text.push_str(if breaks { "\n" } else { " " });
                text.push_str(word);
                column = if breaks { word.len() } else { column + 1 + word.len() };
            }
            let message = Message::parse(&text).unwrap();
            assert_eq!(message.entries.len(), whole.entries.len(), "{name} {width}");
            assert_eq!((&message.used, &message.limit), (&whole.used, &whole.limit), "{name} {width}");
            for (entry, whole) in message.entries.iter().zip(&whole.entries) {
                assert_eq!(entry.size, whole.size, "{name} {width}");
                assert_eq!(entry.computed_bytes(), whole.computed_bytes(), "{name} {width}");
            }
        }
    }
}
