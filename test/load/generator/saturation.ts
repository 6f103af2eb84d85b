/**
 * How many requests a second a target answers when it is never left idle: a fixed number of connections, each sending
 * its next request when the last was answered. By wrk where it is installed, because it takes the least of the shared
 * processor; otherwise by the loop below.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requestBody, requestHeaders, type Target } from '../rig/target.ts'

export interface Saturation {
  requestsPerSecond: number
  failed: number
}

export const generator = Bun.which('wrk') ? 'wrk' : 'own loop'

export const saturate = (target: Target, connections: number, seconds: number): Promise<Saturation> =>
  generator === 'wrk' ? withWrk(target, connections, seconds) : withLoop(target, connections, seconds)

async function withWrk(target: Target, connections: number, seconds: number): Promise<Saturation> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  try {
    const script = join(directory, 'request.lua')
    const headers = Object.entries(requestHeaders(target)).map(([name, value]) => `wrk.headers["${name}"] = "${value}"`)
    await Bun.write(script, ['wrk.method = "POST"', `wrk.body = [[${requestBody(false)}]]`, ...headers].join('\n'))
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, target.url]
    const text = await Bun.$`wrk ${args}`.text()
    return {
      requestsPerSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1] ?? Number.NaN),
      failed: Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0),
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function withLoop(target: Target, connections: number, seconds: number): Promise<Saturation> {
  const init = { method: 'POST', headers: requestHeaders(target), body: requestBody(false) }
  const endsAt = performance.now() + seconds * 1000
  let answered = 0
  let failed = 0
  const connection = async () => {
    while (performance.now() < endsAt) {
      const answer = await fetch(target.url, init)
      await answer.arrayBuffer()
      if (answer.ok) answered++
      else failed++
    }
  }
  await Promise.all(Array.from({ length: connections }, connection))
  return { requestsPerSecond: answered / seconds, failed }
}
