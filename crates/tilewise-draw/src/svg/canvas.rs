//! SVG elements as text.

use std::fmt::{self, Write as _};

/// A document under construction.
#[derive(Default)]
pub(crate) struct Canvas {
    pub(crate) out: String,
}

impl Canvas {
    /// Text whose baseline starts (or by its class has its middle or end) at a point.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.write(format_args!("<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>\n", N(x), N(y), Escaped(text)));
    }

    /// Text of another size than its class has.
    pub(crate) fn sized_text(&mut self, class: &str, x: f64, y: f64, size: f64, text: &str) {
        let (x, y, size, text) = (N(x), N(y), N(size), Escaped(text));
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" style=\"font-size:{size}px\">{text}</text>\n"
        ));
    }

    /// Text that runs upwards, its middle at a point.
    pub(crate) fn upward_text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y, text) = (N(x), N(y), Escaped(text));
        self.write(format_args!(
            "<text class=\"{class} tw-middle\" x=\"{x}\" y=\"{y}\" transform=\"rotate(-90 {x} {y})\">{text}</text>\n"
        ));
    }

    pub(crate) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, rest: &str) {
        let (x, y, width, height) = (N(x), N(y), N(width), N(height));
        self.write(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{rest}/>\n"
        ));
    }

    pub(crate) fn path(&mut self, class: &str, data: &str) {
        if !data.is_empty() {
            self.write(format_args!("<path class=\"{class}\" d=\"{data}\"/>\n"));
        }
    }

    pub(crate) fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = self.out.write_fmt(text);
    }
}

/// A coordinate with as few decimals as it needs.
pub(crate) struct N(pub(crate) f64);

impl fmt::Display for N {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 10.0).round() / 10.0)
    }
}

/// Text in which nothing is markup.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
