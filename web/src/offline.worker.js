// The page's service worker: all files of one build, kept until another build takes their place. `vite.config.ts` fills in
// what stands in braces.

const CACHE = "tilewise-{{version}}";
const FILES = "{{files}}";

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)));
});
addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("tilewise-") && name !== CACHE;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name)))).then(() => clients.claim()));
});
addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  const kept = () => caches.open(CACHE).then((cache) => cache.match(event.request, { ignoreSearch: true, ignoreVary: true }));
  // The page itself may be newer; its other files have their content in their names.
  if (event.request.mode === "navigate") event.respondWith(fetch(event.request).catch(async () => (await kept()) ?? Response.error()));
  else event.respondWith(kept().then((response) => response ?? fetch(event.request)));
});
