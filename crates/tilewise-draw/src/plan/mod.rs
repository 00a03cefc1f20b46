//! The picture of a program's memory: the bytes it holds over its order, and the address of each allocation.

mod blocks;
mod figure;
mod legend;
mod profile;
pub(crate) mod scale;
mod terminal;

#[cfg(feature = "png")]
use crate::Error;
use crate::{
    Options,
    figure::{MARGIN, WIDEST, class::Part},
    palette::TILES,
    svg,
    text::{bytes, grouped, shown},
};
use std::{cmp::Reverse, collections::HashMap};

/// The width of a picture without its margins.
const CONTENT: f64 = WIDEST - 2.0 * MARGIN;

/// A program's memory in one memory space, ready to be drawn as SVG, terminal text or PNG.
///
/// Above, memory over the program's order: resident memory, and on top of it the owners, usually lines of the source,
/// that hold the most at the peak. Below, each allocation as a rectangle: its time and its address. Padding is striped
/// in both. The picture of many allocations stays small, and always shows the peak. Of the options, those for arrays
/// have no effect.
///
/// ```
/// use tilewise_draw::{MemoryPicture, Options, Peak, Piece};
///
/// let (a, b) = (4 << 20, 8 << 20);
/// let piece = |owner, name, offset, bytes, first, last| {
///     Piece { owner, name, offset: Some(offset), bytes, padding_bytes: 0, first, last }
/// };
/// let picture = MemoryPicture {
///     title: "two temporaries".into(),
///     moments: 6,
///     resident_bytes: 1 << 20,
///     pieces: vec![piece(0, "fusion.1", 0, a, 1, 3), piece(1, "fusion.2", a, b, 3, 4)],
///     owners: vec!["model.py:7 f".into(), "model.py:8 f".into()],
///     limit: None,
///     held: None,
///     peak: Some(Peak { moment: 3, instruction: "fusion.2".into(), bytes: (1 << 20) + a + b }),
/// };
/// assert!(picture.to_svg(&Options::new()).starts_with("<svg "));
/// assert_eq!(picture.to_terminal(&Options::new().with_ascii(true), 60), "\
/// ..........--------------------@@@@@@@@@@**********..........
///                                   ^ 13.00 MiB at fusion.2
/// 1.00 MiB arguments and outputs, 12.00 MiB temporaries
/// ");
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryPicture<'a> {
    /// The title: the program's name, and the memory space.
    pub title: String,
    /// The length of the program's order: moments are 0 up to this, exclusive.
    pub moments: usize,
    /// Bytes that are live for the whole program: arguments and outputs.
    pub resident_bytes: u64,
    /// Allocations for a part of the run, in any order.
    pub pieces: Vec<Piece<'a>>,
    /// The label of each owner, as `model.py:439 f`.
    pub owners: Vec<String>,
    /// Bytes of memory available, drawn as a line.
    pub limit: Option<u64>,
    /// Bytes that the program takes, if known: they include fragmentation, and exceed the bytes in use at any moment.
    pub held: Option<u64>,
    /// The moment at which the program holds the most.
    pub peak: Option<Peak>,
}

/// Memory that is in use for a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Its owner's index in [`MemoryPicture::owners`].
    pub owner: usize,
    /// Written into its rectangle if it fits: the instruction that makes it, or nothing.
    pub name: &'a str,
    /// Bytes from the start of the heap; without them it isn't in the lower picture.
    pub offset: Option<u64>,
    /// Bytes it takes, padding included.
    pub bytes: u64,
    /// The number of those bytes that are padding.
    pub padding_bytes: u64,
    /// The first moment at which it is in use. Values that share memory, one taking over from another within a moment,
    /// are one piece: the pieces in use at a moment are added up.
    pub first: usize,
    /// The last moment at which it is in use.
    pub last: usize,
}

/// The moment at which a program holds the most, and its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The moment.
    pub moment: usize,
    /// The instruction that runs then.
    pub instruction: String,
    /// Bytes in use then, those that are live for the whole program included.
    pub bytes: u64,
}

impl MemoryPicture<'_> {
    /// The picture as an SVG document. Hovering a rectangle shows its allocation, with its time and address.
    #[must_use]
    pub fn to_svg(&self, options: &Options) -> String {
        svg::write(&figure::figure(self), options.theme)
    }

    /// The rise and fall of memory as a line of at most `width` columns, the peak below it, and its parts; each line
    /// ends in a line feed.
    #[must_use]
    pub fn to_terminal(&self, options: &Options, width: usize) -> String {
        terminal::write(self, options, width)
    }

    /// The picture as a PNG image, with `scale` pixels per unit of the SVG. Without an explicit theme it is light.
    ///
    /// # Errors
    /// A scale that isn't a positive number, or an image of more than 100 million pixels.
    #[cfg(feature = "png")]
    pub fn to_png(&self, options: &Options, scale: f32) -> Result<Vec<u8>, Error> {
        crate::png::write(&figure::figure(self), options.theme, scale)
    }

    /// The number of the program's moments; at least one, in which nothing happens.
    fn moments(&self) -> usize {
        self.moments.max(1)
    }

    /// The picture in a sentence.
    fn summary(&self) -> String {
        let consists = self.consists();
        let Some(peak) = &self.peak else { return format!("{consists}.") };
        let (most, at) = (bytes(u128::from(peak.bytes)), shown(&peak.instruction));
        let most = match self.fragmented() {
            // The first number is the program's memory in all other outputs.
            Some(held) => format!("{} at most, {most} of it in use", bytes(u128::from(held))),
            None => format!("{most} at most,"),
        };
        format!(
            "{most} at {at}, step {} of {}: {consists}.",
            grouped((peak.moment as u64).saturating_add(1)),
            grouped(self.moments() as u64)
        )
    }

    /// The parts of the memory at the peak.
    fn consists(&self) -> String {
        let resident = format!("{} arguments and outputs", bytes(u128::from(self.resident_bytes)));
        let Some(peak) = &self.peak else { return resident };
        let mut parts = if self.resident_bytes > 0 { vec![resident] } else { Vec::new() };
        let temporaries = bytes(u128::from(peak.bytes.saturating_sub(self.resident_bytes)));
        parts.push(match self.padding_at_peak() {
            0 => format!("{temporaries} temporaries"),
            padding => format!("{temporaries} temporaries ({} padding)", bytes(padding)),
        });
        if let (Some(held), Some(peak)) = (self.fragmented(), &self.peak) {
            parts.push(format!("{} fragmentation", bytes(u128::from(held.saturating_sub(peak.bytes)))));
        }
        parts.join(", ")
    }

    /// Bytes that the program takes, if fragmentation makes them exceed the bytes in use at the peak.
    fn fragmented(&self) -> Option<u64> {
        let most = self.peak.as_ref()?.bytes;
        self.held.filter(|held| *held > most)
    }

    fn padding_at_peak(&self) -> u128 {
        self.at_peak().map(|piece| u128::from(piece.padding_bytes.min(piece.bytes))).sum()
    }

    /// The moments of a piece, its end exclusive; at least one.
    fn span(&self, piece: &Piece<'_>) -> (usize, usize) {
        let first = piece.first.min(self.moments() - 1);
        (first, piece.last.saturating_add(1).clamp(first + 1, self.moments()))
    }

    /// The pieces in use at the peak.
    fn at_peak(&self) -> impl Iterator<Item = &Piece<'_>> {
        let moment = self.peak.as_ref().map(|peak| peak.moment);
        self.pieces.iter().filter(move |piece| {
            let (first, end) = self.span(piece);
            moment.is_some_and(|moment| (first..end).contains(&moment))
        })
    }

    /// An owner's label, or its end, which has a path's file and line.
    fn label(&self, owner: usize) -> String {
        const LONGEST: usize = 80;
        let label = self.owners.get(owner).map_or("unknown", String::as_str);
        match label.char_indices().rev().nth(LONGEST) {
            Some((before, c)) => shown(&format!("…{}", label.get(before + c.len_utf8()..).unwrap_or_default())),
            None => shown(label),
        }
    }
}

/// The owners of the drawn memory.
struct Owners {
    /// Those with their own colour, those that hold the most at the peak first.
    colored: Vec<Held>,
    /// All others together and their number, if there are any.
    others: Option<(Held, usize)>,
    /// The colour of each coloured owner.
    colors: HashMap<usize, usize>,
}

/// The bytes that an owner holds at the peak.
#[derive(Clone, Copy, Default)]
struct Held {
    owner: usize,
    bytes: u128,
    /// Bytes times moments in the whole run, which breaks ties.
    in_all: u128,
}

impl Owners {
    fn of(picture: &MemoryPicture<'_>) -> Self {
        let mut held: HashMap<usize, Held> = HashMap::new();
        for piece in &picture.pieces {
            let (first, end) = picture.span(piece);
            let held = held.entry(piece.owner).or_insert(Held { owner: piece.owner, ..Held::default() });
            held.in_all = held.in_all.saturating_add(u128::from(piece.bytes).saturating_mul((end - first) as u128));
        }
        for piece in picture.at_peak() {
            if let Some(held) = held.get_mut(&piece.owner) {
                held.bytes += u128::from(piece.bytes);
            }
        }
        let mut colored: Vec<Held> = held.into_values().collect();
        colored.sort_unstable_by_key(|held| (Reverse((held.bytes, held.in_all)), held.owner));
        let others = colored.split_off(colored.len().min(TILES));
        let count = others.len();
        let together = others.into_iter().reduce(|a, b| Held { bytes: a.bytes + b.bytes, ..a });
        let others = together.map(|held| (held, count));
        let colors = colored.iter().enumerate().map(|(color, held)| (held.owner, color)).collect();
        Self { colored, others, colors }
    }

    fn part(&self, owner: usize) -> Part {
        self.colors.get(&owner).map_or(Part::Other, |color| Part::Owner(*color))
    }
}
