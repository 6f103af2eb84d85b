/**
 * Closes connections after the answers of a draining gateway (RFC 9112 section 9.6), so that a client sends no further
 * request on a connection that is about to close. The server closes at once, even while the client is still writing,
 * and the client may then lose the answer. So a short unread body is read first, and a client that is still sending
 * keeps its connection until the gateway exits.
 */

/** Roughly what a client can hand to its operating system at once. */
const shortBodyBytes = 64 * 1024
/** Long enough for a body sent together with its headers; a longer one does not justify delaying the answer. */
const momentMilliseconds = 100
/** Statuses of a request whose body was not read to its end: Request Timeout, Content Too Large. */
const unreadBodyStatuses: ReadonlySet<number> = new Set([408, 413])

/**
 * The same answer with `Connection: close` when the request has arrived whole. An answer that already has a Connection
 * header (426) is unchanged.
 */
export async function closeAfterAnswer(request: Request, answer: Response): Promise<Response> {
  if (answer.headers.has('connection')) return answer
  if (await hasArrived(request, answer.status)) answer.headers.set('connection', 'close')
  return answer
}

function hasArrived(request: Request, status: number): Promise<boolean> | boolean {
  if (request.bodyUsed) return !unreadBodyStatuses.has(status)
  if (request.body === null) return true
  const length = request.headers.get('content-length')
  if (length === null || Number(length) > shortBodyBytes) return false
  const whole = request.bytes().then(
    () => true,
    () => false,
  )
  return Promise.race([whole, Bun.sleep(momentMilliseconds).then(() => false)])
}
