/** Finds the name that a person who mistyped one most likely meant. */

/** The nearest of these names, in any letter case; null if none is near. */
export function nearest(written: string, names: readonly string[]): string | null {
  let found: string | null = null
  // A third of the letters may be wrong.
  let fewest = Math.max(1, Math.floor(written.length / 3)) + 1
  for (const name of names) {
    const edits = editsBetween(written.toLowerCase(), name.toLowerCase())
    if (edits >= fewest) continue
    fewest = edits
    found = name
  }
  return found
}

/** Levenshtein distance: how many characters are added, left out or changed. */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let index = 0; index < one.length; index++) {
    const next = [index + 1]
    for (let at = 0; at < other.length; at++) {
      const [left = 0, above = 0, before = 0] = [next[at], row[at + 1], row[at]]
      next.push(Math.min(left + 1, above + 1, before + (one[index] === other[at] ? 0 : 1)))
    }
    row = next
  }
  return row[other.length] ?? 0
}
