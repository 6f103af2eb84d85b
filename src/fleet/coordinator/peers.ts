/**
 * The other control planes on the same databases. Each writes a row with its address to the ledger and reads the rows
 * of the others every second. Urgent messages are sent directly (fleet/protocol/peer-signal.ts). Nothing waits for a
 * signal, and no guarantee depends on one.
 */

import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Fetch } from '../../providers/provider.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import { type Database, databaseTime } from '../../store/open.ts'
import { type PeerSignal, peerHeader, peerSignalSchema, SignalGate, signSignal } from '../protocol/peer-signal.ts'

const everyMs = 1000
/** After this long without an update a control plane gets no signals. Its row is deleted after a day. */
const silentMs = 5000
const forgottenMs = 86_400_000
const signalMs = 2000
const path = '/v1/peers/signal'

export interface PeersOptions {
  ledger: Database
  masterKey: MasterKey
  /** The id of this process. */
  id: string
  /** Where the others reach this one. Called each time, since the port may be chosen when it listens. */
  address(): string
  fetch: Fetch
  log: Log
}

interface Peer {
  id: string
  address: string
}

export class Peers {
  readonly #options: PeersOptions
  readonly #key: Uint8Array
  readonly #gate: SignalGate
  #known: readonly Peer[] = []
  #number = 0
  #timer: Timer | null = null
  #meeting: Promise<void> = Promise.resolve()

  constructor(options: PeersOptions) {
    this.#options = options
    this.#key = options.masterKey.derive('gatehouse peer signals')
    this.#gate = new SignalGate(this.#key, options.id)
  }

  /** From now on writes its row and reads the others every second. */
  async start(): Promise<void> {
    await this.#meet()
    const tick = () => {
      this.#meeting = this.#meet().catch((error: unknown) => {
        // Known peers stay known until the ledger is back.
        this.#options.log.debug({ error: String(error) }, 'The list of other control planes could not be read')
      })
    }
    this.#timer = setInterval(tick, everyMs)
    this.#timer.unref()
  }

  async close(): Promise<void> {
    if (this.#timer === null) return
    clearInterval(this.#timer)
    // A running update would write the row again.
    await this.#meeting
    await this.#options.ledger.write([{ sql: 'delete from peers where id = ?', args: [this.#options.id] }])
  }

  /** Sends a signal to all others. Resolves to whether each of them received it; never rejects. */
  async send(signal: PeerSignal): Promise<boolean> {
    const body = JSON.stringify(signal)
    const heard = await Promise.all(this.#known.map((peer) => this.#send(peer, body)))
    return !heard.includes(false)
  }

  /** The route for signals of others. `hear` is called once for each. */
  route(hear: (signal: PeerSignal) => void) {
    return new Elysia({ name: 'peers' }).use(conventions).post(
      path,
      async ({ body, request: { headers } }) => {
        const text = new TextDecoder().decode(body)
        this.#gate.admit(headers.get(peerHeader), text)
        hear(parseSignal(text))
        return {}
      },
      {
        access: 'public',
        internal: true,
        bodyType: 'application/json',
        body: z.instanceof(Uint8Array),
        response: z.object({}),
        detail: { tags: ['Gateway runtime'], summary: 'What another control plane has to say' },
      },
    )
  }

  async #send({ id, address }: Peer, body: string): Promise<boolean> {
    this.#number += 1
    const envelope = { recipient: id, sender: this.#options.id, number: this.#number, body }
    try {
      const answer = await this.#options.fetch(`${address}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', [peerHeader]: signSignal(this.#key, envelope) },
        body,
        signal: AbortSignal.timeout(signalMs),
      })
      await answer.arrayBuffer()
      if (!answer.ok) throw new Failure('dependency_unavailable', { message: `It answered ${answer.status}` })
      return true
    } catch (error) {
      this.#options.log.debug({ peer: address, error: String(error) }, 'Another control plane could not be reached')
      return false
    }
  }

  async #meet(): Promise<void> {
    const { ledger, id, address } = this.#options
    await ledger.write([
      {
        sql: `insert into peers (id, address, seen_at) values (?, ?, ${databaseTime})
          on conflict (id) do update set address = excluded.address, seen_at = excluded.seen_at`,
        args: [id, address()],
      },
      { sql: `delete from peers where seen_at < ${databaseTime} - ?`, args: [forgottenMs] },
    ])
    this.#known = await ledger.read<Peer>(
      `select id, address from peers where id <> ? and seen_at > ${databaseTime} - ?`,
      [id, silentMs],
    )
  }
}

function parseSignal(body: string): PeerSignal {
  try {
    return peerSignalSchema.parse(JSON.parse(body))
  } catch (cause) {
    // From a newer version. This one need not understand its signals.
    throw new Failure('invalid_parameter', { message: 'The signal is not valid', cause })
  }
}
