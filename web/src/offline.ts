// All that the page may need is fetched once it is at rest; from then on it needs no network.

export function keepOffline(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator) || location.protocol === "file:") return;
  const idle = (run: () => void) => ("requestIdleCallback" in window ? requestIdleCallback(run, { timeout: 5000 }) : setTimeout(run, 1000));
  const register = () => idle(() => void navigator.serviceWorker.register("./offline.js").catch(() => {}));
  if (document.readyState === "complete") register();
  else addEventListener("load", register);
}
