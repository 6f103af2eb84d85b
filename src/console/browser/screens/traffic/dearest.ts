/** Which keys a chart of spend has lines for. */

interface Spent {
  rest: boolean
  cost: number
}

/**
 * The dearest first, at most so many that they and a line of all others fit into `most` lines; and those others. What
 * cost nothing is left out beside what cost something. `rest` sums up many keys, so that it is the last.
 */
export function dearest<Key extends Spent>(keys: readonly Key[], most: number): { shown: Key[]; others: Key[] } {
  const spent = keys.filter(({ cost }) => cost > 0)
  const sorted = (spent.length === 0 ? keys : spent).toSorted((one, other) =>
    one.rest === other.rest ? other.cost - one.cost : Number(one.rest) - Number(other.rest),
  )
  const count = sorted.length <= most ? sorted.length : most - 1
  return { shown: sorted.slice(0, count), others: sorted.slice(count) }
}
