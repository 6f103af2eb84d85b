/** The sums behind charts, compared with the events. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { TestProof } from '../testing/proof.ts'

let proof: TestProof
beforeEach(async () => {
  proof = await TestProof.start()
  await proof.recordTwoCheckpoints()
})
afterEach(() => proof.store.remove())

describe('verification of the sums behind charts', () => {
  const hour = `step = 'hour' and kind = 'all' and scope = '*'`
  const day = "step = 'day' and kind = 'token'"
  test.each([
    [`update event_rollups set requests = requests + 1000 where ${hour}`, ['hour all teams allow: requests']],
    [`update event_rollups set cost = cost + 1 where ${day}`, ['day team team token token allow: cost']],
    [`delete from event_rollups where ${hour}`, ['hour all teams allow: missing']],
    [
      `insert into event_rollups select kind, step, scope, at - 3600000, key, 'deny', 7, 0, 0, 0, null, null
      from event_rollups where ${hour}`,
      ['hour all teams deny: of no event'],
    ],
    [
      `update event_rollups set input_tokens = 7, output_tokens = output_tokens + 1
      where step = 'minute' and kind = 'reason'`,
      ['minute team team reason ok allow: input_tokens, output_tokens'],
    ],
    [
      `update event_rollups set latency = '{"1":1}' where step = 'minute' and kind = 'model'`,
      ['minute all teams model none allow: latency', 'minute team team model none allow: latency'],
    ],
    [`update event_rollups set first_token = 'garbage' where ${day}`, ['day team team token token allow: first_token']],
    [
      `update event_rollups set key = cast(x'67ff' as text) where ${day}`,
      ['day team team token null allow: of no event', 'day team team token token allow: missing'],
    ],
    [`update event_rollups set at = 9e18 where ${day}`, ['row of no time', 'day team team token token allow: missing']],
    [
      `update event_rollups set step = 'week' where ${day}`,
      ['week team team token token allow: of no event', 'day team team token token allow: missing'],
    ],
  ])('finds %s', async (sql, named) => {
    expect(await proof.findings()).toEqual([])
    await proof.run(sql)
    const found = (await proof.findings()).map((text) =>
      text.replace(/^rollup.differs /, '').replace(/ \d{4}-\S+| \d+(?= of)/, ''),
    )
    expect([...new Set(found)].toSorted()).toEqual(named.toSorted())
  })

  test('finds no tampering while events arrive', async () => {
    await Promise.all([proof.findings(), proof.shipEvents(1, 3)]).then(([found]) => expect(found).toEqual([]))
    expect(await proof.findings()).toEqual([])
  })
})
