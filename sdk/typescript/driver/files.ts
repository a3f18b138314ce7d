import { fileStore, type FileTx } from "../src/node/index.js";
import { main } from "./driver.js";

// The driver with the file store.
await main<FileTx>(async (folder) => {
  const store = await fileStore(folder);
  return {
    store,
    update: (fn) => store.update(fn),
    act: (tx, order, what) => tx.set(order, (tx.get(order) + "\t" + what).trim()),
    acted: async () => Object.fromEntries(Object.entries(await store.all()).map(([order, what]) => [order, what.split("\t")])),
  };
});
