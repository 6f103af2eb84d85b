import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import { compileWhen } from './condition.ts'
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

test.each([
  ['!(request.model == "x" || false)', '!(request.model == "x" || false)'],
  ['(request.model + "!") == ("gpt-4o" + ("!"))', '(request.model + "!") == ("gpt-4o" + ("!"))'],
  ['(request).stream && ((request.model)) == "gpt-4o"', '(request).stream'],
  ['request.text.contains("money") && !(request.text == ")")', 'request.text.contains("money")'],
  ['request.stream // no ( here\n && !(false)', 'request.stream'],
  [
    String.raw`!(request.model == '\')' || request.text == r"\"(")`,
    String.raw`!(request.model == '\')' || request.text == r"\"(")`,
  ],
])('keeps the parentheses of %s', (when, first) => {
  expect(heldIn(when)[0]?.part).toBe(first)
})

test('leaves out a part that is no condition by itself', () => {
  expect(heldIn('request.stream && dyn(true)').map(({ part }) => part)).toEqual(['request.stream'])
})

const wrapped = (text: string) => fc.constantFrom(text, `(${text})`, `( ${text} // )\n )`, `((${text}))`)
const operand = fc
  .constantFrom('request.model', 'request.text', '"gpt-4o"', "'('", '")"', 'r")"', `"""('"""`, 'model.provider')
  .chain(wrapped)
const { condition } = fc.letrec<{ condition: string; inner: string }>((tie) => ({
  condition: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('request.stream', 'true', 'false', '"owner" in (token.roles)', 'size((request.text)) > 3'),
    fc.tuple(operand, fc.constantFrom('==', '!=', '<'), operand).map((parts) => parts.join(' ')),
    fc.tuple(operand, operand).map(([one, other]) => `(${one} + ${other}) == ${other}`),
    operand.map((text) => `(${text}).contains("o")`),
    tie('inner').map((inner) => `!(${inner})`),
    fc.tuple(tie('inner'), fc.constantFrom('&&', '||'), tie('inner')).map((parts) => parts.join(' ')),
    fc.tuple(tie('inner'), tie('inner'), tie('inner')).map(([one, yes, no]) => `((${one}) ? (${yes}) : (${no}))`),
  ),
  inner: tie('condition').chain(wrapped),
}))

test('explains any condition, and each part that it says to hold is true by itself', () => {
  const isTrue = (when: string) => compileWhen(when, ['pre_request'])(context())
  fc.assert(
    fc.property(condition, (when) => {
      const held = heldIn(when)
      expect(held.filter(({ part }) => !isTrue(part))).toEqual([])
      if (isTrue(when)) expect(held).not.toEqual([])
    }),
    { numRuns: 500 },
  )
})
