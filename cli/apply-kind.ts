/** What `apply` has to know of one kind of record: each is one file and one line of the list in `apply.ts`. */
import type { z } from 'zod'
import type { Terminal } from './terminal.ts'

/** What is there, as the API shows it. */
export type Present = Record<string, unknown> & { id: string; name: string; version: number }

export type Changes = Record<string, { from: unknown; to: unknown }>

export interface ApplyKind<Wanted extends { name: string } = { name: string }> {
  /** Of the list, in a file and in the API's answers. */
  readonly member: string
  readonly one: string
  readonly path: string
  /** An entry of the file's list. */
  readonly entry: z.ZodType<Wanted>
  /** What differs, by the file's fields; nothing in it is a secret. Throws `usage` where it cannot be changed. */
  changesOf(wanted: Wanted, present: Present): Changes
  /**
   * What is sent to the API: all of an entry, or, where it is there, what is to change. Throws `usage` where a variable
   * is not set.
   */
  bodyOf(wanted: Wanted, changes: Changes | null, terminal: Terminal): Record<string, unknown>
  /** The secrets of an entry, to be sent whether anything differs or not; a kind without any has none. */
  secretsOf?(wanted: Wanted, terminal: Terminal): Record<string, unknown>
  /** Whether an entry has any. */
  holdsSecrets?(wanted: Wanted): boolean
}

/** Whether an object says nothing else than the present one, which holds the defaults too. */
export const isWithin = (wanted: unknown, present: unknown): boolean =>
  isObject(wanted) && isObject(present)
    ? Object.entries(wanted).every(([name, value]) => Bun.deepEquals(value, present[name]))
    : Bun.deepEquals(wanted, present)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
