/** What alerts have found is kept as long as events, and until everybody was told that it is over. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Measured } from './dependencies.ts'
import { evaluateAlerts } from './evaluate.ts'
import { type AlertInstallation, alertInstallation } from './testing/alert-installation.ts'

const day = 86_400_000
let made: AlertInstallation
beforeEach(async () => {
  made = await alertInstallation()
})
afterEach(() => made.store.remove())

const evaluate = () => evaluateAlerts(made.dependencies)
const found = (subject: string, value: number): Measured => ({ subject, value, about: () => `${subject} is ${value}` })

test('what ends after longer than history is kept is told that it is over', async () => {
  await made.alert('sink_lag')
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  made.sources.sinkLag = async () => [found('splunk', 4000)]
  await evaluate()
  made.clock.advance(40 * day)
  made.sources.sinkLag = async () => []
  await evaluate()
  expect((await made.deliveries()).map(({ kind, state }) => [kind, state])).toEqual([
    ['fired', 'pending'],
    ['resolved', 'pending'],
  ])
})

test('history is removed with the events of its time, what is open is kept', async () => {
  await made.alert('sink_lag')
  made.sources.sinkLag = async () => [found('a', 4000), found('b', 4000)]
  await evaluate()
  made.sources.sinkLag = async () => [found('a', 4000)]
  await evaluate()
  made.clock.advance(31 * day)
  await evaluate()
  expect((await made.firings()).map(({ subject }) => subject)).toEqual(['a'])
})
