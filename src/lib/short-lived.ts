/**
 * Collections for items that come and go with every request. JavaScriptCore's own Map and Set leave their former
 * table behind each time they grow, and it points to the new one. If a table has survived one young collection,
 * everything after it stays reachable: every item that was ever in the collection stays until the next full
 * collection, is marked again and again, and adds milliseconds to each request that waits meanwhile. Nothing here
 * points to later items.
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

/** Items by a unique name, such as an id. */
export class ShortLivedMap<Value> {
  // An object without a prototype, which allows any name.
  readonly #values: Record<string, Value> = Object.create(null)
  #size = 0

  get size(): number {
    return this.#size
  }

  has(name: string): boolean {
    return name in this.#values
  }

  get(name: string): Value | undefined {
    return this.#values[name]
  }

  set(name: string, value: Value): void {
    if (!(name in this.#values)) this.#size += 1
    this.#values[name] = value
  }

  delete(name: string): void {
    if (!(name in this.#values)) return
    this.#size -= 1
    delete this.#values[name]
  }
}
