/** Random choices from a seed, so that two runs of the demonstration make the same records and the same requests. */
export interface Chance {
  /** From 0 up to and without 1. */
  next(): number
  between(least: number, most: number): number
  one<Item>(items: readonly [Item, ...Item[]]): Item
}

/** The generator mulberry32: 32 bits of state, enough for sample data and for nothing that must be secret. */
export function chanceFrom(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (least, most) => least + next() * (most - least),
    one: (items) => items[Math.floor(next() * items.length)] ?? items[0],
  }
}
