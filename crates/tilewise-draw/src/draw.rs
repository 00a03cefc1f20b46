//! From a layout to a scene, and from a scene to a picture.

use crate::{Error, Options, Scene, View, figure::Figure, svg, terminal, views};
use tilewise::Tiled;

impl Scene {
    /// Draws a layout.
    ///
    /// # Errors
    /// A highlighted or sliced index outside the array; two slices of one dimension; a comparison of two different
    /// arrays.
    pub fn of(tiled: &Tiled, options: &Options) -> Result<Self, Error> {
        match &options.view {
            View::Compare(other) => views::compare::scene(tiled, other, options),
            View::Logical => views::scene(tiled, options, &[views::Part::Array]),
            View::Memory => views::scene(tiled, options, &[views::Part::Memory]),
            View::Both => views::scene(tiled, options, &[views::Part::Array, views::Part::Memory]),
            View::Word => views::scene(tiled, options, &[views::Part::WordsOfArray, views::Part::Words]),
        }
    }

    /// Draws the derivation of a layout as a strip of pictures: the array, then each pad, reshape and transpose.
    ///
    /// Every picture shows the index of the array's element in each place, in the colour of its tile. The
    /// options' view has no effect.
    ///
    /// ```
    /// use tilewise_draw::{Options, Scene};
    ///
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let strip = Scene::steps(&tiled, &Options::new()).expect("no index was given");
    /// assert!(strip.to_terminal(80).contains("2. reshape [4,6] → [2,2,3,2]"));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Scene::of`].
    pub fn steps(tiled: &Tiled, options: &Options) -> Result<Self, Error> {
        views::steps::scene(tiled, options)
    }

    /// The picture as an SVG document. Cells carry `data-index`, `data-offset` and `data-padding` attributes.
    #[must_use]
    pub fn to_svg(&self) -> String {
        svg::write(&Figure::of(self), self.options.theme)
    }

    /// The picture as text of at most `width` columns, or as wide as the widest cell; ends in a line feed.
    #[must_use]
    pub fn to_terminal(&self, width: usize) -> String {
        terminal::write(self, width)
    }

    /// The picture as a PNG image, with `scale` pixels per unit of the SVG. Without an explicit theme it is light.
    ///
    /// # Errors
    /// A scale that is no positive number, or an image of more than 100 million pixels.
    ///
    /// ```
    /// use tilewise_draw::{Options, Scene, Theme};
    ///
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let scene = Scene::of(&tiled, &Options::new().with_theme(Theme::Dark)).expect("no index was given");
    /// assert!(scene.to_png(2.0).expect("a small picture").starts_with(b"\x89PNG"));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[cfg(feature = "png")]
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, Error> {
        crate::png::write(&Figure::of(self), self.options.theme, scale)
    }
}
