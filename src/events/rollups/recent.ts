/**
 * What requests came to in the last minutes, from the sums of minutes, and which providers and models fail.
 *
 * A provider or model fails where, of the requests of the last hour since its first failure, enough and a large enough
 * share failed. It has recovered where its last failure is older than `recentMinutes` and it answered since.
 *
 * SQL text: ranges of the primary key of the sums.
 */
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import { asBytes, shownText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import { answeredVerdicts } from '../event.ts'
import type { Visibility } from '../visibility.ts'
import { everyTeam, noTeam, otherKey, type RollupKind, stepMilliseconds } from './rollup.ts'
import { scopesOf } from './series.ts'

export const recentMinutes = 10
const failingMinutes = 60
/** Below so many requests a share says nothing. */
const fewestRequests = 5
const fewestFailures = 3
const failingShare = 0.1

export const recentReply = z.object({
  minutes: z.number().int().describe('How far `outcomes` looks back'),
  outcomes: z
    .array(z.object({ verdict: z.string(), reason_code: z.string(), requests: z.number().int() }))
    .describe('The requests of the last minutes by verdict and reason; the most frequent first'),
  failing: z
    .array(
      z.object({
        kind: z.enum(['provider', 'model']),
        name: z.string(),
        requests: z.number().int().describe('Since then, without those that a policy or a limit refused'),
        failed: z.number().int().describe('How many of them failed'),
        since: z.iso.datetime().describe('The first minute of the last hour in which a request failed'),
      }),
    )
    .describe(
      `Providers and models of which at least ${fewestFailures} requests, and ${100 * failingShare} %, failed; providers only for callers who see every team`,
    ),
})
export type Recent = z.infer<typeof recentReply>

export async function readRecent(
  ledger: Database,
  { visibility, now }: { visibility: Visibility; now: number },
): Promise<Recent> {
  const from = (minutes: number) => {
    const since = now - minutes * stepMilliseconds.minute
    return since - (since % stepMilliseconds.minute)
  }
  const until = now + stepMilliseconds.minute
  const recent = { since: from(recentMinutes), until, step: 'minute' } as const
  const byReason = { kind: 'reason', column: 'key', key: undefined } as const
  const reasons = await rowsOf(ledger, {
    ...{ kind: 'reason', scopes: await scopesOf(ledger, recent, byReason, visibility), since: recent.since, until },
  })
  const outcomes = [...Map.groupBy(reasons, ({ verdict, key }) => `${verdict} ${key}`).values()].flatMap((rows) =>
    rows.slice(0, 1).map(({ verdict, key }) => ({ verdict, reason_code: key, requests: sumOf(rows) })),
  )
  const { teams } = visibility
  const hour = { since: from(failingMinutes), until }
  const ofModels = teams === 'every' ? [everyTeam, noTeam] : teams
  const models = await rowsOf(ledger, { kind: 'model', scopes: ofModels, ...hour })
  // Of providers there are sums of all teams together only.
  const ofProviders = teams === 'every' ? [everyTeam] : []
  const providers = await rowsOf(ledger, { kind: 'provider', scopes: ofProviders, ...hour })
  return {
    minutes: recentMinutes,
    outcomes: outcomes.toSorted((left, right) => right.requests - left.requests),
    failing: [
      ...failingOf(providers, now).map((each) => ({ kind: 'provider' as const, ...each })),
      ...failingOf(models, now).map((each) => ({ kind: 'model' as const, ...each })),
    ],
  }
}

/** The requests of one minute. */
export interface MinuteRow {
  key: string
  verdict: string
  at: number
  requests: number
}

type Failing = Omit<Recent['failing'][number], 'kind'>

/** The keys that fail, by their minutes of the last hour; those with the most failures first. */
export function failingOf(rows: readonly MinuteRow[], now: number): Failing[] {
  // MCP servers are counted only where a call cost something, so their share of failures is not known.
  const named = rows.filter(({ key }) => key !== '' && key !== otherKey && !key.startsWith('mcp:'))
  return [...Map.groupBy(named, ({ key }) => key)]
    .flatMap(([name, minutes]) => failureOf(name, minutes, now) ?? [])
    .toSorted((left, right) => right.failed - left.failed)
}

function failureOf(name: string, minutes: readonly MinuteRow[], now: number): Failing | null {
  const failures = minutes.filter(({ verdict }) => verdict === 'error')
  const since = Math.min(...failures.map(({ at }) => at))
  // What a policy or a limit refused says nothing of the provider.
  const answers = minutes.filter(({ verdict, at }) => at >= since && isAnswer(verdict))
  const failed = sumOf(failures)
  const requests = failed + sumOf(answers)
  if (failed < fewestFailures || requests < fewestRequests || failed / requests < failingShare) return null
  const lastFailure = Math.max(...failures.map(({ at }) => at))
  const isOld = lastFailure < now - recentMinutes * stepMilliseconds.minute
  if (isOld && answers.some(({ at }) => at > lastFailure)) return null
  return { name, requests, failed, since: timestamp(since) }
}

const isAnswer = (verdict: string): boolean => answeredVerdicts.some((answered) => answered === verdict)

const sumOf = (rows: readonly { requests: number }[]): number => rows.reduce((sum, { requests }) => sum + requests, 0)

async function rowsOf(
  ledger: Database,
  { kind, scopes, since, until }: { kind: RollupKind; scopes: readonly string[]; since: number; until: number },
): Promise<MinuteRow[]> {
  const rows = await ledger.read<{ key: unknown; verdict: unknown; at: number; requests: number }>(
    `select ${asBytes('key')} as key, ${asBytes('verdict')} as verdict, at, total(requests) as requests
      from event_rollups where kind = ? and step = 'minute' and scope in (select value from json_each(?))
        and at >= ? and at < ? group by 1, 2, 3`,
    [kind, JSON.stringify(scopes), since, until],
  )
  return rows.map(({ key, verdict, ...row }) => ({ ...row, key: shownText(key), verdict: shownText(verdict) }))
}
