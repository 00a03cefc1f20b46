//! Profiles, and the programs in them.

use crate::error::{Error, ErrorKind};
use crate::gzip::decompressed;

/// The programs of a profile: an `XSpace` as XProf and `jax.profiler.trace` write it (`….xplane.pb`), which has each program
/// that ran with the compiler's plan of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The programs, by name.
    pub programs: Vec<ProfiledProgram>,
}

/// A program of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledProgram {
    pub(crate) name: String,
    /// An `HloProto`.
    pub(crate) proto: Vec<u8>,
}

impl Profile {
    /// Reads a profile, gzip or not, and decompresses at most `limit` bytes. `None` if the bytes are no profile, as
    /// always without the feature `proto`.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated) if it is damaged or cut off, [`NotHlo`](ErrorKind::NotHlo) if it has no program,
    /// and those of [`decompressed`].
    ///
    /// ```
    /// assert_eq!(tilewise_hlo::Profile::decode(b"HloModule m".to_vec(), 100)?, None);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn decode(bytes: Vec<u8>, limit: u64) -> Result<Option<Self>, Error> {
        let bytes = decompressed(bytes, limit)?;
        if is_profile(&bytes) { Self::of(bytes).map(Some) } else { Ok(None) }
    }

    /// Reads bytes that begin as a profile.
    pub(crate) fn of(bytes: Vec<u8>) -> Result<Self, Error> {
        let mut programs = programs(bytes)?;
        if programs.is_empty() {
            let message = "the profile holds no program: nothing that XLA compiled ran while it was recorded";
            return Err(Error::new(ErrorKind::NotHlo, None, message));
        }
        programs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { programs })
    }

    /// The names of its programs, for a message: the first ten.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.programs.iter().take(10).map(ProfiledProgram::name).collect();
        let more = if self.programs.len() > names.len() { ", …" } else { "" };
        format!("{}{more}", names.join(", "))
    }
}

impl ProfiledProgram {
    /// Its module's name, and the number that the profile gives it: `jit_step(6)`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a name is its own, or its module's.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.name.rsplit_once('(').is_some_and(|(module, _)| module == name)
    }

    /// The size of its proto in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.proto.len()
    }
}

/// Whether bytes begin as a [`Profile`] does; never without the feature `proto`.
#[must_use]
pub fn is_profile(head: &[u8]) -> bool {
    #[cfg(feature = "proto")]
    let begins = crate::proto::begins_as_profile(head);
    #[cfg(not(feature = "proto"))]
    let begins = {
        let _ = head;
        false
    };
    begins
}

#[cfg(feature = "proto")]
fn programs(bytes: Vec<u8>) -> Result<Vec<ProfiledProgram>, Error> {
    let programs = crate::proto::programs(bytes.into())?;
    Ok(programs.into_iter().map(|(name, proto)| ProfiledProgram { name, proto }).collect())
}

#[cfg(not(feature = "proto"))]
fn programs(_: Vec<u8>) -> Result<Vec<ProfiledProgram>, Error> {
    Ok(Vec::new())
}
