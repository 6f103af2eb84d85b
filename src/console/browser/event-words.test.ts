import { expect, test } from 'bun:test'
import { eventTypes } from '../../events/event-types.ts'

// A browser has them.
Object.defineProperty(navigator, 'languages', { value: ['en'], configurable: true })
const { eventWords } = await import('./event-words.ts')

test('has words for every type of event', () => {
  expect(eventTypes.filter((type) => /[._]/.test(eventWords(type)) || !/^[A-Z]/.test(eventWords(type)))).toEqual([])
})
