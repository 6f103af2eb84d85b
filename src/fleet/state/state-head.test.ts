import { beforeEach, expect, test } from 'bun:test'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import { movableClock } from '../testing/temporary-fleet.ts'
import { StateHead } from './state-head.ts'

const [history, other] = [newId(), newId()]
const head = (version: number, of = history): Head => ({ version, nonce: newId(), history: of })

const never = () => Promise.reject(new RangeError('It only reads'))
const unusedState: Omit<Database, 'read'> = {
  readValues: never,
  write: never,
  writeAndRead: never,
  flush: never,
  close: () => undefined,
}

let primary: Head
let stateHead: StateHead
let told: string[]
let clock: ReturnType<typeof movableClock>

beforeEach(async () => {
  primary = head(5)
  told = []
  clock = movableClock()
  const state = { ...unusedState, read: async <Row>() => [primary] as Row[] }
  stateHead = new StateHead(
    { state, clock },
    {
      onRestored: ({ version }) => void told.push(`restored ${version}`),
      onForeignLog: ({ version }) => void told.push(`misled ${version}`),
    },
  )
  await stateHead.read()
})

test('what another control plane says it made is known at once, and confirmed by the next read', async () => {
  const made = head(6)
  stateHead.heard(made)
  expect((await stateHead.recent()).head).toEqual(made)
  primary = made
  clock.skip(1001)
  expect(await stateHead.recent()).toEqual({ head: made, fresh: true })
  expect(told).toEqual([])
})

test('one that speaks of what the primary has lost makes no worker start anew', async () => {
  stateHead.heard(head(9))
  clock.skip(1001)
  expect((await stateHead.recent()).head).toEqual(primary)
  stateHead.heard(head(40, other))
  expect((await stateHead.recent()).head).toEqual(primary)
  expect(told).toEqual(['misled 5'])
})

test('a primary that has less than was read from it, or committed here, was restored', async () => {
  stateHead.announced(head(6))
  clock.skip(1001)
  await stateHead.recent()
  primary = head(5)
  clock.skip(1001)
  await stateHead.recent()
  expect(told).toEqual(['restored 5', 'restored 5'])
})

test('a change that was committed here in another history says that the state was replaced', () => {
  stateHead.announced(head(2, other))
  stateHead.announced(head(3, other))
  expect(told).toEqual(['restored 2'])
})

test('a read that comes long after the one before is a stall', async () => {
  clock.skip(1000)
  await stateHead.read()
  expect(stateHead.stalls.count).toBe(0)
  clock.skip(7000)
  await stateHead.read()
  expect(stateHead.stalls.count).toBe(1)
  expect(stateHead.stalls.totalMs).toBeGreaterThanOrEqual(7000)
})
