//! A kernel's text: a line for each declaration.

use crate::kernel::{Array, Kernel, Memory, Operand, Scratch};
use alloc::{format, string::String, vec, vec::Vec};
use core::{ops::Range, str::FromStr};
use tilewise::{ByteSize, Error, ErrorKind, MAX_SIZE, Shape};

/// The texts of several kernels, divided by lines of `---`. The text behind the last divider counts if it is not blank.
///
/// ```
/// assert_eq!(tilewise_kernel::parts("grid 8\n---\ngrid 4\n---\n").collect::<Vec<_>>(), ["grid 8\n", "grid 4\n"]);
/// ```
pub fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    core::iter::from_fn(move || {
        let text = rest?;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            if line.trim() == "---" {
                rest = Some(&text[end..]).filter(|after| !after.trim().is_empty());
                return Some(&text[..start]);
            }
            start = end;
        }
        rest = None;
        Some(text)
    })
}

const KEYWORDS: [&str; 9] = ["tpu", "grid", "prefetch", "in", "out", "scratch", "limit", "body", "name"];

impl FromStr for Kernel {
    type Err = Error;

    /// Reads a kernel's text; [`parts`] divides a text of several.
    ///
    /// # Errors
    /// The first error, with its bytes: [`ErrorKind::Syntax`], [`ErrorKind::InvalidKernel`] if the lines contradict
    /// each other, and those of shapes and generations.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut reader = Reader::default();
        let mut start = 0;
        let mut is_empty = true;
        for line in text.split_inclusive('\n') {
            let content = line.split('#').next().unwrap_or_default();
            let mut line_reader = Line { text: content, start, position: 0 };
            if !line_reader.is_at_end() {
                is_empty = false;
                reader.line(&mut line_reader)?;
            }
            start += line.len();
        }
        if is_empty {
            let error = Error::new(ErrorKind::EmptyInput, "there is no kernel here").at(0..text.len());
            return Err(error.with_help("such as `grid 4`, then `in f32[32,128] block 8,128 @ 0,-`"));
        }
        reader.finished()
    }
}

#[derive(Default)]
struct Reader {
    kernel: Kernel,
    /// The keywords read so far that begin at most one line.
    seen: Vec<&'static str>,
    /// Axes that blocks depend on, checked when the grid is known.
    axes: Vec<(usize, Range<usize>)>,
    /// Blocks that are a part of their array and name no axis.
    unplaced: Vec<Range<usize>>,
}

impl Reader {
    fn line(&mut self, line: &mut Line<'_>) -> Result<(), Error> {
        let (word, span) = line.word().ok_or_else(|| line.expected("a word"))?;
        let Some(keyword) = KEYWORDS.into_iter().find(|keyword| *keyword == word) else {
            let shown: String = word.chars().take(40).collect();
            let error = Error::new(ErrorKind::Syntax, format!("`{shown}` begins no line of a kernel")).at(span);
            let near = KEYWORDS.iter().find(|keyword| is_one_slip(&word.to_ascii_lowercase(), keyword));
            return Err(match near {
                Some(keyword) => error.with_help(format!("did you mean `{keyword}`?")),
                None => error.with_help(format!("lines begin with {}", KEYWORDS.join(", "))),
            });
        };
        if !matches!(keyword, "prefetch" | "in" | "out" | "scratch") {
            if self.seen.contains(&keyword) {
                return Err(invalid(format!("a kernel has one line `{keyword}`"), span));
            }
            self.seen.push(keyword);
        }
        let kernel = &mut self.kernel;
        match keyword {
            "name" => kernel.name = Some(line.rest("a name")?.0.into()),
            "tpu" => {
                let (name, span) = line.rest("a TPU generation")?;
                kernel.generation = Some(name.parse().map_err(|error: Error| error.shifted(span.start))?);
            }
            "grid" => {
                kernel.grid = line.list("the steps along an axis", |bound| match bound {
                    "?" => Some(None),
                    _ => positive(bound).map(Some),
                })?;
            }
            "prefetch" => kernel.prefetched.push(line.array()?),
            "in" | "out" => self.operand(line, keyword == "out")?,
            "scratch" => kernel.scratch.push(scratch(line)?),
            "limit" => kernel.limit_bytes = Some(line.size()?),
            _ => kernel.body_bytes = Some(line.size()?),
        }
        if line.is_at_end() { Ok(()) } else { Err(line.expected("the end of the line")) }
    }

    fn operand(&mut self, line: &mut Line<'_>, is_output: bool) -> Result<(), Error> {
        let array = line.array()?;
        let rank = array.dimensions.len();
        let (mut memory, mut block, mut index, mut buffered, mut fused) = (None, None, None, None, None);
        while let Some((word, span)) = line.word() {
            let is_first = match word {
                "block" => {
                    let bounds =
                        line.list(
                            "a bound or `-`",
                            |bound| if bound == "-" { Some(None) } else { positive(bound).map(Some) },
                        )?;
                    let span = line.since(span.end);
                    check_rank("the block has", bounds.len(), rank, &span)?;
                    block.replace((bounds, span)).is_none()
                }
                "@" => {
                    let first = self.axes.len();
                    let axes = line.list("an axis of the grid or `-`", |axis| match axis {
                        "-" => Some(None),
                        _ => axis.parse::<usize>().ok().map(Some),
                    })?;
                    let span = line.since(span.end);
                    check_rank("there are axes for", axes.len(), rank, &span)?;
                    self.axes.truncate(first);
                    self.axes.extend(axes.iter().flatten().map(|&axis| (axis, span.clone())));
                    index.replace(axes).is_none()
                }
                "buffered" => {
                    let (number, span) = line.word().ok_or_else(|| line.expected("a number of buffers"))?;
                    let number = positive(number).ok_or_else(|| syntax("a number of buffers is 1 or more", span))?;
                    buffered.replace(number).is_none()
                }
                "fused" if is_output => return Err(syntax("an output is not computed before the kernel", span)),
                "fused" => fused.replace(()).is_none(),
                _ => memory.replace(memory_of(word, &span)?).is_none(),
            };
            if !is_first {
                return Err(syntax(format!("`{word}` is said twice"), span));
            }
        }
        let whole: Vec<Option<u64>> = array.dimensions.iter().copied().map(Some).collect();
        let (block, span) = block.unwrap_or((whole, 0..0));
        let index = index.unwrap_or_else(|| {
            if block.iter().zip(&array.dimensions).any(|(bound, &all)| bound.unwrap_or(1) != all) {
                self.unplaced.push(span);
            }
            vec![None; rank]
        });
        let memory = memory.unwrap_or(Memory::Vmem);
        let is_fused = fused.is_some();
        self.kernel.operands.push(Operand { is_output, array, memory, block, index, buffered, is_fused });
        Ok(())
    }

    fn finished(self) -> Result<Kernel, Error> {
        let axes = self.kernel.grid.len();
        if let Some((axis, span)) = self.axes.into_iter().find(|(axis, _)| *axis >= axes) {
            let last = match axes {
                0 => String::from("there is no line `grid`"),
                1 => String::from("its only axis is 0"),
                _ => format!("its axes are 0 … {}", axes - 1),
            };
            return Err(invalid(format!("the grid has no axis {axis}: {last}"), span));
        }
        match self.unplaced.into_iter().next().filter(|_| axes > 0) {
            Some(span) => Err(invalid("the block is a part of its array, and which is not said", span)
                .with_help("say behind `@` which axis of the grid chooses the block along each dimension: `@ 0,-`")),
            None => Ok(self.kernel),
        }
    }
}

fn scratch(line: &mut Line<'_>) -> Result<Scratch, Error> {
    let (word, span) = line.word().ok_or_else(|| line.expected("`vmem`, `smem` or `dma`"))?;
    let memory = match word {
        "dma" | "regular" | "barrier" => Memory::Semaphore,
        _ => memory_of(word, &span)?,
    };
    if memory != Memory::Semaphore {
        return Ok(Scratch { memory, array: Some(line.array()?) });
    }
    // Semaphores take neither VMEM nor SMEM, whatever their number: `scratch dma [2]`.
    while line.word().is_some() {}
    Ok(Scratch { memory, array: None })
}

fn memory_of(word: &str, span: &Range<usize>) -> Result<Memory, Error> {
    let all = [Memory::Vmem, Memory::Smem, Memory::Any, Memory::Hbm, Memory::Semaphore];
    all.into_iter().find(|memory| memory.name() == word).ok_or_else(|| {
        let shown: String = word.chars().take(40).collect();
        syntax(format!("`{shown}` is not known here"), span.clone()).with_help(
            "known are the memories vmem, smem, any and hbm, and of operands `block`, `@`, `buffered` and `fused`",
        )
    })
}

fn check_rank(what: &str, found: usize, rank: usize, span: &Range<usize>) -> Result<(), Error> {
    let of = |count: usize| if count == 1 { "1 dimension".into() } else { format!("{count} dimensions") };
    match found == rank {
        true => Ok(()),
        false => Err(invalid(format!("{what} {}, the array {}", of(found), of(rank)), span.clone())),
    }
}

fn invalid(message: impl Into<String>, span: Range<usize>) -> Error {
    Error::new(ErrorKind::InvalidKernel, message).at(span)
}

fn syntax(message: impl Into<String>, span: Range<usize>) -> Error {
    Error::new(ErrorKind::Syntax, message).at(span)
}

/// Whether two words differ in one byte, which one of them may lack.
fn is_one_slip(one: &str, other: &str) -> bool {
    let alike = |(a, b): &(u8, u8)| a == b;
    let start = one.bytes().zip(other.bytes()).take_while(alike).count();
    let (one, other) = (&one.as_bytes()[start..], &other.as_bytes()[start..]);
    let end = one.iter().rev().copied().zip(other.iter().rev().copied()).take_while(alike).count();
    (one.len() - end).max(other.len() - end) == 1
}

/// A number from 1 to 2^63 − 1.
fn positive(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && (1..=MAX_SIZE).contains(number))
}

/// A cursor over one line.
struct Line<'a> {
    text: &'a str,
    /// The start of the line in the kernel's text.
    start: usize,
    position: usize,
}

impl<'a> Line<'a> {
    fn skip_spaces(&mut self) {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_spaces();
        self.position == self.text.len()
    }

    /// The span from that byte of the kernel's text to the cursor, without spaces in front.
    fn since(&self, from: usize) -> Range<usize> {
        let text = &self.text[from - self.start..self.position];
        from + text.len() - text.trim_start().len()..self.start + self.position
    }

    /// Takes the text before the first character that `ends` accepts.
    fn take(&mut self, ends: impl Fn(char) -> bool) -> (&'a str, Range<usize>) {
        self.skip_spaces();
        let rest = &self.text[self.position..];
        let length = rest.find(ends).unwrap_or(rest.len());
        let start = self.start + self.position;
        self.position += length;
        (&rest[..length], start..start + length)
    }

    fn word(&mut self) -> Option<(&'a str, Range<usize>)> {
        Some(self.take(char::is_whitespace)).filter(|(word, _)| !word.is_empty())
    }

    /// Takes the rest of the line.
    fn rest(&mut self, what: &str) -> Result<(&'a str, Range<usize>), Error> {
        if self.is_at_end() {
            return Err(self.expected(what));
        }
        let (rest, span) = self.take(|_| false);
        let rest = rest.trim_end();
        Ok((rest, span.start..span.start + rest.len()))
    }

    /// Items divided by commas; spaces may follow a comma.
    fn list<T>(&mut self, what: &str, item: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        // A kernel without a grid has `()`.
        self.skip_spaces();
        if self.text[self.position..].starts_with("()") {
            self.position += 2;
            return Ok(items);
        }
        loop {
            let (text, span) = self.take(|c| c == ',' || c.is_whitespace());
            items.push(match text.is_empty() {
                true => return Err(self.expected(what)),
                false => item(text).ok_or_else(|| syntax(format!("`{text}` is not {what}"), span))?,
            });
            let end = self.position;
            self.skip_spaces();
            if !self.text[self.position..].starts_with(',') {
                self.position = end;
                return Ok(items);
            }
            self.position += 1;
        }
    }

    fn array(&mut self) -> Result<Array, Error> {
        self.skip_spaces();
        let start = self.start + self.position;
        if self.is_at_end() {
            return Err(self.expected("a shape such as `bf16[1024,512]`"));
        }
        let (shape, length) = Shape::parse_prefix(&self.text[self.position..]).map_err(|error| error.shifted(start))?;
        self.position += length;
        let span = start..start + length;
        let Some(array) = shape.as_array() else {
            return Err(Error::new(ErrorKind::NotAnArray, "a kernel has arrays alone").at(span));
        };
        let bounds = array.dimensions().iter().map(|dimension| dimension.bound());
        let dimensions = bounds.collect::<Option<Vec<u64>>>().ok_or_else(|| {
            Error::new(ErrorKind::UnboundedDimension, "the bounds of a kernel's arrays are numbers").at(span)
        })?;
        Ok(Array { element_type: array.element_type(), dimensions })
    }

    fn size(&mut self) -> Result<u64, Error> {
        let (text, span) = self.rest("a size such as `64MiB`")?;
        text.parse()
            .map(|ByteSize(bytes)| bytes)
            .map_err(|_| syntax(format!("`{text}` is not a size such as 64MiB"), span))
    }

    /// A syntax error at the cursor: this was expected, that was found.
    fn expected(&mut self, what: &str) -> Error {
        let at = self.start + self.position;
        match self.word() {
            Some((word, span)) => syntax(format!("expected {what}, but there is `{word}`"), span),
            None => syntax(format!("expected {what}, but the line ends"), at..at),
        }
    }
}
