/**
 * Signals about usage between control planes on one ledger (usage/lease/README.md rules 10, 15 and 21). Balances are
 * in the ledger, but each worker is connected to one control plane, and only that one can send it a message.
 *
 *  recall     a waiting grant request needs amounts of these accounts, by booked name: control planes recall them from their
 *             workers, and write the answers to the ledger (`recall_answers`), where all read them
 *  answered   an answer about these accounts was written, or something came back: waiting grant requests are decided again
 *  slots      workers that hold slots of a limit a minute must return cold ones
 *
 * Signals are hints. Limits hold without them, by the ledger's transactions; a lost signal costs only time. Recalls are
 * repeated every 250 ms while a grant request waits, and waiting grant requests read the ledger every 50 ms. Signals
 * may arrive late, twice or back at their sender. A control plane does not forward a signal.
 *
 * Not here: how signals travel and who may send them.
 */
import { z } from 'zod'

const accountName = z.string().max(128)

export const usageSignalSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('recall'), accounts: z.array(accountName).max(1000) }),
  z.strictObject({ kind: z.literal('answered'), accounts: z.array(accountName).max(1000) }),
  z.strictObject({
    kind: z.literal('slots'),
    account: accountName,
    want: z.number().int().min(0),
    workers: z.array(z.string().max(300)).max(1000),
    at: z.number().int().min(0).describe('Names the call; a worker says it again when it has followed'),
  }),
])
export type UsageSignal = z.infer<typeof usageSignalSchema>

/** The other control planes. Sending neither waits nor throws. */
export interface RecallPeers {
  send(signal: UsageSignal): void
}

/** This control plane as the others reach it. */
export interface RecallReceiver {
  receiveSignal(signal: UsageSignal): void
}

/** For a control plane without peers. */
export const noPeers: RecallPeers = { send: () => undefined }
