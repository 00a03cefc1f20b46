//! The library as C sees it: what it exports, and C programs under sanitizers.

mod c;
mod exports;
