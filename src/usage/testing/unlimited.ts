/** UsageLimits of a worker on which nothing is limited, for tests. */

import type { Rates } from '../rate/rates.ts'
import type { Reservation, UsageLimits } from '../usage-limits.ts'

const nothing: Reservation = { held: [], extend: () => true, book: () => [], release() {} }

export const unlimited: UsageLimits = { reserve: () => nothing, exhausted: () => false }

export const unlimitedRates: Rates = { take: () => ({ uses: () => [], correct: () => [], release() {} }) }
