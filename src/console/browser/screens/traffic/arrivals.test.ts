import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../../../events/event.ts'
import { withArrivals } from './arrivals.ts'

const at = (second: number): Event => ({
  ...{ event_id: `e${second}`, event_type: 'decision', request_id: null, verdict: 'allow', reason_code: 'ok' },
  ...{ timestamp: `2026-01-01T00:00:0${second}.000Z`, config_version: 1, event_attribution: noAttribution },
})
const [one, three, four, five, six] = [at(1), at(3), at(4), at(5), at(6)]

test('puts what arrived where its timestamp belongs, and goes on behind it', () => {
  const page = { events: [five, three], next_cursor: null, follow: 'f1' }
  expect(withArrivals(page, { events: [six, one, four], next_cursor: null, follow: 'f2' })).toEqual({
    ...{ events: [six, five, four, three, one], next_cursor: null, follow: 'f2' },
  })
})

test('leaves what is older than the last of a page to the next page', () => {
  const page = { events: [five, three], next_cursor: 'c', follow: 'f1' }
  expect(withArrivals(page, { events: [one, four], next_cursor: null, follow: 'f2' }).events).toEqual([
    five,
    four,
    three,
  ])
})
