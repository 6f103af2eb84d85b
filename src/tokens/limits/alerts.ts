/**
 * Lifecycle alerts (handbook/tokens.md): what an operator should check before or after a token stops working. Computed
 * when read, with thresholds from settings.
 */

import { and, desc, gte, isNull, lt, lte, or, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import { readCursor, writeCursor } from '../../api/cursor.ts'
import { pageLimit } from '../../api/page.ts'
import type { Settings } from '../../config.ts'
import type { Principal } from '../../identity/principal.ts'
import { timestamp } from '../../lib/clock.ts'
import { query } from '../../store/query.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import type { AlertThresholds, TokenDependencies } from '../dependencies.ts'
import { tokenStatus } from '../governed-token.ts'
import { tokenResourceName } from '../organization.ts'
import type { StoredToken } from '../stored-token.ts'
import { visibleTokens } from '../visibility.ts'
import type { DepletionView, TokenDepletion } from './depletion.ts'

export const alertConditions = [
  'budget_near_exhaustion',
  'budget_exhausted',
  'request_near_exhaustion',
  'request_exhausted',
  'bound_exceeded',
  'expiring',
  'expired',
  'rotation_due',
  'emergency_revoked',
] as const

export const alertSchema = z.object({
  condition: z.enum(alertConditions),
  token_id: z.uuid(),
  name: z.string(),
  resource_vrn: z.string(),
  team_id: z.uuid().nullable(),
  at: z.iso
    .datetime()
    .nullable()
    .describe(
      'When the token expires or expired, was due for rotation, was revoked, or was charged more than the list price allows; null for what is used up',
    ),
})
export type Alert = z.infer<typeof alertSchema>

const day = 24 * 60 * 60 * 1000

/** The thresholds that the settings say. */
export const alertThresholds = (
  settings: Pick<Settings, 'alert_near_exhaustion_percent' | 'alert_expiring_days' | 'alert_rotation_due_days'>,
): AlertThresholds => ({
  expiring: settings.alert_expiring_days * day,
  rotationDue: settings.alert_rotation_due_days * day,
  nearExhaustion: settings.alert_near_exhaustion_percent / 100,
})

interface Found {
  condition: Alert['condition']
  /** Null if nobody recorded when it happened. */
  at: number | null
}

/** The conditions a token is in at the instant `now`, each with the instant it is about. */
function conditionsOf(
  token: StoredToken,
  now: number,
  thresholds: AlertThresholds,
  used: TokenDepletion | null,
): Found[] {
  const status = tokenStatus(token, now)
  if (status === 'revoked') {
    const emergency = token.revocation?.emergency === true && token.revokedAt !== null
    return emergency ? [{ condition: 'emergency_revoked', at: token.revokedAt }] : []
  }
  if (status === 'rotated') return []
  const { expiresAt } = token
  if (expiresAt !== null && status === 'expired') return [{ condition: 'expired', at: expiresAt }]
  const due = token.createdAt + thresholds.rotationDue
  const expiring = expiresAt !== null && expiresAt - now <= thresholds.expiring
  const exceededAt = used?.exceededAt ?? null
  return [
    ...depletedConditions(used, thresholds.nearExhaustion),
    ...(exceededAt === null ? [] : [{ condition: 'bound_exceeded' as const, at: exceededAt }]),
    ...(expiring ? [{ condition: 'expiring' as const, at: expiresAt }] : []),
    ...(due <= now && token.rotatedAt === null ? [{ condition: 'rotation_due' as const, at: due }] : []),
  ]
}

function depletedConditions(used: TokenDepletion | null, share: number): Found[] {
  if (used === null) return []
  if (used.status !== null) return [{ condition: used.status, at: null }]
  const near: [boolean, Alert['condition']][] = [
    [used.shares.budget >= share, 'budget_near_exhaustion'],
    [used.shares.requests >= share, 'request_near_exhaustion'],
  ]
  return near.flatMap(([holds, condition]) => (holds ? [{ condition, at: null }] : []))
}

export const listAlertsQuery = z.strictObject({
  limit: pageLimit.describe('How many tokens; each may have several alerts'),
  cursor: z.string().max(1000).optional(),
})

/** A page of alerts by token, newest tokens first. */
export async function listAlerts(
  { ledger, clock, alerts: thresholds, depletion }: TokenDependencies,
  principal: Principal,
  { limit, cursor }: z.infer<typeof listAlertsQuery>,
  organizationId: string,
): Promise<{ alerts: Alert[]; nextCursor: string | null }> {
  const now = clock.now()
  const start = cursor === undefined ? undefined : lt(tokens.id, readCursor(cursor, 'alerts'))
  const rows = await query(ledger)
    .select()
    .from(tokens)
    .where(and(visibleTokens(principal), candidates(now, thresholds, depletion), start))
    .orderBy(desc(tokens.id))
    .limit(limit + 1)
  const page = rows.slice(0, limit)
  const used = await depletion.read(page)
  const alerts = page.flatMap((token) =>
    conditionsOf(token, now, thresholds, used.get(token.id) ?? null).map(({ condition, at }) => ({
      condition,
      token_id: token.id,
      name: token.name,
      resource_vrn: tokenResourceName(organizationId, token.id),
      team_id: token.teamId,
      at: at === null ? null : timestamp(at),
    })),
  )
  const last = rows.length > limit ? page.at(-1) : undefined
  return { alerts, nextCursor: last === undefined ? null : writeCursor(last.id, 'alerts') }
}

function candidates(
  now: number,
  { expiring, rotationDue, nearExhaustion }: AlertThresholds,
  depletion: DepletionView,
): SQL | undefined {
  const used = [
    depletion.exhausted('budget_exhausted'),
    depletion.exhausted('request_exhausted'),
    depletion.nearExhaustion('budget', nearExhaustion),
    depletion.nearExhaustion('requests', nearExhaustion),
    depletion.exceeded,
  ].map((condition) => sql.raw(`(${condition})`))
  const { revocation, revokedAt, rotatedAt, expiresAt, createdAt } = tokens
  return or(
    sql`${revocation} ->> 'emergency' = 1`,
    and(
      isNull(revokedAt),
      or(isNull(rotatedAt), gte(rotatedAt, now)),
      or(lte(expiresAt, now + expiring), lte(createdAt, now - rotationDue), ...used),
    ),
  )
}
