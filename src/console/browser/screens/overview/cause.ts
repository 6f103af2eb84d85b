/** A line of the overview's status: what is wrong, and what to do. */
export interface Cause {
  level: 'refusing' | 'degraded' | 'notice'
  /** What is wrong, by name. */
  what: string
  /** The next step. */
  todo: string
  /** The screen of the next step. */
  to: { path: string; query?: Readonly<Record<string, string>> } | null
  since: string | null
}
