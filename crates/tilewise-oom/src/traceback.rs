//! Frames of Python's tracebacks.

/// A line of a Python program that a traceback names.
///
/// ```
/// use tilewise_oom::Message;
///
/// let text = "Traceback (most recent call last):
///   File \"/home/me/train.py\", line 88, in main
///     state = step(state, batch)
///   File \"/usr/lib/python3.12/site-packages/jax/_src/pjit.py\", line 337, in cache_miss
///     out = call(args)
/// RESOURCE_EXHAUSTED: Attempting to reserve 6.48G at the bottom of memory. That was not possible. There are 3.33G free.";
/// let raised = Message::parse(text)?.raised_at.expect("a line");
/// assert_eq!((raised.file.as_str(), raised.line), ("/home/me/train.py", 88));
/// assert_eq!(raised.code.as_deref(), Some("state = step(state, batch)"));
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The path of its file.
    pub file: String,
    /// The number of the line, from 1.
    pub line: u32,
    /// The function.
    pub function: String,
    /// The text of the line.
    pub code: Option<String>,
}

/// Parts of the paths of files that a reader didn't write.
const INSTALLED: [&str; 6] = ["site-packages/", "dist-packages/", "lib/python", "<frozen", "<string>", "<stdin>"];

/// Python's words between an error and the traceback of an error that it caused.
const CAUSES: [&str; 2] = ["was the direct cause of the following exception", "During handling of the above exception"];

/// Python's words before a traceback.
const BEGIN: &str = "Traceback (most recent call last)";

impl Frame {
    /// The file's name without its folder and its end: `cuda_graph_runner`.
    pub(crate) fn stem(&self) -> &str {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        name.strip_suffix(".py").unwrap_or(name)
    }

    /// The frames that raised the error at `start`, the innermost first: Python prints an error's traceback before it,
    /// and behind it those of errors that it caused; a log has a failure before its traceback.
    pub(crate) fn of_error(text: &str, start: usize, is_failure: bool) -> Vec<Self> {
        let before = Self::of_last(&text[..start]);
        let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let is_logged = is_failure && !text[line..start].contains("Error: ");
        // Frames without Python's words before them were pasted below their error.
        let is_pasted = || is_failure && !text[start..].contains(BEGIN);
        let is_caused = || CAUSES.iter().any(|words| text[start..].contains(words));
        let is_behind = before.is_empty() && (is_logged || is_caused() || is_pasted());
        if is_behind { Self::of_last(&text[start..]) } else { before }
    }

    /// The frames of the last traceback in a text, the innermost first.
    fn of_last(text: &str) -> Vec<Self> {
        let begin = memchr::memmem::rfind(text.as_bytes(), BEGIN.as_bytes()).unwrap_or(0);
        let text = &text[begin..];
        let places = memchr::memmem::rfind_iter(text.as_bytes(), "File \"").take(MOST);
        let frames: Vec<Self> = places.filter_map(|at| Self::at(&text[at..])).collect();
        if frames.is_empty() { Self::of_notebook(text) } else { frames }
    }

    /// The frames of a notebook's traceback, the innermost first: a place, and lines around the one with an arrow.
    fn of_notebook(text: &str) -> Vec<Self> {
        let (mut frames, mut place) = (Vec::new(), None);
        for line in text.lines() {
            place = place_in_notebook(line).or(place);
            let arrow = line.trim_start().strip_prefix("--").map(|line| line.trim_start_matches('-'));
            let Some(pointed) = arrow.and_then(|line| line.strip_prefix("> ")).map(str::trim_start) else { continue };
            let digits = pointed.bytes().take_while(u8::is_ascii_digit).count();
            let (Ok(line), Some((file, function))) = (pointed[..digits].parse(), place) else { continue };
            let code = Some(pointed[digits..].trim()).filter(|code| !code.is_empty()).map(str::to_owned);
            frames.push(Self { file: file.to_owned(), line, function: function.to_owned(), code });
            if frames.len() == MOST {
                break;
            }
        }
        frames.reverse();
        frames
    }

    /// Whether its file is the reader's, and the line more than the program's start: `app.run(main)`.
    pub(crate) fn is_own(&self) -> bool {
        let is_start =
            || self.code.as_deref().is_some_and(|code| code.starts_with("app.run(") || code.contains("main("));
        let is_outermost = self.function == "<module>" && is_start();
        !is_outermost && !INSTALLED.iter().any(|part| self.file.contains(part))
    }

    /// The operation that the line calls and compilers unroll: `torch.ones_like(x).cumsum(0)` has `cumsum`.
    #[must_use]
    pub fn unrolled(&self) -> Option<&'static str> {
        const UNROLLED: [&str; 12] = [
            "cumsum",
            "cumprod",
            "cummax",
            "argsort",
            "sort",
            "topk",
            "top_k",
            "isin",
            "unique",
            "searchsorted",
            "nonzero",
            "multinomial",
        ];
        let code = self.code.as_deref()?;
        UNROLLED.into_iter().find(|name| {
            code.match_indices(name).any(|(at, _)| {
                let is_begun = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                is_begun && code[at + name.len()..].starts_with('(')
            })
        })
    }

    /// The frame that a text begins with: `File "train.py", line 88, in main`, and under it the line.
    fn at(text: &str) -> Option<Self> {
        let path = text.strip_prefix("File \"")?;
        let most = (0..=LONGEST_PATH.min(path.len())).rev().find(|end| path.is_char_boundary(*end))?;
        let end = path[..most].find("\", line ")?;
        let (file, behind) = (&path[..end], &path[end + "\", line ".len()..]);
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let line = behind[..digits].parse().ok()?;
        let mut lines = behind[digits..].lines();
        let function = lines.next()?.strip_prefix(", in ")?.trim().to_owned();
        let is_code = |line: &&str| !line.is_empty() && !line.starts_with("File \"") && !is_error(line);
        let code = lines.next().map(str::trim).filter(is_code).map(str::to_owned);
        (!file.contains('\n')).then(|| Self { file: file.to_owned(), line, function, code })
    }
}

/// The file, or the cell, and the function of a line in a notebook's traceback: `Cell In[3], line 6`,
/// `File ~/model.py:267, in Task.build(self)`, and of an older one `/usr/lib/model.py in build(self)`.
fn place_in_notebook(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end();
    let (place, function) = match (line.split_once(", in "), line.split_once(" in ")) {
        (Some(parts), _) => parts,
        (None, Some(parts)) if !line.starts_with("Cell In") => parts,
        _ => (line, "<module>"),
    };
    let function = function.split('(').next().unwrap_or_default();
    let is_cell = ["Cell In", "Input In", "<ipython-input"].iter().any(|sign| place.starts_with(sign));
    if is_cell {
        return Some((place.split(',').next().unwrap_or(place), function));
    }
    let path = place.strip_prefix("File ").unwrap_or(place);
    let file = path.rsplit_once(':').filter(|(_, line)| line.bytes().all(|byte| byte.is_ascii_digit()));
    let file = file.map_or(path, |(file, _)| file);
    (file.starts_with(['/', '~']) && file.ends_with(".py") && place != line).then_some((file, function))
}

/// Bytes of the longest path of Linux.
const LONGEST_PATH: usize = 4096;

/// Maximum number of frames searched: no call stack is deeper by default.
const MOST: usize = 1000;

/// Whether a line ends a traceback: `RuntimeError: …`.
fn is_error(line: &str) -> bool {
    let name = line.split_once(": ").map_or("", |(name, _)| name);
    name.ends_with("Error") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracebacks_of_notebooks() {
        let text = "XlaRuntimeError                           Traceback (most recent call last)
Cell In[3], line 6
      4 import jax, keras
      5 print(jax.devices())
----> 6 lm = Gemma.from_preset(\"gemma_7b_en\")

File /usr/local/lib/python3.10/site-packages/keras/task.py:267, in Task.from_preset(cls, preset, load_weights)
    265 # Backbone case.
--> 267 backbone = backbone_cls.from_preset(preset)

XlaRuntimeError: RESOURCE_EXHAUSTED: out of memory";
        let frames = Frame::of_last(text);
        let told = |frame: &Frame| format!("{}:{} {}", frame.file, frame.line, frame.function);
        let all: Vec<String> = frames.iter().map(told).collect();
        assert_eq!(
            all,
            ["/usr/local/lib/python3.10/site-packages/keras/task.py:267 Task.from_preset", "Cell In[3]:6 <module>"]
        );
        assert!(frames[1].is_own() && !frames[0].is_own());
        assert_eq!(frames[1].code.as_deref(), Some("lm = Gemma.from_preset(\"gemma_7b_en\")"));
        let older = "Traceback (most recent call last)
<ipython-input-5-0ab1> in <cell line: 3>()
----> 3 y = f(x)

/usr/lib/model.py in f(x)
---> 12     return x @ x";
        let all: Vec<String> = Frame::of_last(older).iter().map(told).collect();
        assert_eq!(all, ["/usr/lib/model.py:12 f", "<ipython-input-5-0ab1>:3 <cell line: 3>"]);
    }
}
