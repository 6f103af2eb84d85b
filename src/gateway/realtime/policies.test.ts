/** Policies of realtime sessions: what the client says before the provider gets it, what is answered before it passes. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { compilePolicySet } from '../../policies/chain.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { policy } from '../testing/policies.ts'
import { answering, type RealtimeGateway, speechDetection, spoken, startRealtime } from '../testing/realtime.ts'

let running: RealtimeGateway

beforeEach(async () => {
  running = await startRealtime()
  running.script.on = answering((count) => spoken({ id: `resp_${count}` }))
})
afterEach(() => running.stop())

const terms = (action: string, stages: StoredPolicy['stages'], change: Partial<StoredPolicy> = {}) =>
  policy({ id: `terms-${stages}`, kind: 'term-filter', config: { terms: ['forbidden'], action }, stages, ...change })
const govern = (...policies: StoredPolicy[]) => {
  running.worker.policies = compilePolicySet(policies)
}
const sent = (type: string) => running.sessions[0]?.received.filter((event) => event.type === type) ?? []
const outcomes = () => running.worker.journal.outcomes()
const item = (text: string) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
const blocked = { error: { code: 'content_policy_violation' }, verdictan: { verdict: 'BLOCK' } }

describe('what the client writes', () => {
  const events = {
    'conversation.item.create': { item: item('a forbidden word') },
    'session.update': { session: { type: 'realtime', instructions: 'Say forbidden things' } },
    'response.create': { response: { instructions: 'Say forbidden things' } },
  }
  for (const [type, members] of Object.entries(events)) {
    test(`is blocked in ${type} before the provider gets it`, async () => {
      govern(terms('block', ['pre_request']))
      const client = await running.connect()
      client.send({ type, event_id: 'mine', ...members })
      expect(await client.next('error')).toMatchObject({ ...blocked, error: { ...blocked.error, event_id: 'mine' } })
      expect(sent(type)).toEqual([])
      expect(outcomes()).toMatchObject([{ verdict: 'block', details: { route: 'GET /v1/realtime' } }])
      client.socket.close()
    })
  }

  test('is blocked in the output of a tool', async () => {
    govern(terms('block', ['pre_request']))
    const client = await running.connect()
    const output = { type: 'function_call_output', call_id: 'call_1', output: 'forbidden' }
    client.send({ type: 'conversation.item.create', item: output })
    expect(await client.next('error')).toMatchObject(blocked)
    expect(sent('conversation.item.create')).toEqual([])
    client.socket.close()
  })

  test('is redacted, and restored in the answer', async () => {
    const redact = { terms: ['forbidden'], action: 'redact', restore: true }
    govern(policy({ id: 'p', kind: 'term-filter', config: redact }))
    running.script.on = answering(() => spoken({ words: ['It is [TE', 'RM_1]', '.'] }))
    const client = await running.connect()
    client.send({ type: 'conversation.item.create', item: item('It is forbidden') })
    client.send({ type: 'response.create' })
    const events = await client.until('response.done')
    const [created] = sent('conversation.item.create')
    const said = JSON.stringify(created)
    expect(said).toContain('[TERM_1]')
    expect(said).not.toContain('forbidden')
    expect(transcriptOf(events)).toBe('It is forbidden.')
    client.socket.close()
  })

  test('is recorded without cost, and the response with it', async () => {
    govern(terms('block', ['pre_request']))
    const client = await running.connect()
    client.send({ type: 'conversation.item.create', item: item('hello') })
    client.send({ type: 'response.create' })
    await client.next('response.done')
    const costs = outcomes().map(({ event_cost_attribution: cost }) => cost?.input_tokens ?? null)
    expect(costs.toSorted()).toEqual([40, null].toSorted())
    expect(outcomes().find(({ event_cost_attribution: cost }) => cost === undefined)?.details?.notes).toEqual([
      'request.not_generated',
    ])
    client.socket.close()
  })
})

const transcriptOf = (events: readonly Record<string, unknown>[]) =>
  events
    .filter(({ type }) => type === 'response.output_audio_transcript.delta')
    .map(({ delta }) => delta)
    .join('')
const soundOf = (events: readonly Record<string, unknown>[]) =>
  events.filter(({ type }) => type === 'response.output_audio.delta')

describe('what the provider answers', () => {
  test('is blocked before any part of the word and any sound of it passes', async () => {
    govern(terms('block', ['pre_response']))
    running.script.on = answering(() => spoken({ words: ['This is ', 'forb', 'idden', ' now'] }))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    const events = await client.until('response.done')
    const all = JSON.stringify(events)
    expect(all).not.toContain('forb')
    expect(soundOf(events)).toEqual([])
    expect(events.at(-2)).toMatchObject({ type: 'error', ...blocked })
    expect(events.at(-1)).toMatchObject({
      response: { status: 'incomplete', status_details: { reason: 'content_filter' } },
    })
    expect(outcomes()).toMatchObject([{ verdict: 'block' }])
    client.socket.close()
  })

  test('is heard when its transcript is whole', async () => {
    govern(terms('block', ['pre_response']))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    const types = (await client.until('response.done')).map(({ type }) => type)
    const whole = types.indexOf('response.output_audio_transcript.done')
    expect(types.indexOf('response.output_audio.delta')).toBeGreaterThan(whole)
    expect(types.filter((type) => type === 'response.output_audio.delta')).toHaveLength(2)
    expect(types.indexOf('response.output_audio.done')).toBeLessThan(types.indexOf('response.content_part.done'))
    client.socket.close()
  })

  test('loses its sound when a policy redacts its transcript', async () => {
    govern(terms('redact', ['post_request']))
    running.script.on = answering(() => spoken({ words: ['It is ', 'forbidden', '.'] }))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    const events = await client.until('response.done')
    expect(transcriptOf(events)).toBe('It is [TERM].')
    expect(JSON.stringify(events)).not.toContain('forbidden')
    expect(soundOf(events)).toEqual([])
    expect(outcomes()).toMatchObject([{ verdict: 'redact', details: { notes: ['realtime.audio_withheld'] } }])
    client.socket.close()
  })

  test('passes without delay when policies only watch', async () => {
    govern(terms('block', ['pre_response'], { mode: 'monitor' }))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    const types = (await client.until('response.done')).map(({ type }) => type)
    const whole = types.indexOf('response.output_audio_transcript.done')
    expect(types.indexOf('response.output_audio.delta')).toBeLessThan(whole)
    client.socket.close()
  })

  test('has no sound without a transcript', async () => {
    govern(terms('block', ['pre_response']))
    const withoutText = spoken().filter(({ type }) => !String(type).includes('transcript'))
    running.script.on = answering(() => withoutText)
    const client = await running.connect()
    client.send({ type: 'response.create' })
    expect(soundOf(await client.until('response.done'))).toEqual([])
    client.socket.close()
  })

  test('has no words of an error that belongs to no response', async () => {
    govern(terms('block', ['pre_response']))
    const client = await running.connect()
    await client.next('session.created')
    running.sessions[0]?.tell({ type: 'error', error: { type: 'server_error', code: 'odd', message: 'forbidden' } })
    const error = await client.next('error')
    expect(error).toMatchObject({ error: { code: 'odd' } })
    expect(JSON.stringify(error)).not.toContain('forbidden')
    client.socket.close()
  })

  test('cannot be retrieved again uninspected', async () => {
    govern(terms('block', ['pre_response']))
    const client = await running.connect()
    client.send({ type: 'conversation.item.retrieve', item_id: 'item_1' })
    expect(await client.next('error')).toMatchObject({ error: { code: 'invalid_parameter', param: 'type' } })
    expect(sent('conversation.item.retrieve')).toEqual([])
    client.socket.close()
  })

  test('is stopped when it has more sound than is held', async () => {
    await running.stop()
    running = await startRealtime({ stream_hold_bytes: 4096 })
    govern(terms('block', ['pre_response']))
    running.script.on = answering(() => spoken({ sound: 'A'.repeat(3000) }))
    const client = await running.connect()
    client.send({ type: 'response.create' })
    const events = await client.until('response.done')
    expect(soundOf(events)).toEqual([])
    expect(events.at(-2)).toMatchObject({ error: { code: 'policy_denied' } })
    client.socket.close()
  })
})

describe('sound in an item', () => {
  const heard = (more: object) => ({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_audio', audio: 'forbidden', ...more }] },
  })

  test('is refused without a transcript while a policy must read text', async () => {
    govern(terms('block', ['pre_request']))
    const client = await running.connect()
    client.send(heard({}))
    expect(await client.next('error')).toMatchObject({ error: { code: 'invalid_parameter', param: 'input' } })
    expect(sent('conversation.item.create')).toEqual([])
    client.socket.close()
  })

  test('is read by its transcript, and not as text itself', async () => {
    govern(terms('block', ['pre_request']))
    const client = await running.connect()
    client.send(heard({ transcript: 'a friendly word' }))
    client.send({ type: 'response.create' })
    await client.next('response.done')
    expect(sent('conversation.item.create')).toHaveLength(1)
    client.send(heard({ transcript: 'a forbidden word' }))
    expect(await client.next('error')).toMatchObject(blocked)
    client.socket.close()
  })
})

describe('what the client says', () => {
  const transcribed = {
    ...speechDetection,
    audio: { input: { ...speechDetection.audio.input, transcription: { model: 'gpt-4o-transcribe' } } },
  }
  const heard = (transcript: string, id = 'item_heard') => ({
    type: 'conversation.item.input_audio_transcription.completed',
    item_id: id,
    content_index: 0,
    transcript,
  })

  test('is refused while nothing transcribes it and a policy must read it', async () => {
    govern(terms('block', ['pre_request']))
    const client = await running.connect()
    for (let count = 0; count < 3; count++) client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
    expect(await client.next('error')).toMatchObject({ error: { code: 'transcription_required', param: 'audio' } })
    client.send({ type: 'response.create' })
    const rest = await client.until('response.done')
    expect(rest.filter(({ type }) => type === 'error')).toEqual([])
    expect(sent('input_audio_buffer.append')).toEqual([])
    client.socket.close()
  })

  test('is answered when its transcript was read', async () => {
    running.script.created = transcribed
    govern(terms('block', ['pre_request']))
    const client = await running.connect()
    await client.next('session.created')
    running.sessions[0]?.tell({ type: 'input_audio_buffer.committed', item_id: 'item_heard' })
    await Bun.sleep(50)
    expect(sent('response.create')).toEqual([])
    running.sessions[0]?.tell(heard('a friendly word'))
    const types = (await client.until('response.done')).map(({ type }) => type)
    expect(types.indexOf('response.created')).toBeGreaterThan(types.indexOf(heard('').type))
    client.socket.close()
  })

  for (const action of ['block', 'redact']) {
    test(`is removed and not answered when a policy would ${action} it`, async () => {
      running.script.created = transcribed
      govern(terms(action, ['pre_request']))
      const client = await running.connect()
      await client.next('session.created')
      running.sessions[0]?.tell({ type: 'input_audio_buffer.committed', item_id: 'item_heard' })
      running.sessions[0]?.tell(heard('a forbidden word'))
      const events = await client.until('error')
      expect(JSON.stringify(events)).not.toContain('a forbidden')
      await Bun.sleep(50)
      expect(sent('conversation.item.delete')).toMatchObject([{ item_id: 'item_heard' }])
      expect(sent('response.create')).toEqual([])
      client.socket.close()
    })
  }

  test('is removed when its transcription fails', async () => {
    running.script.created = transcribed
    govern(terms('block', ['pre_request']))
    const client = await running.connect()
    await client.next('session.created')
    running.sessions[0]?.tell({ type: 'input_audio_buffer.committed', item_id: 'item_heard' })
    running.sessions[0]?.tell({
      type: 'conversation.item.input_audio_transcription.failed',
      item_id: 'item_heard',
      error: { message: 'unclear' },
    })
    expect(await client.next('error')).toMatchObject({ error: { code: 'transcription_required' } })
    client.socket.close()
  })
})
