//! Names of axes, in words.

use tilewise_audit::AxisName;

/// The name of an axis: ``batch of `tokens` ``, `vocabulary`, ``dimension 1 of `q` ``.
///
/// ```
/// use tilewise_audit::AxisName;
///
/// assert_eq!(tilewise_report::axis(&AxisName::Batch("tokens".into())), "batch of `tokens`");
/// assert_eq!(tilewise_report::axis(&AxisName::Dimension("q".into(), 1)), "dimension 1 of `q`");
/// ```
#[must_use]
pub fn axis(name: &AxisName) -> String {
    match name {
        AxisName::Batch(argument) => format!("batch of `{argument}`"),
        AxisName::Tokens(argument) => format!("tokens of `{argument}`"),
        AxisName::Dimension(argument, dimension) => format!("dimension {dimension} of `{argument}`"),
        AxisName::Vocabulary => "vocabulary".to_owned(),
        AxisName::Classes => "classes".to_owned(),
        AxisName::Experts => "experts".to_owned(),
        AxisName::Layers => "layers".to_owned(),
        AxisName::Steps => "steps".to_owned(),
        _ => String::new(),
    }
}
