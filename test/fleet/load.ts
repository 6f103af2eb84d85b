/** Load on all gateways of a fleet, with a record of every answer: what a fleet may not do is looked for in it. */
import { chat } from '../support/client.ts'
import type { FleetGateway } from './gateway.ts'

export interface Answer {
  requestId: string
  token: string
  /** When it was sent, milliseconds since the epoch. */
  sentAt: number
  /** 0 where no whole answer came. */
  status: number
  /** Why none came, as `fetch` said it. */
  error?: string
}

export interface Load {
  answers: Answer[]
  /** Sends with this token too from now on. */
  use(token: string): void
  add(gateway: FleetGateway): void
  /** Resolves when every request that was sent has ended. */
  stop(): Promise<void>
}

/** How long one gateway is left alone between two requests: more of them cost time and find nothing more. */
const pauseMs = 100
const answerWithinMs = 15_000
let sent = 0

/** Asks every gateway over and over, with each token in turn. */
export function startLoad(gateways: readonly FleetGateway[], tokens: readonly string[]): Load {
  const used = [...tokens]
  const answers: Answer[] = []
  let over = false
  const ask = async (gateway: FleetGateway, token: string): Promise<void> => {
    sent += 1
    const answer: Answer = { requestId: `load-${process.pid}-${sent}`, token, sentAt: Date.now(), status: 0 }
    answers.push(answer)
    try {
      const abort = AbortSignal.timeout(answerWithinMs)
      const { requestId } = answer
      const response = await chat(gateway, { token, model: 'simulator/echo', requestId, signal: abort })
      await response.arrayBuffer()
      answer.status = response.status
    } catch (error) {
      // The gateway was killed, or has not come back yet: no answer is no answer.
      answer.error = error instanceof Error ? error.message : String(error)
    }
  }
  const drive = async (gateway: FleetGateway): Promise<void> => {
    for (let turn = 0; !over; turn++) {
      const token = used[turn % used.length]
      if (token !== undefined) await ask(gateway, token)
      await Bun.sleep(pauseMs)
    }
  }
  const drivers = gateways.map(drive)
  return {
    answers,
    use: (token) => used.push(token),
    add: (gateway) => drivers.push(drive(gateway)),
    async stop() {
      over = true
      await Promise.all(drivers)
    },
  }
}
