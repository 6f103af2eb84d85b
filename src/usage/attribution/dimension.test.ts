import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../failure.ts'
import { readAccountName } from '../account-name.ts'
import { budgetAccountFor } from '../demands.ts'
import { type AttributedRequest, attribute, type Dimension } from './dimension.ts'

const dimension = (members: Partial<Dimension> = {}): Dimension => ({
  name: 'customer',
  source: { kind: 'header', key: 'x-customer-id' },
  values: null,
  required: false,
  maxValues: 10_000,
  ...members,
})
const request = (members: Partial<AttributedRequest> = {}): AttributedRequest => ({
  headers: new Headers(),
  body: null,
  token: { metadata: {}, metadataTrust: 'caller' },
  claims: null,
  ...members,
})
const refusal = (dimensions: readonly Dimension[], of: AttributedRequest) => {
  try {
    attribute(dimensions, of)
  } catch (thrown) {
    if (thrown instanceof Failure) return thrown
  }
  throw new Error('It was not refused')
}

test('reads a value from a header, metadata of the body or the token, and a claim', () => {
  const from = (kind: Dimension['source']['kind'], key: string) => dimension({ name: kind, source: { kind, key } })
  const dimensions = [
    from('header', 'x-customer-id'),
    from('body_metadata', 'customer'),
    from('token_metadata', 'product'),
    from('jwt_claim', 'tenant'),
  ]
  const said = request({
    headers: new Headers({ 'X-Customer-Id': 'acme' }),
    body: { metadata: { customer: 'globex' } },
    token: { metadata: { product: 'search' }, metadataTrust: 'caller' },
    claims: { tenant: 'initech' },
  })
  expect(attribute(dimensions, said)).toEqual({
    header: 'acme',
    body_metadata: 'globex',
    token_metadata: 'search',
    jwt_claim: 'initech',
  })
  expect(attribute(dimensions, request())).toBeNull()
  const ofForm = request({ body: { 'metadata[customer]': 'globex', model: 'whisper-1' } })
  expect(attribute(dimensions, ofForm)).toEqual({ body_metadata: 'globex' })
})

test('reads a header as UTF-8, or as ISO 8859-1 where it is none', () => {
  const of = (bytes: Buffer) =>
    attribute([dimension()], request({ headers: new Headers([['x-customer-id', bytes.toString('latin1')]]) }))
  expect(of(Buffer.from('café ✓'))).toEqual({ customer: 'café ✓' })
  expect(of(Buffer.from('caf\u00e9', 'latin1'))).toEqual({ customer: 'café' })
})

test('knows a value in one form, from whatever source it comes', () => {
  const kinds = ['header', 'body_metadata', 'token_metadata', 'jwt_claim'] as const
  const dimensions = kinds.map((kind) => dimension({ name: kind, source: { kind, key: 'tenant' } }))
  const said = (value: string) =>
    request({
      headers: new Headers([['tenant', Buffer.from(value).toString('latin1')]]),
      body: { metadata: { tenant: value } },
      token: { metadata: { tenant: value }, metadataTrust: 'caller' },
      claims: { tenant: value },
    })
  for (const [value, plain] of [
    ['t1 ', 't1'],
    [' t1', 't1'],
    ['\u00a0t1\u3000', 't1'],
    ['cafe\u0301', 'caf\u00e9'],
  ] as const) {
    expect(attribute(dimensions, said(value))).toEqual(Object.fromEntries(kinds.map((kind) => [kind, plain])))
  }
  expect(attribute(dimensions, said(' '))).toBeNull()
  const allowed = dimension({ source: { kind: 'jwt_claim', key: 'tenant' }, values: new Set(['t1']) })
  expect(attribute([allowed], request({ claims: { tenant: 't1 ' } }))).toEqual({ customer: 't1' })
})

test('refuses a header that is sent twice: it names no one account', () => {
  const headers = new Headers([
    ['x-customer-id', 'c1'],
    ['x-customer-id', 'zz'],
  ])
  const { code, param, message } = refusal([dimension()], request({ headers }))
  expect([code, param]).toEqual(['attribution_refused', 'customer'])
  expect(message).toContain('send the header x-customer-id once and without a comma')
  expect(refusal([dimension()], request({ headers: new Headers({ 'x-customer-id': 'c1,zz' }) })).code).toBe(code)
  const company = dimension({ values: new Set(['Acme, Inc.']) })
  const named = request({ headers: new Headers({ 'x-customer-id': 'Acme, Inc.' }) })
  expect(attribute([company], named)).toEqual({ customer: 'Acme, Inc.' })
  expect(refusal([company], request({ headers })).message).toContain('once and without a comma')
})

test('reads nothing that the caller says for a token that does not trust its caller', () => {
  const said = request({
    headers: new Headers({ 'x-customer-id': 'acme' }),
    token: { metadata: {}, metadataTrust: 'none' },
  })
  expect(attribute([dimension()], said)).toBeNull()
  const { code, message } = refusal([dimension({ required: true })], said)
  expect([code, message]).toEqual(['attribution_refused', expect.stringContaining('metadata_trust')])
})

test('refuses a missing value that is required, and one that is not allowed, too long or no plain text', () => {
  const of = (value: string) => request({ headers: new Headers({ 'x-customer-id': value }) })
  expect(refusal([dimension({ required: true })], request()).message).toContain('the header x-customer-id')
  expect(refusal([dimension({ values: new Set(['acme']) })], of('globex')).param).toBe('customer')
  expect(attribute([dimension({ values: new Set(['acme']) })], of('acme'))).toEqual({ customer: 'acme' })
  const inBody = dimension({ source: { kind: 'body_metadata', key: 'customer' } })
  for (const customer of ['a\u0000b', 'a\nb', 'a\u0085b', 'a\ud800', '\udc00a']) {
    expect(refusal([inBody], request({ body: { metadata: { customer } } })).message).toContain('control character')
  }
  for (const customer of [['acme'], { id: 'acme' }, null, '']) {
    expect(attribute([inBody], request({ body: { metadata: { customer } } }))).toBeNull()
  }
  expect(attribute([inBody], request({ body: { metadata: { customer: 7 } } }))).toEqual({ customer: '7' })
  expect(refusal([dimension()], of('a'.repeat(201))).message).toContain('longer than 200')
})

test('refuses a value of many characters before it composes them', () => {
  const inBody = dimension({ source: { kind: 'body_metadata', key: 'customer' } })
  const said = (customer: string) => request({ body: { metadata: { customer } } })
  expect(attribute([inBody], said(`t1${' '.repeat(798)}`))).toEqual({ customer: 't1' })
  expect(refusal([inBody], said(`t1${' '.repeat(799)}`)).message).toContain('longer than 200')
  const before = process.cpuUsage()
  expect(refusal([inBody], said('\u0301\u0323'.repeat(50_000))).message).toContain('longer than 200')
  // Composing these marks takes several seconds.
  expect(process.cpuUsage(before).user).toBeLessThan(1_000_000)
})

test('gives each value an account whose name is bounded, safe and its own', () => {
  const name = (value: string) => budgetAccountFor({ id: 'b', per: 'customer' }, { customer: value })
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
      expect(name(one)).toMatch(/^budget\/b\/[0-9a-f]{32}$/)
      expect(readAccountName(`${name(one)}@2026-11-01`)).toMatchObject({ kind: 'budget', id: 'b' })
      expect(name(one) === name(other)).toBe(one === other)
    }),
  )
})

test('counts requests without a value together', () => {
  const budget = { id: 'b', per: 'customer' }
  expect(budgetAccountFor(budget, null)).toBe(budgetAccountFor(budget, { feature: 'search' }))
  expect(budgetAccountFor({ id: 'b', per: null }, { customer: 'acme' })).toBe('budget/b')
  const inherited = { id: 'b', per: 'constructor' }
  expect(budgetAccountFor(inherited, { feature: 'search' })).toBe(budgetAccountFor(inherited, null))
})
