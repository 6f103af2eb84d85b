/** Calls to a running installation: its API, its gateway, and the few things nearly every test makes first. */
import type { z } from 'zod'
import { type CreatedToken, createdToken, tokenPage } from './answers.ts'
import type { Gatehouse } from './harness.ts'

/** Where an API is, and who asks where nobody else is named. */
export type Installed = Pick<Gatehouse, 'baseUrl' | 'adminToken'>

export interface ApiAnswer {
  status: number
  headers: Headers
  body: unknown
}

export interface ApiRequest {
  token?: string | null
  method?: string
  body?: unknown
  headers?: Readonly<Record<string, string>>
}

/** Calls the control plane, as the administrator where no other token is given; `token: null` sends none. */
export async function api(gatehouse: Installed, path: string, request: ApiRequest = {}): Promise<ApiAnswer> {
  const { token = gatehouse.adminToken, body, method = body === undefined ? 'GET' : 'POST', headers = {} } = request
  const response = await fetch(`${gatehouse.baseUrl}${path}`, {
    method,
    // A kept connection may be closed by the other side at the moment it is used again.
    keepalive: false,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: parseOrKeep(text) }
}

export function parseOrKeep(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not every answer is JSON; the text itself then says more in a failed test.
    return text
  }
}

/** Parses an answer that must have this status; the failure shows what came instead. */
export function expectAnswer<Schema extends z.ZodType>(
  { status, body }: ApiAnswer,
  expected: number,
  schema: Schema,
): z.infer<Schema> {
  const parsed = schema.safeParse(body)
  if (status === expected && parsed.success) return parsed.data
  const reason = parsed.success ? '' : `\n${parsed.error.message}`
  throw new Error(`Expected ${expected}, got ${status}: ${JSON.stringify(body)}${reason}`)
}

export const createToken = async (gatehouse: Installed, fields: object = {}): Promise<CreatedToken> =>
  expectAnswer(
    await api(gatehouse, '/v1/tokens', { body: { name: 'for a test', purpose: 'general', ...fields } }),
    201,
    createdToken,
  )

export const revoke = (gatehouse: Installed, id: string): Promise<ApiAnswer> =>
  api(gatehouse, `/v1/tokens/${id}`, { method: 'DELETE' })

/** The gateway record and team of a fresh installation, as its runtime token names them. */
export async function installation(gatehouse: Installed): Promise<{ gatewayId: string; teamId: string }> {
  const page = expectAnswer(await api(gatehouse, '/v1/tokens?purpose=gateway_runtime'), 200, tokenPage)
  const bindings = page.tokens[0]?.bindings
  if (!bindings?.gateway_id || !bindings.team_id) throw new Error('The runtime token of the gateway is not listed')
  return { gatewayId: bindings.gateway_id, teamId: bindings.team_id }
}

export interface ChatRequest {
  token: string
  model?: string
  stream?: boolean
  /** The text of the one message; the fake upstream's record shows it. */
  text?: string
  requestId?: string
  headers?: Readonly<Record<string, string>>
  signal?: AbortSignal
}

/** Sends a chat request the plain way; the caller reads the body. */
export function chat(gatehouse: Pick<Gatehouse, 'gatewayUrl'>, request: ChatRequest): Promise<Response> {
  const { token, model = 'fake-model', stream = false, text = 'hello', requestId, headers, signal: abort } = request
  return fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(requestId && { 'x-request-id': requestId }),
      ...headers,
    },
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: text }],
      ...(stream && { stream, stream_options: { include_usage: true } }),
    }),
    ...(abort && { signal: abort }),
  })
}
