/** Allowances of a worker on which nothing is limited, for tests. */
import type { Allowances, Reservation } from '../allowance.ts'
import type { Rates } from '../rate/rates.ts'

const nothing: Reservation = { held: [], extend: () => true, book: () => [], release() {} }

export const unlimited: Allowances = { reserve: () => nothing, exhausted: () => false }

export const unlimitedRates: Rates = { take: () => ({ uses: () => [], correct: () => [], release() {} }) }
