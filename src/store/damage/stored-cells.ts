/**
 * Reads rows that anyone with write access to the file may have altered. libSQL's native part cuts a text at a NUL,
 * refuses an integer above 2^53, and ends the process if a text is not valid UTF-8; it returns a blob unchanged. So
 * columns that may hold anything are selected as the bytes of a JSON array.
 */
import { isUtf8 } from 'node:buffer'
import { shownText, storedBytes } from './stored-text.ts'

export type Cells = Record<string, unknown>

/** The columns, or expressions by their name, as one column `cells`; a blob among them becomes an array of its hex. */
export function cellsOf(columns: Readonly<Record<string, string>>): string {
  const values = Object.values(columns).map(
    (sql) => `case typeof(${sql}) when 'blob' then json_array(hex(${sql})) else ${sql} end`,
  )
  return `cast(json_array(${values.join()}) as blob) as cells`
}

/** The same of columns under their own names. */
export const named = (columns: readonly string[]): Record<string, string> =>
  Object.fromEntries(columns.map((name) => [name, name]))

/** A cell that must be text: an invalid one counts as empty. */
export const textCell = (cell: unknown): string => (typeof cell === 'string' ? cell : '')

/** A cell that must be an integer; NaN, which equals nothing, if JavaScript cannot hold it or it is not one. */
export const integerCell = (cell: unknown): number => (Number.isSafeInteger(cell) ? Number(cell) : Number.NaN)

/** What `cellsOf` selected, by name. What is no UTF-8 is null, like nothing that was written there. */
export function readCells(columns: Readonly<Record<string, string>>, cells: unknown): Cells {
  const values: unknown[] = JSON.parse(shownText(cells))
  const damaged = !isUtf8(storedBytes(cells) ?? new Uint8Array())
  const value = (index: number) => {
    const cell = values[index]
    return damaged && typeof cell === 'string' && cell.includes('\ufffd') ? null : cell
  }
  return Object.fromEntries(Object.keys(columns).map((name, index) => [name, value(index)]))
}
