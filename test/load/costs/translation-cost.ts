/**
 * What translation costs, as ratios to what native pass-through costs the gateway: a request of twenty turns read and
 * written, a whole answer, and one event of a stream; each caller's language against each provider's.
 * `bun test/load/costs/translation-cost.ts`
 *
 * Pass-through is what the gateway does with a body at the least: parses it once to read it, and sends its bytes; of a
 * stream it cuts the frames and parses each.
 */

import type { NeutralAnswer, NeutralEvent, NeutralRequest } from '../../../src/languages/neutral.ts'
import { languages } from '../../../src/languages/translation/languages.ts'
import type { Language } from '../../../src/languages/translation-language.ts'
import { SseSplitter } from '../../../src/lib/http/sse.ts'

const sentence = 'The quick answer is that a stream of tokens has a handful of characters in each piece. '
const pieces = sentence.repeat(12).match(/.{1,5}/gs) ?? []
const asked = { model: 'measured', exchangeId: '0190a0c0-0000-7000-8000-000000000001', includeUsage: true }
const usage = {
  inputTokens: 1000,
  outputTokens: 200,
  cachedInputTokens: 500,
  cacheWriteTokens: null,
  reasoningTokens: null,
}

const request: NeutralRequest = {
  model: 'claude-sonnet-4-6',
  instructions: [{ kind: 'text', text: sentence, at: 'system' }],
  turns: Array.from({ length: 20 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    parts: [{ kind: 'text', text: sentence.repeat(4), at: `messages.${index}` }],
    at: `messages.${index}`,
  })),
  tools: [],
  toolChoice: null,
  parallelTools: null,
  output: null,
  reasoning: null,
  sampling: { maxOutputTokens: { value: 500, at: 'max_tokens' } },
  endUser: null,
  stream: false,
  extras: new Map(),
}
const answer: NeutralAnswer = {
  id: 'a',
  model: 'm',
  parts: [{ kind: 'text', text: sentence.repeat(12), at: '' }],
  finish: 'stop',
  stopSequence: null,
  usage,
}
const events: readonly NeutralEvent[] = [
  { type: 'start', id: 'a', model: 'm' },
  { type: 'part', part: 0, kind: 'text' },
  ...pieces.map((text): NeutralEvent => ({ type: 'text', part: 0, text })),
  { type: 'part_end', part: 0 },
  { type: 'finish', finish: 'stop', stopSequence: null },
  { type: 'usage', usage },
  { type: 'end' },
]

/** Milliseconds of processor time, which says more than the clock where others compute too. */
const spent = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const rounds = 12
const timesEach = 200

/** Microseconds for one piece of work, as it is after the compiler had its time: the best of several rounds. */
function costOf(work: () => void): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const from = spent()
    for (let times = 0; times < timesEach; times++) work()
    best = Math.min(best, ((spent() - from) * 1000) / timesEach)
  }
  return best
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

type Caller = NonNullable<Language['caller']>
const all = Object.values(languages)
const callers = all.flatMap(({ caller }) => (caller === null ? [] : [caller]))

const streamOf = (caller: Caller): Uint8Array => {
  const writer = caller.streamWriter(asked)
  return encoder.encode(events.map((event) => writer.event(event)).join(''))
}

function readFrames(bytes: Uint8Array, each: (event: string | null, data: string) => void): void {
  for (const { event, data } of new SseSplitter(1_000_000).push(bytes)) if (data !== null) each(event, data)
}

console.log('| caller | provider | request | whole answer | stream event |\n|---|---|---|---|---|')
for (const caller of callers) {
  for (const { provider, caller: same } of all) {
    if (provider.name === caller.name) continue
    // A language that applications speak too writes the samples that are read here; of the others only requests are.
    const native = languages[caller.name]
    if (native === undefined) continue
    const body = encoder.encode(JSON.stringify(native.provider.writeRequest(request)))
    const pass = costOf(() => void JSON.parse(decoder.decode(body)))
    const asking = costOf(() => {
      const read = caller.readRequest(JSON.parse(decoder.decode(body)))
      encoder.encode(JSON.stringify(provider.writeRequest({ ...read, model: request.model })))
    })
    console.log(`| ${caller.name} | ${provider.name} | ${(asking / pass).toFixed(2)} | ${answering(caller, same)} |`)
  }
}

/** The ratios of a whole answer and of one event of a stream, where the provider's language can write samples. */
function answering(caller: Caller, from: Caller | null): string {
  const provider = from === null ? undefined : languages[from.name]?.provider
  if (from === null || provider === undefined) return '- | -'
  const whole = encoder.encode(JSON.stringify(from.writeAnswer(answer, asked)))
  const passWhole = costOf(() => void JSON.parse(decoder.decode(whole)))
  const putWhole = costOf(() => {
    const read = provider.readAnswer(JSON.parse(decoder.decode(whole)))
    const written = encoder.encode(JSON.stringify(caller.writeAnswer(read, asked)))
    JSON.parse(decoder.decode(written))
  })
  const stream = streamOf(from)
  const passStream = costOf(() => readFrames(stream, (_, data) => void (data !== '[DONE]' && JSON.parse(data))))
  const putStream = costOf(() => {
    const [reader, writer] = [provider.streamReader(), caller.streamWriter(asked)]
    let text = ''
    readFrames(stream, (event, data) => {
      for (const said of reader.frame(event, data)) text += writer.event(said)
    })
    readFrames(encoder.encode(text), (_, data) => void (data !== '[DONE]' && JSON.parse(data)))
  })
  const perEvent = `${(putStream / passStream).toFixed(2)} (${((putStream - passStream) / pieces.length).toFixed(1)} µs)`
  return `${(putWhole / passWhole).toFixed(2)} | ${perEvent}`
}
