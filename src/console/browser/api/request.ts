/**
 * One call of the API from the page: the session's cookie goes by itself, the CSRF token with every write. An answer
 * that says the session has ended shows the sign-in in place of the screen; the address stays, so it goes on there.
 */
import { withTimes } from '../formats.ts'
import { acceptCaller, caller, csrfToken, sessionEnded } from '../session.ts'
import type { Caller } from './caller.ts'
import { idempotencyOf } from './idempotency.ts'

/** What the API refused, in its own words (handbook/reference/http.md). */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  /** The field at fault: `config.terms.0`. */
  readonly param: string | null
  readonly requestId: string | null
  /** What the first sending of the same made, where its secret is not told again. */
  readonly madeId: string | null

  constructor(
    status: number,
    said: { message: string; code: string; param: string | null; requestId: string | null; madeId?: string | null },
  ) {
    super(said.message)
    this.status = status
    this.code = said.code
    this.param = said.param
    this.requestId = said.requestId
    this.madeId = said.madeId ?? null
  }
}

export interface Sent {
  query?: Readonly<Record<string, string | number | null | undefined>> | undefined
  body?: unknown
  headers?: Readonly<Record<string, string>>
  signal?: AbortSignal | undefined
}

/** Calls the API at the page's own origin. Throws `Refusal`, with status 0 where it could not be reached. */
export async function request<Reply>(
  method: string,
  path: string,
  sent: Sent = {},
  { again = false }: { again?: boolean } = {},
): Promise<Reply> {
  const { key, ended } = idempotencyOf(method, path, sent.body)
  // Until something else is known, and for good where the sending throws.
  ended('unknown')
  const response = await send(
    method,
    path,
    key === null ? sent : { ...sent, headers: { ...sent.headers, 'idempotency-key': key } },
  )
  const body = await response.json().catch(() => null)
  if (response.ok && body !== null) {
    ended('decided')
    return body
  }
  const refusal = refusalOf(response, body)
  if (decides(refusal)) ended('decided')
  if (refusal.code === 'csrf_refused' && !again) {
    if (await isSamePerson()) return await request(method, path, sent, { again: true })
    throw new Refusal(409, {
      ...refusal,
      message: 'The signed-in account changed, so the action was cancelled. Check the account and try again',
    })
  }
  if (response.status === 401 && !aboutPerson.has(refusal.code)) sessionEnded()
  throw refusal
}

/** Refusals of what a person typed to prove who they are: a session, where there is one, goes on. */
const aboutPerson: ReadonlySet<string | null> = new Set(['invalid_credentials', 'second_factor_required'])

/** Whether a refusal tells what became of the content, and not only of this sending of it. */
const decides = ({ status, code }: Refusal): boolean =>
  status >= 400 && status < 500 && ![401, 403, 429].includes(status) && code !== 'idempotency_in_flight'

/** Another tab has signed in anew: takes its session. Another person's screen replaces what this one's showed. */
async function isSamePerson(): Promise<boolean> {
  const before = caller.peek()?.user?.id
  const found = await request<Caller>('GET', '/v1/auth/session')
  acceptCaller(found)
  return before !== undefined && found.user?.id === before
}

async function send(method: string, path: string, { query, body, headers, signal }: Sent): Promise<Response> {
  const csrf = csrfToken()
  try {
    return await fetch(`${path}${queryText(query)}`, {
      method,
      credentials: 'same-origin',
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'GET' || csrf === null ? {} : { 'x-csrf-token': csrf }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause
    throw new Refusal(0, {
      message: 'The control plane did not answer. Your input is kept; try again later.',
      code: 'unreachable',
      param: null,
      requestId: null,
    })
  }
}

function queryText(query: Sent['query']): string {
  const text = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== '') text.set(name, String(value))
  }
  return text.size === 0 ? '' : `?${text}`
}

function refusalOf(response: Response, body: unknown): Refusal {
  const said = isEnvelope(body) ? body : null
  return new Refusal(response.status, {
    message: withTimes(said?.error.message ?? `The control plane answered ${response.status}`),
    code: said?.error.code ?? 'unknown',
    param: said?.error.param ?? null,
    requestId: response.headers.get('x-request-id'),
    madeId: typeof said?.error.id === 'string' ? said.error.id : null,
  })
}

interface Envelope {
  error: { message: string; code: string; param: string | null; id?: unknown }
}

const isEnvelope = (body: unknown): body is Envelope =>
  typeof body === 'object' && body !== null && 'error' in body && typeof body.error === 'object' && body.error !== null
