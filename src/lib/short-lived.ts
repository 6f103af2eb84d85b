/**
 * Collections for what comes and goes with every request. JavaScriptCore's own Map and Set leave their former table
 * behind each time they make a new one, pointing to it. Where a table has outlived one collection of the young, all that
 * came after hangs on it: whatever was ever in the collection stays until the next collection of everything, is marked
 * again and again, and takes milliseconds from each request that waits meanwhile. Nothing here points to what follows.
 */

/** An item knows where it stands, so that neither adding nor taking it out looks for it. */
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

  /** Each item that is in the set, in no order; meanwhile any may be taken out, and others added. */
  *[Symbol.iterator](): Generator<Item> {
    // From the end, so that what takes a place that was freed has been met.
    for (let place = this.#items.length - 1; place >= 0; place--) {
      const item = this.#items[place]
      if (item !== undefined) yield item
    }
  }
}

/** By a name of its own for each, such as an id. */
export class ShortLivedMap<Value> {
  // An object without a prototype, in which any name may stand.
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
