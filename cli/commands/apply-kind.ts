/** What `apply` has to know of one kind of record: each is one file and one line of the list in `apply.ts`. */
import type { z } from 'zod'
import type { Terminal } from '../terminal/terminal.ts'

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
   * What differs, by the file's fields; what the file leaves out is what a new record has. Nothing in it is a secret.
   * Throws `usage` where it cannot be changed.
   */
  changesOf(wanted: Wanted, present: Present): Changes
  /**
   * What is sent to the API: all of an entry, or, where it is there, what is to change. Throws `usage` where a variable
   * is not set.
   */
  bodyOf(wanted: Wanted, changes: Changes | null, terminal: Terminal): Record<string, unknown>
  /** Whether an entry names secrets; a kind without any does not say. */
  hasSecrets?(wanted: Wanted): boolean
  /** The secrets of an entry, to be sent whether anything differs or not. */
  secretsOf?(wanted: Wanted, terminal: Terminal): Record<string, unknown>
}
