/**
 * Signals between control planes over HTTP (fleet/README.md rule R4): hints that shorten waits. A lost signal is made
 * up for by the databases, which each control plane reads every second. Signals contain no secrets, only hashes and
 * names.
 *
 * A signal carries `<sender>;<number>;<HMAC-SHA-256>` under a key of the installation (`MasterKey.derive`), over
 * recipient, sender, number and body. Ids are of processes, and each number is accepted once. So a signal that is
 * replayed, or sent to another recipient, is refused without any clock.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { headSchema } from '../../store/propagation.ts'
import { usageSignalSchema } from '../../usage/lease/recall-peers.ts'

const workerName = z.string().max(300)
const hashes = z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(10_000)

/** A worker's row after a write: its stream, and what that has acknowledged. */
const acknowledgement = z.strictObject({ worker: workerName, stream_id: z.uuid(), version: z.int().min(0) })
export type Acknowledgement = z.infer<typeof acknowledgement>
/** The most acknowledgements in a signal. For more, control planes read the rows. */
export const maxAcknowledged = 10_000

export const peerSignalSchema = z.discriminatedUnion('kind', [
  /** A change was committed: refuse these tokens, and end running requests of some. */
  z.strictObject({
    kind: z.literal('state'),
    head: headSchema,
    revoked: hashes,
    end_requests: hashes,
    only_revocations: z.boolean(),
  }),
  /** These acknowledgements of workers were written. */
  z.strictObject({ kind: z.literal('acknowledged'), workers: z.array(acknowledgement).max(maxAcknowledged) }),
  /** A worker has a new stream: a control plane with another stream of it ends that. */
  z.strictObject({ kind: z.literal('taken'), worker: workerName, stream_id: z.uuid() }),
  /** Whether the recipient has the same next master key and has sealed under it so long; refused where it has not. */
  z.strictObject({
    kind: z.literal('next_master_key'),
    fingerprint: z.string().max(64),
    sealed_for_ms: z.number().min(0),
  }),
  ...usageSignalSchema.options,
])
export type PeerSignal = z.infer<typeof peerSignalSchema>

export const peerHeader = 'x-gatehouse-peer'

export interface SignalEnvelope {
  recipient: string
  sender: string
  number: number
  body: string
}

/** The header of a signal. */
export const signSignal = (key: Uint8Array, envelope: SignalEnvelope): string =>
  `${envelope.sender};${envelope.number};${macOf(key, envelope).toString('hex')}`

const macOf = (key: Uint8Array, { recipient, sender, number, body }: SignalEnvelope): Buffer =>
  createHmac('sha256', key).update(`${recipient}\n${sender}\n${number}\n${body}`).digest()

const headerForm = /^([0-9a-f-]{36});(\d{1,15});([0-9a-f]{64})$/
/** How far a signal's number may be behind the newest of its sender, since several are in flight at once. */
const window = 1000
const maxSenders = 100

/** Accepts each signal once. Throws `access_denied`, without a reason, for any that is not for this process. */
export class SignalGate {
  readonly #key: Uint8Array
  readonly #recipient: string
  readonly #senders = new Map<string, { newest: number; seen: Set<number> }>()

  constructor(key: Uint8Array, recipient: string) {
    this.#key = key
    this.#recipient = recipient
  }

  admit(header: string | null, body: string): void {
    const [, sender, digits, mac] = headerForm.exec(header ?? '') ?? []
    if (sender === undefined || mac === undefined) throw new Failure('access_denied')
    const number = Number(digits)
    const expected = macOf(this.#key, { recipient: this.#recipient, sender, number, body })
    if (!timingSafeEqual(expected, Buffer.from(mac, 'hex')) || !this.#isNew(sender, number)) {
      throw new Failure('access_denied')
    }
  }

  #isNew(sender: string, number: number): boolean {
    const known = this.#senders.get(sender) ?? { newest: 0, seen: new Set<number>() }
    if (number <= known.newest - window || known.seen.has(number)) return false
    known.seen.add(number)
    known.newest = Math.max(known.newest, number)
    if (known.seen.size > 2 * window) {
      for (const old of known.seen) if (old <= known.newest - window) known.seen.delete(old)
    }
    // The sender with the longest silence goes first.
    this.#senders.delete(sender)
    this.#senders.set(sender, known)
    const [oldest] = this.#senders.keys()
    if (this.#senders.size > maxSenders && oldest !== undefined) this.#senders.delete(oldest)
    return true
  }
}
