//! The compiler's own figure for an instruction.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use tilewise_hlo::{Instruction, unquote};

/// The compiler's cost of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    /// Cycles of one execution, on one device.
    Cycles(u64),
    /// Unknown to the compiler: 2^63 - 1, or not a number.
    Unknown,
}

/// The price in an instruction's `backend_config`: `"window_config":{…"estimated_cycles":"N"…}`.
pub(crate) fn price(instruction: &Instruction<'_>) -> Option<Price> {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("estimated_cycles"));
    // Attributes are long: a search for the word first keeps the rest cheap.
    FINDER.find(instruction.attributes_text().as_bytes())?;
    // Older compilers quote the whole config and escape the quotes in it.
    let config = unquote(instruction.attribute("backend_config")?);
    let (_, window) = config.split_once("\"window_config\"")?;
    let (_, figure) = window.split_once("\"estimated_cycles\"")?;
    let figure = figure.trim_start_matches([' ', ':', '"']);
    let digits = figure.bytes().take_while(u8::is_ascii_digit).count();
    Some(match figure[..digits].parse::<u64>() {
        Ok(cycles) if cycles < i64::MAX.unsigned_abs() => Price::Cycles(cycles),
        _ => Price::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::{Price, price};
    use tilewise_hlo::Module;

    fn priced(attributes: &str) -> Option<Price> {
        let module = Module::parse(format!("f = f32[8] fusion(x), kind=kLoop, {attributes}")).unwrap();
        price(&module.instructions().next().unwrap())
    }

    #[test]
    fn only_the_windows_figure_counts() {
        let config = |figure: &str| format!(r#"backend_config={{"window_config":{{"estimated_cycles":"{figure}"}}}}"#);
        assert_eq!(priced(&config("1886")), Some(Price::Cycles(1886)));
        assert_eq!(priced(&config("9223372036854775807")), Some(Price::Unknown));
        assert_eq!(priced(&config("99999999999999999999")), Some(Price::Unknown));
        assert_eq!(priced(&config("-1")), Some(Price::Unknown));
        assert_eq!(priced(r#"backend_config={"estimated_cycles":"7"}"#), None);
        assert_eq!(priced(r#"metadata={op_name="\"window_config\":{\"estimated_cycles\":\"7\"}"}"#), None);
        assert_eq!(
            priced(r#"backend_config="{\"window_config\":{\"estimated_cycles\":\"7\"}}""#),
            Some(Price::Cycles(7))
        );
    }
}
