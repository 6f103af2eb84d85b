import { expect, test } from 'bun:test'
import { costsOf, inTurn, type Load } from './cost.ts'

const load = (requests: number, main: number, others: number, controlPlane: number | null): Load => ({
  ...{ requests, main, others, controlPlane, failed: 1, seconds: 2, http: others / 2, switches: requests * 3 },
})

test('divides what all rounds took by all requests, and compares with the first contender', () => {
  const costs = costsOf(
    new Map([
      ['bare proxy', [load(100, 1000, 500, null), load(300, 5000, 1500, null)]],
      ['plain', [load(100, 4000, 2000, 1000)]],
    ]),
  )
  expect(costs['bare proxy']).toEqual({
    ...{ requests: 400, failed: 2, requests_per_second: 100, gateway: 20, main_thread: 15, other_threads: 5 },
    ...{ http_client: 2.5, control_plane: null, context_switches: 3, ratio_to_bare: 1 },
  })
  expect(costs.plain).toMatchObject({ gateway: 60, control_plane: 10, ratio_to_bare: 3 })
})

test('runs a load on each contender in turn', async () => {
  const contenders = ['a', 'b'].map((name) => ({ name, target: { name, url: '', token: '' }, pids: [] }))
  const order: string[] = []
  const found = await inTurn(contenders, 2, async ({ name }) => order.push(name))
  expect(order).toEqual(['a', 'b', 'a', 'b'])
  expect([...found]).toEqual([
    ['a', [1, 3]],
    ['b', [2, 4]],
  ])
})
