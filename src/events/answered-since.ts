/**
 * Which providers have answered a request since a time, from the sums of all teams: those of minutes up to the next full
 * hour, then those of hours. A minute that began before the time does not count. Minutes are kept for two days only, so
 * an answer in the rest of that hour is forgotten then, where no later one came.
 *
 * SQL text: ranges of the primary key of the sums.
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
  const times = asked.map(({ name, since }) => ({ name, minute: next('minute', since), hour: next('hour', since) }))
  const rows = await ledger.read<{ name: unknown }>(
    `with asked as (select value ->> 'name' as name, value ->> 'minute' as minute, value ->> 'hour' as hour
        from json_each(?)),
      answered as (select value as verdict from json_each(?))
     select ${asBytes('name')} as name from asked
      where exists (select 1 from event_rollups where kind = 'provider' and step = 'minute' and scope = ?
          and at >= asked.minute and at < asked.hour and key = asked.name and verdict in (select verdict from answered))
        or exists (select 1 from event_rollups where kind = 'provider' and step = 'hour' and scope = ?
          and at >= asked.hour and key = asked.name and verdict in (select verdict from answered))`,
    [JSON.stringify(times), JSON.stringify(answeredVerdicts), everyTeam, everyTeam],
  )
  return new Set(rows.map(({ name }) => shownText(name)))
}

const next = (step: Step, time: number): number => Math.ceil(time / stepMilliseconds[step]) * stepMilliseconds[step]
