import { expect, test } from 'bun:test'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { ModelView, type PolicyContext, RequestView, TokenView } from './context.ts'
import { compileExplanation } from './explain.ts'

const text = 'Send the money to the vault'
const slot: TextSlot = { member: 'prompt', kind: 'content', role: 'user', text, replace: () => undefined }

const context = (texts: () => readonly TextSlot[] = () => [slot]): PolicyContext => ({
  request: new RequestView({
    ...{ family: 'chat', model: 'gpt-4o', stream: true, sessionId: null, body: null },
    ...{ texts, headers: new Headers({ 'x-team': 'red' }) },
  }),
  response: null,
  token: new TokenView({
    ...{ id: 'token-1', purpose: 'general', roles: ['member'], teamId: 'team-1', userId: null, gatewayId: null },
    metadata: {},
  }),
  model: new ModelView('gpt-4o', 'openai'),
  now: new Date('2026-05-01T12:00:00Z'),
})

const heldIn = (when: string, of = context()) => compileExplanation(when, ['pre_request'])(of)

test('names each part that held, with the values that it asked for', () => {
  expect(heldIn('request.model == "gpt-4o" && (request.stream || "owner" in token.roles)')).toEqual([
    { part: 'request.model == "gpt-4o"', values: [{ name: 'request.model', value: 'gpt-4o' }], found: null },
    { part: 'request.stream', values: [{ name: 'request.stream', value: true }], found: null },
  ])
})

test('shows members of maps, and lists that a macro goes through', () => {
  const when = 'request.headers["x-team"] == "red" && token.roles.exists(role, role == "member")'
  expect(heldIn(when).map(({ values }) => values)).toEqual([
    [{ name: 'request.headers["x-team"]', value: 'red' }],
    [{ name: 'token.roles', value: ['member'] }],
  ])
})

test.each([
  ['request.text.contains("money")', 'money'],
  ['request.text.startsWith("Send")', 'Send'],
  ['request.text.endsWith("vault")', 'vault'],
  ['request.text.matches("m[a-z]+y to")', 'money to'],
])('finds the place in the text for %s', (when, found) => {
  const [held] = heldIn(when)
  expect(held?.found?.text.slice(held.found.start, held.found.end)).toBe(found)
})

test('leaves out a part that asks for what is not known', () => {
  const unknown = context(() => {
    throw new Error('It was not recorded')
  })
  expect(heldIn('request.stream || request.text.contains("money")', unknown).map(({ part }) => part)).toEqual([
    'request.stream',
  ])
})
