/** A ledger with chains, sinks of it, and a receiver that a test decides about. */
import { createRecorder } from '../../events/change.ts'
import { TestProof } from '../../events/testing/proof.ts'
import type { Clock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Fetch } from '../../providers/provider.ts'
import { testMasterKey } from '../../store/testing/master-key.ts'
import { readDeliveries } from '../delivery/cursor.ts'
import { createSinkRunner, type SinkRunner } from '../delivery/deliver.ts'
import type { CreateSink, SinkConfig } from '../sink-resource.ts'
import { addSink, setCredentials } from '../stored-sink.ts'

const masterKey = testMasterKey()

/** What a receiver got: the address, the headers, the text after decompression. */
export interface Received {
  url: string
  method: string
  headers: Headers
  text: string
}

const textOf = (body: unknown, encoding: string | null): string => {
  const bytes = body instanceof Uint8Array ? new Uint8Array(body) : new TextEncoder().encode(String(body ?? ''))
  if (encoding === 'gzip') return Buffer.from(Bun.gunzipSync(bytes)).toString()
  return Buffer.from(bytes).toString()
}

export class SinkFixture {
  readonly proof: TestProof
  readonly received: Received[] = []
  /** Decides about each body; default: everything is taken. */
  answer: (received: Received) => Response | Promise<Response> = () => new Response(null, { status: 200 })
  readonly #runners: SinkRunner[] = []

  private constructor(proof: TestProof) {
    this.proof = proof
  }

  static async start(): Promise<SinkFixture> {
    return new SinkFixture(await TestProof.start())
  }

  readonly fetch: Fetch = async (url, init) => {
    const headers = new Headers(init.headers as Record<string, string>)
    const received = {
      ...{ url, method: init.method ?? 'GET', headers },
      text: textOf(init.body, headers.get('content-encoding')),
    }
    const answer = await this.answer(received)
    if (answer.ok) this.received.push(received)
    return answer
  }

  get dependencies() {
    const { state, ledger } = this.proof.store
    const { clock } = this.proof
    const recorder = createRecorder({ state, ledger, announce: () => undefined, clock, log: silentLog })
    return { state, ledger, recorder, masterKey, clock, newId, log: silentLog }
  }

  runner(host = 'one', change: { fetch?: Fetch; clock?: Clock } = {}): SinkRunner {
    const ledgerTime = async () => this.proof.now
    const runner = createSinkRunner({
      ...{ ...this.dependencies, fetch: this.fetch, host, ledgerTime, random: () => 1 },
      ...change,
    })
    this.#runners.push(runner)
    return runner
  }

  /** A sink that begins at the first record, or at a position. */
  async add(
    change: Partial<Pick<CreateSink, 'name' | 'url' | 'format' | 'filter' | 'enabled' | 'credentials'>> &
      Pick<CreateSink, 'kind'>,
    config: SinkConfig = {},
    position = 1,
  ): Promise<string> {
    const { name = 'sink', kind, url = 'https://siem.example.com/in', format = 'records', filter = null } = change
    const { credentials = null, enabled = true } = change
    const id = newId()
    const { ledger } = this.proof.store
    await ledger.write([
      ...addSink(
        {
          ...{ id, name, kind, url, format, filter, config: JSON.stringify(config), credentialNames: '[]' },
          ...{ enabled: enabled ? 1 : 0, createdAt: this.proof.now, version: 1 },
        },
        position,
      ),
      ...setCredentials(masterKey, id, credentials, 0),
    ])
    return id
  }

  /** Rounds until there is nothing to do; a second passes before each. */
  async deliver(runner = this.runner(), rounds = 4): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      await runner.round()
      await runner.settled()
      this.proof.now += 61_000
    }
  }

  /** How far a sink has got. */
  async delivery(id: string) {
    const [found] = await readDeliveries(this.proof.store.ledger, id)
    if (found === undefined) throw new Error('There is no such sink')
    return found.delivery
  }

  /** Lines of everything that was received, in order. */
  get lines(): string[] {
    return this.received.flatMap(({ text }) => text.split('\n').filter((line) => line !== ''))
  }

  async remove(): Promise<void> {
    for (const runner of this.#runners) await runner.stop()
    this.proof.store.remove()
  }
}
