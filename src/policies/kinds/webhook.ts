/**
 * Asks an HTTP service what it thinks: Open Policy Agent, Presidio, or one's own.
 *
 * POST, JSON: `{stage, request: {family, model, stream, session_id, tools, texts}, response?: {status, tool_calls,
 * texts}, token: {id, purpose, roles, team_id, user_id, gateway_id}, model: {id, provider}}`; `texts` are those of
 * what is looked at: `[{member, role, kind, text}]`. Answer, 200, JSON: `{verdict, reason_code?, message?,
 * retry_after?, texts?}`; `texts` are `[{index, text}]`, the new text of an entry of `texts`, with the verdicts
 * redact and rewrite.
 *
 * A redirect, any other status, an answer that is late, too long, of another form or with a member twice, and a redact
 * or rewrite that changes nothing: the policy is broken, and `when_broken` decides, because the service found what it
 * did not take out. So is one that would change a stream, which is looked at when it is complete. `checked-target.ts`
 * says which addresses may be called.
 */
import { z } from 'zod'
import { isRepetitive, jsonMembers } from '../../lib/json/json-members.ts'
import { checkedTarget } from '../checked-target.ts'
import { capturing, type Decision, everyStage, type PolicyTools, policyKind, type Subject } from './kind.ts'
import { callerMessage, reasonCode } from './reason-code.ts'

const mostSentBytes = 4 * 1024 * 1024
const mostReceivedBytes = 1024 * 1024
const deepestAnswer = 64

const url = z
  .url({ protocol: /^https?$/ })
  .max(2000)
  .refine((text) => URL.canParse(text) && new URL(text).username === '' && new URL(text).password === '', {
    error: 'Leave user and password out',
  })
  .describe(
    'Gets POST {stage, request: {family, model, stream, session_id, tools, texts}, response?: {status, tool_calls, texts}, ' +
      'token, model} and answers 200 {verdict, reason_code?, message?, retry_after?, texts?: [{index, text}]}; ' +
      'texts are [{member, role, kind, text}] of what is looked at, and in the answer the new text of some of them',
  )

export const webhook = policyKind({
  kind: 'webhook',
  about: 'Asks an HTTP service for the verdict',
  stages: everyStage,
  config: z.strictObject({
    url,
    timeout_ms: z.number().int().min(10).max(30_000).default(1000).describe('For the whole call'),
    ...capturing,
  }),
  compile: (config) => ({
    form: 'whole',
    async consider(subject, tools): Promise<Decision | null> {
      const { texts } = subject
      const body = JSON.stringify(questionOf(subject))
      if (body.length > mostSentBytes) throw new Error('There is more to look at than a webhook is sent')
      return decisionOf(readAnswer(await call(config, body, tools)), texts)
    },
  }),
})

function questionOf({ stage, context, texts }: Subject) {
  const { request, response, token, model } = context
  const looked = texts.map(({ member, role, kind, text }) => ({ member, role, kind, text }))
  return {
    stage,
    request: {
      family: request.family,
      model: request.model,
      stream: request.stream,
      session_id: request.session_id,
      tools: request.tools,
      ...(response === null ? { texts: looked } : {}),
    },
    ...(response === null
      ? {}
      : { response: { status: Number(response.status), tool_calls: response.tool_calls, texts: looked } }),
    token: {
      ...{ id: token.id, purpose: token.purpose, roles: token.roles },
      // Conditions have an empty text for a missing value; JSON can express that it is missing.
      team_id: token.team_id || null,
      user_id: token.user_id || null,
      gateway_id: token.gateway_id || null,
    },
    model: { id: model.id, provider: model.provider },
  }
}

const answerSchema = z.object({
  verdict: z.enum(['allow', 'block', 'deny', 'escalate', 'rate_limit', 'redact', 'rewrite']),
  reason_code: reasonCode.default('policy.webhook'),
  message: callerMessage.optional(),
  retry_after: z.number().int().min(1).max(86_400).optional(),
  texts: z.array(z.object({ index: z.number().int().min(0), text: z.string() })).default([]),
})

/** Readers differ on a member that is given twice, so such an answer decides nothing. */
function readAnswer(text: string): z.infer<typeof answerSchema> {
  const answer: unknown = JSON.parse(text)
  if (jsonMembers(text, deepestAnswer).repeated || isRepetitive(text, answer)) {
    throw new Error('The webhook names a member twice')
  }
  return answerSchema.parse(answer)
}

function decisionOf(answer: z.infer<typeof answerSchema>, texts: Subject['texts']): Decision | null {
  const { verdict, reason_code, message, retry_after: retryAfter } = answer
  if (verdict === 'allow') return null
  const isChange = verdict === 'redact' || verdict === 'rewrite'
  const changes = isChange ? answer.texts.map((change) => asChange(change, texts)) : []
  if (isChange && changes.every(({ slot, text }) => slot.text === text)) {
    throw new Error(`The webhook says ${verdict} and gives no other text`)
  }
  return {
    verdict,
    reasonCode: reason_code,
    targets: [],
    changes,
    ...(message === undefined ? {} : { message }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  }
}

function asChange({ index, text }: { index: number; text: string }, texts: Subject['texts']) {
  const slot = texts[index]
  if (slot === undefined) throw new Error('The webhook names a text that it was not shown')
  return { slot, text }
}

/** The answer's text. Rejects any unusable answer. */
async function call(
  { url: address, timeout_ms }: { url: string; timeout_ms: number },
  body: string,
  { fetch, resolve, privateWebhooks, signal }: PolicyTools,
): Promise<string> {
  const controller = new AbortController()
  const stop = () => controller.abort(new Error('The webhook did not answer in time'))
  const timer = setTimeout(stop, timeout_ms)
  signal.addEventListener('abort', stop, { once: true })
  try {
    if (signal.aborted) stop()
    const target = await until(
      controller.signal,
      checkedTarget(new URL(address), { resolve, insideAllowed: privateWebhooks }),
    )
    const answer = await fetch(target.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', host: target.host },
      body,
      redirect: 'manual',
      signal: controller.signal,
    })
    if (answer.status !== 200) throw new Error(`The webhook answered ${answer.status}`)
    return await until(controller.signal, readText(answer))
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    controller.abort()
  }
}

/** Rejects as soon as the signal aborts, even if the awaited work ignores the signal. */
function until<Value>(signal: AbortSignal, waiting: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const give = () => reject(signal.reason)
  if (signal.aborted) give()
  signal.addEventListener('abort', give, { once: true })
  return Promise.race([waiting, promise]).finally(() => signal.removeEventListener('abort', give))
}

async function readText(answer: Response): Promise<string> {
  const reader = answer.body?.getReader()
  if (reader === undefined) throw new Error('The webhook gave no answer')
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
    length += value.length
    if (length > mostReceivedBytes) {
      await reader.cancel()
      throw new Error('The webhook answered with too much')
    }
    chunks.push(value)
  }
}
