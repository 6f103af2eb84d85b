/**
 * Asks the gateway once as the client will: with its credential header, in its language. With a model it asks for a
 * short answer; without one it lists the models, because only the client knows which it will use.
 */
import { z } from 'zod'
import type { ClientLanguage, Connection } from '../../../src/clients/recipe.ts'
import { Failure } from '../../../src/failure.ts'
import { version } from '../../../src/version.ts'

export interface Checked {
  /** Null: the models were listed. */
  model: string | null
  /** How many models the gateway lists for the token; null where one was asked. */
  listed: number | null
  milliseconds: number
}

export interface Check {
  connection: Connection
  language: ClientLanguage
  /**
   * How long a gateway may not know the token: one that was just made reaches replicas a moment later. Milliseconds.
   */
  grace: number
  fetch: typeof fetch
  sleep(milliseconds: number): Promise<unknown>
}

const betweenTries = 250
/** A model that thinks may take this long for its first answer. Milliseconds. */
const longestWait = 120_000

interface Question {
  path: string
  headers: Readonly<Record<string, string>>
  body: unknown
}

const say = 'Reply with OK.'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const anthropic = (token: string) => ({ ...bearer(token), 'anthropic-version': '2023-06-01' })
const user = [{ role: 'user', content: say }]

const questions: Readonly<Record<ClientLanguage, (model: string, token: string) => Question>> = {
  chat: (model, token) => ({ path: '/v1/chat/completions', headers: bearer(token), body: { model, messages: user } }),
  responses: (model, token) => ({
    path: '/v1/responses',
    headers: bearer(token),
    body: { model, input: say, store: false, max_output_tokens: 64 },
  }),
  messages: (model, token) => ({
    path: '/v1/messages',
    headers: anthropic(token),
    body: { model, messages: user, max_tokens: 64 },
  }),
  gemini: (model, token) => ({
    path: `/v1beta/models/${encodeURI(model)}:generateContent`,
    headers: { 'x-goog-api-key': token },
    body: { contents: [{ role: 'user', parts: [{ text: say }] }], generationConfig: { maxOutputTokens: 64 } },
  }),
}

const listing = (language: ClientLanguage, token: string): Question => ({
  path: '/v1/models',
  headers: language === 'messages' ? anthropic(token) : bearer(token),
  body: null,
})

/** Throws `gateway_unreachable`, or `gateway_check_failed`, which says what was refused and what to do. */
export async function checkConnection({ connection, language, grace, fetch, sleep }: Check): Promise<Checked> {
  const { gatewayUrl, models, token } = connection
  const model = models[0] ?? null
  const question = model === null ? listing(language, token) : questions[language](model, token)
  const startedAt = performance.now()
  for (let waited = 0; ; waited += betweenTries) {
    const answer = await ask(gatewayUrl, question, fetch)
    const text = await answer.text().catch(() => '')
    if (answer.ok) {
      return {
        model,
        listed: model === null ? count(text) : null,
        milliseconds: Math.round(performance.now() - startedAt),
      }
    }
    if (answer.status !== 401 || waited >= grace)
      throw refusal(answer, text, { gatewayUrl, model, path: question.path })
    await sleep(betweenTries)
  }
}

async function ask(gatewayUrl: string, { path, headers, body }: Question, fetch: Check['fetch']): Promise<Response> {
  try {
    return await fetch(`${gatewayUrl}${path}`, {
      method: body === null ? 'GET' : 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'user-agent': `gatehouse/${version}` },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      // A redirect would carry the token to somebody else.
      redirect: 'manual',
      signal: AbortSignal.timeout(longestWait),
    })
  } catch (error) {
    throw new Failure('gateway_unreachable', {
      message: `The gateway at ${gatewayUrl} could not be reached from this host`,
      cause: error,
    })
  }
}

const listSchema = z.looseObject({ data: z.array(z.unknown()) })

function count(text: string): number | null {
  const parsed = listSchema.safeParse(parsedJson(text))
  return parsed.success ? parsed.data.data.length : null
}

const text = z.string().nullish().catch(null)
/** The gateway's code: a member of the error, or the reason in Google's form of errors (AIP-193). */
const errorSchema = z.looseObject({
  error: z.looseObject({
    message: z.string(),
    type: text,
    code: text,
    details: z
      .tuple([z.looseObject({ reason: text })], z.unknown())
      .nullish()
      .catch(null),
  }),
})

const remedies: Readonly<Record<string, string>> = {
  model_not_found: 'Name another with --model: model list shows the catalog, and a run without --model what is listed',
  'tokens.model_not_allowed':
    'Name a model with --model that the token may use, or leave --token-env out for a new token',
  invalid_api_token: 'Name a gateway of the control plane that made the token, with --gateway-url',
  not_found: 'Nothing there serves this client: name the gateway with --gateway-url, or take a newer gateway',
}

function refusal(
  answer: Response,
  body: string,
  { gatewayUrl, model, path }: { gatewayUrl: string; model: string | null; path: string },
): Failure {
  const parsed = errorSchema.safeParse(parsedJson(body))
  if (!parsed.success) {
    return new Failure('gateway_check_failed', {
      message: `What answers at ${gatewayUrl}${path}, with status ${answer.status}, is not a Gatehouse gateway: name the right one with --gateway-url`,
    })
  }
  const { message: said, type, code: given, details } = parsed.data.error
  const code = given ?? details?.[0].reason ?? type ?? String(answer.status)
  const ofProvider = answer.headers.get('x-service-error-source') === 'upstream'
  const who = ofProvider ? 'the provider behind the gateway' : 'the gateway'
  const remedy = ofProvider ? 'Look at its credential and its models: provider list' : remedies[code]
  const what = model === null ? 'A list of the models' : `A request for ${model} to ${path}`
  const request = answer.headers.get('x-request-id') ?? '-'
  return new Failure('gateway_check_failed', {
    message: `${what} was refused by ${who}: ${said} (${code}, request ${request})${remedy === undefined ? '' : `. ${remedy}`}`,
  })
}

function parsedJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    // What is no JSON is no answer of a gateway.
    return undefined
  }
}
