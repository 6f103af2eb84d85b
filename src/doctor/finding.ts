/**
 * The findings of `doctor`. A check is a pure function of facts; adding one is one row of a table. Facts are read once
 * and never thrown: what cannot be read is a fact too.
 */
export interface Finding {
  level: 'ok' | 'warn' | 'fail'
  what: string
  /** What to do about it. */
  todo?: string
}

/** Returns null when there is nothing to report. */
export type Check<Facts> = (facts: Facts) => Finding | readonly Finding[] | null

export type Checks<Facts> = Readonly<Record<string, Check<Facts>>>

export interface NamedFinding extends Finding {
  /** The name of the check. */
  check: string
}

export const ok = (what: string): Finding => ({ level: 'ok', what })
export const warn = (what: string, todo: string): Finding => ({ level: 'warn', what, todo })
export const fail = (what: string, todo: string): Finding => ({ level: 'fail', what, todo })

/** Runs a table of checks over the facts, in the table's order. */
export const examine = <Facts>(checks: Checks<Facts>, facts: Facts): NamedFinding[] =>
  Object.entries(checks).flatMap(([check, look]) =>
    [look(facts) ?? []].flat().map((finding) => ({ check, ...finding })),
  )
