//! Shardings: the part of an array that each device holds, in XLA's notation.

mod resharding;
mod text;

use crate::{Error, ErrorKind};
use alloc::{format, vec, vec::Vec};

pub use resharding::{Resharding, ShardCopy};

/// The division of an array between devices: XLA's `HloSharding` of one array.
///
/// Read from XLA's text, with or without its braces: `{replicated}`, `{maximal device=3}`, `{devices=[2,2]<=[4]}`,
/// `{devices=[4,1]0,2,1,3}`, `{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}`. Along each dimension the array is cut into shards of
/// equal size, rounded up, as XLA does (`HloSharding::TileShape`, `TileOffsetForDevice`, `TileLimitForDevice`): where the size doesn't divide,
/// the last shards hold less, or nothing.
///
/// ```
/// use tilewise::Sharding;
///
/// let sharding: Sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}".parse()?;
/// assert_eq!(sharding.shard_dimensions(&[5, 4])?, [3, 4]);
/// assert_eq!(sharding.shard(2, &[5, 4])?, Some((vec![0, 0], vec![3, 4]))); // devices 0 and 2 hold the upper rows
/// assert_eq!(sharding.shard(1, &[5, 4])?, Some((vec![3, 0], vec![5, 4])));
/// assert_eq!(sharding.shard(4, &[5, 4])?, None);
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sharding(Division);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Division {
    /// Every device holds all of it.
    Replicated,
    /// One device holds all of it.
    Maximal(u64),
    Tiled {
        /// Shards along each dimension.
        tiles: Vec<u64>,
        /// Devices that hold the same shard.
        replicas: usize,
        /// The devices by shard, row-major, those of a shard side by side.
        devices: Vec<u64>,
        /// The place of each device in `devices`.
        places: Vec<u32>,
    },
}

/// A part of an array: its first index, and the limit behind its last, along each dimension.
type Part = (Vec<u64>, Vec<u64>);

/// Maximum number of devices, more than any machine has: a bound on the work that a text can cause.
const MOST_DEVICES: u64 = 1 << 20;

impl Sharding {
    /// Every device holds the whole array: `{replicated}`.
    #[must_use]
    pub const fn replicated() -> Self {
        Self(Division::Replicated)
    }

    /// One device holds the whole array: `{maximal device=N}`.
    #[must_use]
    pub const fn maximal(device: u64) -> Self {
        Self(Division::Maximal(device))
    }

    /// An array cut into `tiles` shards along each dimension, with the devices that hold them: by shard in row-major
    /// order, the same number for each shard.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSharding`] unless each of the devices 0 … N−1 is named once, and N is a multiple of the number of shards.
    pub fn tiled(tiles: impl Into<Vec<u64>>, devices: impl Into<Vec<u64>>) -> Result<Self, Error> {
        let (tiles, devices) = (tiles.into(), devices.into());
        let shards = shards(&tiles)?;
        let replicas = devices.len() / shards;
        if replicas == 0 || replicas * shards != devices.len() {
            let message = format!("{} devices can't hold {shards} shards evenly", devices.len());
            return Err(invalid(message));
        }
        let mut places = vec![u32::MAX; devices.len()];
        for (place, &device) in (0..).zip(&devices) {
            match usize::try_from(device).ok().and_then(|device| places.get_mut(device)) {
                Some(unset) if *unset == u32::MAX => *unset = place,
                Some(_) => return Err(invalid(format!("device {device} is named twice"))),
                None => return Err(invalid(format!("device {device} is none of 0 to {}", devices.len() - 1))),
            }
        }
        Ok(Self(Division::Tiled { tiles, replicas, devices, places }))
    }

    /// The number of devices; `None` if the sharding leaves it open, as for a replicated array, or one on a single
    /// device.
    #[must_use]
    pub fn devices(&self) -> Option<u64> {
        match &self.0 {
            Division::Tiled { devices, .. } => Some(devices.len() as u64),
            Division::Replicated | Division::Maximal(_) => None,
        }
    }

    /// The dimensions of every device's shard: the array's, divided and rounded up.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSharding`] if the array has another rank than the sharding.
    pub fn shard_dimensions(&self, bounds: &[u64]) -> Result<Vec<u64>, Error> {
        self.check(bounds)?;
        Ok(match &self.0 {
            Division::Tiled { tiles, .. } => {
                bounds.iter().zip(tiles).map(|(bound, tile)| bound.div_ceil(*tile)).collect()
            }
            Division::Replicated | Division::Maximal(_) => bounds.to_vec(),
        })
    }

    /// The part of an array that a device holds, its first index and its limit; `None` if it holds no part. A shard at
    /// the end may be smaller than [`shard_dimensions`](Self::shard_dimensions), or empty: then index and limit are
    /// equal in some dimension.
    ///
    /// # Errors
    /// As for [`shard_dimensions`](Self::shard_dimensions).
    pub fn shard(&self, device: u64, bounds: &[u64]) -> Result<Option<Part>, Error> {
        let size = self.shard_dimensions(bounds)?;
        let Some(shard) = self.shard_of(device) else { return Ok(None) };
        Ok(Some(self.bounds_of(shard, &size, bounds)))
    }

    fn check(&self, bounds: &[u64]) -> Result<(), Error> {
        match &self.0 {
            Division::Tiled { tiles, .. } if tiles.len() != bounds.len() => {
                let message =
                    format!("the sharding divides {} dimensions, the array has {}", tiles.len(), bounds.len());
                Err(invalid(message))
            }
            _ => Ok(()),
        }
    }

    /// The number of the shard that a device holds, row-major.
    fn shard_of(&self, device: u64) -> Option<usize> {
        match &self.0 {
            Division::Replicated => Some(0),
            Division::Maximal(one) => (*one == device).then_some(0),
            Division::Tiled { replicas, places, .. } => {
                let place = *places.get(usize::try_from(device).ok()?)?;
                Some(usize::try_from(place).ok()? / replicas)
            }
        }
    }

    /// Shards along each dimension; `rank` ones where the array is whole.
    fn tiles(&self, rank: usize) -> Vec<u64> {
        match &self.0 {
            Division::Tiled { tiles, .. } => tiles.clone(),
            Division::Replicated | Division::Maximal(_) => vec![1; rank],
        }
    }

    /// The part of the array that a shard is, from the shard's number.
    fn bounds_of(&self, shard: usize, size: &[u64], bounds: &[u64]) -> Part {
        let tiles = self.tiles(bounds.len());
        let (mut start, mut limit) = (vec![0; bounds.len()], bounds.to_vec());
        let mut rest = shard as u64;
        for dimension in (0..bounds.len()).rev() {
            let (tile, bound) = (rest % tiles[dimension], bounds[dimension]);
            rest /= tiles[dimension];
            start[dimension] = tile.saturating_mul(size[dimension]).min(bound);
            limit[dimension] = (tile + 1).saturating_mul(size[dimension]).min(bound);
        }
        (start, limit)
    }
}

/// The number of shards, checked.
fn shards(tiles: &[u64]) -> Result<usize, Error> {
    if tiles.contains(&0) {
        return Err(invalid("no dimension can be divided into 0 shards".into()));
    }
    let product = tiles.iter().try_fold(1_u64, |product, &tile| product.checked_mul(tile));
    match product.filter(|&product| product <= MOST_DEVICES).map(usize::try_from) {
        Some(Ok(product)) => Ok(product),
        _ => Err(invalid(format!("a sharding has at most {MOST_DEVICES} devices"))),
    }
}

fn invalid(message: alloc::string::String) -> Error {
    Error::new(ErrorKind::InvalidSharding, message)
}
