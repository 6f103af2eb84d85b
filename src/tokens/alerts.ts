/**
 * Lifecycle alerts (contract section 3): what somebody should look at before, or after, a token stops working. Computed
 * when read. The conditions of budgets and requests are not among them until usage is counted.
 */
import { z } from 'zod'
import { readCursor, writeCursor } from '../api/cursor.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { tokenStatus } from './governed.ts'
import type { Principal } from './principal.ts'
import { tokenResourceName } from './record.ts'
import { openToken, type StoredToken } from './stored-token.ts'
import { visibleTokens } from './visibility.ts'

export const alertConditions = ['expiring', 'expired', 'rotation_due', 'emergency_revoked'] as const

export const alertSchema = z.object({
  condition: z.enum(alertConditions),
  token_id: z.uuid(),
  name: z.string(),
  resource_vrn: z.string(),
  team_id: z.uuid().nullable(),
  at: z.iso.datetime().describe('When the token expires or expired, was due for rotation, or was revoked'),
})
export type Alert = z.infer<typeof alertSchema>

const day = 24 * 60 * 60 * 1000

export interface AlertThresholds {
  /** Milliseconds before expiry. */
  expiring: number
  /** Milliseconds since the token was made, by creation or rotation. */
  rotationDue: number
}
export const defaultThresholds: AlertThresholds = { expiring: 7 * day, rotationDue: 90 * day }

/** The conditions a token is in at the instant `now`, each with the instant it is about. */
export function conditionsOf(
  token: StoredToken,
  now: number,
  { expiring, rotationDue }: AlertThresholds = defaultThresholds,
): { condition: Alert['condition']; at: number }[] {
  const status = tokenStatus(token, now)
  if (status === 'revoked') {
    const emergency = token.revocation?.emergency === true && token.revokedAt !== null
    return emergency ? [{ condition: 'emergency_revoked', at: token.revokedAt ?? now }] : []
  }
  if (status === 'rotated') return []
  const { expiresAt } = token
  if (expiresAt !== null && status === 'expired') return [{ condition: 'expired', at: expiresAt }]
  const due = token.createdAt + rotationDue
  return [
    ...(expiresAt !== null && expiresAt - now <= expiring ? [{ condition: 'expiring' as const, at: expiresAt }] : []),
    ...(due <= now && token.rotatedAt === null ? [{ condition: 'rotation_due' as const, at: due }] : []),
  ]
}

export const listAlertsQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(100).default(100).describe('How many tokens; each may have several alerts'),
  cursor: z.string().max(1000).optional(),
})

/** A page of alerts by token, newest tokens first. */
export async function listAlerts(
  ledger: Database,
  principal: Principal,
  { limit, cursor }: z.infer<typeof listAlertsQuery>,
  { organizationId, now }: { organizationId: string; now: number },
): Promise<{ alerts: Alert[]; nextCursor: string | null }> {
  const visible = visibleTokens(principal)
  const { expiring, rotationDue } = defaultThresholds
  const rows = await ledger.read(
    `select * from tokens where ${visible.sql} and (
        revocation ->> 'emergency' = 1
        or revoked_at is null and coalesce(rotated_at, ?) >= ? and (expires_at <= ? or created_at <= ?))
      ${cursor === undefined ? '' : 'and id < ?'} order by id desc limit ?`,
    [
      ...visible.args,
      now,
      now,
      now + expiring,
      now - rotationDue,
      ...(cursor === undefined ? [] : [readCursor(cursor, 'alerts')]),
      limit + 1,
    ],
  )
  const tokens = rows.slice(0, limit).map(openToken)
  const alerts = tokens.flatMap((token) =>
    conditionsOf(token, now).map(({ condition, at }) => ({
      condition,
      token_id: token.id,
      name: token.name,
      resource_vrn: tokenResourceName(organizationId, token.id),
      team_id: token.teamId,
      at: timestamp(at),
    })),
  )
  const last = rows.length > limit ? tokens.at(-1) : undefined
  return { alerts, nextCursor: last === undefined ? null : writeCursor(last.id, 'alerts') }
}
