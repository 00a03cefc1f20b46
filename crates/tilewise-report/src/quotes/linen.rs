//! Checkpoints on the calls of Flax's classes of layers.
//!
//! `nn.remat(Block)` is another class, after which Flax names the parameters of its layers: those that were saved don't fit
//! it, and random ones differ. A decorator of the class's own method leaves names and values as they are.

use super::{LineEdit, Quotes, arguments_of, closing};

/// The method of a class with `nn.remat` above it, if its definition is in one place of the source and the call hands flags
/// over by position. `call` is the line that calls the layer.
pub(super) fn decorated(quotes: &Quotes, class: &str, call: &str) -> Option<LineEdit> {
    let edits = quotes.0.iter().filter_map(|(file, text)| Some((file, of_text(text, class, call)?)));
    let mut edits = edits.map(|(file, (line, before, after))| LineEdit { file: file.clone(), line, before, after });
    edits.next().filter(|_| edits.next().is_none())
}

fn of_text(text: &str, class: &str, call: &str) -> Option<(u32, String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines.iter().position(|line| {
        line.trim_start()
            .strip_prefix("class ")
            .and_then(|it| it.strip_prefix(class))
            .is_some_and(|it| it.starts_with('('))
    })?;
    let depth = |line: &str| line.len() - line.trim_start().len();
    let is_inside = |line: &&&str| line.trim().is_empty() || depth(line) > depth(lines[begin]);
    let body = lines[begin + 1..].iter().take_while(is_inside);
    let method = begin + 1 + body.into_iter().position(|line| line.trim_start().starts_with("def __call__("))?;
    let is_decorator = |at: &usize| lines[*at].trim_start().starts_with('@');
    let first = (begin + 1..method).rev().take_while(is_decorator).last().unwrap_or(method);
    if lines[first..method].iter().any(|line| ["remat", "checkpoint"].iter().any(|name| line.contains(name))) {
        return None;
    }
    let signature = lines[method..].join(" ");
    let given = signature.split_once("__call__(")?.1;
    let flags = flags(&given[..closing(given)?], call)?;
    let module = lines[begin].split_once('(')?.1.split_once(".Module").map_or("nn", |(module, _)| module);
    let decorator = match &flags[..] {
        [] => format!("@{module}.remat"),
        flags => format!("@functools.partial({module}.remat, static_argnums=({},))", flags.join(", ")),
    };
    let before = lines[first].trim().to_owned();
    let after = format!("{decorator}\n{before}");
    Some((u32::try_from(first + 1).ok()?, before, after))
}

/// The positions of parameters that are flags, from `self` on; `None` where a call hands one over by name, which a checkpoint
/// would trace.
fn flags(parameters: &str, call: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut is_named = false;
    for (at, parameter) in arguments_of(parameters).into_iter().enumerate() {
        let name = parameter.split([':', '=']).next().unwrap_or_default().trim();
        is_named |= name.starts_with('*');
        let is_flag = parameter.contains(": bool") || ["True", "False"].iter().any(|value| parameter.ends_with(value));
        if is_flag && (is_named || call.contains(&format!("{name}="))) {
            return None;
        }
        found.extend(is_flag.then(|| at.to_string()));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::of_text;

    const BLOCK: &str = "class Other(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n        return x\n\n\
                         class Block(nn.Module):\n    width: int\n\n    @nn.compact\n    def __call__(self, x, mask):\n        return x\n";

    #[test]
    fn a_decorator_keeps_names() {
        let of = |text: &str, call: &str| of_text(text, "Block", call);
        let edit = |line, before: &str, after: &str| Some((line, before.to_owned(), after.to_owned()));
        assert_eq!(of(BLOCK, "x = Block(8)(x, mask)"), edit(9, "@nn.compact", "@nn.remat\n@nn.compact"));
        let plain = BLOCK
            .replace("    @nn.compact\n    def __call__(self, x, mask)", "    def __call__(self, x)")
            .replace("nn.", "linen.");
        assert_eq!(of(&plain, ""), edit(9, "def __call__(self, x):", "@linen.remat\ndef __call__(self, x):"));
        let flag = BLOCK.replace("mask)", "\n                 train: bool = True)");
        let partial = "@functools.partial(nn.remat, static_argnums=(2,))\n@nn.compact";
        assert_eq!(of(&flag, "x = Block(8)(x, train)"), edit(9, "@nn.compact", partial));
        assert_eq!(of(&flag, "x = Block(8)(x, train=train)"), None);
        assert_eq!(of(&flag.replace("x, ", "x, *, "), "x = Block(8)(x)"), None);
        assert_eq!(of(&BLOCK.replace("@nn.compact", "@nn.remat"), ""), None);
        assert_eq!(of("class Blocks(nn.Module):\n    def __call__(self):\n", ""), None);
        assert_eq!(of("class Block(", ""), None);
    }
}
