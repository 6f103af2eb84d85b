/** The simulator's chat completions, and the legacy completions that look like them. */
import { isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import type { UpstreamCall } from '../provider.ts'
import {
  type Asked,
  contentText,
  created,
  dataFrame,
  eventStream,
  fingerprint,
  idOf,
  limitOf,
  readMessages,
  type Said,
  type SimulatedModel,
  say,
} from './text.ts'

const done = 'data: [DONE]\n\n'

export function answerChat(call: UpstreamCall, body: JsonObject, model: SimulatedModel): Response {
  const limit = limitOf(body, ['max_completion_tokens', 'max_tokens'])
  const said = say({ model, limit, ...readMessages(body.messages) })
  if (call.stream) return eventStream(chatFrames(call, said, wantsUsage(body)))
  const message = { role: 'assistant', content: said.words.join(''), refusal: null }
  return Response.json({
    ...headOf(call, 'chatcmpl', 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(said) }],
    usage: usageOf([said]),
  })
}

function* chatFrames(call: UpstreamCall, said: Said, withUsage: boolean): Generator<string> {
  const head = headOf(call, 'chatcmpl', 'chat.completion.chunk')
  const choice = (delta: object, finish: string | null) =>
    dataFrame({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(withUsage ? { usage: null } : {}),
    })
  yield choice({ role: 'assistant', content: '' }, null)
  for (const word of said.words) yield choice({ content: word }, null)
  yield choice({}, finishOf(said))
  if (withUsage) yield dataFrame({ ...head, choices: [], usage: usageOf([said]) })
  yield done
}

/** One choice for each prompt of a list and each of `n`. */
export function answerCompletion(call: UpstreamCall, body: JsonObject, model: SimulatedModel): Response {
  const prompts = Array.isArray(body.prompt) && typeof body.prompt[0] !== 'number' ? body.prompt : [body.prompt]
  const limit = limitOf(body, ['max_tokens'])
  const all = prompts.flatMap((prompt) => {
    const asked = { model, limit, ...readPrompt(prompt) }
    return Array.from({ length: limitOf(body, ['n']) ?? 1 }, () => say(asked))
  })
  if (call.stream) return eventStream(completionFrames(call, all, wantsUsage(body)))
  const choices = all.map((said, index) => choiceOf(index, said.words.join(''), finishOf(said)))
  return Response.json({ ...headOf(call, 'cmpl', 'text_completion'), choices, usage: usageOf(all) })
}

function* completionFrames(call: UpstreamCall, all: readonly Said[], withUsage: boolean): Generator<string> {
  const head = headOf(call, 'cmpl', 'text_completion')
  const usage = withUsage ? { usage: null } : {}
  for (const [index, said] of all.entries()) {
    for (const word of said.words) yield dataFrame({ ...head, choices: [choiceOf(index, word, null)], ...usage })
    yield dataFrame({ ...head, choices: [choiceOf(index, '', finishOf(said))], ...usage })
  }
  if (withUsage) yield dataFrame({ ...head, choices: [], usage: usageOf(all) })
  yield done
}

const choiceOf = (index: number, text: string, finish: string | null) => ({
  index,
  text,
  logprobs: null,
  finish_reason: finish,
})

function readPrompt(prompt: unknown): Pick<Asked, 'texts' | 'lastText'> {
  const text = Array.isArray(prompt) ? prompt.join(' ') : contentText(prompt)
  return { texts: [text], lastText: text }
}

const wantsUsage = ({ stream_options: options }: JsonObject): boolean =>
  isObject(options) && options.include_usage === true

const headOf = (call: UpstreamCall, prefix: string, object: string) => ({
  id: `${prefix}-simulator-${idOf(call)}`,
  object,
  created,
  model: call.model,
  system_fingerprint: fingerprint,
})

const finishOf = ({ cut }: Said): 'stop' | 'length' => (cut ? 'length' : 'stop')

function usageOf(all: readonly Said[]) {
  const input = all.reduce((sum, { inputTokens }) => sum + inputTokens, 0)
  const output = all.reduce((sum, { words }) => sum + words.length, 0)
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  }
}
