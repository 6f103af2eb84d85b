/**
 * Lines of columns, two spaces apart, with no blanks at their ends. Text stands at the left; `right` says which columns
 * stand at the right, as numbers do, counted from the end where they are negative.
 */
export function columns(rows: readonly (readonly string[])[], right: ReadonlySet<number> = new Set()): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, Bun.stringWidth(cell))
  }
  const padded = (cell: string, index: number, row: readonly string[]) => {
    const blanks = ' '.repeat((widths[index] ?? 0) - Bun.stringWidth(cell))
    return right.has(index) || right.has(index - row.length) ? blanks + cell : cell + blanks
  }
  return rows.map((row) => `${row.map(padded).join('  ').trimEnd()}\n`).join('')
}

/** Control characters of what others wrote are shown escaped, so that a name cannot steer the terminal. */
export const printable = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
    /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** US dollars with as many of nine decimals as they need, two at least, never an exponent. */
export const dollars = (amount: number): string => amount.toFixed(9).replace(/0{1,7}$/, '')
