//! Reading and writing of compared fields.

use serde::{Deserialize, Deserializer, de};
use std::{collections::BTreeMap, fmt, marker::PhantomData};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

pub(super) fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(super) fn is_so(flag: &bool) -> bool {
    *flag
}

/// Reads a map. A key that is given twice, as merged files have it, is an error, and an error in a value names its key.
pub(crate) fn each_once<'de, D, V, M>(deserializer: D) -> Result<M, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
    M: FromIterator<(String, V)>,
{
    struct Visitor<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> de::Visitor<'de> for Visitor<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut read = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                let value = map.next_value();
                let value = value.map_err(|error| de::Error::custom(format!("in `{key}`, {error}")))?;
                if read.contains_key(&key) {
                    return Err(de::Error::custom(format!("`{key}` is given twice")));
                }
                read.insert(key, value);
            }
            Ok(read)
        }
    }

    Ok(deserializer.deserialize_map(Visitor(PhantomData))?.into_iter().collect())
}
