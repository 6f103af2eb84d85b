/**
 * Sends a parcel. Where the receiver refuses its content, the parcel is halved until the message is found that is at
 * fault. That message alone is passed over, and named, but only if the receiver takes a test event at the same time:
 * otherwise it would refuse anything, and the sink waits.
 */
import { ContentRefused, type Item, type Parcel, type Receiver, ReceiverFailed } from '../sink.ts'

interface SendOptions {
  /** A message that a receiver which works takes. */
  probe: Item
  signal: AbortSignal
  /** The proof of the parcel without these positions; absent where it has none. */
  proofWithout?(positions: ReadonlySet<number>): Promise<string>
}

export interface Refusal {
  item: Item
  reason: string
}

/** Resolves with what was refused and passed over. Rejects with `ReceiverFailed` where the parcel is to be sent again. */
export async function sendParcel(receiver: Receiver, parcel: Parcel, options: SendOptions): Promise<Refusal[]> {
  const { signal, proofWithout } = options
  try {
    await receiver.send(parcel, signal)
    return []
  } catch (error) {
    if (!(error instanceof ContentRefused)) throw error
    const bare = { ...parcel, proof: null }
    const refused = await sendParts(receiver, bare, error, options)
    if (parcel.proof !== null && proofWithout !== undefined) {
      const proof = await proofWithout(new Set(refused.map(({ item }) => item.position)))
      await receiver.send({ ...parcel, items: [], proof }, signal)
    }
    return refused
  }
}

/** `error`: with which the receiver refused the whole. */
async function sendParts(
  receiver: Receiver,
  parcel: Parcel,
  error: ContentRefused,
  options: SendOptions,
): Promise<Refusal[]> {
  const { items } = parcel
  const [item] = items
  if (item === undefined) throw new ReceiverFailed(error.message, { cause: error })
  if (items.length === 1) {
    await requireWorking(receiver, error, options)
    return [{ item, reason: error.message }]
  }
  const half = Math.ceil(items.length / 2)
  const refused: Refusal[] = []
  for (const part of [items.slice(0, half), items.slice(half)]) {
    const smaller = { ...parcel, items: part }
    try {
      await receiver.send(smaller, options.signal)
    } catch (again) {
      if (!(again instanceof ContentRefused)) throw again
      refused.push(...(await sendParts(receiver, smaller, again, options)))
    }
  }
  return refused
}

/** Throws where the receiver refuses a test event too. */
async function requireWorking(receiver: Receiver, error: ContentRefused, { probe, signal }: SendOptions) {
  try {
    await receiver.send({ first: 0, next: 0, items: [probe], proof: null }, signal)
  } catch (cause) {
    if (!(cause instanceof ContentRefused)) throw cause
    throw new ReceiverFailed(error.message, { cause })
  }
}
