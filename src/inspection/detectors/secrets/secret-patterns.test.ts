import { expect, test } from 'bun:test'
import { cutAt, feedPieces, ruleOf } from '../../testing/passing.ts'
import { exampleSecret } from '../../testing/secrets.ts'
import { matcherOf } from '../text-matcher.ts'
import { secretDetector } from './secret-patterns.ts'
import { secretRules, unprefixedRules } from './secret-rules.ts'

const rules = [...secretRules, ...unprefixedRules]
const found = (text: string): string[] =>
  matcherOf(secretDetector())
    .matches(text)
    .map(({ start, end, label }) => `${label} ${text.slice(start, end)}`)
/** How shells write what stands for a secret. */
const variable = '$' + '{SECRET_OF_ALL}'
const redaction = ruleOf(secretDetector(), 'redact')

test('finds the whole sample of each rule under its label', () => {
  const missed = rules.filter(({ label, sample }) =>
    [1, 2, 3].some((seed) => {
      const [only, ...more] = found(`It is "${exampleSecret(sample, seed)}", he wrote.`)
      return only !== `${label} ${exampleSecret(sample, seed)}` || more.length > 0
    }),
  )
  expect(missed.map(({ sample }) => sample)).toEqual([])
})

test('finds the same in a stream split anywhere', () => {
  for (const { label, sample } of rules) {
    const text = `key ${exampleSecret(sample)} end`
    const places = Array.from({ length: 6 }, (_, index) => index * 37 + sample.length)
    for (const pieces of [[...text], cutAt(text, places)]) {
      expect(feedPieces([redaction], pieces).text).toBe(`key [${label}] end`)
    }
  }
})

test('passes placeholders', () => {
  for (const { sample } of rules) {
    const placeholder = sample.replace(/\{\w+ (\d+)\}/g, (_all, count: string) => 'x'.repeat(Number(count)))
    expect([placeholder, ...found(placeholder)]).toEqual([placeholder])
  }
  for (const text of [
    'AKIAIOSFODNN7EXAMPLE',
    'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
    'AIzaSyabcdefghijklmnopqrstuvwxyz1234567',
    'OPENAI_API_KEY=sk-your-openai-api-key-goes-here',
    `api_key = "${variable}"`,
    'api_key: <your-key>',
    'ghp_000000000000000000000000000000000000',
    'glpat-XXXXXXXXXXX-XXXXXXXX',
    'xoxb-my-bot-token-of-this-workspace',
  ]) {
    expect([text, ...found(text)]).toEqual([text])
  }
})

test('takes no words after sk- for a key', () => {
  for (const text of [
    '.sk-toggleable__label-arrow',
    'feature/sk-migrate-customer-database',
    'the sk-learn package',
    'sk-2024-migration-of-customer-database-v2',
    'id="sk-container-id-12" class="sk-estimator sk-toggleable"',
  ]) {
    expect([text, ...found(text)]).toEqual([text])
  }
})

test('finds passwords in connection URLs, and not their placeholders', () => {
  for (const [text, password] of [
    ['postgres://app:s3cr3t@db.local:5432/main', '://app:s3cr3t@'],
    ['mongodb+srv://root:Tr0ub4dor&3@cluster0.abc.mongodb.net', '://root:Tr0ub4dor&3@'],
    ['redis://:p4ss,w0rd@cache:6379/0', '://:p4ss,w0rd@'],
    ['amqp://guest:gu3st-77@mq', '://guest:gu3st-77@'],
    ['https://deploy:hunter2@git.corp.example/repo.git', '://deploy:hunter2@'],
    ['postgres://app:p@ss@word@db/main', '://app:p@ss@word@'],
  ] as const) {
    expect(found(`DATABASE_URL=${text} # main`)).toEqual([`URL_PASSWORD ${password}`])
  }
  for (const text of [
    'postgres://user:password@localhost/db',
    `postgres://app:${variable}@db/main`,
    'https://example.com:8080/@scope/package',
    'https://git@github.com/org/repo',
    'see http://localhost:3000/a and write to ann@mail.org',
    'redis://:<password>@cache',
    'mysql://root:****@db',
  ]) {
    expect([text, ...found(text)]).toEqual([text])
  }
})

test('finds a random value written after a secret’s name', () => {
  const random = exampleSecret('{lower 32}')
  expect(found(`DATADOG_API_KEY=${random}`)).toEqual([`CREDENTIAL DATADOG_API_KEY=${random}`])
  expect(found(`client_secret: "${random}"`)).toEqual([`CREDENTIAL client_secret: "${random}`])
  expect(found(`Authorization: Bearer ${random}`)).toEqual([`CREDENTIAL Authorization: Bearer ${random}`])
  expect(found(`DB_PASSWORD='${random}@!x'`)).toEqual([`CREDENTIAL PASSWORD='${random}@!x`])
  for (const text of [
    `nextPageToken: "${random}"`,
    `commit ${random}`,
    'api_key = getApiKeyFromEnvironment()',
    'password: the-name-of-my-first-pet',
    'access token = request.headers.authorization',
  ]) {
    expect([text, ...found(text)]).toEqual([text])
  }
})

test('follows tokens longer than the held text', () => {
  for (const [label, begin] of [
    ['JWT', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIi'],
    ['PYPI_TOKEN', 'pypi-AgEIcHlwaS5vcmc'],
    ['GOOGLE_KEY', 'ya29.'],
    ['ONEPASSWORD_TOKEN', 'ops_eyJ'],
    ['FLY_TOKEN', 'fm2_'],
    ['DROPBOX_TOKEN', 'sl.u.'],
    ['AWS_KEY', 'IQoJb3JpZ2lu'],
  ] as const) {
    const { text } = feedPieces(
      [redaction],
      cutAt(`a ${begin}${exampleSecret('{alnum 3000}')} b`, [7, 500, 1200, 2900]),
    )
    expect(text.replaceAll(`[${label}]`, '')).toBe('a  b')
  }
})

test('finds a private key with escaped line ends', () => {
  const key = `-----BEGIN PRIVATE KEY-----\\n${exampleSecret('{base64 64}')}\\n${exampleSecret('{base64 64}', 5)}\\n-----END PRIVATE KEY-----`
  expect(feedPieces([redaction], [`"private_key": "${key}\\n"`]).text).toBe('"private_key": "[PRIVATE_KEY]\\n"')
})
