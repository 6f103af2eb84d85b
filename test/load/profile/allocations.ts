/**
 * How many objects a request makes: unlike time, the number is the same on a busy machine. The gateway is run from its
 * sources, so that a counter can be loaded before it (`allocation-count.ts`), and without garbage collection.
 */
import { join } from 'node:path'
import { chatAnswer } from '../../fakes/chat.ts'
import { freePort } from '../../support/free-port.ts'
import type { Gatehouse } from '../../support/harness.ts'
import { type SourceGateway, startFromSources } from '../rig/source-gateway.ts'
import { benchModel, requestBody, requestHeaders, type Target } from '../rig/target.ts'

export interface Counted extends SourceGateway {
  /** Objects that it has. */
  objects(): Promise<number>
  /** Exchanges that it holds, after it has collected the young. */
  exchanges(): Promise<number>
}

/** Without collection, and without the optimising compiler: what that leaves out depends on the machine. */
const everyObject = { BUN_JSC_useGC: '0', BUN_JSC_useDFGJIT: '0' }

/** Starts a gateway beside the installation. The caller ends it. */
export async function startCounted(
  gatehouse: Gatehouse,
  environment: Readonly<Record<string, string>> = everyObject,
): Promise<Counted> {
  const port = String(await freePort())
  const preload = ['--preload', join(import.meta.dir, 'allocation-count.ts')]
  const started = await startFromSources(gatehouse, preload, { ...environment, COUNT_PORT: port })
  const numberAt = async (path: string) => Number(await (await fetch(`http://127.0.0.1:${port}/${path}`)).json())
  return { ...started, objects: () => numberAt(''), exchanges: () => numberAt('exchanges') }
}

const whole = chatAnswer({ model: benchModel }).toString()
const rounds = 16
const requestsOfRound = 5

/**
 * Objects made for one request of a conversation of so many messages: the least of many short rounds, since what the
 * process does besides, by the clock, counts too, and more of it the slower the machine.
 */
export async function objectsFor(counted: Counted, to: Target, messages: number): Promise<number> {
  const init = { method: 'POST', headers: requestHeaders(to), body: requestBody(false, messages) }
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round <= rounds; round++) {
    const before = await counted.objects()
    let answered = 0
    for (let sent = 0; sent < requestsOfRound; sent++) {
      const answer = await fetch(to.url, init)
      if ((await answer.text()) === whole) answered += 1
    }
    const objects = ((await counted.objects()) - before) / requestsOfRound
    // On a machine that is too busy a limit may not be granted in time; the first round is for warming up.
    if (round > 0 && answered === requestsOfRound) least = Math.min(least, objects)
  }
  return least
}
