/**
 * Tries a provider as a gateway would use it: reads its list of models, asks for a short answer, and asks for the same
 * as a stream. Each call is made once and takes at most 20 seconds. A failure is told in the provider's own words,
 * without what is secret (`masked-text.ts`).
 */
import { Failure } from '../../failure.ts'
import type { LanguageName } from '../../languages/neutral.ts'
import { isObject } from '../../languages/reading/json-value.ts'
import { languages } from '../../languages/translation/languages.ts'
import { translated } from '../../languages/translation/translate-response.ts'
import type { Clock } from '../../lib/clock.ts'
import { callFailure } from '../../lib/http/call-failure.ts'
import { offeredId, parseModelList } from '../catalog/offered-models.ts'
import { AccessTokenError } from '../google/access-tokens.ts'
import { heldBody } from '../held-body.ts'
import { presets } from '../presets/presets.ts'
import type { PriceBook } from '../prices/price-book.ts'
import { type Fetch, languagesFor, type Provider, type ProviderKind, secretsIn } from '../provider.ts'
import { maskedText } from './masked-text.ts'

export const trialSteps = ['models', 'chat', 'stream'] as const

export interface TrialStep {
  step: (typeof trialSteps)[number]
  /** Null if it was not tried. */
  ok: boolean | null
  message: string
  milliseconds: number
}

interface Tried {
  provider: Provider
  kind: ProviderKind
  /** The provider's name of the model to ask; null: a cheap one is chosen. */
  model: string | null
  fetch: Fetch
  clock: Clock
  /** Loaded. */
  prices: PriceBook
}

const deadlineMilliseconds = 20_000
const longestAnswer = 4 * 1024 * 1024
const prompt = 'Reply with the word ok.'
/** Some models refuse a lower limit. */
const outputLimit = 16

export async function tryProvider(asked: Tried): Promise<{ model: string | null; steps: TrialStep[] }> {
  const offered: string[] = []
  const models = await step('models', asked, () => listModels(asked, offered))
  const model = asked.model ?? testModelOf(asked.kind) ?? cheapest(asked, offered)
  const tried = { ...asked, kind: model === null ? asked.kind : (asked.kind.forModel?.(model) ?? asked.kind) }
  const ask = async (stream: boolean) => {
    if (model === null) return skipped('No model is known to ask: name one')
    const language = languageOf(tried)
    if (language === null) return skipped('This kind of provider answers no chats')
    return stream ? await streamAnswer(tried, model, language) : await wholeAnswer(tried, model, language)
  }
  const chat = await step('chat', tried, () => ask(false))
  return { model, steps: [models, chat, await step('stream', tried, () => ask(true))] }
}

type Result = Pick<TrialStep, 'ok' | 'message'>

const skipped = (message: string): Result => ({ ok: null, message })

async function step(name: TrialStep['step'], tried: Tried, work: () => Promise<Result>): Promise<TrialStep> {
  const began = tried.clock.monotonic()
  const result = await work().catch((thrown: unknown) => ({
    ok: false,
    message: reasonOf(thrown),
  }))
  return {
    step: name,
    ...result,
    message: maskedText(result.message, secretsOf(tried)),
    milliseconds: Math.round(tried.clock.monotonic() - began),
  }
}

/** A kind's own words where no call was made; `fetch` throws errors with a code. */
function reasonOf(thrown: unknown): string {
  const isOwn = thrown instanceof TypeError || thrown instanceof Failure || thrown instanceof AccessTokenError
  if (isOwn && (thrown instanceof Failure || !('code' in thrown))) return thrown.message
  return `The provider could not be asked: ${callFailure(thrown, 'it did not answer within 20 seconds')}`
}

const secretsOf = ({ kind, provider: { apiKey, headers } }: Tried): string[] => [
  ...secretsIn(kind, apiKey),
  ...Object.values(headers),
]

async function listModels({ provider, kind, fetch }: Tried, offered: string[]): Promise<Result> {
  if (kind.offered === undefined) return skipped('This kind of provider has no list of models that can be read')
  const { url, headers } = await kind.offered.request(provider)
  const answer = await fetch(url, {
    headers: { accept: 'application/json', ...headers },
    redirect: 'manual',
    signal: AbortSignal.timeout(deadlineMilliseconds),
  })
  const { text, answer: rest } = await heldBody(answer, longestAnswer)
  if (text === null) await rest.body?.cancel()
  if (!answer.ok) return refused(kind, answer.status, parsed(text))
  const list = text === null ? null : parseModelList(text)
  if (list === null) return { ok: false, message: 'Its list of models is too long, or not JSON' }
  offered.push(...kind.offered.read(list).flatMap(({ name }) => offeredId(kind, name) ?? []))
  return { ok: true, message: `It lists ${offered.length} ${offered.length === 1 ? 'model' : 'models'}` }
}

const testModelOf = (kind: ProviderKind): string | null =>
  presets.find((preset) => preset.kind === kind)?.testModel ?? null

/** Models that answer no chats, by what providers call them. */
const otherWork =
  /embed|rerank|whisper|tts|transcri|guard|moderation|image|dall-e|audio|realtime|speech|search|sora|veo|imagen|ocr|clip|babbage|davinci|instruct-\d/i

/** The cheapest of the models that answer chats; those without a price come last. */
function cheapest({ provider, prices, clock }: Tried, offered: readonly string[]): string | null {
  let found: string | null = null
  let lowest = Number.POSITIVE_INFINITY
  for (const upstreamModel of offered) {
    if (otherWork.test(upstreamModel)) continue
    const { price } = prices.terms({ upstreamModel, provider, listed: null }, clock.now())
    const [tier] = price?.tiers ?? []
    const cost = tier === undefined || tier.output === 0 ? Number.MAX_VALUE : tier.input + tier.output
    if (cost >= lowest) continue
    lowest = cost
    found = upstreamModel
  }
  return found
}

/** The language in which the provider is asked for a chat; null if it cannot be. */
const languageOf = ({ kind, provider }: Tried): LanguageName | null =>
  kind.families.includes('chat') ? 'chat' : (languagesFor({ kind, provider }, 'chat', null)[0] ?? null)

/** The provider's answer to a chat. */
function ask({ provider, kind, fetch }: Tried, model: string, language: LanguageName, stream: boolean) {
  const asked = {
    model,
    messages: [{ role: 'user', content: prompt }],
    max_completion_tokens: outputLimit,
    ...(stream && { stream, stream_options: { include_usage: true } }),
  }
  const caller = languages.chat.caller
  if (caller === null) throw new TypeError('Chat is a language of callers')
  const body = language === 'chat' ? asked : languages[language].provider.writeRequest(caller.readRequest(asked))
  const call = {
    family: 'chat' as const,
    model,
    stream,
    body: new TextEncoder().encode(JSON.stringify(body)),
    contentType: 'application/json',
    headers: {},
    signal: AbortSignal.timeout(deadlineMilliseconds),
    answerLimit: longestAnswer,
  }
  return { caller, answering: kind.send(provider, call, fetch) }
}

async function wholeAnswer(tried: Tried, model: string, language: LanguageName): Promise<Result> {
  const { text, answer } = await heldBody(await ask(tried, model, language, false).answering, longestAnswer)
  if (text === null) await answer.body?.cancel()
  const body = parsed(text)
  if (!answer.ok) return refused(tried.kind, answer.status, body)
  try {
    const { usage } = languages[language].provider.readAnswer(body)
    const tokens = usage === null ? '' : ` and reported its usage`
    return { ok: true, message: `${model} answered${tokens}` }
  } catch {
    return { ok: false, message: `${model} answered with something that is no chat completion` }
  }
}

async function streamAnswer(tried: Tried, model: string, language: LanguageName): Promise<Result> {
  const { caller, answering } = ask(tried, model, language, true)
  const upstream = await answering
  if (!upstream.ok) {
    const { text, answer } = await heldBody(upstream, longestAnswer)
    if (text === null) await answer.body?.cancel()
    return refused(tried.kind, upstream.status, parsed(text))
  }
  const type = upstream.headers.get('content-type') ?? ''
  if (!type.toLowerCase().startsWith('text/event-stream')) {
    await upstream.body?.cancel()
    return { ok: false, message: `${model} was asked for a stream and answered with ${type || 'no content type'}` }
  }
  let error: string | null = null
  let isWhole = false
  const answer = await translated(upstream, {
    from: languages[language].provider,
    to: caller,
    asked: { model, exchangeId: 'trial', includeUsage: false },
    limit: longestAnswer,
    heard: () => undefined,
    told: (event) => {
      if (event.type === 'error') error = event.error.message
      else if (event.type === 'end') isWhole = true
    },
  })
  const read = await heldBody(answer, longestAnswer).catch(() => null)
  if (error !== null) return { ok: false, message: `${model} broke its stream off: ${error}` }
  if (read === null || !isWhole)
    return { ok: false, message: `The stream of ${model} ended early, or could not be read` }
  return { ok: true, message: `${model} streamed its answer` }
}

/** A value of JSON; undefined for a text that is none. */
function parsed(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What a person can do about a status. */
function hintOf(status: number): string {
  if (status === 401 || status === 403) return 'check the API key'
  if (status === 404) return 'check the base URL, and name another model'
  if (status === 402 || status === 429) return 'the account has no credit, or asks too much at once'
  return status >= 500 ? 'the provider has a fault: try again later' : 'name another model'
}

/**
 * Only the message of an error in JSON is shown: an address that a person chose may be another server's, whose pages
 * are none of theirs.
 */
function refused({ language }: ProviderKind, status: number, body: unknown): Result {
  const said = isObject(body) ? languages[language ?? 'chat'].provider.readError(status, body).message : ''
  return { ok: false, message: `The provider refused with status ${status} (${hintOf(status)})${said && `: ${said}`}` }
}
