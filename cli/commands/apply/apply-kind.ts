/** What `apply` has to know of one kind of record: each is one file and one line of the list in `apply.ts`. */
import type { z } from 'zod'
import type { Terminal } from '../../terminal/terminal.ts'

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
  /** Throws for an entry that the API would not take, by the API's own rules. */
  check(wanted: Wanted): void
  /**
   * The differing fields, by the file's names; fields that the file leaves out count as those of a new record.
   * Contains no secret. Throws `usage` if the record cannot be changed.
   */
  changesOf(wanted: Wanted, present: Present): Changes
  /**
   * The body for the API: a whole entry for a new record, otherwise its changes. Throws `usage` if a variable is not
   * set.
   */
  bodyOf(wanted: Wanted, changes: Changes | null, terminal: Terminal): Record<string, unknown>
  /** Whether an entry names secrets; a kind without any does not say. */
  hasSecrets?(wanted: Wanted): boolean
  /** The secrets of an entry, to be sent whether anything differs or not. */
  secretsOf?(wanted: Wanted, terminal: Terminal): Record<string, unknown>
}
