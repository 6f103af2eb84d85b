/**
 * The authorization request (RFC 6749 section 4.1.1) as two tables of checks. Errors of the first are shown to the
 * person and never redirected, because the address is not yet known to be the application's (section 4.1.2.1). Errors
 * of the second are sent to the application, with its `state` and the issuer (RFC 9207).
 */

import type { Client } from '../clients/client.ts'
import { hasRedirect } from '../clients/unvetted-client.ts'
import { isScope, readScope, type Scope } from '../scope.ts'
import { type Check, firstRefusal, type Refusal, refuse } from './check.ts'
import { isRepeated, type Parameters, single } from './parameters.ts'
import { redirectWith } from './redirect-uri.ts'
import { readResource } from './resource.ts'

export interface AuthorizeFacts {
  parameters: Parameters
  /** Why the document that `client_id` names cannot be used; null where it can, or there is none. */
  documentFault?: string | null
  /** The client of `client_id`; null if there is none. */
  client: Client | null
  active: readonly Scope[]
  resources: readonly string[]
}

/** Known and once at most; `resource` may come several times. */
const once = ['response_type', 'scope', 'state', 'code_challenge', 'code_challenge_method'] as const
/** BASE64URL of a SHA-256, without padding (RFC 7636 section 4.2). */
const challengeForm = /^[A-Za-z0-9_-]{43}$/
const longestState = 4096

export const pageChecks: readonly Check<AuthorizeFacts>[] = [
  {
    name: 'one client_id',
    source: 'RFC 6749 §4.1.1',
    check: ({ parameters }) =>
      single(parameters, 'client_id') === null ? refuse('invalid_request', 'client_id must be given once') : null,
  },
  {
    name: 'known client',
    source: 'RFC 6749 §4.1.2.1',
    check: ({ client, documentFault }) =>
      client === null ? refuse('invalid_client', documentFault ?? 'No such application is registered') : null,
  },
  {
    name: 'one redirect_uri',
    source: 'oauth/README.md',
    check: ({ parameters }) =>
      single(parameters, 'redirect_uri') === null ? refuse('invalid_request', 'redirect_uri must be given once') : null,
  },
  {
    name: 'registered redirect_uri, compared as a string',
    source: 'RFC 6749 §3.1.2.3, RFC 9700 §4.1.3',
    check: ({ parameters, client }) =>
      client !== null && hasRedirect(client, single(parameters, 'redirect_uri') ?? '')
        ? null
        : refuse('invalid_request', 'redirect_uri is not one that the application has registered'),
  },
]

export const redirectChecks: readonly Check<AuthorizeFacts>[] = [
  {
    name: 'no parameter twice',
    source: 'RFC 6749 §3.1',
    check: ({ parameters }) => {
      const repeated = once.find((name) => isRepeated(parameters, name))
      return repeated === undefined ? null : refuse('invalid_request', `${repeated} must be given once`)
    },
  },
  {
    name: 'state that can be given back',
    source: 'RFC 6749 §4.1.2',
    check: ({ parameters }) =>
      parameters.has('state') && (stateOf(parameters)?.length ?? Number.POSITIVE_INFINITY) > longestState
        ? refuse('invalid_request', `state must be text of at most ${longestState} characters`)
        : null,
  },
  {
    name: 'client in service',
    source: 'RFC 6749 §4.1.2.1',
    check: ({ client }) =>
      client?.deactivatedAt === null ? null : refuse('unauthorized_client', 'The application is deactivated'),
  },
  {
    name: 'authorization code of this client',
    source: 'RFC 6749 §4.1.2.1',
    check: ({ client }) =>
      client?.grantTypes.includes('authorization_code') === true
        ? null
        : refuse('unauthorized_client', 'The application is not registered for authorization codes'),
  },
  {
    name: 'response_type given',
    source: 'RFC 6749 §3.1.1',
    check: ({ parameters }) =>
      parameters.has('response_type') ? null : refuse('invalid_request', 'response_type is required'),
  },
  {
    name: 'response_type code',
    source: 'RFC 6749 §3.1.1, RFC 9700 §2.1.2',
    check: ({ parameters }) =>
      single(parameters, 'response_type') === 'code'
        ? null
        : refuse('unsupported_response_type', 'response_type must be code'),
  },
  {
    name: 'code_challenge given, in its form',
    source: 'RFC 7636 §4.2, §4.4.1',
    check: ({ parameters }) =>
      challengeForm.test(single(parameters, 'code_challenge') ?? '')
        ? null
        : refuse('invalid_request', 'code_challenge must be BASE64URL(SHA256(code_verifier))'),
  },
  {
    name: 'code_challenge_method S256',
    source: 'RFC 7636 §4.3, §4.4.1',
    check: ({ parameters }) =>
      single(parameters, 'code_challenge_method') === 'S256'
        ? null
        : refuse('invalid_request', 'code_challenge_method must be S256'),
  },
  {
    name: 'scope in its form',
    source: 'RFC 6749 §3.3',
    check: ({ parameters }) =>
      parameters.has('scope') && readScope(single(parameters, 'scope') ?? '') === null
        ? refuse('invalid_scope', 'scope must be words separated by single spaces')
        : null,
  },
  {
    name: 'registered scope',
    source: 'oauth/README.md, RFC 6749 §3.3',
    check: (facts) =>
      scopeOf(facts).every((word) => facts.client?.scope.includes(word))
        ? null
        : refuse('invalid_scope', 'The application is not registered for all of this scope'),
  },
  {
    name: 'active scope',
    source: 'oauth/README.md',
    check: (facts) => {
      const scope = scopeOf(facts)
      return scope.length > 0 && scope.every((word) => isScope(word) && facts.active.includes(word))
        ? null
        : refuse('invalid_scope', 'Not all of this scope is active')
    },
  },
  {
    name: 'known resource',
    source: 'RFC 8707 §2',
    check: ({ parameters, resources }) =>
      (parameters.get('resource') ?? []).every((text) => readResource(text, resources) !== null)
        ? null
        : refuse('invalid_target', 'resource must be this control plane, its gateway, or the MCP address of that'),
  },
]

/** `state` unchanged; null if there is none, or one that cannot be sent back unchanged. */
export function stateOf(parameters: Parameters): string | null {
  const state = single(parameters, 'state')
  return state?.isWellFormed() === true ? state : null
}

/**
 * The requested scopes; without a parameter the active ones that the client is registered for (RFC 6749 section 3.3).
 */
function scopeOf({ parameters, client, active }: AuthorizeFacts): string[] {
  const asked = single(parameters, 'scope')
  if (asked !== null) return readScope(asked) ?? []
  return (client?.scope ?? []).filter((word) => isScope(word) && active.includes(word))
}

/** A request that may be shown to the person. */
export interface Authorization {
  client: Client
  redirectUri: string
  state: string | null
  scope: readonly Scope[]
  /** Empty for all. */
  resources: readonly string[]
  codeChallenge: string
}

export type Considered =
  | { kind: 'page'; refusal: Refusal }
  | { kind: 'redirect'; to: string; refusal: Refusal }
  | { kind: 'ask'; authorization: Authorization }

/** Runs both tables. `issuer` is the sender named in a redirect. */
export function considerAuthorization(facts: AuthorizeFacts, issuer: string): Considered {
  const { parameters, client } = facts
  const shown = firstRefusal(pageChecks, facts)
  const redirectUri = single(parameters, 'redirect_uri')
  if (shown !== null || client === null || redirectUri === null) {
    return {
      kind: 'page',
      refusal: shown ?? refuse('invalid_request', 'The request is malformed: see /v1/openapi.json'),
    }
  }
  const state = stateOf(parameters)
  const refusal = firstRefusal(redirectChecks, facts)
  if (refusal !== null) return { kind: 'redirect', refusal, to: errorRedirect({ redirectUri, state }, refusal, issuer) }
  const resources = (parameters.get('resource') ?? []).flatMap((text) => readResource(text, facts.resources) ?? [])
  return {
    kind: 'ask',
    authorization: {
      client,
      redirectUri,
      state,
      scope: scopeOf(facts).filter(isScope),
      resources: [...new Set(resources)],
      codeChallenge: single(parameters, 'code_challenge') ?? '',
    },
  }
}

/** RFC 6749 section 4.1.2.1 with the issuer of RFC 9207. */
export const errorRedirect = (
  { redirectUri, state }: Pick<Authorization, 'redirectUri' | 'state'>,
  { error, description }: Refusal,
  issuer: string,
): string => redirectWith(redirectUri, { error, error_description: description, state, iss: issuer })

/** RFC 6749 section 4.1.2 with the issuer of RFC 9207. */
export const codeRedirect = ({ redirectUri, state }: Authorization, code: string, issuer: string): string =>
  redirectWith(redirectUri, { code, state, iss: issuer })
