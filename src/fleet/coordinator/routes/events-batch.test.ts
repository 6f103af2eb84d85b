/** What the control plane takes as a batch of records, and what it refuses. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { noAttribution } from '../../../events/event.ts'
import { chainHead, ingestEvents } from '../../../events/ingest/ingest.ts'
import type { Line } from '../../../events/ingest/read-batch.ts'
import { chainNext, chainStart } from '../../../events/log/chain.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from '../../../events/testing/ledger.ts'
import { recordedTexts } from '../../../events/testing/recorded.ts'
import { newId } from '../../../lib/ids.ts'
import { silentLog } from '../../../lib/log/log.ts'
import { batchHead, eventBatchBytes, eventBatchLimit } from '../../protocol/wire.ts'
import { readBatch } from './events-batch.ts'

const digest = 'a'.repeat(64)
const packed = (text: string | Uint8Array): Uint8Array => zstdCompressSync(Buffer.from(text))
const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join('')
/** The text of a line, and what its bytes say. */
const textsOf = ({ text, bytes }: Line) => [text, String(bytes)]
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  )

test('takes the text of each record byte for byte', async () => {
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom('\u2028', '\u2029', '\u0085', '\r', '\ufeff'), fc.string({ unit: 'grapheme' })),
  })
  const texts = fc.array(
    text.map((each) => JSON.stringify({ text: each })),
    { minLength: 1, maxLength: 20 },
  )
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 10 ** 15 - 1 }), texts, async (first, each) => {
      const body = packed(batchHead(first, each.length, digest) + lines(each))
      const taken = await readBatch(body, 'zstd')
      expect({ ...taken, lines: taken.lines.map(textsOf) }).toEqual({
        first,
        lines: each.map((text) => [text, text]),
        digest,
      })
    }),
  )
})

test('takes no changed byte of a batch for another record', async () => {
  const texts = ['{"a":1}', '{"b":"é"}', '{"c":[]}']
  const whole = Buffer.from(batchHead(7, 3, digest) + lines(texts))
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const changed = Buffer.from(whole)
      changed[at] = (changed[at] ?? 0) ^ change
      const taken = await readBatch(packed(changed), 'zstd').catch(() => null)
      if (taken === null) return
      const again =
        batchHead(taken.first, taken.lines.length, taken.digest) + lines(taken.lines.map(({ bytes }) => String(bytes)))
      expect(Buffer.from(again).equals(changed)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('takes an empty body as the question for the head', async () => {
  expect((await readBatch(new Uint8Array(), null)).lines).toEqual([])
  expect((await readBatch(new Uint8Array(), 'zstd')).lines).toEqual([])
})

const one = batchHead(1, 1, digest)
const bad: Record<string, { body: Uint8Array; encoding?: string | null; says: RegExp | null; code?: string }> = {
  'no content-encoding': {
    body: Buffer.from(`${one}{}\n`),
    encoding: null,
    says: /zstd/,
    code: 'unsupported_media_type',
  },
  'another content-encoding': {
    body: packed(`${one}{}\n`),
    encoding: 'gzip',
    says: /zstd/,
    code: 'unsupported_media_type',
  },
  'bytes that are no zstd': { body: Buffer.from(`${one}{}\n`), says: /zstd/ },
  'a first line with a space': { body: packed(`${one.replace(':1,', ': 1,')}{}\n`), says: /first line/ },
  'a first line with a capital digest': { body: packed(`${batchHead(1, 1, 'A'.repeat(64))}{}\n`), says: /first line/ },
  'number 0': { body: packed(`${batchHead(0, 1, digest)}{}\n`), says: /first line/ },
  'no first line': { body: packed('{}\n'), says: /first line/ },
  'no records': { body: packed(batchHead(1, 0, digest)), says: /first line/ },
  'fewer records than it says': {
    body: packed(`${batchHead(1, 2, digest)}{}\n`),
    says: /1 lines after the first, which announces 2/,
  },
  'more records than it says': { body: packed(`${one}{}\n{}\n`), says: /2 lines after the first, which announces 1/ },
  'very many more records than it says': {
    body: packed(one + '\n'.repeat(1_000_000)),
    says: /1000000 lines after the first, which announces 1/,
  },
  'a last line that does not end': { body: packed(`${one}{}`), says: /does not end/ },
  'a body that was cut off': { body: packed(`${one}{"text":"x"}\n`).subarray(0, -3), says: null },
  'bytes that are not UTF-8': {
    body: packed(Buffer.concat([Buffer.from(one), Buffer.from([0xff, 0x0a])])),
    says: /UTF-8/,
  },
  'one record too many': {
    body: packed(batchHead(1, eventBatchLimit + 1, digest) + lines(Array(eventBatchLimit + 1).fill('{}'))),
    says: /at most/,
  },
  'a record of 10 MiB': {
    body: packed(`${one}{"text":"${'x'.repeat(10 * 1024 * 1024)}"}\n`),
    ...{ says: null, code: 'request_too_large' },
  },
  'too many compressed bytes': {
    body: new Uint8Array(eventBatchBytes + 1),
    ...{ says: null, code: 'request_too_large' },
  },
}

for (const [name, { body, encoding = 'zstd', says, code = 'invalid_parameter' }] of Object.entries(bad)) {
  test(`refuses ${name} with ${code}`, async () => {
    const failure = await readBatch(body, encoding).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code })
    if (says !== null) expect(String(failure)).toMatch(says)
  })
}

test('refuses a zstd bomb without expanding it', async () => {
  const bomb = zstdCompressSync(Buffer.alloc(512 * 1024 * 1024))
  Bun.gc(true)
  const before = process.memoryUsage.rss()
  expect(await codeOf(readBatch(bomb, 'zstd'))).toBe('request_too_large')
  expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024)
})

describe('a batch that was read', () => {
  let databases: TestDatabases
  beforeAll(async () => {
    databases = await openTestDatabases()
  })
  afterAll(() => databases.remove())
  beforeEach(() => emptyTestDatabases(databases))

  const gatewayId = newId()
  const attribution = { ...noAttribution, gateway_id: gatewayId }
  const records = Array.from({ length: 9 }, () => JSON.stringify(testEvent({ event_attribution: attribution })))
  const broken = `${records[3]?.slice(0, -5)}`

  /** Posts consecutive records from number `first` on, as a worker of this chain would. */
  function worker() {
    const chain = `${gatewayId}/${newId()}/0`
    const digests = [chainStart(chain)]
    for (const text of records) digests.push(chainNext(digests.at(-1) ?? '', digests.length, text))
    const post = async (first: number, texts: readonly string[], after = digests[first + texts.length - 1] ?? '') => {
      const batch = await readBatch(packed(batchHead(first, texts.length, after) + lines(texts)), 'zstd')
      const nothing = { bookingStatements: () => [], onIngested: () => undefined }
      const of = { chain, gatewayId, receivedAt: Date.now(), newId, log: silentLog, ...nothing }
      return await ingestEvents(databases.ledger, { ...batch, ...of })
    }
    const head = () => chainHead(databases.ledger, chain)
    return { chain, digests, post, head }
  }

  test('is recorded once, in order, whether it comes twice or overlaps', async () => {
    const { digests, post, head } = worker()
    await post(1, records.slice(0, 4))
    expect(await post(1, records.slice(0, 4))).toEqual({ seq: 4, digest: digests[4] ?? '' })
    expect(await post(3, records.slice(2, 7))).toEqual({ seq: 7, digest: digests[7] ?? '' })
    expect(await post(2, records.slice(1, 3))).toEqual({ seq: 7, digest: digests[7] ?? '' })
    expect(await recordedTexts(databases.ledger)).toEqual(records.slice(0, 7))
    expect(await head()).toEqual({ seq: 7, digest: digests[7] ?? '' })
  })

  test('is refused out of order, with a wrong digest, and with other content under a known number', async () => {
    const { digests, post } = worker()
    await post(1, records.slice(0, 3))
    expect(await codeOf(post(5, records.slice(4, 6)))).toBe('chain_gap')
    expect(await codeOf(post(4, records.slice(3, 5), digests[6]))).toBe('chain_fork')
    expect(await codeOf(post(4, records.slice(4, 6)))).toBe('chain_fork')
    expect(await codeOf(post(2, [records[5] ?? '', records[6] ?? ''], digests[3]))).toBe('chain_fork')
    expect(await recordedTexts(databases.ledger)).toEqual(records.slice(0, 3))
  })

  test('keeps a broken line in its place and takes the rest', async () => {
    const { digests, post } = worker()
    await post(1, records.slice(0, 3))
    const after = chainNext(chainNext(digests[3] ?? '', 4, broken), 5, records[4] ?? '')
    expect(await post(4, [broken, records[4] ?? ''], after)).toEqual({ seq: 5, digest: after })
    expect(await recordedTexts(databases.ledger)).toEqual([...records.slice(0, 3), broken, records[4] ?? ''])
  })
})
