/**
 * Who sent telemetry, as attributes of its resources. What a client says under these names is taken out, so that nobody
 * sends in the name of another.
 */
import { Failure } from '../../failure.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'

export const signals = ['metrics', 'logs', 'traces'] as const
export type Signal = (typeof signals)[number]

/** Names that begin like this are the gateway's own. */
export const ownPrefix = 'gatehouse.'

export type Attribution = readonly (readonly [name: string, value: string])[]

/** Each resource gains a few hundred bytes, and an empty one has two: as many as a client has in one export. */
const mostResources = 1000

export function attributionOf(token: GovernedToken, gatewayId: string): Attribution {
  const { id, userId, eventTeamId, delegation } = token
  const values = {
    'token.id': id,
    'user.id': userId,
    'team.id': eventTeamId,
    'oauth_client.id': delegation?.clientId ?? null,
    'gateway.id': gatewayId,
  }
  return Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[ownPrefix + name, value] as const]))
}

export const malformed = (cause?: unknown): Failure =>
  new Failure('telemetry_refused', { message: 'The body is no OTLP export of this signal', cause })

/** Throws `telemetry_refused` where one export has too many resources. */
export function checkResources(count: number): void {
  if (count <= mostResources) return
  throw new Failure('telemetry_refused', { message: `One export may have ${mostResources} resources at most` })
}
