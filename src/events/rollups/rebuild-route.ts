/** Rebuilds the sums behind charts from the events. Only for callers who see the events of every team. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { lineStreams } from '../query/line-stream.ts'
import { visibilityOf } from '../visibility.ts'
import { type Rebuilt, rebuildRollups } from './rebuild.ts'
import type { RecountOptions } from './recount.ts'

const rebuiltSchema = z.object({
  kind: z.enum(['progress', 'summary']),
  corrected: z.number().int().describe('Rows that were written, or removed'),
  growing: z.number().int().describe('Hours and days that could not be compared, because too much came in: ask again'),
})

/** How often a line is sent, so that the caller sees progress. */
const shownEveryMs = 1000

interface Dependencies {
  ledger: Database
  clock: Clock
  log: Log
  settings: { event_retention_days: number }
}

export function rollupRebuildRoute({ ledger, clock, log, settings }: Dependencies) {
  const stream = lineStreams('Sums are being made anew: try again when that has ended')
  return new Elysia({ name: 'rebuild' }).use(conventions).post(
    '/v1/events/series/rebuild',
    ({ principal, request: { signal } }) => {
      if (visibilityOf(principal, { teams: [], tokens: [] }).teams !== 'every') throw new Failure('permission_denied')
      const retention = settings.event_retention_days * 86_400_000
      const options = { ledger, now: clock.now(), retention, since: null, signal }
      return stream(signal, linesOf(options, clock, log))
    },
    {
      access: 'events:export',
      body: z.strictObject({}),
      response: rebuiltSchema,
      answers: ['application/x-ndjson'],
      detail: {
        tags: ['Events'],
        summary: 'Rebuilds the sums of charts from the events where they differ: lines of progress, then a summary',
      },
    },
  )
}

async function* linesOf(
  options: RecountOptions,
  clock: Clock,
  log: Log,
): AsyncGenerator<z.infer<typeof rebuiltSchema>> {
  let rebuilt: Rebuilt = { corrected: 0, growing: 0 }
  let shownAt = clock.monotonic()
  for await (rebuilt of rebuildRollups(options)) {
    if (clock.monotonic() - shownAt < shownEveryMs) continue
    shownAt = clock.monotonic()
    yield { kind: 'progress', ...rebuilt }
  }
  if (options.signal.aborted) return
  log.info({ ...rebuilt }, 'The sums behind charts were rebuilt from the events')
  yield { kind: 'summary', ...rebuilt }
}
