/**
 * Load that does not slow down with what it measures: a request is sent, a stream begun, when its time has come,
 * whether or not earlier ones were answered, so that a slow answer cannot hide itself. Times are counted from when a
 * request was really sent; how late the generator itself was is given apart, and is a floor of what can be seen.
 * Nothing that was sent is abandoned: it can be counted.
 */

import { heldPauseMs, requestBody, streamBody, type Target } from '../rig/target.ts'
import { Connections, requestBytes } from './connections.ts'

export interface Timed {
  sent: number
  /** Not answered 200, or streams that did not reach their end. */
  failed: number
  /** Milliseconds of each that is judged: until its answer is complete, or until the first text of a stream. */
  times: readonly number[]
  /** How late the generator sent them. */
  late: readonly number[]
}

/** Does something when its time has come, so many times in all; gives when all that was begun has ended. */
async function atPace(total: number, everyMs: number, begin: (dueAt: number) => Promise<void>): Promise<void> {
  const running: Promise<void>[] = []
  const startedAt = performance.now()
  while (running.length < total) {
    const due = Math.min(total, Math.floor((performance.now() - startedAt) / everyMs))
    while (running.length < due) running.push(begin(startedAt + (running.length + 1) * everyMs))
    await Bun.sleep(1)
  }
  await Promise.all(running)
}

/** Connections that stand open before a measurement begins. */
const openBefore = 64

/** Requests at a rate, for so long. */
export async function sendAtRate(target: Target, requestsPerSecond: number, seconds: number): Promise<Timed> {
  using connections = new Connections(target)
  await connections.open(openBefore)
  const request = requestBytes(target, requestBody(false))
  const total = Math.max(1, Math.floor(requestsPerSecond * seconds))
  const times: number[] = []
  const late: number[] = []
  let failed = 0
  await atPace(total, 1000 / requestsPerSecond, async (dueAt) => {
    const sentAt = performance.now()
    late.push(sentAt - dueAt)
    const { ok } = await connections.send(request)
    if (ok) times.push(performance.now() - sentAt)
    else failed++
  })
  return { sent: total, failed, times, late }
}

/** What the frame of a first text has, and no frame before it. */
const aText = /"content":"[^"]/

/** Reads a stream to its end; gives the milliseconds until its first text, null where that or its end did not come. */
async function oneStream(connections: Connections, request: Buffer): Promise<number | null> {
  const sentAt = performance.now()
  let text = ''
  let firstMs: number | null = null
  const { ok, end } = await connections.send(request, (piece) => {
    if (firstMs !== null) return
    text += piece
    if (aText.test(text)) firstMs = performance.now() - sentAt
  })
  return ok && end.includes('data: [DONE]\n\n') ? firstMs : null
}

/** How long a stream that is held lasts, in frames. */
const heldFrames = 40
/** The first ones begin within so many milliseconds, with ends as spread as their begins will be. */
const fillMs = 1000

/**
 * So many streams held open for so many seconds, each lasting as long and coming as slowly as one of a provider does:
 * as one ends another begins, evenly spread. Judged are those that begin while all are open.
 */
export async function holdStreams(target: Target, streams: number, seconds: number): Promise<Timed> {
  using connections = new Connections(target)
  await connections.open(streams + openBefore)
  const times: number[] = []
  const late: number[] = []
  let failed = 0
  const run = async (frames: number, judged: boolean) => {
    const firstMs = await oneStream(connections, requestBytes(target, streamBody(frames)))
    if (firstMs === null) failed++
    else if (judged) times.push(firstMs)
  }
  let begun = 0
  const filling: Promise<void>[] = []
  await atPace(streams, fillMs / streams, async () => {
    filling.push(run(Math.ceil((++begun * heldFrames) / streams), false))
  })
  const everyMs = (heldFrames * heldPauseMs) / streams
  const total = Math.round((seconds * 1000) / everyMs)
  await atPace(total, everyMs, async (dueAt) => {
    late.push(performance.now() - dueAt)
    await run(heldFrames, true)
  })
  await Promise.all(filling)
  return { sent: streams + total, failed, times, late }
}

/**
 * So many callers that ask for a short stream over and over, each as soon as its former one has ended. They are more
 * than the machine can serve at once: the time to a first text is the time that it waits for everybody else's.
 */
export async function overloadStreams(target: Target, callers: number, rounds: number): Promise<Timed> {
  using connections = new Connections(target)
  await connections.open(callers)
  const request = requestBytes(target, requestBody(true))
  const times: number[] = []
  let failed = 0
  await atPace(callers, 200 / callers, async () => {
    for (let round = 0; round < rounds; round++) {
      const firstMs = await oneStream(connections, request)
      if (firstMs === null) failed++
      else times.push(firstMs)
    }
  })
  return { sent: callers * rounds, failed, times, late: [] }
}
