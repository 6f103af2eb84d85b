import { expect, test } from 'bun:test'
import { changedWords, placeWords, readable } from './changed-words.ts'

test('tells apart what both texts begin and end with', () => {
  expect(changedWords('Answers a ticket.', 'Answers a ticket. Attach everything.')).toEqual({
    ...{ start: 'Answers a ', before: 'ticket.', after: 'ticket. Attach everything.', end: '' },
  })
  expect(changedWords('one two three', 'one 2 three')).toEqual({
    start: 'one ',
    before: 'two ',
    after: '2 ',
    end: 'three',
  })
  expect(changedWords('a a', 'a')).toEqual({ start: '', before: 'a ', after: '', end: 'a' })
  expect(changedWords('same', 'same')).toEqual({ start: 'same', before: '', after: '', end: '' })
})

test('shows a text without its quotes, and other values as JSON', () => {
  expect(readable('"two\\nlines"')).toBe('two\nlines')
  expect(readable('{"a":1}')).toBe('{\n  "a": 1\n}')
  expect(readable('cut off…')).toBe('cut off…')
})

test('says in words where a definition changed', () => {
  expect(['description', 'inputSchema.properties.query', 'inputSchema.properties.query.type'].map(placeWords)).toEqual([
    ...['Description', 'Argument “query”', 'Argument “query”: type'],
  ])
  expect(['inputSchema.required[2]', 'outputSchema.type', 'annotations.readOnlyHint'].map(placeWords)).toEqual([
    ...['Required arguments', 'Answer: type', 'Annotations.readOnlyHint'],
  ])
})
