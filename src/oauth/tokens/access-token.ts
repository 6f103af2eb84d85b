/** Access tokens: their row in the state, by which control plane and gateways admit. */

import { hashSecret } from '../../identity/secret.ts'
import type { Database } from '../../store/open.ts'
import { fromRow, insertRow, newStateVersion } from '../../store/rows.ts'
import { oauthTokens } from '../../store/schema/state/tokens.ts'
import type { Statement } from '../../store/statement.ts'
import { permissionsWithin, type Standing } from '../person-status.ts'
import type { Grant } from './grant.ts'

export interface AccessToken {
  id: string
  hash: string
  grantId: string
  clientId: string
  userId: string
  scope: readonly string[]
  permissions: readonly string[]
  teamIds: readonly string[]
  expiresAt: number
  revokedAt: number | null
}

/** How long an expired row stays, so that a late request is told that the token has expired. */
const expiredMemoryMilliseconds = 24 * 3600_000

/** Makes a token's row and takes those away that expired long ago: without a job, where new ones come. */
export const insertAccessToken = (
  token: { id: string; secret: string; scope: readonly string[]; resources: readonly string[]; expiresAt: number },
  { id: grantId, clientId, userId }: Grant,
  standing: Standing,
  now: number,
): Statement[] => [
  { sql: 'delete from oauth_tokens where expires_at < ?', args: [now - expiredMemoryMilliseconds] },
  insertRow(
    oauthTokens,
    {
      id: token.id,
      hash: hashSecret(token.secret),
      grantId,
      clientId,
      userId,
      scope: JSON.stringify(token.scope),
      permissions: JSON.stringify(permissionsWithin(token.scope, standing)),
      teamIds: JSON.stringify(standing.teamIds),
      resources: JSON.stringify(token.resources),
      expiresAt: token.expiresAt,
    },
    { version: newStateVersion },
  ),
]

export const revokeAccessTokens = (where: 'id' | 'grant_id', id: string, now: number): Statement => ({
  sql: `update oauth_tokens set revoked_at = ?, version = ${newStateVersion} where ${where} = ? and revoked_at is null`,
  args: [now, id],
})

/** The tokens of a grant or a person that are in force. */
export async function liveAccessTokens(
  state: Database,
  where: 'grant_id' | 'user_id',
  id: string,
  now: number,
): Promise<AccessToken[]> {
  const rows = await state.read(
    `select * from oauth_tokens where ${where} = ? and revoked_at is null and expires_at > ? and deleted = 0`,
    [id, now],
  )
  return rows.map(openAccessToken)
}

export async function findAccessToken(state: Database, secret: string): Promise<AccessToken | null> {
  const [row] = await state.read('select * from oauth_tokens where hash = ? and deleted = 0', [hashSecret(secret)])
  return row === undefined ? null : openAccessToken(row)
}

/** Opens a row, which was written from checked values. */
function openAccessToken(row: Record<string, unknown>): AccessToken {
  const stored = fromRow(oauthTokens, row)
  return {
    ...stored,
    scope: JSON.parse(stored.scope) as string[],
    permissions: JSON.parse(stored.permissions) as string[],
    teamIds: JSON.parse(stored.teamIds) as string[],
  }
}
