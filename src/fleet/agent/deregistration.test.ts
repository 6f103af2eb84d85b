import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { eventually } from '../../../test/support/eventually.ts'
import { heartbeatReplySchema } from '../protocol/wire.ts'
import type { GatewayAgent } from '../protocol/worker.ts'
import { movableClock, TemporaryFleet } from '../testing/temporary-fleet.ts'
import { WorkerFiles } from './agent-files.ts'

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

const refuseAll = async () => new Response(null, { status: 503 })

function accepts(worker: GatewayAgent, hash: string): boolean {
  try {
    worker.status.assertCurrent()
    const token = worker.view.token(hash)
    return token !== null && token.revokedAt === null && !worker.view.isRevoked(hash)
  } catch {
    // It serves nothing at all.
    return false
  }
}

test('a deregistered worker serves again only after it learned of the revocations meanwhile', async () => {
  const hash = fleet.addToken()
  const first = await fleet.worker('a')
  await eventually(() => first.ready().ok)
  await first.drain()
  const stateFile = join(fleet.directory, 'behind.db')
  fleet.copyState(stateFile)
  fleet.interfere = refuseAll
  const { version } = fleet.revoke(hash)
  expect(await fleet.control.fleet.propagation(version)).toMatchObject({ connected: 0, unreachable: [] })
  const second = await fleet.worker('a', { stateFile })
  expect([second.ready().ok, accepts(second, hash)]).toEqual([false, false])
  fleet.interfere = (_path, _request, forward) => forward()
  await eventually(() => second.counters.connected === 1)
  expect(second.ready().ok).toBe(false)
  fleet.copyState(stateFile)
  await eventually(() => second.ready().ok)
  expect(accepts(second, hash)).toBe(false)
})

test('deletes its kept freshness before it deregisters, and a lost answer does not restore it', async () => {
  const kept = join(fleet.directory, 'a', 'worker', 'fresh')
  const atGoodbye: boolean[] = []
  fleet.interfere = async (path, _request, forward) => {
    if (!path.endsWith('/deregister')) return forward()
    atGoodbye.push(existsSync(kept))
    await forward()
    return new Response(null, { status: 502 })
  }
  const worker = await fleet.worker('a')
  await eventually(() => worker.ready().ok && existsSync(kept))
  await worker.drain()
  expect([atGoodbye, existsSync(kept)]).toEqual([[false], false])
  expect(() => worker.status.assertCurrent()).toThrow(expect.objectContaining({ code: 'token_state_stale' }))
})

test('does not deregister when kept freshness cannot be deleted: the worker counts as unreachable', async () => {
  const worker = await fleet.worker('a')
  await eventually(() => worker.ready().ok)
  const forget = spyOn(WorkerFiles.prototype, 'forgetFresh').mockImplementation(() => {
    throw new Error('EIO')
  })
  await worker.drain()
  forget.mockRestore()
  const { version } = fleet.change(() => undefined)
  expect(await fleet.control.fleet.propagation(version)).toMatchObject({ unreachable: [{}] })
})

test('a worker without a primary does not deregister, and serves after a restart by its kept freshness', async () => {
  const clock = movableClock()
  const worker = await fleet.worker('a', { clock })
  await eventually(() => worker.ready().ok)
  let deregistrations = 0
  fleet.interfere = async (path, _request, forward) => {
    if (path.endsWith('/deregister')) deregistrations++
    return path.endsWith('/heartbeat') ? refuseAll() : forward()
  }
  await Bun.sleep(100)
  clock.skip(4000)
  await worker.drain()
  fleet.interfere = refuseAll
  expect((await fleet.worker('a', { clock })).ready().ok).toBe(true)
  expect(deregistrations).toBe(0)
})

test('a restarted worker ignores heartbeat answers that are older than the head of its handshake', async () => {
  const first = await fleet.worker('a')
  await eventually(() => first.ready().ok)
  await first.drain()
  const stateFile = join(fleet.directory, 'behind.db')
  fleet.copyState(stateFile)
  const older = fleet.head()
  fleet.revoke(fleet.addToken())
  fleet.interfere = async (path, _request, forward) => {
    const answer = await forward()
    return path.endsWith('/heartbeat')
      ? Response.json({ ...heartbeatReplySchema.parse(await answer.json()), head: older })
      : answer
  }
  let heartbeats = 0
  const worker = await fleet.worker('a', {
    stateFile,
    clock: {
      now: () => Date.now(),
      monotonic() {
        heartbeats++
        return performance.now()
      },
    },
  })
  await eventually(() => worker.counters.connected === 1)
  const before = heartbeats
  await eventually(() => heartbeats > before + 20)
  expect(worker.ready().ok).toBe(false)
})

type Step = 'revoke' | 'stop' | 'kill' | 'start' | 'settle' | 'cut' | 'heal'

/** One gateway, whose network can be cut, and which reads a copy of the state that comes over that network. */
class Host {
  readonly #name: string
  #directory: string
  #worker: GatewayAgent | null = null
  #network = new AbortController()
  #killed = new AbortController()
  /** Tokens that no gateway accepts any more but those that the revoke called unreachable. */
  readonly #refused: string[] = []
  readonly #tokens = Array.from({ length: 10 }, () => fleet.addToken())
  readonly taken: string[] = []

  constructor(name: string) {
    this.#name = name
    this.#directory = name
  }

  async take(step: Step): Promise<void> {
    this.taken.push(step)
    await this[step]()
    const accepted =
      this.#worker === null ? [] : this.#refused.filter((hash) => this.#worker && accepts(this.#worker, hash))
    expect({ taken: this.taken, accepted }).toEqual({ taken: this.taken, accepted: [] })
  }

  async start(): Promise<void> {
    if (this.#worker !== null) return
    const killed = new AbortController()
    this.#killed = killed
    this.#worker = await fleet.worker(this.#directory, {
      stateFile: this.#stateFile,
      drainTimeoutMs: 300,
      random: () => 0,
      fetch: (url, init) => {
        const signals = [killed.signal, this.#network.signal, ...(init?.signal ? [init.signal] : [])]
        return fetch(url, { ...init, signal: AbortSignal.any(signals) })
      },
    })
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    await worker?.drain()
  }

  /** Keeps what is on the disk at this moment; nothing that the process does later has an effect. */
  async kill(): Promise<void> {
    const former = this.#directory
    const worker = this.#worker
    if (worker === null) return
    this.#directory = `${this.#name}-${this.taken.length}`
    cpSync(join(fleet.directory, former), join(fleet.directory, this.#directory), { recursive: true })
    rmSync(join(fleet.directory, this.#directory, 'worker', 'lock'), { force: true })
    this.#killed.abort()
    this.#worker = null
    await worker.drain()
  }

  /** Waits for its first heartbeat if it connects; otherwise it stays as it is. */
  async settle(): Promise<void> {
    const worker = this.#worker
    if (worker === null || this.#network.signal.aborted) return
    await eventually(() => {
      this.#replicate()
      return worker.counters.connected === 1 && worker.ready().ok
    })
  }

  async cut(): Promise<void> {
    this.#network.abort()
  }

  async heal(): Promise<void> {
    if (this.#network.signal.aborted) this.#network = new AbortController()
  }

  async revoke(): Promise<void> {
    const hash = this.#tokens.pop()
    if (hash === undefined) return
    const { version } = fleet.revoke(hash)
    const { unreachable } = await fleet.control.fleet.propagation(version)
    const ours = unreachable.filter(({ instance_id }) => instance_id === this.#instanceId)
    if (ours.length === 0) this.#refused.push(hash)
    this.#replicate()
  }

  get #stateFile(): string {
    return join(fleet.directory, `${this.#name}.db`)
  }

  get #instanceId(): unknown {
    const file = join(fleet.directory, this.#directory, 'worker', 'instance.json')
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).instance_id : null
  }

  #replicate(): void {
    if (this.#worker !== null && !this.#network.signal.aborted) fleet.copyState(this.#stateFile)
  }
}

test('no gateway accepts a revoked token unless the revocation named it as unreachable, under stops, kills, starts and partitions', async () => {
  const script = fc.array(
    fc.constantFrom<Step>('revoke', 'revoke', 'stop', 'stop', 'kill', 'start', 'settle', 'cut', 'heal'),
    { minLength: 6, maxLength: 10 },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(script, { minLength: 6, maxLength: 6 }), async (scripts) => {
      const play = async (steps: readonly Step[], index: number) => {
        const host = new Host(`host-${index}`)
        for (const step of ['start', 'settle', ...steps, 'stop', 'revoke', 'cut', 'start', 'revoke'] as const)
          await host.take(step)
        for (const step of ['heal', 'settle', 'stop'] as const) await host.take(step)
      }
      await Promise.all(scripts.map(play))
    }),
    { numRuns: 1, endOnFailure: true },
  )
}, 60_000)
