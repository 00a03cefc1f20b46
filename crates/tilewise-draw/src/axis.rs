//! The drawn rows and columns of a large array: its corners, the borders of its tiles, and the highlight.

use crate::text::{counted, grouped};

/// Rows or columns of a grid, some of them drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axis {
    /// The axis's label, such as `dimension 1 (x), size 5`.
    pub(crate) label: String,
    /// The number of tracks, padding included.
    pub(crate) extent: u64,
    /// Tracks from here on hold only padding.
    pub(crate) bound: u64,
    /// The noun for a track, such as `row`.
    pub(crate) noun: &'static str,
    /// The content of a track, such as ` of 16 elements`.
    pub(crate) each: String,
    /// Headers for the names of tracks and for their asides, if there are any.
    pub(crate) headers: Option<[&'static str; 2]>,
    /// The tracks that are drawn, in order.
    pub(crate) tracks: Vec<Track>,
}

/// A row or a column that is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    pub(crate) position: u64,
    /// The label at its start,
    pub(crate) name: String,
    /// and one more in front of that in pictures, which have more space than terminals.
    pub(crate) aside: String,
    /// Where space is short, tracks of the lowest ranks are kept.
    pub(crate) rank: usize,
}

/// A drawn track, or a gap in place of tracks that are not drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Track(usize),
    Gap { from: u64, hidden: u64 },
}

/// The rules by which drawn tracks are chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The number to draw, if there are more.
    pub(crate) most: usize,
    /// Tracks in each tile, and in each tile inside it.
    pub(crate) periods: Vec<u64>,
    /// Tracks that must be drawn.
    pub(crate) focus: Vec<u64>,
}

impl Axis {
    pub(crate) fn new(extent: u64, bound: u64, noun: &'static str, selection: &Selection) -> Self {
        let mut tracks = chosen(extent, bound, selection);
        tracks.sort_unstable();
        let tracks = tracks.into_iter().map(|(position, rank)| Track {
            position,
            name: position.to_string(),
            aside: String::new(),
            rank,
        });
        Self { extent, bound, noun, tracks: tracks.collect(), ..Self::default() }
    }

    pub(crate) fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the name of each track.
    pub(crate) fn with_names(mut self, name: impl Fn(u64) -> String) -> Self {
        for track in &mut self.tracks {
            track.name = name(track.position);
        }
        self
    }

    /// Sets the aside of each track, and the headers of names and asides.
    pub(crate) fn with_asides(mut self, headers: [&'static str; 2], aside: impl Fn(u64) -> String) -> Self {
        for track in &mut self.tracks {
            track.aside = aside(track.position);
        }
        self.headers = Some(headers);
        self
    }

    /// Tracks and gaps in the order in which they are drawn.
    pub(crate) fn items(&self) -> Vec<Item> {
        let mut items = Vec::with_capacity(self.tracks.len() + 4);
        let mut next = 0;
        for (at, track) in self.tracks.iter().enumerate() {
            if track.position > next {
                items.push(Item::Gap { from: next, hidden: track.position - next });
            }
            items.push(Item::Track(at));
            next = track.position + 1;
        }
        if next < self.extent {
            items.push(Item::Gap { from: next, hidden: self.extent - next });
        }
        items
    }

    /// `… 1,264 rows not drawn`
    pub(crate) fn gap_label(&self, from: u64, hidden: u64) -> String {
        let padding = (from + hidden).saturating_sub(self.bound.max(from));
        let tracks = format!("{}{}", counted(hidden, self.noun), self.each);
        match padding {
            0 => format!("… {tracks} not drawn"),
            _ if padding == hidden => format!("… {tracks} of padding not drawn"),
            _ => format!("… {tracks} not drawn, {} of them padding", grouped(padding)),
        }
    }

    /// `… 1,264 rows not drawn, 8–1271`
    pub(crate) fn gap_label_with_range(&self, from: u64, hidden: u64) -> String {
        if !self.each.is_empty() {
            return self.gap_label(from, hidden);
        }
        let words = self.gap_label(from, hidden);
        if hidden == 1 { format!("{words}, {from}") } else { format!("{words}, {from}–{}", from + (hidden - 1)) }
    }

    /// The tracks to keep if there is space for fewer, in order.
    pub(crate) fn narrowed(&self, most: usize) -> Vec<usize> {
        let mut kept: Vec<usize> = (0..self.tracks.len()).collect();
        kept.sort_by_key(|&at| self.tracks[at].rank);
        kept.truncate(most.max(1));
        kept.sort_unstable();
        kept
    }
}

/// Positions with their ranks, in order of rank.
fn chosen(extent: u64, bound: u64, selection: &Selection) -> Vec<(u64, usize)> {
    let most = selection.most as u64;
    // A third more tracks read better than a gap.
    let all = extent <= most + most / 3;
    let wanted = if all { usize::try_from(extent).unwrap_or(selection.most) } else { selection.most };
    let mut chosen: Vec<u64> = Vec::with_capacity(wanted + 4);
    let add = |chosen: &mut Vec<u64>, position: u64| {
        if position < extent && chosen.len() < wanted && !chosen.contains(&position) {
            chosen.push(position);
        }
    };
    for position in
        selection.focus.iter().copied().chain([0, bound.saturating_sub(1), 1, bound, extent.saturating_sub(1)])
    {
        add(&mut chosen, position);
    }
    for &period in selection.periods.iter().filter(|&&period| period > 1 && period < extent) {
        // The last border before the tracks that hold padding alone.
        let last = bound.saturating_sub(1) / period * period;
        for position in [period - 1, period, last.saturating_sub(1), last] {
            add(&mut chosen, position);
        }
    }
    add(&mut chosen, bound.saturating_sub(2));
    for &focus in &selection.focus {
        add(&mut chosen, focus.saturating_sub(1));
        add(&mut chosen, focus.saturating_add(1));
    }
    for position in 0..extent.min(wanted as u64) {
        add(&mut chosen, position);
    }
    // A gap of one track would take the space of the track.
    let mut sorted = chosen.clone();
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        if pair[1] - pair[0] == 2 {
            chosen.push(pair[0] + 1);
        }
    }
    chosen.into_iter().enumerate().map(|(rank, position)| (position, rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(extent: u64, bound: u64, periods: &[u64], focus: &[u64]) -> Vec<u64> {
        let selection = Selection { most: 12, periods: periods.to_vec(), focus: focus.to_vec() };
        Axis::new(extent, bound, "row", &selection).tracks.into_iter().map(|track| track.position).collect()
    }

    #[test]
    fn small_axes_are_drawn_whole() {
        assert_eq!(positions(16, 16, &[8], &[]), (0..16).collect::<Vec<_>>());
        assert_eq!(positions(0, 0, &[], &[]), []);
    }

    #[test]
    fn large_axes_show_ends_and_tile_borders() {
        assert_eq!(positions(256, 256, &[128], &[]), [0, 1, 2, 3, 4, 5, 6, 7, 127, 128, 254, 255]);
        assert_eq!(positions(1280, 1264, &[8], &[77]), [0, 1, 7, 8, 76, 77, 1255, 1256, 1262, 1263, 1264, 1279]);
    }

    #[test]
    fn gaps_say_how_much_they_hide() {
        let axis = Axis::new(128, 5, "column", &Selection { most: 8, ..Selection::default() });
        let gaps: Vec<String> = axis
            .items()
            .into_iter()
            .filter_map(|item| match item {
                Item::Gap { from, hidden } => Some(axis.gap_label(from, hidden)),
                Item::Track(_) => None,
            })
            .collect();
        assert_eq!(gaps, ["… 120 columns of padding not drawn"]);
        assert_eq!(axis.gap_label(3, 10), "… 10 columns not drawn, 8 of them padding");
    }

    #[test]
    fn no_extent_is_too_large() {
        let most = u64::MAX >> 1;
        assert!(positions(most, most, &[8, 2], &[most - 1]).len() <= 16);
    }
}
