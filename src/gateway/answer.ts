/**
 * Passes the provider's answer on. Streams go to `stream.ts`, what is neither JSON nor small to `plain-answer.ts`;
 * everything else is read whole, its outcome committed, and only then answered, with the bytes that came and their
 * length.
 */
import { isObject, parseObject } from '../dialects/json-value.ts'
import { answered } from './answered.ts'
import { readBounded } from './bounded.ts'
import { considerAnswer, isAnswerConsidered } from './consider-response.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'
import { headersToCaller } from './headers.ts'
import { relayPlain } from './plain-answer.ts'
import { endAttempt, settle } from './record.ts'
import { relayStream } from './stream.ts'
import { unusable } from './unusable.ts'

/** A declared length up to this is read in one piece; beyond it each chunk shows that the provider is not silent. */
const onePieceBytes = 256 * 1024
const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

export async function passAnswer(exchange: Exchange, gateway: Gateway): Promise<void> {
  const upstream = given(exchange.upstream)
  if (upstream.status >= 400) return passError(exchange, gateway, upstream)
  const type = (upstream.headers.get('content-type') ?? '').toLowerCase()
  const isEventStream = type.startsWith('text/event-stream')
  if (upstream.status < 200 || upstream.status >= 300 || isEventStream !== given(exchange.facts).stream) {
    throw unusable(exchange, gateway, 'provider.invalid_answer')
  }
  if (isEventStream) await relayStream(exchange, gateway, upstream)
  else if (!isPlain(exchange, type)) await passWhole(exchange, gateway, upstream)
  else if (isSmall(upstream)) await passSmall(exchange, gateway, upstream)
  else await relayPlain(exchange, gateway, upstream)
}

/** Whether the family answers in this type beside JSON. */
const isPlain = ({ dialect }: Exchange, type: string): boolean =>
  dialect.plainAnswers?.some((start) => type.startsWith(start)) ?? false

/** Whether an answer may be read in one piece: asking for `body` makes a stream of it, which costs more. */
function isSmall({ headers }: Response): boolean {
  const declared = headers.get('content-length')
  return declared !== null && !headers.has('content-encoding') && Number(declared) <= onePieceBytes
}

async function passSmall(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const bytes = await readWhole(exchange, gateway, upstream)
  if (exchange.dialect.family === 'transcriptions') exchange.relayedText = bytes.length
  await settle(exchange, gateway, answered(exchange, upstream.status))
  answerWith(exchange, gateway, upstream, bytes)
}

async function passWhole(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const bytes = await readWhole(exchange, gateway, upstream)
  let body: unknown
  try {
    body = JSON.parse(strictUtf8.decode(bytes))
  } catch (thrown) {
    throw unusable(exchange, gateway, 'provider.invalid_answer', thrown)
  }
  const { usage, textLength } = exchange.dialect.readAnswer(body)
  exchange.usage = usage
  exchange.relayedText = textLength
  const instead = isAnswerConsidered(exchange) ? await considered(exchange, gateway, upstream, body) : null
  await settle(exchange, gateway, answered(exchange, upstream.status))
  answerWith(exchange, gateway, upstream, instead ?? bytes)
}

/** What policies make of the answer; null where it goes as it came. Throws what they decide. */
async function considered(
  exchange: Exchange,
  gateway: Gateway,
  { status }: Response,
  body: unknown,
): Promise<Uint8Array | null> {
  if (!isObject(body)) throw unusable(exchange, gateway, 'provider.invalid_answer')
  endAttempt(exchange, gateway, 'ok')
  const changed = await considerAnswer(exchange, gateway, { status, body })
  return changed === null ? null : new TextEncoder().encode(JSON.stringify(changed))
}

/**
 * The provider's own refusal passes with its status and body, whatever that is, unless the dialect's clients would not
 * read it (service.md Errors, rule 2).
 */
async function passError(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const bytes = await readWhole(exchange, gateway, upstream)
  const body = parseObject(new TextDecoder().decode(bytes))
  exchange.usage = body === null ? null : exchange.dialect.readAnswer(body).usage
  const rewritten = body === null ? null : exchange.dialect.providerError(upstream.status, body, exchange.requestId)
  await settle(exchange, gateway, { verdict: 'error', reason: 'provider.error', status: upstream.status })
  if (rewritten === null) return answerWith(exchange, gateway, upstream, bytes)
  answerWith(exchange, gateway, upstream, new TextEncoder().encode(JSON.stringify(rewritten)))
  exchange.answer?.headers.set('content-type', 'application/json')
}

/**
 * Notes what a refusal reports to have used, before it is known whether it is passed on; its body is there to be read
 * once more. Throws where it broke off.
 */
export async function noteRefusal(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  if (!(upstream.headers.get('content-type') ?? '').includes('json')) return
  const bytes = await readWhole(exchange, gateway, upstream)
  exchange.upstream = new Response(bytes, { status: upstream.status, headers: upstream.headers })
  const body = parseObject(new TextDecoder().decode(bytes))
  exchange.usage = body === null ? null : exchange.dialect.readAnswer(body).usage
}

function answerWith(exchange: Exchange, { clock }: Gateway, upstream: Response, bytes: Uint8Array): void {
  exchange.answer = new Response(bytes, {
    status: upstream.status,
    headers: headersToCaller(exchange, upstream, clock.now()),
  })
}

async function readWhole(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<Uint8Array> {
  const limit = gateway.settings.answer_limit_bytes
  exchange.waitingSince = gateway.clock.monotonic()
  let bytes: Uint8Array | null
  try {
    if (isSmall(upstream)) bytes = await upstream.bytes()
    else if (upstream.body === null) bytes = new Uint8Array(0)
    else {
      bytes = await readBounded(upstream.body.getReader(), limit, () => {
        exchange.waitingSince = gateway.clock.monotonic()
      })
    }
  } catch (thrown) {
    throw exchange.cut?.failure ?? unusable(exchange, gateway, 'provider.interrupted', thrown)
  }
  exchange.waitingSince = null
  if (bytes === null || bytes.length > limit) throw unusable(exchange, gateway, 'provider.answer_too_large')
  return bytes
}
