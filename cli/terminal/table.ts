/** Lines of left-aligned columns, two spaces apart, with no blanks at their ends. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, Bun.stringWidth(cell))
  }
  const line = (row: readonly string[]) =>
    row
      .map((cell, index) => cell + ' '.repeat((widths[index] ?? 0) - Bun.stringWidth(cell)))
      .join('  ')
      .trimEnd()
  return rows.map((row) => `${line(row)}\n`).join('')
}

/** Control characters of what others wrote are shown escaped, so that a name cannot steer the terminal. */
export const printable = (text: string): string =>
  text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
    /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
