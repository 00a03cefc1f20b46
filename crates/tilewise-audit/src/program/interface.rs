//! The interface of a truncated program, from its header.

use std::fmt;
use tilewise::{ByteSize, Shape};
use tilewise_hlo::Module;

/// Sizes of a module's arguments and results, from its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    argument_bytes: u64,
    output_bytes: u64,
    /// Bytes of results that lie in donated arguments.
    alias_bytes: u64,
}

impl Interface {
    /// Reads a header that nothing follows.
    pub(crate) fn of_header(header: &str) -> Option<Self> {
        const BODY: &str = "\n\nENTRY cut {\n  ROOT cut = () tuple()\n}\n";
        Self::of(&Module::parse([header, BODY].concat()).ok()?)
    }

    /// Reads a module's header; `None` if it has no `entry_computation_layout`, or one without layouts.
    pub(crate) fn of(module: &Module) -> Option<Self> {
        let (arguments, result) = split(module.entry_computation_layout()?)?;
        let [arguments, result] = [arguments, result].map(|text| text.parse::<Shape>().ok());
        let (arguments, result) = (arguments?, result?);
        let all = |shape: &Shape| shape.leaves().try_fold(0_u64, |all, (_, leaf)| all.checked_add(bytes(&leaf)?));
        let aliases = module.input_output_aliases().ok()?;
        let is_donated = |path: &[usize]| aliases.iter().any(|alias| path.starts_with(&alias.output_index));
        let donated = result.leaves().filter(|(path, _)| is_donated(path));
        Some(Self {
            argument_bytes: all(&arguments)?,
            output_bytes: all(&result)?,
            alias_bytes: donated.filter_map(|(_, leaf)| bytes(&leaf)).fold(0, u64::saturating_add),
        })
    }
}

/// Splits `{(f32[8]{0}, f32[4]{0})->f32[8]{0}}` at the arrow outside all brackets.
fn split(layout: &str) -> Option<(&str, &str)> {
    let inside = layout.trim();
    let inside = inside.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(inside);
    let mut depth = 0_usize;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.checked_sub(1)?,
            b'-' if depth == 0 => return Some((inside[..at].trim(), inside[at..].strip_prefix("->")?.trim())),
            _ => {}
        }
    }
    None
}

/// Bytes of an array; 0 for shapes without a buffer, such as tokens.
pub(crate) fn bytes(leaf: &Shape) -> Option<u64> {
    leaf.as_array().map_or(Some(0), |array| Some(array.sizes().ok()?.physical_bytes))
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [arguments, results, donated] = [self.argument_bytes, self.output_bytes, self.alias_bytes].map(ByteSize);
        write!(f, "by its header, arguments take {arguments} and results {results}")?;
        if self.alias_bytes > 0 {
            write!(f, ", of which {donated} lie in donated arguments")?;
        }
        f.write_str("; its temporaries are in what is missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_of_the_interface() {
        let header = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, \
                      entry_computation_layout={(f32[4096,1000]{1,0:T(8,128)}, token[])->(f32[4096,1000]{1,0:T(8,128)}, f32[]{:T(128)})}";
        let found = Interface::of_header(header).expect("a layout");
        // 1000 columns are padded to 1024; a scalar takes a tile of 128.
        let wanted = Interface { argument_bytes: 16 << 20, output_bytes: (16 << 20) + 512, alias_bytes: 16 << 20 };
        assert_eq!(found, wanted);
        for other in ["HloModule m", "HloModule m, entry_computation_layout={(f32[2]->f32[2]}", ""] {
            assert_eq!(Interface::of_header(other), None, "{other}");
        }
    }
}
