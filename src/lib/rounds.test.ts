import { expect, test } from 'bun:test'
import { eventually } from '../../test/support/eventually.ts'
import { Rounds } from './rounds.ts'

test('rounds that take longer than the rest between them never run together', async () => {
  let running = 0
  let most = 0
  let done = 0
  const rounds = new Rounds(1, async () => {
    most = Math.max(most, ++running)
    await Bun.sleep(5)
    running--
    done++
  })
  rounds.start()
  await eventually(() => done >= 3)
  await rounds.stop()
  expect(most).toBe(1)
})

test('stopping waits for the running round and starts no other', async () => {
  const begun = Promise.withResolvers<void>()
  let rounds = 0
  let ended = 0
  const work = new Rounds(1, async () => {
    rounds++
    begun.resolve()
    await Bun.sleep(10)
    ended++
  })
  work.start()
  await begun.promise
  await work.stop()
  expect(ended).toBe(1)
  await Bun.sleep(10)
  expect(rounds).toBe(1)
})
