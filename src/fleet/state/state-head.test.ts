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
  readAfter: never,
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

test('knows a version that another control plane announces at once, and confirms it with the next read', async () => {
  const made = head(6)
  stateHead.heard(made)
  expect((await stateHead.recent()).head).toEqual(made)
  primary = made
  clock.skip(1001)
  expect(await stateHead.recent()).toEqual({ head: made, fresh: true })
  expect(told).toEqual([])
})

test('an announcement of a version that the primary lost does not restart workers', async () => {
  stateHead.heard(head(9))
  clock.skip(1001)
  expect((await stateHead.recent()).head).toEqual(primary)
  stateHead.heard(head(40, other))
  expect((await stateHead.recent()).head).toEqual(primary)
  expect(told).toEqual(['misled 5'])
})

test('detects a restored primary that has less than was read or committed', async () => {
  stateHead.announced(head(6))
  clock.skip(1001)
  await stateHead.recent()
  primary = head(5)
  clock.skip(1001)
  await stateHead.recent()
  expect(told).toEqual(['restored 5', 'restored 5'])
})

test('reports a replaced state when a commit shows another history', () => {
  stateHead.announced(head(2, other))
  stateHead.announced(head(3, other))
  expect(told).toEqual(['restored 2'])
})

test('counts a late read as a stall', async () => {
  clock.skip(1000)
  await stateHead.read()
  expect(stateHead.stalls.count).toBe(0)
  clock.skip(7000)
  await stateHead.read()
  expect(stateHead.stalls.count).toBe(1)
  expect(stateHead.stalls.totalMs).toBeGreaterThanOrEqual(7000)
})
