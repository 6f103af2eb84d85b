/**
 * `GET /managed/settings`: the settings of the coding agent that asks, by the teams of its token. The answer has a uuid,
 * a checksum and the settings; 404 says that no settings are for this person, which differs from empty settings. Agents
 * ask every hour with the checksum of what they have (RFC 9110 section 13.1.2): 304 where nothing has changed.
 */
import { Failure } from '../../failure.ts'
import type { ManagedSettings } from '../../fleet/protocol/worker.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'

export const managedSettingsPath = '/managed/settings'

export async function answerManagedSettings(exchange: Exchange, gateway: Gateway): Promise<void> {
  const found = settingsFor(required(exchange.token), gateway.worker.view.managedSettings())
  if (found === null) throw new Failure('not_found', { message: 'No managed settings are for the owner of this token' })
  const { id, checksum, settings } = found
  const etag = `"${checksum}"`
  const isKnown = namesTag(exchange.request.headers.get('if-none-match'), etag)
  await finishExchange(exchange, gateway, { verdict: 'allow', reason: 'ok', status: isKnown ? 304 : 200 })
  const headers = { etag, 'cache-control': 'private, no-cache', 'x-request-id': exchange.requestId }
  exchange.answer = isKnown
    ? new Response(null, { status: 304, headers })
    : new Response(`{"uuid":${JSON.stringify(id)},"checksum":${JSON.stringify(checksum)},"settings":${settings}}`, {
        headers: { ...headers, 'content-type': 'application/json' },
      })
}

/** The first that is for everybody or for a team of the token. */
function settingsFor(token: GovernedToken, all: readonly ManagedSettings[]): ManagedSettings | null {
  const teams = teamsOf(token)
  return all.find(({ teamIds }) => teamIds.length === 0 || teamIds.some((team) => teams.has(team))) ?? null
}

/** Of a person who signed in, all teams; of an API token, those it belongs to. */
const teamsOf = ({ delegation, ownerKind, ownerId, teamId, eventTeamId }: GovernedToken): ReadonlySet<string | null> =>
  new Set(delegation?.teamIds ?? [teamId, eventTeamId, ownerKind === 'team' ? ownerId : null])

const namesTag = (header: string | null, etag: string): boolean =>
  (header ?? '').split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag || tag.trim() === '*')
