import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { addTally, type Sums, stages } from './fold.ts'
import { type CountedOutcome, minutesKeptMilliseconds } from './rollup.ts'
import { addOutcome, type Tally, tally } from './tally.ts'

const receivedAt = Date.parse('2026-01-05T12:00:30.000Z')
const key = fc.constantFrom('', 'a', 'b')
// Often none: outcomes that used nothing have no row of the kind `cost`.
const amount = fc.oneof(fc.constant(0), fc.nat(1_000_000))
const duration = fc.option(fc.integer({ min: 0, max: 100_000 }))
const keysOf = {
  model: key,
  gateway: key,
  reason: key,
  token: key,
  provider: key,
  user: key,
  dimensions: fc.constantFrom('', '{"customer":"a"}', '{"customer":"b","feature":"a"}'),
}
const sameKeys = {
  all: '',
  model: 'a',
  gateway: 'a',
  reason: 'a',
  token: 'a',
  provider: 'a',
  user: 'a',
  dimensions: '',
}
const outcome: fc.Arbitrary<CountedOutcome> = fc.record({
  // Around a minute's end, an hour's and a day's, and around the time for which minutes are kept.
  at: fc
    .tuple(fc.constantFrom(0, 60_000, 3_600_000, 86_400_000, minutesKeptMilliseconds), fc.integer({ max: 9, min: -9 }))
    .map(([before, by]) => receivedAt - before + by * 5000),
  verdict: fc.constantFrom('allow', 'block'),
  scope: fc.constantFrom('', 'team-a', 'team-b'),
  // Often the same, so that outcomes meet in one tally.
  keys: fc.oneof(fc.constant(sameKeys), fc.record({ all: fc.constant(''), ...keysOf })),
  ...{ inputTokens: amount, outputTokens: amount, cost: amount },
  ...{ latency: duration, firstToken: duration },
})

/** The rows of all kinds and steps, in their order. */
const rowsOf = (lists: readonly CountedOutcome[][]): Sums[][] =>
  rowsOfTallies(lists.flatMap((list) => tally(list, receivedAt)))

function rowsOfTallies(tallies: readonly Tally[]): Sums[][] {
  return stages.map((stage) => {
    const sums = new Map<string, Sums>()
    for (const each of tallies) addTally(sums, stage, each)
    return [...sums.values()]
  })
}

test('a combined tally writes the same rows in the same order as single tallies', () => {
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 40 }), (outcomes) => {
      expect(rowsOf([outcomes])).toEqual(rowsOf(outcomes.map((each) => [each])))
    }),
  )
})

test('combines outcomes that count in minutes with those that do not as if tallied one by one', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(outcome, fc.boolean()), { maxLength: 40 }), (outcomes) => {
      const together = new Map<string, Tally>()
      const apart: Tally[] = []
      for (const [each, inMinutes] of outcomes) {
        addOutcome(together, each, inMinutes)
        const alone = new Map<string, Tally>()
        addOutcome(alone, each, inMinutes)
        apart.push(...alone.values())
      }
      expect(rowsOfTallies([...together.values()])).toEqual(rowsOfTallies(apart))
    }),
  )
})

test('counts an outcome once for each kind, step and scope, and in minutes only while they are stored', () => {
  const [old, fresh] = [receivedAt - minutesKeptMilliseconds - 1, receivedAt - minutesKeptMilliseconds]
  const keys = { all: '', model: 'm', gateway: 'g', reason: 'ok', token: 't', provider: 'p', user: 'u' }
  const dimensions = '{"customer":"c"}'
  const none = { inputTokens: 1, outputTokens: 0, cost: 0, latency: 5, firstToken: null }
  const [late, kept] = [old, fresh].map((at) =>
    rowsOf([[{ at, verdict: 'allow', scope: 'team-a', keys: { ...keys, dimensions }, ...none }]]),
  )
  expect(kept?.map((rows) => rows.length)).toEqual(
    stages.map(({ everyTeam, ofTeams = true }) => (everyTeam && ofTeams ? 2 : 1)),
  )
  for (const [index, { step, sketched }] of stages.entries()) {
    expect(late?.[index]?.length === 0).toBe(step === 'minute')
    for (const row of kept?.[index] ?? []) expect(Object.keys(row.latency)).toHaveLength(sketched ? 1 : 0)
  }
})
