/**
 * The token endpoint (RFC 6749 section 3.2) as tables of checks: for every request, then for a code (section 4.1.3,
 * PKCE) or a refresh token (section 6). A check that finds a reused secret says so, and the caller then ends
 * everything that came of it.
 */
import { type Check, type Refusal, refuse } from '../authorize/check.ts'
import { isRepeated, type Parameters, single } from '../authorize/parameters.ts'
import { isCodeVerifier, provesPossession } from '../authorize/pkce.ts'
import { readResource } from '../authorize/resource.ts'
import type { Client } from '../clients/client.ts'
import { grantTypes } from '../clients/client-resource.ts'
import { isScope, readScope, type Scope } from '../scope.ts'
import type { Grant } from './grant.ts'

export interface RequestFacts {
  parameters: Parameters
  /** Of the `client_id` that came; null where there is none of that id. */
  client: Client | null
}

/** What is known after the request itself was checked. */
export interface GrantFacts extends RequestFacts {
  /** Milliseconds since the epoch. */
  now: number
  resources: readonly string[]
  /** The grant of the code or refresh token; null if it is unknown. */
  grant: Grant | null
  /** Whether the person may still sign in. */
  userActive: boolean
  active: readonly Scope[]
}

export interface RefreshFacts extends GrantFacts {
  refresh: { expiresAt: number; usedAt: number | null } | null
}

const once = [
  'grant_type',
  'client_id',
  'code',
  'redirect_uri',
  'code_verifier',
  'refresh_token',
  'device_code',
  'scope',
] as const
/** Every parameter that the token and revocation endpoints read. */
export const known = [...once, 'resource', 'token'] as const

export const required = (name: string, source: string): Check<RequestFacts> => ({
  name: `${name} given`,
  source,
  check: ({ parameters }) => (parameters.has(name) ? null : refuse('invalid_request', `${name} is required`)),
})

export const knownClient = (source: string): Check<RequestFacts> => ({
  name: 'known client',
  source,
  check: ({ client }) => (client === null ? refuse('invalid_client', 'No such application is registered') : null),
})

export const requestChecks: readonly Check<RequestFacts>[] = [
  {
    name: 'no parameter twice',
    source: 'RFC 6749 §3.2',
    check: ({ parameters }) => {
      const repeated = once.find((name) => isRepeated(parameters, name))
      return repeated === undefined ? null : refuse('invalid_request', `${repeated} must be given once`)
    },
  },
  required('grant_type', 'RFC 6749 §4.1.3, §6'),
  {
    name: 'known grant_type',
    source: 'RFC 6749 §5.2',
    check: ({ parameters }) =>
      grantTypes.some((type) => type === single(parameters, 'grant_type'))
        ? null
        : refuse('unsupported_grant_type', `grant_type must be ${grantTypes.join(' or ')}`),
  },
  required('client_id', 'RFC 6749 §3.2.1'),
  knownClient('RFC 6749 §5.2'),
  {
    name: 'grant_type of this client',
    source: 'RFC 6749 §5.2',
    check: ({ parameters, client }) =>
      client?.grantTypes.includes(single(parameters, 'grant_type') ?? '') === true
        ? null
        : refuse('unauthorized_client', 'The application is not registered for this grant_type'),
  },
]

export const invalidGrant = (description: string): Refusal => refuse('invalid_grant', description)

const ownGrant = (what: string, source: string): Check<GrantFacts> => ({
  name: `${what} of this client`,
  source,
  check: ({ grant, client }) =>
    grant?.clientId === client?.id ? null : invalidGrant(`The ${what} was given to another application`),
})

export const inForce: Check<GrantFacts> = {
  name: 'approval in force',
  source: 'RFC 6749 §5.2',
  check: ({ grant, userActive }) =>
    grant?.revokedAt === null && userActive ? null : invalidGrant('What the person approved has ended'),
}

export const clientInService: Check<GrantFacts> = {
  name: 'client in service',
  source: 'oauth/README.md, RFC 6749 §5.2',
  check: ({ client }) =>
    client?.deactivatedAt === null ? null : refuse('unauthorized_client', 'The application is deactivated'),
}

export const approvedResource: Check<GrantFacts> = {
  name: 'resource within what was approved',
  source: 'RFC 8707 §2.2',
  check: ({ parameters, resources, grant }) => {
    const approved = grant === null || grant.resources.length === 0 ? resources : grant.resources
    const fits = (parameters.get('resource') ?? []).every((text) => readResource(text, approved) !== null)
    return fits ? null : refuse('invalid_target', 'resource is not among those that were approved')
  },
}

/** Of what the token would permit. */
export function scopeStands<Facts extends GrantFacts>(
  scopeOf: (facts: Facts) => readonly string[] | null,
): Check<Facts> {
  return {
    name: 'scope still registered and active',
    source: 'oauth/README.md',
    check: (facts) =>
      scopeOf(facts)?.every(
        (word) => isScope(word) && facts.active.includes(word) && facts.client?.scope.includes(word),
      ) === true
        ? null
        : refuse('invalid_scope', 'Not all of this scope is active and registered any more'),
  }
}

export const codeChecks: readonly Check<GrantFacts>[] = [
  required('code', 'RFC 6749 §4.1.3'),
  required('redirect_uri', 'oauth/README.md'),
  required('code_verifier', 'RFC 7636 §4.5'),
  {
    name: 'code_verifier in its form',
    source: 'RFC 7636 §4.1',
    check: ({ parameters }) =>
      isCodeVerifier(single(parameters, 'code_verifier') ?? '')
        ? null
        : refuse('invalid_request', 'code_verifier must be 43 to 128 unreserved characters'),
  },
  {
    name: 'known code',
    source: 'RFC 6749 §5.2',
    check: ({ grant }) => (grant === null ? invalidGrant('The code is not valid') : null),
  },
  {
    name: 'first use of the code',
    source: 'RFC 6749 §4.1.2, §10.5',
    check: ({ grant }) =>
      grant?.codeUsedAt === null
        ? null
        : { ...invalidGrant('The code was used before; what it gave has ended'), replay: true },
  },
  ownGrant('code', 'RFC 6749 §4.1.3'),
  {
    name: 'code in time',
    source: 'RFC 6749 §4.1.2',
    check: ({ grant, now }) => (now < (grant?.codeExpiresAt ?? 0) ? null : invalidGrant('The code has expired')),
  },
  {
    name: 'same redirect_uri',
    source: 'RFC 6749 §4.1.3',
    check: ({ grant, parameters }) =>
      grant?.redirectUri === single(parameters, 'redirect_uri')
        ? null
        : invalidGrant('redirect_uri is not that of the authorization request'),
  },
  {
    name: 'verifier of the challenge',
    source: 'RFC 7636 §4.6',
    check: ({ grant, parameters }) =>
      provesPossession(single(parameters, 'code_verifier') ?? '', grant?.codeChallenge ?? '')
        ? null
        : invalidGrant('code_verifier does not match the challenge of the authorization request'),
  },
  inForce,
  clientInService,
  scopeStands(({ grant }) => grant?.scope ?? []),
  approvedResource,
]

export const refreshChecks: readonly Check<RefreshFacts>[] = [
  required('refresh_token', 'RFC 6749 §6'),
  {
    name: 'known refresh token',
    source: 'RFC 6749 §5.2',
    check: ({ refresh }) => (refresh === null ? invalidGrant('The refresh token is not valid') : null),
  },
  {
    name: 'first use of the refresh token',
    source: 'RFC 9700 §4.14.2',
    check: ({ refresh }) =>
      refresh?.usedAt === null
        ? null
        : { ...invalidGrant('The refresh token was used before; all that came of it has ended'), replay: true },
  },
  ownGrant('refresh token', 'RFC 6749 §6, §10.4'),
  {
    name: 'refresh token in time',
    source: 'oauth/README.md',
    check: ({ refresh, grant, now }) =>
      now < (refresh?.expiresAt ?? 0) && now < (grant?.expiresAt ?? 0)
        ? null
        : invalidGrant('The refresh token has expired'),
  },
  inForce,
  clientInService,
  {
    name: 'scope within what was approved',
    source: 'RFC 6749 §6',
    check: (facts) =>
      scopeOfRefresh(facts)?.every((word) => facts.grant?.scope.includes(word)) === true
        ? null
        : refuse('invalid_scope', 'scope may only be a part of what was approved'),
  },
  scopeStands(scopeOfRefresh),
  approvedResource,
]

/** The scope that a refresh asks for; everything approved if it does not say; null if it is malformed. */
export function scopeOfRefresh({ parameters, grant }: Pick<RefreshFacts, 'parameters' | 'grant'>): string[] | null {
  const asked = single(parameters, 'scope')
  return asked === null ? [...(grant?.scope ?? [])] : readScope(asked)
}

/** The resources of the access token: the requested ones, else all approved ones; empty for everywhere. */
export function resourcesOfToken({ parameters, grant, resources }: GrantFacts): string[] {
  const asked = (parameters.get('resource') ?? []).flatMap((text) => readResource(text, resources) ?? [])
  return asked.length > 0 ? [...new Set(asked)] : [...(grant?.resources ?? [])]
}
