// Inputs too large for an address, and their tabs: kept by this browser, so that Back and Reload find them again.

/// The newest of them.
const MOST = 12;

function store(): Promise<IDBDatabase> {
  return new Promise((done, failed) => {
    const request = indexedDB.open("tilewise", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("inputs");
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });
}

/// A name that sorts behind all before.
export const nextName = (): string => `${Date.now()}-${`${count++}`.padStart(4, "0")}`;
let count = 0;

/// Keeps it under a [name](nextName); what is older goes.
export async function keep(id: string, kept: unknown): Promise<void> {
  const database = await store();
  const inputs = database.transaction("inputs", "readwrite").objectStore("inputs");
  await new Promise<void>((done, failed) => {
    inputs.transaction.oncomplete = () => done();
    inputs.transaction.onabort = () => failed(inputs.transaction.error);
    inputs.put(kept, id);
    const keys = inputs.getAllKeys();
    keys.onsuccess = () => keys.result.sort().slice(0, -MOST).forEach((key) => inputs.delete(key));
  }).finally(() => database.close());
}

/// The kept value; nothing where it no longer is, or another browser has it.
export async function kept<T>(id: string): Promise<T | undefined> {
  const database = await store();
  return new Promise<T | undefined>((done, failed) => {
    const request = database.transaction("inputs").objectStore("inputs").get(id);
    request.onsuccess = () => done(request.result as T | undefined);
    request.onerror = () => failed(request.error);
  }).finally(() => database.close());
}
