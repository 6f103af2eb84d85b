/**
 * Sign-in at the gateway's own address, as Claude Code expects it (https://code.claude.com/docs/en/llm-gateway-protocol
 * and the `/protocol` page of Claude apps gateway): metadata whose device and token endpoints are of the same origin
 * (RFC 8414, RFC 8628). Both endpoints pass the form on to the control plane, which decides; the gateway adds two
 * things that this client needs:
 *
 *   - It sends no `client_id`. Without one the request is that of `claude-code`.
 *   - It signs in again only after a refresh that is answered 401; RFC 6749 section 5.2 says 400.
 *
 * Limits: 64 KiB a form, whose length is declared, within 10 s; 32 requests that wait for the control plane, 15 s each.
 */
import type { InFlight } from '../context.ts'

export const metadataPath = '/.well-known/oauth-authorization-server'
export const deviceAuthorizationPath = '/v1/oauth/device_authorization'
export const tokenPath = '/v1/oauth/token'

/** The methods of the paths that sign in. */
export const signInPaths: Readonly<Record<string, 'GET' | 'POST'>> = {
  [metadataPath]: 'GET',
  [deviceAuthorizationPath]: 'POST',
  [tokenPath]: 'POST',
}

/** Sends a form to the control plane. */
export type AskControlPlane = (path: string, form: URLSearchParams, requestId: string) => Promise<Response>

/** The client of a request that names none. */
export const defaultClient = 'claude-code'

const notAForm = 'Send application/x-www-form-urlencoded with its Content-Length, 64 KiB at most'
const notRegistered = `Nobody can sign in here yet: an administrator registers ${defaultClient}, as by gatehouse connect ${defaultClient} --sign-in`
const formBytes = 64 * 1024
const formMilliseconds = 10_000
const mostWaiting = 32
export const answerMilliseconds = 15_000
const retryAfterSeconds = '2'

export interface SignInOptions {
  /** The gateway's own address for others; empty before the first bootstrap. */
  gatewayUrl(): string
  ask: AskControlPlane
  running: Pick<InFlight, 'waitFor'>
}

export class SignIn {
  readonly #options: SignInOptions
  #waiting = 0

  constructor(options: SignInOptions) {
    this.#options = options
  }

  /** Answers one of `signInPaths`; what goes wrong in the form of RFC 6749 section 5.2. */
  async answer(path: string, request: Request, requestId: string): Promise<Response> {
    const answer = await this.#answer(path, request, requestId)
    answer.headers.set('x-request-id', requestId)
    answer.headers.set('cache-control', 'no-store')
    return answer
  }

  async #answer(path: string, request: Request, requestId: string): Promise<Response> {
    const { gatewayUrl, ask, running } = this.#options
    if (gatewayUrl() === '') return unavailable('The gateway is starting: try again')
    if (path === metadataPath) return Response.json(metadataOf(originFor(request, gatewayUrl())))
    const form = await readForm(request)
    if (form === null) return refusal(400, 'invalid_request', notAForm)
    if (this.#waiting >= mostWaiting) return unavailable('Too many sign-ins wait: try again')
    this.#waiting += 1
    try {
      const isNamed = form.has('client_id')
      if (!isNamed) form.set('client_id', defaultClient)
      const asked = ask(path, form, requestId)
      running.waitFor(asked)
      const { status, headers, text } = await received(await asked)
      const error = status === 400 ? errorOf(text) : null
      if (error === 'invalid_client' && !isNamed) return refusal(400, error, notRegistered)
      // After this the client asks its person to sign in again.
      if (error === 'invalid_grant' && form.get('grant_type') === 'refresh_token') {
        headers.set('www-authenticate', 'Bearer')
        return new Response(text, { status: 401, headers })
      }
      return new Response(text, { status, headers })
    } catch {
      // What failed is the call, or the client's connection; neither says more to the client.
      return unavailable('The control plane does not answer: try again')
    } finally {
      this.#waiting -= 1
    }
  }
}

/**
 * The origin that the client used, as it compares it with that of the endpoints: the gateway's address, or for a gateway
 * beside the client the loopback address by which it was called.
 */
function originFor(request: Request, gatewayUrl: string): string {
  const { hostname, host } = new URL(request.url)
  if (!loopback.has(hostname) || host === new URL(gatewayUrl).host) return gatewayUrl
  return `http://${host}`
}

const loopback: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

/** RFC 8414 section 2. No `authorization_endpoint`: nobody is redirected here. */
const metadataOf = (origin: string) => ({
  issuer: origin,
  device_authorization_endpoint: origin + deviceAuthorizationPath,
  token_endpoint: origin + tokenPath,
  grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
  response_types_supported: [],
  token_endpoint_auth_methods_supported: ['none'],
  scopes_supported: ['gateway:invoke'],
})

/** Null where it is no form, is too long, does not say how long it is, or does not arrive in time. */
async function readForm(request: Request): Promise<URLSearchParams | null> {
  const { headers } = request
  const length = Number(headers.get('content-length') ?? Number.NaN)
  const isForm = /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(headers.get('content-type') ?? '')
  if (!isForm || !(length <= formBytes)) return null
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(resolve, formMilliseconds, null)
  try {
    const text = await Promise.race([request.text(), late])
    return text === null ? null : new URLSearchParams(text)
  } catch {
    // The client broke off.
    return null
  } finally {
    clearTimeout(timer)
  }
}

const passedHeaders = ['content-type', 'retry-after']

/** The control plane's answer, as far as the client is told. */
async function received(answer: Response): Promise<{ status: number; headers: Headers; text: string }> {
  const headers = new Headers(passedHeaders.flatMap((name) => entry(name, answer.headers.get(name))))
  return { status: answer.status, headers, text: await answer.text() }
}

const entry = (name: string, value: string | null): [string, string][] => (value === null ? [] : [[name, value]])

function errorOf(text: string): unknown {
  try {
    const { error }: { error?: unknown } = Object(JSON.parse(text))
    return error
  } catch {
    return null
  }
}

const refusal = (status: number, error: string, description: string): Response =>
  Response.json({ error, error_description: description }, { status })

function unavailable(description: string): Response {
  const answer = refusal(503, 'temporarily_unavailable', description)
  answer.headers.set('retry-after', retryAfterSeconds)
  return answer
}
