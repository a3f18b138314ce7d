import { Misuse } from "./error.js";
import type { Query } from "./call.js";

/** The most that one page holds. */
const maxPage = 200;

/**
 * Goes through a list by time, not by offset: the next page begins at the last moment that was seen, and
 * drops what was given of that moment. Records that change or arrive meanwhile neither repeat nor hide
 * others.
 *
 * @internal
 */
export async function* all<A extends { id: string; created_at: string }>(filter: Query, fetch: (query: Query) => Promise<{ items: A[] }>): AsyncGenerator<A, void, undefined> {
  const query: Query = { ...filter, limit: maxPage };
  const bound = query["order"] === "asc" ? "from_date" : "to_date";
  const given = new Set<string>(); // ids at the last moment
  let last = "";
  let offset = 0;
  for (;;) {
    const { items } = await fetch({ ...query, offset: offset || undefined });
    const start = last;
    let fresh = 0;
    for (const item of items) {
      if (item.created_at === last && given.has(item.id)) continue;
      if (item.created_at !== last) {
        last = item.created_at;
        given.clear();
      }
      given.add(item.id);
      fresh++;
      yield item;
    }
    if (items.length < maxPage) return;
    if (last !== start) {
      offset = 0;
      query[bound] = last;
    } else if (fresh > 0 || offset === 0) offset += items.length; // more than a page at one moment
    else throw new Misuse("no_progress");
  }
}
