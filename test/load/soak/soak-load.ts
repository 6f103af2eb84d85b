/**
 * The mixed load of the soak: loops that each send, wait a little, and send again until they are told to stop. Every
 * answer that is not the one that was to come is counted under what it was.
 */
import { api, createToken, revoke } from '../../support/client.ts'
import type { Gatehouse } from '../../support/harness.ts'
import { openStream } from '../generator/streams.ts'
import { makePolicy, termPolicy } from '../rig/everything-on.ts'
import { requestBody, requestHeaders, type Target } from '../rig/target.ts'
import { words } from '../rig/words.ts'

export interface SoakLoad {
  /** How often each kind of work was done. */
  done: Map<string, number>
  /** What came that should not have. */
  unexpected: Map<string, number>
  /** Milliseconds of the plain requests since the last call. */
  takeTimes(): number[]
  stop(): Promise<void>
}

interface Work {
  /** How many loops do it at once, and how long each rests after a round. */
  loops: number
  pauseMs: number
  /** Gives what was wrong, null where nothing was. */
  round(): Promise<string | null>
}

/** `rest` makes every pause so many times as long. */
export function startSoakLoad(gatehouse: Gatehouse, target: Target, rest: number): SoakLoad {
  const [done, unexpected] = [new Map<string, number>(), new Map<string, number>()]
  const count = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
  let times: number[] = []
  let over = false
  const run = async (name: string, { pauseMs, round }: Work) => {
    while (!over) {
      const wrong = await round().catch(String)
      count(done, name)
      if (wrong !== null && !over) count(unexpected, `${name}: ${wrong}`)
      await Bun.sleep(pauseMs * rest)
    }
  }
  const works = kindsOfWork(gatehouse, target, (milliseconds) => times.push(milliseconds))
  const loops = Object.entries(works).flatMap(([name, work]) =>
    Array.from({ length: work.loops }, () => run(name, work)),
  )
  return {
    done,
    unexpected,
    takeTimes() {
      const taken = times
      times = []
      return taken
    },
    async stop() {
      over = true
      await Promise.all(loops)
    },
  }
}

const kindsOfWork = (
  gatehouse: Gatehouse,
  target: Target,
  took: (milliseconds: number) => void,
): Readonly<Record<string, Work>> => ({
  json: { loops: 8, pauseMs: 20, round: () => askOnce(target, took) },
  stream: { loops: 8, pauseMs: 20, round: () => readStream(target) },
  abort: { loops: 4, pauseMs: 20, round: () => leaveStream(gatehouse, target) },
  block: { loops: 2, pauseMs: 50, round: () => beBlocked(target) },
  websocket: { loops: 4, pauseMs: 20, round: () => speakFrames(target, 5) },
  revocation: { loops: 1, pauseMs: 500, round: () => revokeUsed(gatehouse, target) },
  change: { loops: 1, pauseMs: 2000, round: () => changePolicies(gatehouse) },
})

const post = (target: Target, body: string): Promise<Response> =>
  fetch(target.url, { method: 'POST', headers: requestHeaders(target), body })

const statusUnless = (wanted: number, { status }: Response): string | null =>
  status === wanted ? null : `status ${status}`

async function askOnce(target: Target, took: (milliseconds: number) => void): Promise<string | null> {
  const startedAt = performance.now()
  const answer = await post(target, requestBody(false))
  await answer.arrayBuffer()
  took(performance.now() - startedAt)
  return statusUnless(200, answer)
}

async function readStream(target: Target): Promise<string | null> {
  const answer = await post(target, requestBody(true))
  const text = await answer.text()
  return statusUnless(200, answer) ?? (text.endsWith('[DONE]\n\n') ? null : 'no end')
}

async function leaveStream({ gatewayUrl }: Gatehouse, { token }: Target): Promise<null> {
  const socket = await openStream(gatewayUrl, token)
  socket.destroy()
  return null
}

const [blockedWord = ''] = words(1)

async function beBlocked(target: Target): Promise<string | null> {
  const body = requestBody(false).replace('Why', blockedWord)
  const answer = await post(target, body)
  await answer.arrayBuffer()
  return statusUnless(400, answer)
}

/** Opens a WebSocket, asks so many times, each after the answer to the last, and closes it. */
function speakFrames(target: Target, frames: number): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const end = (wrong: string | null) => {
    resolve(wrong)
    socket.close()
  }
  const socket = new WebSocket(`${target.url.replace('http', 'ws')}/ws`, { headers: requestHeaders(target) })
  let left = frames
  const ask = () => {
    left -= 1
    socket.send(requestBody(true))
  }
  socket.addEventListener('open', ask)
  socket.addEventListener('message', ({ data }) => {
    if (String(data).startsWith('{"type":"error"')) return end(`frame ${data}`)
    if (data !== '[DONE]') return
    if (left > 0) return ask()
    end(null)
  })
  socket.addEventListener('close', () => resolve(`closed with ${left} left`))
  return promise
}

/** A token that works until it is revoked, and from the answer on does not. */
async function revokeUsed(gatehouse: Gatehouse, target: Target): Promise<string | null> {
  const { id, token_value: token } = await createToken(gatehouse)
  const used = await post({ ...target, token }, requestBody(false))
  await used.arrayBuffer()
  await revoke(gatehouse, id)
  const refused = await post({ ...target, token }, requestBody(false))
  await refused.arrayBuffer()
  return statusUnless(200, used) ?? statusUnless(401, refused)
}

/** A policy comes, moves to the front, and goes. */
async function changePolicies(gatehouse: Gatehouse): Promise<string | null> {
  const id = await makePolicy(gatehouse, { ...termPolicy(50), name: 'comes and goes' })
  const moved = await api(gatehouse, `/v1/policies/${id}`, { method: 'PATCH', body: { order: 1 } })
  const gone = await api(gatehouse, `/v1/policies/${id}`, { method: 'DELETE' })
  return moved.status === 200 && gone.status === 200 ? null : `statuses ${moved.status}, ${gone.status}`
}
