/** Alterations of records, in segments as they were shipped and as they were merged: each is found and named. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { zstdDecompressSync } from 'node:zlib'
import { readStateCheckpoint } from '../proof/checkpoint.ts'
import { alterBlock, alterLine, positionOf, rewriteLog } from '../testing/alter-log.ts'
import { TestProof } from '../testing/proof.ts'

let proof: TestProof

const zstdReads = (bytes: Uint8Array): string | null => {
  try {
    return zstdDecompressSync(bytes).toString('base64')
  } catch {
    return null
  }
}

/**
 * Positions 1–5: worker 1, of which 5 is quarantined; 6–8: worker 2; 9–11: the control plane; signed; 12–16: worker 1,
 * signed. A run is 4 or 5 records long.
 */
async function prepare(): Promise<void> {
  proof = await TestProof.start()
  await proof.recordTwoCheckpoints()
}

const worker = () => proof.worker(1)
const ledger = () => proof.store.ledger
const at = (seq: number) => positionOf(ledger(), worker(), seq)
const denied = (text: string) => text.replace('"allow"', '"deny"')
const startingWith = (found: readonly string[], what: string) => found.filter((text) => text.startsWith(what))

describe.each([
  ['as they were shipped', 0],
  ['after they were merged', 1],
])('verification finds in segments %s', (_name, merges) => {
  beforeEach(async () => {
    await prepare()
    if (merges > 0) expect(await proof.merge(4, 5)).toBe(1)
    expect(await proof.findings()).toEqual([])
  })
  afterEach(() => proof.store.remove())

  for (const seq of [1, 3, 6, 10]) {
    test(`an altered text of record ${seq}`, async () => {
      await alterLine(ledger(), await at(seq), (line) => ({ ...line, text: `${line.text} ` }))
      const stretch = seq > 5 ? '6–10' : merges > 0 ? '1–5' : '1–4'
      expect(await proof.findings()).toEqual([`event.altered 01900001 ${stretch}`])
    })

    test(`another verdict of record ${seq}, and that the index does not say so`, async () => {
      await alterLine(ledger(), await at(seq), (line) => ({ ...line, text: denied(line.text) }))
      const found = await proof.findings()
      expect(startingWith(found, 'event.altered 01900001')).toHaveLength(1)
      expect(startingWith(found, 'segment.index_altered').join()).toMatch(/ facets$/)
      expect(found).toHaveLength(2)
    })

    test(`a removal of record ${seq} from its block`, async () => {
      await alterBlock(ledger(), await at(seq), (lines, place) => lines.filter((_, index) => index !== place))
      expect((await proof.findings()).join()).toMatch(/event(s.missing|.altered|s.damaged) 01900001/)
    })

    test(`another time of record ${seq}`, async () => {
      const position = await at(seq)
      const signed = `events.arrival_altered 01900001 ${seq > 5 ? '6–10' : '1–5'}`
      await alterLine(ledger(), position, (line) => ({ ...line, at: line.at + 1 }))
      expect((await proof.findings()).toSorted()).toEqual([`event.time_altered 01900001 ${seq}–${seq}`, signed])
      // An earlier one could be that of a receipt.
      await alterLine(ledger(), position, (line) => ({ ...line, at: line.at - 2 }))
      expect(await proof.findings()).toEqual([signed])
    })
  }

  test('a later time of a record, which its segment had not received by then', async () => {
    await alterLine(ledger(), await at(10), (line) => ({ ...line, at: line.at + 1e9 }))
    expect(await proof.findings()).toContain('event.time_altered 01900001 10–10')
  })

  test('a record by its id, and names it', async () => {
    let id = ''
    await alterLine(ledger(), await at(3), (line) => {
      id = JSON.parse(line.text).event_id
      return { ...line, at: line.at + 1 }
    })
    expect(await proof.verify()).toContainEqual(
      expect.objectContaining({ what: 'event.time_altered', from: 3, to: 3, event_id: id }),
    )
  })

  test('two swapped records', async () => {
    await alterBlock(ledger(), await at(7), (lines, place) =>
      lines.map((line, index) => lines[index === place ? place + 1 : index === place + 1 ? place : index] ?? line),
    )
    expect((await proof.findings()).join()).toContain('event.altered 01900001 6–10')
  })

  test('an altered note of a quarantined record, which says that it is another', async () => {
    await alterLine(ledger(), await at(5), (line) =>
      line.quarantine === undefined ? line : { ...line, quarantine: { ...line.quarantine, seq: 4 } },
    )
    expect(await proof.findings()).toEqual([
      ...['events.arrival_altered 01900001 1–5', 'event.quarantine_altered 01900001 5–5'],
    ])
  })

  test('a valid record shown as quarantined, and a quarantined one shown as valid', async () => {
    const note = { reason: 'event.not_valid', event_id: Bun.randomUUIDv7(), chain: worker(), seq: 3 } as const
    await alterLine(ledger(), await at(3), (line) => ({ ...line, quarantine: { ...note, bytes: line.text.length } }))
    expect(await proof.findings()).toContain('events.arrival_altered 01900001 1–5')
    await alterLine(ledger(), await at(3), (line) => ({ ...line, quarantine: undefined }))
    expect(await proof.findings()).toEqual([])
    await alterLine(ledger(), await at(5), (line) => ({ ...line, quarantine: undefined }))
    expect(await proof.findings()).toContain('event.not_valid 01900001 5–5')
  })

  for (const column of ['body', 'places'] as const) {
    test(`a flipped bit in the ${column} of a block, unless it reads the same`, async () => {
      const rows = await ledger().read<{ first_position: number; records: number; bytes: ArrayBuffer }>(
        `select first_position, records, ${column} as bytes from event_blocks order by first_position`,
      )
      const write = (bytes: Uint8Array, position: number) =>
        ledger().write([
          { sql: `update event_blocks set ${column} = ? where first_position = ?`, args: [bytes, position] },
        ])
      for (const { first_position: position, records, bytes: whole } of rows) {
        const size = whole.byteLength
        for (const [place, bit] of [0, 4, 9, 20, size >> 1, size - 5, size - 1].entries()) {
          const flipped = new Uint8Array(whole.slice(0))
          flipped[bit] = (flipped[bit] ?? 0) ^ (1 << (place === 1 ? 2 : place))
          await write(flipped, position)
          if (zstdReads(flipped) === zstdReads(new Uint8Array(whole)) && bit !== 4) continue
          const found = await proof.findings()
          expect(found.every((text) => text.startsWith('events.damaged'))).toBe(true)
          const stretches = found.map((text) => (/(\d+)–(\d+)$/.exec(text) ?? []).slice(1).map(Number))
          const named = stretches.reduce((sum, [from = 0, to = 0]) => sum + to - from + 1, 0)
          expect(named).toBe(records)
        }
        await write(new Uint8Array(whole), position)
      }
      expect(await proof.findings()).toEqual([])
    })
  }

  test('a truncated end with a matching head', async () => {
    await rewriteLog(ledger(), (lines) => lines.slice(0, -3))
    expect(await proof.findings()).toEqual(['events.missing 01900001 8–10'])
  })

  test('a truncated end without any checkpoint in the ledger', async () => {
    await rewriteLog(ledger(), (lines) => lines.slice(0, -3))
    await proof.run('delete from chains where chain = ?', worker())
    await proof.run('delete from checkpoints')
    expect(await proof.findings()).toEqual([
      ...['checkpoint.missing 1–2', 'chain.unknown 01900001 1–7', 'events.missing 01900001 8–10'],
    ])
  })

  test('a truncated end with all checkpoints reset except one that a gateway has seen', async () => {
    const witness = await readStateCheckpoint(proof.store.state)
    await rewriteLog(ledger(), (lines) => lines.slice(0, -5))
    await proof.forgetSums()
    const [former] = await ledger().read<{ body: string; signature: string }>(
      'select body, signature from checkpoints where number = 1',
    )
    await proof.run('delete from checkpoints where number = 2')
    await proof.store.state.write([
      {
        sql: 'update checkpoints set number = 1, body = ?, signature = ?',
        args: [former?.body ?? '', former?.signature ?? ''],
      },
    ])
    expect(await proof.findings()).toEqual([])
    const { body, key_id, signature } = witness ?? { body: '', key_id: '', signature: '' }
    expect(await proof.findings({ witnesses: [{ body, key_id, signature }] })).toEqual([
      'checkpoint.went_back 2–2',
      'events.missing 01900001 6–10',
    ])
  })

  test('a chain that was taken out with everything that names it', async () => {
    await rewriteLog(ledger(), (lines) => lines.filter(({ chain }) => chain !== worker()))
    const found = await proof.findings()
    expect(found).toContain('events.missing 01900001 1–10')
    // All later positions have moved.
    expect(startingWith(found, 'events.arrival_altered')).toHaveLength(2)
  })

  test('rewritten records with matching digests', async () => {
    await rewriteLog(ledger(), (lines) =>
      lines.map((line, index) =>
        index === 13 ? { ...line, text: line.text.replace('request-1', 'request-2') } : line,
      ),
    )
    expect(await proof.findings()).toEqual(['events.rewritten 01900001 6–10'])
  })

  test('a record inserted in the middle with matching digests, the later ones moved', async () => {
    await rewriteLog(ledger(), (lines) => lines.flatMap((line, index) => (index === 13 ? [line, line] : [line])))
    expect(await proof.findings()).toEqual(['events.rewritten 01900001 6–10'])
  })

  test('two swapped stretches with matching digests', async () => {
    await rewriteLog(ledger(), (lines) => [
      ...lines.slice(0, 5),
      ...lines.slice(8, 11),
      ...lines.slice(5, 8),
      ...lines.slice(11),
    ])
    expect((await proof.findings()).toSorted()).toEqual([
      ...['events.arrival_altered 01900002 1–3', 'events.arrival_altered control- 1–3'],
    ])
  })

  test('what an earlier checkpoint shows even when a later one hides it', async () => {
    await rewriteLog(ledger(), (lines) => lines.slice(0, -3))
    await proof.shipEvents(1, 1)
    await proof.shipEvents(2, 1)
    expect(await proof.sign()).toBe(true)
    expect(await proof.findings()).toEqual(['events.missing 01900001 9–10'])
    await proof.shipEvents(1, 4)
    await proof.shipEvents(2, 1)
    expect(await proof.sign()).toBe(true)
    expect(await proof.findings()).toContain('events.rewritten 01900001 6–10')
  })
})
