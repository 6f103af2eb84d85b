/**
 * The answers of a gateway that stops are the last on their connections (RFC 9112 section 9.6): who is told so opens no
 * request on a connection that is about to be closed. The server then closes it at once, under a caller that is still
 * writing, too, which may lose the answer by that. So a short body that nobody has read is let in first, and a caller
 * that is still at it keeps its connection until the gateway is gone.
 */

/** About what a caller can hand to its system in one piece. */
const shortBodyBytes = 64 * 1024
/** For what a caller sends with its headers; more of it is not worth an answer's delay. */
const momentMilliseconds = 100
/** Statuses of a body that was let go of before its end: Request Timeout, Content Too Large. */
const beforeTheEnd: ReadonlySet<number> = new Set([408, 413])

/**
 * The same answer, after which the server closes the connection where the request has come to its end. One that says
 * something of its connection already (426) is left as it is.
 */
export async function closingAnswer(request: Request, answer: Response): Promise<Response> {
  if (answer.headers.has('connection')) return answer
  if (await hasCome(request, answer.status)) answer.headers.set('connection', 'close')
  return answer
}

function hasCome(request: Request, status: number): Promise<boolean> | boolean {
  if (request.bodyUsed) return !beforeTheEnd.has(status)
  if (request.body === null) return true
  const length = request.headers.get('content-length')
  if (length === null || Number(length) > shortBodyBytes) return false
  const whole = request.bytes().then(
    () => true,
    () => false,
  )
  return Promise.race([whole, Bun.sleep(momentMilliseconds).then(() => false)])
}
