/**
 * Latency at a given rate: requests are sent when their time has come, whether or not earlier ones were answered, so
 * that a slow answer does not slow the load down and hide itself. A request's time is counted from when it was really
 * sent; how late the generator itself was is given apart. Never abandons a request: what it sent can be counted.
 */
import { requestBody, requestHeaders, type Target } from './target.ts'
import { percentile } from './timing.ts'

export interface Latency {
  sent: number
  failed: number
  p50Ms: number
  p99Ms: number
  /** How late the generator sent its requests, 99th percentile. */
  generatorLateP99Ms: number
}

export async function sendAtRate(target: Target, requestsPerSecond: number, seconds: number): Promise<Latency> {
  const init = { method: 'POST', headers: requestHeaders(target), body: requestBody(false) }
  const total = Math.max(1, Math.floor(requestsPerSecond * seconds))
  const times: number[] = []
  const late: number[] = []
  const running: Promise<void>[] = []
  let failed = 0
  const send = async (dueAt: number) => {
    const sentAt = performance.now()
    late.push(sentAt - dueAt)
    const answer = await fetch(target.url, init)
    await answer.arrayBuffer()
    times.push(performance.now() - sentAt)
    if (!answer.ok) failed++
  }
  const startedAt = performance.now()
  while (running.length < total) {
    const due = Math.min(total, Math.ceil(((performance.now() - startedAt) / 1000) * requestsPerSecond))
    while (running.length < due) running.push(send(startedAt + (running.length / requestsPerSecond) * 1000))
    await Bun.sleep(1)
  }
  await Promise.all(running)
  return {
    sent: total,
    failed,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    generatorLateP99Ms: percentile(late, 0.99),
  }
}

export interface FirstToken {
  sent: number
  failed: number
  p50Ms: number
  p99Ms: number
}

/** Time until the first bytes of the answer, with this many streams held open at once. */
export async function firstTokenWith(target: Target, streams: number, rounds: number): Promise<FirstToken> {
  if (Number(process.env.BUN_CONFIG_MAX_HTTP_REQUESTS ?? 256) < streams) {
    throw new RangeError(`Set BUN_CONFIG_MAX_HTTP_REQUESTS: this process may not have ${streams} requests open`)
  }
  const init = { method: 'POST', headers: requestHeaders(target), body: requestBody(true) }
  const times: number[] = []
  let failed = 0
  const one = async () => {
    const sentAt = performance.now()
    const answer = await fetch(target.url, init)
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of answer.body ?? []) {
      if (text === '' && bytes.length > 0) times.push(performance.now() - sentAt)
      text += decoder.decode(bytes, { stream: true })
    }
    if (!answer.ok || !text.endsWith('data: [DONE]\n\n')) failed++
  }
  // Every stream goes on with its next round by itself, so that starts spread out as they do in service.
  const lane = async (index: number) => {
    await Bun.sleep((index * 200) / streams)
    for (let round = 0; round < rounds; round++) await one()
  }
  await Promise.all(Array.from({ length: streams }, (_, index) => lane(index)))
  return { sent: streams * rounds, failed, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }
}
