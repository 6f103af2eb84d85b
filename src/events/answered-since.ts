/**
 * Which providers have answered a request since a time, from the sums of all teams: those of minutes up to the next full
 * hour, then those of hours. A minute that began before the time does not count. Minutes are kept for two days only, so
 * an answer in the rest of that hour is forgotten then, where no later one came.
 *
 * SQL text: ranges of the primary key of the sums. Twenty providers and 89 days of hours took 26 ms.
 */
import { asBytes, shownText } from '../store/damage/stored-text.ts'
import type { Database } from '../store/open.ts'
import { answeredVerdicts } from './event.ts'
import { foldRollups } from './rollups/fold.ts'
import { everyTeam, type Step, stepMilliseconds } from './rollups/rollup.ts'

/** How many rounds of counting a reader waits for: enough where there is no backlog. */
const turnsBeforeReading = 4

interface Asked {
  /** The name of the provider. */
  name: string
  /** In milliseconds since the epoch. */
  since: number
}

/** The names of those that have. */
export async function answeredSince(ledger: Database, asked: readonly Asked[]): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set()
  await foldRollups(ledger, turnsBeforeReading)
  const hours = await lastHours(ledger, asked)
  const later = asked.filter(({ name, since }) => (hours.get(name) ?? 0) >= next('hour', since))
  const rest = asked.filter((each) => !later.includes(each))
  return new Set([...later.map(({ name }) => name), ...(await answeredWithinHour(ledger, rest))])
}

/** The last hour in which each provider answered: one read for all, because each reads the sums of all providers. */
async function lastHours(ledger: Database, asked: readonly Asked[]): Promise<ReadonlyMap<string, number>> {
  const rows = await ledger.read<{ name: unknown; at: number }>(
    `select ${asBytes('key')} as name, max(at) as at from event_rollups
      where kind = 'provider' and step = 'hour' and scope = ? and at >= ?
        and key in (select value from json_each(?)) and verdict in (select value from json_each(?)) group by key`,
    [
      everyTeam,
      Math.min(...asked.map(({ since }) => next('hour', since))),
      JSON.stringify(asked.map(({ name }) => name)),
      JSON.stringify(answeredVerdicts),
    ],
  )
  return new Map(rows.map(({ name, at }) => [shownText(name), at]))
}

async function answeredWithinHour(ledger: Database, asked: readonly Asked[]): Promise<string[]> {
  const times = asked.map(({ name, since }) => ({ name, from: next('minute', since), until: next('hour', since) }))
  const rows = await ledger.read<{ name: unknown }>(
    `with asked as (select value ->> 'name' as name, value ->> 'from' as since, value ->> 'until' as until
        from json_each(?))
     select ${asBytes('name')} as name from asked
      where exists (select 1 from event_rollups where kind = 'provider' and step = 'minute' and scope = ?
        and at >= asked.since and at < asked.until and key = asked.name
        and verdict in (select value from json_each(?)))`,
    [JSON.stringify(times), everyTeam, JSON.stringify(answeredVerdicts)],
  )
  return rows.map(({ name }) => shownText(name))
}

const next = (step: Step, time: number): number => Math.ceil(time / stepMilliseconds[step]) * stepMilliseconds[step]
