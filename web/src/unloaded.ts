/// The JSON of the error that the core could not be loaded, for the page and its worker.
export const UNLOADED = JSON.stringify({ kind: "load", message: "The page could not load its core.", help: "Check the connection, then try again." });
