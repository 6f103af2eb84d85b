import { expect, test } from 'bun:test'

// A browser has them.
Object.defineProperty(navigator, 'languages', { value: ['en'], configurable: true })
const { findingSentence, findingWords } = await import('./finding-words.ts')

test('says in words what was found and where', () => {
  expect(findingWords(['messages: EMAIL (email)'])).toBe('found an e-mail address in a message')
  expect(findingWords(['system: GITHUB_TOKEN (github_token)'])).toBe('found Github token in the system prompt')
  expect(findingWords(['0/text: TERM (terms[2])'])).toBe('found term 3 of the policy in the answer')
  expect(findingWords(['0/tool_calls.arguments: CARD (card)'])).toBe(
    'found a card number in the arguments of a tool that the answer calls',
  )
})

test('says of policies that find nothing what they decided on, with names as written', () => {
  expect(findingWords(['max_output_tokens', 'model'])).toBe('concerns max_output_tokens, model')
  expect(findingWords(['tools.send_money'])).toBe('concerns the tool send_money')
  expect(findingSentence(['temperature'])).toBe('Concerns temperature')
})

test('says the verb once for several targets', () => {
  expect(findingWords(['messages: EMAIL (email)', 'system: CARD (card)'])).toBe(
    'found an e-mail address in a message, a card number in the system prompt',
  )
  expect(findingWords([])).toBe('')
})

test('names the term or pattern of a config that is known, and its number where it has fewer', () => {
  const config = { terms: ['Project Falcon'], patterns: [{ name: 'invoice', pattern: 'INV-[0-9]{4}' }] }
  expect(findingWords(['messages: TERM (terms[0])'], config)).toBe('found the term “Project Falcon” in a message')
  expect(findingWords(['messages: INVOICE (patterns[0])'], config)).toBe('found the pattern “invoice” in a message')
  expect(findingWords(['messages: TERM (terms[4])'], config)).toBe('found term 5 of the policy in a message')
})
