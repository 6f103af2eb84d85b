/** Alterations of the table by which queries find segments. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { TestProof } from '../testing/proof.ts'

let proof: TestProof

/** One merged segment of 18 blocks of one record each: so many that each value of a facet has a row. */
beforeEach(async () => {
  proof = await TestProof.start()
  for (let round = 0; round < 18; round += 1) await proof.shipEvents(1 + (round % 2), 1)
  expect(await proof.merge(1, 18)).toBe(1)
  await proof.sign()
  expect(await proof.findings()).toEqual([])
})
afterEach(() => proof.store.remove())

test.each([
  'events = events + 1',
  'blocks = 1',
  "value = 'other'",
  "value = value || char(0) || 'x'",
  "value = cast(x'61ff' as text)",
  "facet = 'other'",
  'segment = 99',
  "blocks = 'x'",
  'events = 9223372036854775807',
])('an altered row of segment_facets: %s', async (change) => {
  await proof.run(
    `update segment_facets set ${change} where segment = 1 and facet = 'gateway' and value like '01900002%'`,
  )
  const found = await proof.findings()
  expect(found).toContain('segment.index_altered 1–18 segment_facets')
})

test('a facet row that was taken out, one that was put in, and one of no segment', async () => {
  await proof.run("delete from segment_facets where segment = 1 and facet = 'verdict'")
  expect(await proof.findings()).toEqual(['segment.index_altered 1–18 segment_facets'])
  const insert = (value: string, segment: number) =>
    proof.run(
      "insert into segment_facets (facet, value, segment, events, blocks) values ('verdict', ?, ?, 18, 262143)",
      value,
      segment,
    )
  await insert('allow', 1)
  expect(await proof.findings()).toEqual([])
  await insert('deny', 1)
  expect(await proof.findings()).toEqual(['segment.unknown 1–18 segment_facets'])
  await proof.run("update segment_facets set segment = 2 where value = 'deny'")
  expect(await proof.findings()).toEqual(['segment.unknown segment_facets'])
})
