import { expect, test } from 'bun:test'
import { z } from 'zod'
import { secret } from '../../src/api/resource.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import type { Api } from './api.ts'
import { argumentsFor, clearableOf, fieldsOf, readBody } from './resource-flags.ts'

const create = z.strictObject({
  name: z.string().describe('Resource name'),
  kind: z.enum(['small', 'large']).optional(),
  enabled: z.boolean().default(true),
  max_tokens: z.number().int().min(1).optional(),
  quiet_minutes: z.number().int().min(0).optional(),
  at_least: z.number().min(0).optional(),
  max_budget: z.number().positive().optional(),
  policies: z.array(z.string()).optional(),
  arguments: z.array(z.string()).optional(),
  scope: z.string().optional(),
  price: z.object({ input: z.number() }).optional(),
  api_key: z.string().describe('Its key').meta(secret).optional(),
  headers: z.record(z.string(), z.string().meta(secret)).optional(),
  login: z
    .strictObject({ user_id: z.uuid(), password: z.string().meta(secret), realm: z.string().optional() })
    .optional(),
  internal: z.string().optional(),
})
const flags = {
  arguments: { commas: true },
  scope: { words: true },
  price: { json: '{"input_per_million": 1.5, "output_per_million": 6}' },
  internal: null,
} as const
const fields = fieldsOf(create, flags)

const environment = { KEY: 'sesame', PASSWORD: 'open' }
const api: Api = {
  response: () => Promise.reject(new Error('Nothing is called')),
  json: () => Promise.reject(new Error('Nothing is called')),
}
const read = (values: Record<string, unknown>, typed = '') => {
  const line = async () => typed
  const input = { interactive: false, line, hiddenLine: line }
  return readBody(fields, values, { terminal: recordingTerminal({ environment }), input, api })
}

test('each kind of field has its kind of flag', () => {
  expect(argumentsFor(fields, true)).toMatchObject({
    name: { type: 'string', required: true, description: 'Resource name' },
    kind: { type: 'enum', options: ['small', 'large'] },
    enabled: { type: 'boolean' },
    'max-tokens': { type: 'string', valueHint: 'N' },
    policy: { type: 'string', repeatable: true },
    scope: { type: 'string', repeatable: true },
    price: { type: 'string', valueHint: 'JSON' },
    'api-key-env': { type: 'string', valueHint: 'VARIABLE' },
    'api-key-stdin': { type: 'boolean' },
    'header-env': { type: 'string', repeatable: true, valueHint: 'NAME=VARIABLE' },
    'login-user-id': { type: 'string', valueHint: 'UUID' },
    'login-password-env': { type: 'string' },
  })
  expect(Object.keys(argumentsFor(fields, true))).not.toContain('internal')
  expect(argumentsFor(fields, false).name).not.toHaveProperty('required')
})

test('builds the body from the flags, by the types of the fields', async () => {
  const body = await read({
    name: 'a',
    enabled: false,
    'max-tokens': '12',
    'max-budget': '2.5',
    'quiet-minutes': '0',
    'at-least': '0',
    policy: 'x,y\nz',
    argument: 'x,y\nz',
    scope: 'read\nwrite',
    price: '{"input":1}',
    'header-env': 'X-Key=KEY',
  })
  expect(body).toEqual({
    name: 'a',
    enabled: false,
    max_tokens: 12,
    max_budget: 2.5,
    quiet_minutes: 0,
    at_least: 0,
    policies: ['x', 'y', 'z'],
    arguments: ['x,y', 'z'],
    scope: 'read write',
    price: { input: 1 },
    headers: { 'X-Key': 'sesame' },
  })
})

test('a secret comes from a variable or from stdin, and not from both', async () => {
  expect(await read({ 'api-key-env': 'KEY' })).toEqual({ api_key: 'sesame' })
  expect(await read({ 'api-key-stdin': true }, 'typed\n')).toEqual({ api_key: 'typed' })
  await expect(read({ 'api-key-stdin': true, 'api-key-env': 'KEY' }, 'typed')).rejects.toThrow('Use either')
  await expect(read({ 'api-key-env': 'NONE' })).rejects.toThrow('no variable NONE')
})

test('an object within is whole or absent', async () => {
  const userId = '01990000-0000-7000-8000-000000000001'
  const whole = await read({ 'login-user-id': userId, 'login-password-env': 'PASSWORD' })
  expect(whole).toEqual({ login: { user_id: userId, password: 'open' } })
  await expect(read({ 'login-realm': 'r' })).rejects.toThrow('Also give --login-user-id, --login-password-env')
})

test.each([
  ['max-tokens', '0'],
  ['max-tokens', '1e3'],
  ['max-budget', '-1'],
  ['max-budget', '0'],
  ['max-tokens', '0'],
  ['at-least', '-1'],
  ['policy', 'a,,b'],
  ['price', 'cheap'],
  ['header-env', 'X-Mine'],
])('--%s %s is refused, and its value is not repeated', async (flag, value) => {
  const refused = await read({ [flag]: value }).catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'usage', message: expect.stringContaining(`--${flag}`) })
  expect(refused).toMatchObject({ message: expect.not.stringContaining(value) })
})

test('clears nullable fields', () => {
  const update = z.strictObject({ name: z.string().optional(), base_url: z.string().nullable().optional() })
  expect(clearableOf(update)).toEqual(['base-url'])
})
