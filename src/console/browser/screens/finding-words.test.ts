import { expect, test } from 'bun:test'

// A browser has them.
Object.defineProperty(navigator, 'languages', { value: ['en'], configurable: true })
const { findingWords } = await import('./finding-words.ts')

test('says in words what was found and where', () => {
  expect(findingWords('messages: EMAIL (email)')).toBe('an e-mail address in a message')
  expect(findingWords('system: GITHUB_TOKEN (github_token)')).toBe('Github token in the system prompt')
  expect(findingWords('0/text: TERM (terms[2])')).toBe('term 3 of the policy in the answer')
  expect(findingWords('0/tool_calls.arguments: CARD (card)')).toBe(
    'a card number in the arguments of a tool that the answer calls',
  )
  expect(findingWords('tools.send_money')).toBe('the tool send_money')
  expect(findingWords('max_output_tokens')).toBe('max output tokens')
})

test('names the term or pattern of a config that is known, and its number where it has fewer', () => {
  const config = { terms: ['Project Falcon'], patterns: [{ name: 'invoice', pattern: 'INV-[0-9]{4}' }] }
  expect(findingWords('messages: TERM (terms[0])', config)).toBe('the term “Project Falcon” in a message')
  expect(findingWords('messages: INVOICE (patterns[0])', config)).toBe('the pattern “invoice” in a message')
  expect(findingWords('messages: TERM (terms[4])', config)).toBe('term 5 of the policy in a message')
})
