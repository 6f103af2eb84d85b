/** Responses that the gateway writes have the members that clients require, and state what the request asked for. */
import { describe, expect, test } from 'bun:test'
import type { Usage } from '../dialect.ts'
import type { NeutralAnswer, NeutralEvent } from '../neutral.ts'
import { asked } from '../testing/clients.ts'
import { responseForm, settingsRepeated, settingsRequest } from '../testing/response-form.ts'
import { framesOf } from '../testing/streams.ts'
import { ownResponse } from './answer.ts'
import { responses } from './translation/language.ts'

const usage: Usage = {
  ...{ inputTokens: 3, outputTokens: 4, cachedInputTokens: null, cacheWriteTokens: null, reasoningTokens: null },
  serviceTier: 'priority',
}
const answer: NeutralAnswer = {
  ...{ id: null, model: 'up', finish: 'stop', stopSequence: null, usage },
  parts: [
    { kind: 'thought', text: 'Hm', signature: null, redacted: null, language: 'chat', at: '' },
    { kind: 'text', text: 'Hello', at: '' },
    { kind: 'tool_call', id: 'call_1', name: 'look', arguments: '{}', at: '' },
  ],
}
const events: NeutralEvent[] = [
  { type: 'start', id: null, model: 'up' },
  { type: 'part', part: 0, kind: 'text' },
  { type: 'text', part: 0, text: 'Hello' },
  { type: 'part_end', part: 0 },
  { type: 'usage', usage },
  { type: 'finish', finish: 'stop', stopSequence: null },
  { type: 'end' },
]

function streamed(all: readonly NeutralEvent[], request?: object): unknown[] {
  const writer = responses.caller.streamWriter(request === undefined ? asked : { ...asked, request: { ...request } })
  const bytes = Buffer.from(all.map((event) => writer.event(event)).join(''))
  return framesOf(bytes).flatMap(({ data }) => JSON.parse(data ?? '{}').response ?? [])
}

describe('a response', () => {
  test('has every member that clients require, whole and in each event of a stream', () => {
    const failure: NeutralEvent = { type: 'error', error: { status: 500, code: null, message: 'No' } }
    const written = [
      responses.caller.writeAnswer(answer, asked),
      responses.caller.writeAnswer({ ...answer, finish: 'length', usage: null }, asked),
      ownResponse('m', asked.exchangeId),
      ...streamed(events),
      ...streamed([...events.slice(0, 3), failure]),
    ]
    expect(written).toHaveLength(9)
    for (const response of written) responseForm.parse(response)
  })

  test('repeats the settings of its request', () => {
    const request = { model: 'm', input: 'Hi', ...settingsRequest }
    const all = [responses.caller.writeAnswer(answer, { ...asked, request }), ...streamed(events, request)]
    for (const response of all) expect(responseForm.parse(response)).toMatchObject(settingsRepeated)
  })

  test('states the service tier that was asked for, if the provider reports none', () => {
    const silent = { ...answer, usage: null }
    const tierOf = (service_tier?: string) =>
      responses.caller.writeAnswer(silent, { ...asked, request: { service_tier } }).service_tier
    expect([tierOf(), tierOf('auto'), tierOf('priority')]).toEqual(['default', 'default', 'priority'])
  })

  test('says when it completed, and the service tier that the provider reported', () => {
    const [created, , completed] = streamed(events)
    expect(created).toMatchObject({ completed_at: null, service_tier: 'default' })
    expect(completed).toMatchObject({ completed_at: expect.any(Number), service_tier: 'priority' })
  })
})
