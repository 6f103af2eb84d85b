/** The flow of an application written by hand, byte for byte, for what no library would send. */
import { createHash, randomBytes } from 'node:crypto'
import { type Installed, parseOrKeep } from '../support/client.ts'
import type { Gatehouse } from '../support/harness.ts'
import { decide, type Person, redirectUri } from './people.ts'

export interface Answered {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

export interface Tokens {
  access_token: string
  refresh_token: string
}

export const newVerifier = (): string => randomBytes(32).toString('base64url')
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

/** An authorization request as the application builds it; null leaves a parameter out. */
export function authorizationUrl(
  gatehouse: Installed,
  clientId: string,
  verifier: string,
  fields: Readonly<Record<string, string | null>> = {},
): URL {
  const url = new URL(`${gatehouse.baseUrl}/console/oauth/authorize`)
  const query = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'gateway:invoke tokens:read',
    state: 'the state',
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
    ...fields,
  }
  for (const [name, value] of Object.entries(query)) if (value !== null) url.searchParams.set(name, value)
  return url
}

export async function post(
  gatehouse: Installed,
  path: string,
  form: Readonly<Record<string, string>>,
): Promise<Answered> {
  const answer = await fetch(gatehouse.baseUrl + path, { method: 'POST', body: new URLSearchParams(form) })
  const body = parseOrKeep(await answer.text())
  if (typeof body !== 'object' || body === null) throw new Error(`No JSON object: ${String(body)}`)
  return { status: answer.status, headers: answer.headers, body: { ...body } }
}

export const codeRequest = (clientId: string, code: string, verifier: string): Record<string, string> => ({
  grant_type: 'authorization_code',
  client_id: clientId,
  code,
  redirect_uri: redirectUri,
  code_verifier: verifier,
})

export const refresh = (
  gatehouse: Installed,
  clientId: string,
  refreshToken: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<Answered> =>
  post(gatehouse, '/v1/oauth/token', {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: refreshToken,
    ...fields,
  })

/** A code that the person approved, with the verifier that belongs to it. */
export async function approvedCode(
  gatehouse: Installed,
  clientId: string,
  who: Person,
  fields: Readonly<Record<string, string | null>> = {},
): Promise<{ code: string; verifier: string; request: Record<string, string> }> {
  const verifier = newVerifier()
  const back = await decide(gatehouse, who, authorizationUrl(gatehouse, clientId, verifier, fields))
  const code = back.searchParams.get('code')
  if (code === null) throw new Error(`No code: ${back}`)
  return { code, verifier, request: codeRequest(clientId, code, verifier) }
}

export async function tokensFor(
  gatehouse: Installed,
  clientId: string,
  who: Person,
  fields: Readonly<Record<string, string | null>> = {},
): Promise<Tokens> {
  const { request } = await approvedCode(gatehouse, clientId, who, fields)
  return tokensOf(await post(gatehouse, '/v1/oauth/token', request))
}

export function tokensOf({ status, body }: Answered): Tokens {
  const { access_token, refresh_token } = body
  if (status === 200 && typeof access_token === 'string' && typeof refresh_token === 'string') {
    return { access_token, refresh_token }
  }
  throw new Error(`No tokens: ${status} ${JSON.stringify(body)}`)
}

/** Whether an access token opens the control plane, and the gateway. */
export async function opens(gatehouse: Gatehouse, accessToken: string): Promise<{ api: boolean; gateway: boolean }> {
  const headers = { authorization: `Bearer ${accessToken}` }
  const [api, gateway] = await Promise.all([
    fetch(`${gatehouse.baseUrl}/v1/tokens`, { headers }),
    fetch(`${gatehouse.gatewayUrl}/v1/models`, { headers }),
  ])
  return { api: api.status === 200, gateway: gateway.status === 200 }
}
