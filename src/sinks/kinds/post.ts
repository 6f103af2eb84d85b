/**
 * Posts a body to a receiver. No redirect is followed, since it could carry the credentials elsewhere. What it answers
 * says whether the content is at fault (400, 413, 422) or the moment.
 */
import { callFailure } from '../../lib/http/call-failure.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { ContentRefused, type Item, ReceiverFailed, type ReceiverTools, type Sink } from '../sink.ts'

export const timeoutMilliseconds = 30_000
const longestAnswer = 64 * 1024
const longestQuote = 200
const longestWaitMilliseconds = 3_600_000

interface Posted {
  method?: 'POST' | 'PUT' | 'GET'
  url: string
  headers: Readonly<Record<string, string>>
  body?: Uint8Array<ArrayBuffer> | string
}

/** A successful answer, whose body is to be read. Rejects with `ContentRefused` or `ReceiverFailed`. */
export async function post(
  { config, credentials }: Pick<Sink, 'config' | 'credentials'>,
  { fetch, now }: ReceiverTools,
  { method = 'POST', url, headers, body }: Posted,
  signal: AbortSignal,
): Promise<Response> {
  const ca = config.ca_certificate
  let answer: Response
  let text = ''
  try {
    answer = await fetch(url, {
      method,
      headers: { ...headers, ...credentials.headers },
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMilliseconds)]),
      ...(body === undefined ? {} : { body }),
      ...(ca === undefined ? {} : { tls: { ca } }),
    })
    if (!answer.ok) text = await beginning(answer)
  } catch (error) {
    throw new ReceiverFailed(`The receiver: ${callFailure(error, 'it did not answer in time')}`, { cause: error })
  }
  if (answer.ok) return answer
  const message = `The receiver answered ${answer.status}${quoted(text, credentials)}`
  if (answer.status === 400 || answer.status === 413 || answer.status === 422) throw new ContentRefused(message)
  throw new ReceiverFailed(message, { wait: retryAfter(answer.headers.get('retry-after'), now()) })
}

/** As much of an answer as is looked at. */
export async function beginning(answer: Response): Promise<string> {
  if (answer.body === null) return ''
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of answer.body) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > longestAnswer) break
  }
  return text
}

/** What the receiver said, on one line and without what it was sent as a credential, as it stands or in a header. */
export function quoted(text: string, credentials: Sink['credentials']): string {
  const secrets = Object.values({ basic: basicOf(credentials), ...credentials }).flatMap((value) =>
    typeof value === 'string' ? [value] : Object.values(value ?? {}),
  )
  const safe = secrets.reduce((said, secret) => said.replaceAll(secret, '•'), text)
  const line = safe.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
  return line === '' ? '' : `: ${line.slice(0, longestQuote)}`
}

/** RFC 9110 section 10.2.3: seconds or a date, as milliseconds from now. */
function retryAfter(header: string | null, now: number): number | null {
  if (header === null) return null
  const wait = /^\d{1,6}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isFinite(wait) && wait > 0 ? Math.min(wait, longestWaitMilliseconds) : null
}

/** RFC 7617, or a bearer token (RFC 6750). */
export function authorization({ token, username, password }: Sink['credentials']): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  return username === undefined ? {} : { authorization: `Basic ${basicOf({ username, password })}` }
}

const basicOf = ({ username = '', password = '' }: Pick<Sink['credentials'], 'username' | 'password'>): string =>
  Buffer.from(`${username}:${password}`).toString('base64')

/** Items that are written between two turns of other work: about a millisecond. */
const itemsAtOnce = 128

/** The texts of items, one after another; a control plane has more to do than this. */
export async function joined(items: readonly Item[], write: (item: Item) => string, between: string): Promise<string> {
  let text = ''
  for (let from = 0; from < items.length; from += itemsAtOnce) {
    if (from > 0) {
      text += between
      await yieldToEventLoop()
    }
    text += items
      .slice(from, from + itemsAtOnce)
      .map(write)
      .join(between)
  }
  return text
}

/** A body compressed by gzip, off this thread. */
export async function gzipped(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const { gzip } = await import('node:zlib')
  return await new Promise((resolve, reject) => {
    gzip(text, { level: 1 }, (error, bytes) => (error === null ? resolve(new Uint8Array(bytes)) : reject(error)))
  })
}
