/**
 * The subprotocols that clients of the realtime API offer (OpenAI's guide, Connect with WebSockets). A browser cannot
 * set a header, so its clients put the token into the name of one. It stands in a header of the handshake, never in an
 * address.
 */
const session = 'realtime'
const withToken = /^openai-insecure-api-key\.(.+)$/

const offered = ({ headers }: Request): readonly string[] =>
  (headers.get('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim())

/** The subprotocol that is answered with; null where the client offered none of ours. */
export const chosenProtocol = (request: Request): string | null => (offered(request).includes(session) ? session : null)

/** The handshake with the token of a subprotocol as its Authorization header, unless it has one. */
export function withProtocolToken(request: Request): Request {
  const headers = new Headers(request.headers)
  const token = offered(request).flatMap((name) => withToken.exec(name)?.[1] ?? [])[0]
  if (token !== undefined && !headers.has('authorization')) headers.set('authorization', `Bearer ${token}`)
  headers.delete('sec-websocket-protocol')
  headers.delete('idempotency-key')
  return new Request(request.url, { headers })
}
