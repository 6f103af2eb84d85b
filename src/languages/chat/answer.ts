/** What the gateway reads of a chat completion, whole or a chunk of it. */
import type { Usage } from '../dialect.ts'
import { countOf, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { calledHolder, type Holder, partHolder } from '../reading/texts/text-members.ts'
import { textLength } from '../reading/texts/texts.ts'
import { spokenNames } from './members.ts'

/** The object that holds the texts of a choice; `said` is the name of its delta, or of its message. */
export function choiceHolders(choice: JsonObject, said: 'delta' | 'message'): readonly Holder[] {
  const { [said]: spoken } = choice
  const beside = { of: choice, members: ['text'] }
  if (!isObject(spoken)) return [beside]
  const { tool_calls: calls, function_call: called } = spoken
  const functions = objectsOf(calls).flatMap((call) => [call.function, call.custom])
  return [
    beside,
    { of: spoken, members: spokenNames },
    ...objectsOf(spoken.content).map(partHolder),
    ...[...functions, called].filter(isObject).map(calledHolder),
  ]
}

/** Characters of the generated text in choices. */
export function generatedLength(choices: unknown, part: 'message' | 'delta'): number {
  let length = 0
  for (const choice of objectsOf(choices)) {
    const generated = choice[part]
    if (!isObject(generated)) {
      length += textOf(choice.text)?.length ?? 0
      continue
    }
    for (const name of spokenNames) length += textLength(generated[name])
    if (isObject(generated.function_call)) length += textOf(generated.function_call.arguments)?.length ?? 0
    for (const { function: called, custom } of objectsOf(generated.tool_calls)) {
      if (isObject(called)) length += textOf(called.arguments)?.length ?? 0
      if (isObject(custom)) length += textOf(custom.input)?.length ?? 0
    }
  }
  return length
}

/** `serviceTier` is the member beside the usage. */
export function readUsage(usage: unknown, serviceTier?: unknown): Usage | null {
  if (!isObject(usage)) return null
  const { prompt_tokens_details: input, completion_tokens_details: output } = usage
  const read: Usage = {
    inputTokens: countOf(usage.prompt_tokens),
    outputTokens: countOf(usage.completion_tokens),
    cachedInputTokens: isObject(input) ? countOf(input.cached_tokens) : null,
    cacheWriteTokens: isObject(input) ? countOf(input.cache_write_tokens) : null,
    reasoningTokens: isObject(output) ? countOf(output.reasoning_tokens) : null,
  }
  const heard = isObject(input) ? countOf(input.audio_tokens) : null
  const spoken = isObject(output) ? countOf(output.audio_tokens) : null
  const kept = isObject(input) ? countOf(input.cache_write_1h_tokens) : null
  const tier = textOf(serviceTier)
  if (tier) read.serviceTier = tier
  if (kept) read.cacheWriteHourTokens = kept
  if (heard) read.audioInputTokens = heard
  if (spoken) read.audioOutputTokens = spoken
  return read.inputTokens === null && read.outputTokens === null ? null : read
}
