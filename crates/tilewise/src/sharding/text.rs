//! XLA's text of a sharding, as its parser takes it (`HloParserImpl::ParseSingleSharding`) and prints it (`HloSharding::ToString`).

use super::{Division, Sharding, invalid, shards};
use crate::Error;
use alloc::{format, vec::Vec};
use core::{fmt, ops::Range, str::FromStr};

impl FromStr for Sharding {
    type Err = Error;

    /// # Errors
    /// [`InvalidSharding`](crate::ErrorKind::InvalidSharding) with the span of the error; `manual`, `unknown` and
    /// tuples of shardings are refused, since they don't place an array.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut reader = Reader { text, at: 0 };
        let braced = reader.eat("{");
        let sharding = reader.sharding()?;
        if braced && !reader.eat("}") {
            return Err(reader.expected("`}`"));
        }
        if !reader.rest().trim_start().is_empty() {
            return Err(reader.expected("the end of the sharding"));
        }
        Ok(sharding)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, wanted: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn next(&self) -> Range<usize> {
        let rest = self.rest().trim_start();
        let start = self.text.len() - rest.len();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let end = if end == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { end };
        start..start + end
    }

    fn expected(&self, what: &str) -> Error {
        let next = self.next();
        let found = if next.is_empty() { "the end" } else { &self.text[next.clone()] };
        invalid(format!("{what} is expected, not `{found}`")).at(next)
    }

    fn number(&mut self) -> Result<u64, Error> {
        self.skip();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest()[..digits].parse().map_err(|_| self.expected("a number"))?;
        self.at += digits;
        Ok(number)
    }

    /// Numbers between commas, up to `close`.
    fn numbers(&mut self, close: Option<&str>) -> Result<Vec<u64>, Error> {
        let mut numbers = Vec::new();
        if close.is_some_and(|close| self.eat(close)) {
            return Ok(numbers);
        }
        loop {
            numbers.push(self.number()?);
            if self.eat(",") {
                continue;
            }
            return match close {
                Some(close) if !self.eat(close) => Err(self.expected(&format!("`{close}`"))),
                _ => Ok(numbers),
            };
        }
    }

    fn sharding(&mut self) -> Result<Sharding, Error> {
        self.skip();
        let start = self.at;
        if self.eat("replicated") {
            return Ok(Sharding::replicated());
        }
        if self.eat("maximal") {
            return if self.eat("device=") {
                Ok(Sharding::maximal(self.number()?))
            } else {
                Err(self.expected("`device=`"))
            };
        }
        if !self.eat("devices=[") {
            let next = self.next();
            return Err(match &self.text[next.clone()] {
                word @ ("manual" | "unknown" | "unreduced") => {
                    invalid(format!("`{word}` doesn't say which device holds what")).at(next)
                }
                "{" => invalid("a tuple of shardings is several arrays'".into())
                    .at(next)
                    .with_help("give each array its own"),
                _ => self.expected("`replicated`, `maximal device=N` or `devices=[…]`"),
            });
        }
        let mut tiles = self.numbers(Some("]"))?;
        let count = shards(&tiles).map_err(|error| error.at(start..self.at))?;
        let devices = if self.eat("<=[") { self.iota(count)? } else { self.numbers(None)? };
        if devices.len() != count {
            let message = format!("{count} devices are needed, not {}", devices.len());
            return Err(invalid(message).at(start..self.at));
        }
        if self.eat("last_tile_dim_replicate") {
            if tiles.pop().is_none() {
                return Err(invalid("there is no last dimension to replicate over".into()).at(start..self.at));
            }
        } else if self.eat("last_tile_dims={") {
            while !self.eat("}") {
                if !self.eat("replicated") {
                    return Err(self.expected("`replicated`, the only part of a mesh whose devices hold the same,"));
                }
                if tiles.pop().is_none() {
                    return Err(invalid("there are more last dimensions than dimensions".into()).at(start..self.at));
                }
                self.eat(",");
            }
        }
        Sharding::tiled(tiles, devices).map_err(|error| error.at(start..self.at))
    }

    /// `[4,2]T(1,0)` after `<=`: 0, 1, … in row-major order over these dimensions, transposed.
    fn iota(&mut self, count: usize) -> Result<Vec<u64>, Error> {
        let start = self.at;
        let dimensions = self.numbers(Some("]"))?;
        let order = if self.eat("T(") { self.numbers(Some(")"))? } else { (0..dimensions.len() as u64).collect() };
        let at = |error: Error, at: usize| error.at(start..at);
        if shards(&dimensions).map_err(|error| at(error, self.at))? != count {
            return Err(at(invalid(format!("{count} devices are needed, in one order")), self.at));
        }
        let mut seen = dimensions.iter().map(|_| false).collect::<Vec<_>>();
        let mut axes = Vec::with_capacity(order.len());
        for &axis in &order {
            match usize::try_from(axis).ok().filter(|&axis| seen.get(axis) == Some(&false)) {
                Some(axis) => seen[axis] = true,
                None => return Err(at(invalid(format!("`T` names axis {axis} twice, or it is none")), self.at)),
            }
            axes.push(usize::try_from(axis).unwrap_or_default());
        }
        if axes.len() != dimensions.len() {
            return Err(at(invalid("`T` has to name every axis".into()), self.at));
        }
        let stride = |axis: usize| dimensions[axis + 1..].iter().product::<u64>();
        let mut devices = Vec::with_capacity(count);
        devices.push(0);
        for axis in axes {
            let steps = || (0..dimensions[axis]).map(|step| step * stride(axis));
            devices = devices.iter().flat_map(|device| steps().map(move |step| device + step)).collect();
        }
        Ok(devices)
    }
}

impl fmt::Display for Sharding {
    /// XLA's text, its devices always as a list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Division::Replicated => f.write_str("{replicated}"),
            Division::Maximal(device) => write!(f, "{{maximal device={device}}}"),
            Division::Tiled { tiles, replicas, devices, .. } => {
                f.write_str("{devices=[")?;
                let mut sizes = tiles.clone();
                sizes.extend((*replicas > 1).then_some(*replicas as u64));
                crate::text::join(f, &sizes)?;
                f.write_str("]")?;
                crate::text::join(f, devices)?;
                f.write_str(if *replicas > 1 { " last_tile_dim_replicate}" } else { "}" })
            }
        }
    }
}
