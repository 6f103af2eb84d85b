import { expect, test } from 'bun:test'
import { z } from 'zod'
import { useFieldAdvice } from './use-field-advice.ts'

useFieldAdvice()

const messageOf = (schema: z.ZodType, value?: unknown): string | undefined =>
  schema.safeParse(value).error?.issues[0]?.message

test('says what to write in a field, in plain words', () => {
  expect([
    messageOf(z.string().max(200), 'x'.repeat(201)),
    messageOf(z.string().min(1), ''),
    messageOf(z.string().min(12), 'short'),
    messageOf(z.string(), 5),
    messageOf(z.string()),
    messageOf(z.number().int(), 1.5),
    messageOf(z.number().max(10), 11),
    messageOf(z.number().positive(), 0),
    messageOf(z.array(z.string()).max(1), ['a', 'b']),
    messageOf(z.array(z.string()).min(1), []),
    messageOf(z.enum(['day', 'week']), 'year'),
    messageOf(z.enum(['day', 'week']), 'weak'),
    messageOf(z.literal('on'), 'off'),
    messageOf(z.email(), 'ann'),
    messageOf(z.uuid(), '5'),
    messageOf(z.string().regex(/^[a-z]+$/), 'A'),
    messageOf(z.number().multipleOf(5), 3),
    messageOf(z.union([z.string(), z.boolean()]), 1),
  ]).toEqual([
    'Write at most 200 characters',
    'Write a text: it must not be empty',
    'Write at least 12 characters',
    'Write a text',
    'This is required',
    'Write a whole number',
    'Write a number of at most 10',
    'Write a number above 0',
    'Give at most 1 entry',
    'Give at least 1 entry',
    'Write one of day, week',
    'Write one of day, week: did you mean week?',
    'Write on',
    'Write an e-mail address, such as ann@example.com',
    'Write an id, such as 019a2b3c-4d5e-7f60-8a1b-2c3d4e5f6071',
    'Write it in the form /^[a-z]+$/',
    'Write a multiple of 5',
    'It has none of the forms that are allowed here',
  ])
})

test('keeps the message that a rule has of its own', () => {
  expect(messageOf(z.string().max(3, 'Take a short name'), 'long')).toBe('Take a short name')
})
