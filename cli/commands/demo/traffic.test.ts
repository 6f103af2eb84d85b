import { expect, test } from 'bun:test'
import { chanceFrom } from './chance.ts'
import type { CallerName } from './sample-records.ts'
import { scenarios } from './scenarios.ts'
import { chooser, openingRequests, sendTraffic } from './traffic.ts'

const secrets: Record<CallerName, string> = {
  'shop-assistant': 'a',
  'support-copilot': 'b',
  'research-notebook': 'c',
  'nightly-summaries': 'd',
  'docs-search': 'e',
  'anna-claude-code': 'f',
  'retired-prototype': 'g',
}

test('chooses the same requests for the same seed', () => {
  const first = chooser(chanceFrom(1))
  const second = chooser(chanceFrom(1))
  const asked = (next: typeof first) => Array.from({ length: 300 }, () => next().scenario.caller)
  const callers = asked(first)
  expect(asked(second)).toEqual(callers)
  expect(new Set(callers)).toEqual(new Set(scenarios.map(({ caller }) => caller)))
})

test('asks a scenario no more often than it says', () => {
  const often = { caller: 'docs-search', weight: 100, most: 3, ask: () => ({ path: '/', body: {} }) } as const
  const rest = { caller: 'shop-assistant', weight: 1, ask: () => ({ path: '/', body: {} }) } as const
  const next = chooser(chanceFrom(1), [often, rest])
  const chosen = Array.from({ length: 100 }, () => next())
  expect(chosen.filter(({ scenario }) => scenario === often).map(({ number }) => number)).toEqual([0, 1, 2])
})

/** A gateway that counts the requests for models. */
function countingGateway() {
  let counted = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      if (!request.url.endsWith('/mcp')) counted += 1
      return new Response('{}', { status: counted % 2 === 0 ? 200 : 403 })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, counted: () => counted, stop: () => server.stop(true) }
}

const most = { chance: chanceFrom(1), secrets, perSecond: 20 }

test('sends as many requests as it may and no more', async () => {
  const gateway = countingGateway()
  let atOpening = 0
  const opened = async () => {
    atOpening = gateway.counted()
  }
  const requests = openingRequests + 5
  const { signal } = new AbortController()
  expect(await sendTraffic({ ...most, gatewayUrl: gateway.url, requests, signal, opened })).toBe(requests)
  expect([atOpening, gateway.counted()]).toEqual([openingRequests, requests])
  await gateway.stop()
})

test('stops when it is told to, and goes on when the gateway is away', async () => {
  const gateway = countingGateway()
  const end = new AbortController()
  await gateway.stop()
  const opened = async () => end.abort()
  const sent = await sendTraffic({ ...most, gatewayUrl: gateway.url, requests: 1000, signal: end.signal, opened })
  expect(sent).toBe(openingRequests)
})
