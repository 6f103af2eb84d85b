import { expect, test } from 'bun:test'
import { z } from 'zod'
import { describedEventSchema } from './details.ts'
import { eventTypes } from './event-types.ts'
import { testEvent } from './testing/ledger.ts'

test('the table of events names each type once', () => {
  expect([...new Set(eventTypes)]).toEqual([...eventTypes])
})

const outcome = {
  route: 'POST /v1/chat/completions',
  model: 'gpt-4o',
  provider: 'openai',
  status: 200,
  latency_ms: 12,
  first_token_ms: null,
  attempts: 1,
  stream: false,
}

test('checks the details of a type against its own description', () => {
  const said = (details: Record<string, unknown>) => describedEventSchema.safeParse(testEvent({ details })).success
  expect(said(outcome)).toBe(true)
  expect(said({ ...outcome, something_later: 1 })).toBe(true)
  expect(said({ ...outcome, attempts: 'one' })).toBe(false)
})

test('states what the types share once in the description', () => {
  const { $defs = {} } = z.toJSONSchema(z.object({ events: z.array(describedEventSchema) }))
  expect(Object.keys($defs)).toContain('EventAttribution')
  expect($defs.RequestOutcome).toMatchObject({ properties: { event_type: { enum: ['gateway.request.outcome'] } } })
})
