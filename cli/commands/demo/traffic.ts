/**
 * The requests of the demonstration: an opening of some that follow each other closely, so that every screen has
 * something to show, then a steady pace that rises and falls. Both together are bounded; refusals and failures are what
 * some of them are for, so no answer ends the traffic.
 */
import type { Chance } from './chance.ts'
import type { CallerName } from './sample-records.ts'
import { type Scenario, scenarios } from './scenarios.ts'
import { visitMcp } from './visit-mcp.ts'

export interface Traffic {
  gatewayUrl: string
  secrets: Readonly<Record<CallerName, string>>
  /** The most requests in all. */
  requests: number
  /** After the opening. */
  perSecond: number
  chance: Chance
  signal: AbortSignal
  /** Called once the opening is over. */
  opened(): Promise<void>
}

export const openingRequests = 160
const openingAtOnce = 8
/** How long the pace takes to rise, fall and come back, in seconds. */
const waveSeconds = 90

/** An agent visits the MCP server before the opening, and then each time that so many requests were sent. */
const requestsBetweenVisits = 50

/** Sends until all is sent or the signal says to stop; resolves to how many were sent. */
export async function sendTraffic(traffic: Traffic): Promise<number> {
  const { requests, perSecond, chance, signal } = traffic
  const next = chooser(chance)
  const visit = () => visitMcp(traffic.gatewayUrl, traffic.secrets['anna-claude-code'], signal).catch(notServed)
  let sent = 0
  await visit()
  const opening = async () => {
    while (sent < Math.min(openingRequests, requests) && !signal.aborted) {
      sent += 1
      await send(traffic, next())
    }
  }
  await Promise.all(Array.from({ length: openingAtOnce }, opening))
  await traffic.opened()
  const running = new Set<Promise<void>>()
  while (sent < requests && !signal.aborted) {
    sent += 1
    const one = send(traffic, next()).finally(() => running.delete(one))
    running.add(one)
    if (sent % requestsBetweenVisits === 0) void visit()
    await pause(1000 / (perSecond * wave(sent / perSecond)), signal)
  }
  await Promise.all(running)
  return sent
}

/** From 0.4 to 1.6. */
const wave = (seconds: number): number => 1 + 0.6 * Math.sin((2 * Math.PI * seconds) / waveSeconds)

interface Chosen {
  scenario: Scenario
  /** How often it was asked before. */
  number: number
}

/** Gives scenarios by their weights; one that was asked as often as it may be is not given again. */
export function chooser(chance: Chance, all: readonly Scenario[] = scenarios): () => Chosen {
  const asked = new Map<Scenario, number>()
  return () => {
    const open = all.filter((scenario) => (asked.get(scenario) ?? 0) < (scenario.most ?? Number.POSITIVE_INFINITY))
    const chosen = weighted(open, chance)
    const number = asked.get(chosen) ?? 0
    asked.set(chosen, number + 1)
    return { scenario: chosen, number }
  }
}

function weighted(open: readonly Scenario[], chance: Chance): Scenario {
  let left = chance.next() * open.reduce((sum, { weight }) => sum + weight, 0)
  for (const scenario of open) {
    left -= scenario.weight
    if (left < 0) return scenario
  }
  throw new Error('Every scenario was asked as often as it may be')
}

async function send({ gatewayUrl, secrets, chance, signal }: Traffic, { scenario, number }: Chosen): Promise<void> {
  const { path, body, headers } = scenario.ask(chance, number)
  const asked = async () => {
    const answer = await fetch(gatewayUrl + path, {
      method: 'POST',
      signal,
      headers: {
        ...{ 'content-type': 'application/json', authorization: `Bearer ${secrets[scenario.caller]}` },
        ...headers,
      },
      body: JSON.stringify(body),
    })
    await answer.arrayBuffer()
  }
  await asked().catch(notServed)
}

/** The gateway is on its way down, or up again: what it took is in the record, and the traffic goes on. */
function notServed(): void {}

const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, milliseconds)
    signal.addEventListener('abort', done)
  })
