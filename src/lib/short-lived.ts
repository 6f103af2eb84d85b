/**
 * Collections for items that come and go with every request. JavaScriptCore's own Map and Set leave their former
 * table behind each time they grow, and it points to the new one. If a table has survived one young collection,
 * everything after it stays reachable: every item that was ever in the collection stays until the next full
 * collection, is marked again and again, and adds milliseconds to each request that waits meanwhile. Here nothing
 * points to more than a few hundred later items.
 */

/** An item knows its place, so neither adding nor removing it needs a search. */
export interface Placed {
  /** Kept by the set that it is in. */
  place: number
}

export class ShortLivedSet<Item extends Placed> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  has(item: Item): boolean {
    return this.#items[item.place] === item
  }

  add(item: Item): void {
    if (this.has(item)) return
    item.place = this.#items.length
    this.#items.push(item)
  }

  delete(item: Item): void {
    if (!this.has(item)) return
    const last = this.#items.pop()
    if (last === undefined || last === item) return
    this.#items[item.place] = last
    last.place = item.place
  }

  /** Visits each item of the set, in no order; items may be removed and added meanwhile. */
  *[Symbol.iterator](): Generator<Item> {
    // From the end, so an item that moves into a freed place has been visited already.
    for (let place = this.#items.length - 1; place >= 0; place--) {
      const item = this.#items[place]
      if (item !== undefined) yield item
    }
  }
}

/** A map is replaced after so many additions, or as many as it holds. */
const additionsOfMap = 256

/**
 * Items by a unique name, such as an id: a Map that a copy of it replaces now and then, so that the tables which it
 * leaves behind reach few items. A plain object would make an atom of each name, which costs six times as much.
 */
export class ShortLivedMap<Value> {
  #values = new Map<string, Value>()
  #additions = 0

  get size(): number {
    return this.#values.size
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  get(name: string): Value | undefined {
    return this.#values.get(name)
  }

  set(name: string, value: Value): void {
    if (++this.#additions > Math.max(additionsOfMap, this.#values.size)) {
      this.#values = new Map(this.#values)
      this.#additions = 1
    }
    this.#values.set(name, value)
  }

  delete(name: string): void {
    this.#values.delete(name)
  }
}
