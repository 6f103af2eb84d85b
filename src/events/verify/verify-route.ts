/**
 * Verification over the API: lines of JSON as they are found. Only for callers who see the events of every team,
 * because a chain has those of all. One at a time, since each reads everything.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { signedSchema } from '../proof/checkpoint.ts'
import type { Signed } from '../proof/checkpoint-key.ts'
import { lineStreams } from '../query/line-stream.ts'
import { sinceInstant, sinceSchema } from '../query/since.ts'
import { visibilityOf } from '../visibility.ts'
import { keeping } from './background.ts'
import { verifyEvents, verifyLineSchema } from './verify.ts'

const keyId = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe('The id of a key to trust: the SHA-256 of the public key')

const maxKeys = 32
const maxWitnesses = 32

interface Asked {
  since?: string | undefined
  keys: readonly string[]
  witnesses: readonly Signed[]
}

export function verifyRoutes({
  state,
  ledger,
  clock,
  settings,
  seen,
}: {
  state: Database
  ledger: Database
  clock: Clock
  settings: { event_retention_days: number }
  /** The newest checkpoint that was seen here, stored outside the databases. */
  seen(): Signed | null
}) {
  const stream = lineStreams('A verification is running: try again when it has ended')
  const verify = (principal: Principal, { since, keys, witnesses }: Asked, signal: AbortSignal): Response => {
    if (visibilityOf(principal, { teams: [], tokens: [] }).teams !== 'every') throw new Failure('permission_denied')
    const instant = since === undefined ? null : sinceInstant(since, clock.now())
    const own = seen()
    const known = own === null ? witnesses : [own, ...witnesses]
    const lines = verifyEvents({
      state,
      ledger,
      since: instant,
      pinned: keys,
      witnesses: known,
      now: clock.now(),
      monotonic: () => clock.monotonic(),
      retention: settings.event_retention_days * 86_400_000,
      signal,
    })
    // What does not fit the caller's own keys or witnesses may be wrong there, and is no finding about the record.
    const isOwnAlone = keys.length === 0 && witnesses.length === 0
    return stream(signal, isOwnAlone ? keeping(ledger, lines, { whole: instant === null, now: clock.now() }) : lines)
  }
  return new Elysia({ name: 'verify' })
    .use(conventions)
    .get(
      '/v1/events/verify',
      ({ principal, query: { since, key = [] }, request: { signal } }) =>
        verify(principal, { since, keys: key, witnesses: [] }, signal),
      {
        access: 'events:export',
        answers: ['application/x-ndjson'],
        failures: [409],
        response: verifyLineSchema,
        query: z.strictObject({
          since: sinceSchema.optional(),
          key: z
            .string()
            .transform((text) => text.split(','))
            .pipe(z.array(keyId).max(maxKeys))
            .optional()
            .describe('Ids of the keys to trust, with commas; default: those that stand in the ledger'),
        }),
        detail: {
          tags: ['Events'],
          summary:
            'Verifies that no event was altered, removed or inserted: lines of findings and progress, then of chains, then a summary',
        },
      },
    )
    .post('/v1/events/verify', ({ principal, body, request: { signal } }) => verify(principal, body, signal), {
      access: 'events:export',
      answers: ['application/x-ndjson'],
      failures: [409],
      response: verifyLineSchema,
      body: z.strictObject({
        since: sinceSchema.optional(),
        keys: z.array(keyId).max(maxKeys).default([]),
        witnesses: z.array(signedSchema).max(maxWitnesses).default([]),
      }),
      detail: { tags: ['Events'], summary: "Verifies the log against the caller's own checkpoints" },
    })
}
