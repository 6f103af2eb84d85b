/**
 * How a request that waits for a person enters the queue. A gateway may post only its own kinds of events
 * (fleet/README.md, Trust), so the control plane queues it: what a decision in the record of an exchange says about an
 * escalation is stored in the transaction that ingests the record. Each such arrival then becomes a record, or another
 * attempt of a waiting one, exactly once. If a process dies in between, the next one finds the arrival.
 */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, inArray, lte, not, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type Event, eventSchema } from '../events/event.ts'
import { expandRecord, type LogRecord } from '../events/log/record.ts'
import { Failure } from '../failure.ts'
import { anonymous } from '../identity/principal.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { guard, hasRow, insert, query, remove, statement, update } from '../store/query.ts'
import { escalationAttempts, escalations, pendingEscalationEvents } from '../store/schema/ledger/policies.ts'
import type { Statement } from '../store/statement.ts'
import { type QueueDependencies, type Reviewer, takeEffect, unchanged, writeGuarded } from './change-escalation.ts'
import { type EscalationRow, escalatedCall } from './escalation.ts'

const noticeSchema = z.object({
  id: z.uuid(),
  policy_id: z.uuid(),
  policy_version: z.number().int(),
  digest: z.string().min(1).max(200),
  route: z.string().max(200),
  family: z.string().max(50),
  model: z.string().max(500).nullable(),
  provider: z.string().max(500).nullable(),
  sent: z.boolean().default(false),
  calls: z.array(escalatedCall).max(20).catch([]),
  answer: z.string().max(2000).nullable().catch(null),
})
const targetsSchema = z.array(z.string()).catch([])

/** What a gateway reports about a waiting request; null if nothing, or in an unknown form. */
export function noticeOf(event: Event): z.infer<typeof noticeSchema> | null {
  if (event.event_type !== 'decision' || event.details?.escalation === undefined) return null
  const parsed = noticeSchema.safeParse(event.details.escalation)
  return parsed.success && event.event_attribution.token_id !== null ? parsed.data : null
}

/** Stores the arrivals among records, in the transaction that ingests them. */
export const arrivalStatements = (records: readonly LogRecord[], receivedAt: number): Statement[] =>
  records
    .filter(({ decisions }) => decisions?.some(({ details }) => details?.escalation !== undefined))
    .flatMap(expandRecord)
    .filter((event) => noticeOf(event) !== null)
    .map((event) =>
      statement(
        insert(pendingEscalationEvents)
          .values({ eventId: event.event_id, body: JSON.stringify(event), receivedAt })
          .onConflictDoNothing(),
      ),
    )

const arrivalsAtOnce = 100

/**
 * Queues what has arrived, puts decisions into effect that nobody can undo any more, and marks what has waited too long.
 * Run it before the queue is read, and every few seconds.
 */
export async function applyQueueChanges(deps: QueueDependencies): Promise<void> {
  for (;;) {
    const rows = await query(deps.ledger)
      .select()
      .from(pendingEscalationEvents)
      .orderBy(pendingEscalationEvents.receivedAt, pendingEscalationEvents.eventId)
      .limit(arrivalsAtOnce)
    for (const { body } of rows) await tolerating(() => queueArrival(deps, eventSchema.parse(JSON.parse(body))))
    if (rows.length < arrivalsAtOnce) break
  }
  await applyDecisions(deps)
  await expireOverdue(deps)
}

/** Another control plane did the same first and broke the guard: then it is done. */
async function tolerating(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'conflict') throw error
  }
}

async function queueArrival(deps: QueueDependencies, event: Event): Promise<void> {
  const { ledger, clock } = deps
  const notice = noticeOf(event)
  const { token_id: tokenId } = event.event_attribution
  const done: Statement[] = [
    guard(hasRow(pendingEscalationEvents, eq(pendingEscalationEvents.eventId, event.event_id))),
    statement(remove(pendingEscalationEvents).where(eq(pendingEscalationEvents.eventId, event.event_id))),
  ]
  if (notice === null || tokenId === null || (await isTaken(ledger, notice.id))) return await writeGuarded(ledger, done)
  const same = isWaiting({ tokenId, digest: notice.digest, policyId: notice.policy_id }, clock.now())
  const waiting = await query(ledger).select({ id: escalations.id }).from(escalations).where(same).get()
  const alias = (escalationId: string): Statement =>
    statement(insert(escalationAttempts).values({ id: notice.id, escalationId }).onConflictDoNothing())
  if (waiting === undefined) return await queueNew(deps, event, [...done, alias(notice.id)])
  await writeGuarded(ledger, [
    ...done,
    alias(waiting.id),
    statement(
      update(escalations)
        .set({ attempts: sql`${escalations.attempts} + 1`, lastAttemptAt: Date.parse(event.timestamp) })
        .where(eq(escalations.id, waiting.id)),
    ),
  ])
}

/** A gateway that uses an id twice must not block later arrivals. */
const isTaken = async (ledger: Database, id: string): Promise<boolean> =>
  (await query(ledger).$count(escalations, eq(escalations.id, id))) > 0

async function queueNew(deps: QueueDependencies, event: Event, statements: readonly Statement[]): Promise<void> {
  const { recorder, clock, newId, settings } = deps
  const notice = noticeOf(event)
  const { token_id: tokenId, user_id: userId, team_id: teamId, gateway_id: gatewayId } = event.event_attribution
  if (notice === null || tokenId === null) return
  const queuedAt = clock.now()
  const expiresAt = queuedAt + 1000 * settings.escalation_expiry_seconds
  const {
    id,
    policy_id: policyId,
    policy_version,
    digest,
    route,
    family,
    model,
    provider,
    sent,
    calls,
    answer,
  } = notice
  const targets = targetsSchema.parse(event.details?.targets)
  const row = {
    id,
    state: 'queued' as const,
    tokenId,
    userId,
    teamId,
    gatewayId,
    policyId,
    reasonCode: event.reason_code,
    digest,
    request: JSON.stringify({
      ...{ route, family, model, provider, sent, targets, calls, policy_version },
      ...{ request_id: event.request_id, prompt_redacted: event.prompt_redacted ?? null, answer_redacted: answer },
    }),
    attempts: 1,
    queuedAt,
    expiresAt,
    lastAttemptAt: Date.parse(event.timestamp),
    version: 1,
  }
  const alreadyWaits = hasRow(escalations, isWaiting({ tokenId, digest, policyId }, queuedAt))
  await recorder.change({
    event: {
      ...frameOf(event),
      event_id: newId(),
      event_type: 'escalation.queued',
      timestamp: timestamp(queuedAt),
      verdict: 'pending',
      details: { escalation_id: id, policy_id: policyId, model, family, expires_at: timestamp(expiresAt) },
    },
    state: [],
    // Fails if the same request was queued at the same moment. Then this one is another attempt of it.
    ledger: [...statements, guard(not(alreadyWaits)), statement(insert(escalations).values(row))],
  })
}

const frameOf = ({ request_id, reason_code, config_version, event_attribution, exchange_id }: Event) => ({
  request_id,
  reason_code,
  config_version,
  event_attribution,
  ...(exchange_id === undefined ? {} : { exchange_id }),
})

interface Waiting {
  tokenId: string
  digest: string
  policyId: string
}

const isOpen = inArray(escalations.state, ['queued', 'claimed'])
const isDeciding = inArray(escalations.state, ['deciding', 'applying'])

/** The escalation of the same request, if one waits. */
const isWaiting = ({ tokenId, digest, policyId }: Waiting, now: number): SQL | undefined =>
  and(
    eq(escalations.tokenId, tokenId),
    eq(escalations.digest, digest),
    eq(escalations.policyId, policyId),
    or(isOpen, isDeciding),
    gt(escalations.expiresAt, now),
  )

/** Puts decisions into effect whose time to be undone has passed, and goes on with those that an interruption left. */
async function applyDecisions(deps: QueueDependencies): Promise<void> {
  const rows = await query(deps.ledger)
    .select()
    .from(escalations)
    .where(and(isDeciding, lte(escalations.resolvedAt, deps.clock.now())))
    .orderBy(escalations.id)
    .limit(arrivalsAtOnce)
  for (const row of rows) {
    const { resolution, note, resolvedBy, resolvedAt, grantExpiresAt } = row
    const decided = { resolution, note, resolvedBy, resolvedAt, grantExpiresAt }
    await tolerating(() => takeEffect(deps, reviewerOf(row), row, decided))
  }
}

/** Who decided, as the event names them; the event of the decision itself says more. */
function reviewerOf({ resolvedBy }: EscalationRow): Reviewer {
  const [kind, id = null] = (resolvedBy ?? '').split(':')
  const userId = kind === 'user' ? id : null
  return { principal: { ...anonymous, name: resolvedBy ?? '', userId }, requestId: null }
}

/**
 * Nobody decided in time: it counts as refused, and an event records that. It counts as expired even before this runs.
 */
async function expireOverdue({ ledger, recorder, clock, newId }: QueueDependencies): Promise<void> {
  const now = clock.now()
  const rows = await query(ledger)
    .select()
    .from(escalations)
    .where(and(isOpen, lte(escalations.expiresAt, now)))
    .orderBy(escalations.id)
    .limit(arrivalsAtOnce)
  for (const row of rows) {
    const { id, version } = row
    const attribution = {
      token_id: row.tokenId,
      user_id: row.userId,
      team_id: row.teamId,
      gateway_id: row.gatewayId,
      oauth_client_id: null,
      session_id: null,
      key_class: null,
    }
    await tolerating(async () => {
      await recorder.change({
        event: {
          event_id: newId(),
          event_type: 'escalation.expired',
          request_id: null,
          timestamp: timestamp(now),
          verdict: 'deny',
          reason_code: 'escalation.expired',
          config_version: 0,
          event_attribution: attribution,
          details: { escalation_id: id, policy_id: row.policyId },
        },
        state: [],
        ledger: [
          unchanged(id, version),
          statement(
            update(escalations)
              .set({ state: 'expired', version: sql`${escalations.version} + 1` })
              .where(eq(escalations.id, id)),
          ),
        ],
      })
    })
  }
}
