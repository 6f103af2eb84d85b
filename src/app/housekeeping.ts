/** The background work of a control plane: at its start, and every few seconds. */
import { isNotNull, lte } from 'drizzle-orm'
import { applyQueueChanges } from '../escalations/arrivals.ts'
import type { Archive } from '../events/clickhouse/archive.ts'
import { moveOldRecords } from '../events/clickhouse/move.ts'
import { mergeSegments } from '../events/log/merge-segments.ts'
import { foldRollups } from '../events/rollups/fold.ts'
import { removeOldRollups } from '../events/rollups/rollup-retention.ts'
import { removeOldSessions } from '../events/sessions/session-sums.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { Rounds } from '../lib/rounds.ts'
import { settleOAuth } from '../oauth/follow-person.ts'
import type { Database } from '../store/open.ts'
import { query } from '../store/query.ts'
import { mcpConnections } from '../store/schema/ledger/oauth.ts'
import { userIdentities } from '../store/schema/ledger/people.ts'
import type { Parts } from './control-plane-parts.ts'

const mergingMilliseconds = 5000
const recheckingMilliseconds = 5000

/** Finishes what an earlier process left incomplete, and what a start must know before it serves. */
export const finishInterruptedWork = ({ shared, workers }: Parts, log: Log): Promise<void> =>
  tryEach(log, [
    ['settle', () => shared.recorder.applyPending()],
    ['restored ledger', () => workers.usage.detectRestoredLedger()],
  ])

/** The work of every few seconds. A start does not wait for it. */
export async function housekeep(
  parts: Parts & { rotated?(): Promise<void>; issuerKeys?(): Promise<void> },
  log: Log,
): Promise<void> {
  const { shared, workers, oauth, exports, lastUse, settings, keyRotation } = parts
  const { rotated = async () => undefined, issuerKeys = async () => undefined } = parts
  const retention = settings.event_retention_days * 86_400_000
  await finishInterruptedWork(parts, log)
  await tryEach(log, [
    ['tokens of a restored ledger', () => workers.takeOverTokens()],
    ['rotation of the master key', () => keyRotation.step()],
    ['last use', () => lastUse.flush()],
    ['escalations', () => applyQueueChanges({ ...shared, settings })],
    ['oauth', () => settleOAuth(oauth)],
    ['lost workers', () => workers.usage.limitEvents.recordLostWorkers()],
    ['cells of limits', () => workers.usage.compact()],
    ['exports', async () => await (await exports()).tend()],
    ['sums for charts', () => foldRollups(shared.ledger)],
    ['old sums', () => removeOldRollups(shared.ledger, { now: shared.clock.now(), retention })],
    ['old sessions', () => removeOldSessions(shared.ledger, { now: shared.clock.now(), retention })],
    ['runtime token', rotated],
    ['keys of issuers', issuerKeys],
    ['used-up limits', () => workers.usage.limitEvents.recordUsedUpLimits()],
    ['charges beyond bounds', () => workers.usage.limitEvents.exceeded()],
  ])
}

/**
 * Merges small segments of the event log, and moves older records to ClickHouse where there is one, apart from the other
 * work, which must not wait for it. Stopping waits for one merge at most.
 */
export function mergingRounds(
  ledger: Database,
  log: Log,
  moving?: { archive: Archive; clock: Clock; keepMilliseconds: number },
  restMilliseconds = mergingMilliseconds,
) {
  const ending = new AbortController()
  const { signal } = ending
  const merge = () => mergeSegments(ledger, signal)
  const move = async () => {
    if (moving === undefined) return
    await moveOldRecords({ ledger, ...moving, log, signal }).catch((error: unknown) => {
      // An insert that a stop broke off is made again at the next start.
      if (!signal.aborted) throw error
    })
  }
  const rounds = new Rounds(restMilliseconds, () =>
    tryEach(log, [
      ['merging of the event log', merge],
      ['moving events to ClickHouse', move],
    ]),
  )
  return {
    start: () => rounds.start(),
    stop: () => {
      ending.abort()
      return rounds.stop()
    },
  }
}

/**
 * Asks identity providers again about people, and revokes the tokens of connections that have ended, apart from the
 * other work, which must not wait for a provider that does not answer. What speaks to providers is loaded when the
 * first question is due.
 */
export function recheckingRounds(parts: Parts, log: Log) {
  const { ledger, clock } = parts.shared
  const load = async () => {
    const [{ recheckIdentities }, { memberDependencies }] = await Promise.all([
      import('../members/identity-providers/recheck.ts'),
      import('./member-dependencies.ts'),
    ])
    const dependencies = { ...memberDependencies(parts), log }
    return () => recheckIdentities(dependencies)
  }
  let loaded: ReturnType<typeof load> | null = null
  const recheck = async () => {
    if ((await query(ledger).$count(userIdentities, lte(userIdentities.checkAt, clock.now()))) === 0) return
    loaded ??= load()
    await (await loaded)()
  }
  const finishConnections = async () => {
    if ((await query(ledger).$count(mcpConnections, isNotNull(mcpConnections.endedAt))) === 0) return
    const [{ finishEndedConnections }, { connectionDependencies }] = await Promise.all([
      import('../connections/end-connections.ts'),
      import('./member-dependencies.ts'),
    ])
    await finishEndedConnections(connectionDependencies(parts))
  }
  return new Rounds(recheckingMilliseconds, () =>
    tryEach(log, [
      ['identities', recheck],
      ['ended connections', finishConnections],
    ]),
  )
}

/** A failure is logged, and the next run tries again. */
async function tryEach(log: Log, works: readonly (readonly [what: string, work: () => Promise<unknown>])[]) {
  for (const [what, work] of works) {
    try {
      await work()
    } catch (error) {
      log.error({ work: what, error: String(error) }, 'Background work failed and will be tried again')
    }
  }
}
