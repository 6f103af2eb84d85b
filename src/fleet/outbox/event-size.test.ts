import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { InnerEvent, LogRecord } from '../../events/log/record.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { newId } from '../../lib/ids.ts'
import { eventBytes, eventJson, mostEventBytes } from './event-size.ts'

const inner = (details: InnerEvent['details'] = {}): InnerEvent => ({
  ...{ event_id: newId(), verdict: 'block', reason_code: 'policy.pii' },
  details,
})
const parsed = (record: LogRecord): LogRecord => JSON.parse(eventJson(record))

test("half a surrogate pair from a caller becomes well-formed in every gateway's record, trimmed or not", () => {
  const details = { model: 'gpt\ud800x', 'tool\udc00': ['a\udfff'] }
  for (const notes of ['', 'n'.repeat(9000)]) {
    const event = testEvent({
      ...{ reason_code: 'odd\ud800', metadata: { 'k\ud800': 'v\ud800' } },
      details: { ...details, notes },
    })
    const read = parsed({ ...event, attempts: [inner({ model: 'm\ud800' })] })
    expect(JSON.stringify(read)).not.toContain('\\ud')
    expect(read).toMatchObject({ reason_code: 'odd\ufffd', details: { model: 'gpt\ufffdx' } })
    expect(read.attempts).toMatchObject([{ details: { model: 'm\ufffd' } }])
  }
})

test('drops what readers need least first', () => {
  const long = 'x'.repeat(300)
  const escalation = { id: newId(), digest: 'd'.repeat(300) }
  const whole: LogRecord = {
    ...testEvent({ details: { model: 'one', long }, prompt_redacted: 'prompt', metadata: { key: 'value' } }),
    attempts: [inner({ provider: 'up', long })],
    decisions: [inner({ policy_id: 'p', long, escalation })],
  }
  const record = (filler: Partial<LogRecord>): LogRecord => ({ ...whole, ...filler })
  expect(parsed(record({}))).toEqual(record({}))
  const large = { prompt_redacted: 'p'.repeat(4000) }
  const smaller = parsed(record(large))
  expect(smaller.details).toEqual({ model: 'one', trimmed: true })
  expect(smaller.attempts?.[0]?.details).toEqual({ provider: 'up' })
  expect(smaller.decisions?.[0]?.details).toEqual({ policy_id: 'p', escalation })
  expect(smaller.prompt_redacted).toBe(large.prompt_redacted)
  const cut = parsed(record({ prompt_redacted: 'p'.repeat(9000) }))
  expect(cut).toMatchObject({ prompt_redacted: 'p'.repeat(2250), details: { model: 'one', trimmed: true } })
  const smallest = parsed(record({ prompt_redacted: 'p'.repeat(90_000) }))
  expect(smallest).toMatchObject({
    details: { trimmed: true },
    decisions: [{ details: { policy_id: 'p', escalation } }],
  })
  expect(smallest.prompt_redacted).toBeUndefined()
})

test('fits every record into its bound and keeps its ids, verdicts, reasons, settlements and notices', () => {
  const text = fc.constantFrom('', 'short', 'é'.repeat(100), 'é'.repeat(3000), '"'.repeat(5000))
  const names = fc.constantFrom('model', 'provider', 'targets')
  const details = fc.dictionary(names, fc.oneof(text, fc.array(text, { maxLength: 3 })))
  const inners = fc.array(details.map(inner), { maxLength: 30 })
  const settlements = fc.array(fc.record({ account: fc.uuid(), amount: fc.nat() }), { maxLength: 20 })
  fc.assert(
    fc.property(details, text, inners, inners, settlements, (own, prompt, attempts, decisions, settled) => {
      const event = testEvent({ details: own, prompt_redacted: prompt, metadata: { prompt }, settlements: settled })
      const json = eventJson({ ...event, attempts, decisions })
      expect(Buffer.byteLength(json)).toBeLessThanOrEqual(eventBytes(attempts.length + decisions.length))
      const read: LogRecord = JSON.parse(json)
      const kept = (events: readonly InnerEvent[] = []) =>
        events.map(({ event_id, verdict, reason_code }) => [event_id, verdict, reason_code])
      expect([read.event_id, read.verdict, read.settlements]).toEqual([event.event_id, event.verdict, settled])
      expect(kept(read.attempts)).toEqual(kept(attempts))
      expect(kept(read.decisions)).toEqual(kept(decisions))
    }),
    { numRuns: 100 },
  )
})

test('leaves out the last decisions of hundreds and says how many, so that an exchange can always end', () => {
  const decisions = Array.from({ length: 500 }, () => inner({ policy_id: newId() }))
  const json = eventJson({ ...testEvent(), attempts: [inner()], decisions })
  expect(Buffer.byteLength(json)).toBeLessThanOrEqual(mostEventBytes)
  const read: LogRecord = JSON.parse(json)
  const kept = read.decisions?.length ?? 0
  expect(kept).toBeGreaterThan(60)
  expect(read.attempts).toHaveLength(1)
  expect(read.details).toEqual({ trimmed: true, left_out: 500 - kept })
})
