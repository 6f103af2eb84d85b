/**
 * What control planes on one ledger say to each other about usage (usage/lease/README.md rules 10, 15 and 21). Balances
 * live in the ledger; the workers that hold them are each connected to one control plane, which alone can speak to
 * them.
 *
 *   recall     somebody waits for amounts of these accounts, by their booked names: whoever has workers that hold some
 *              calls them back. What such a worker answers is written to the ledger (`usage_answers`), where all read it
 *   answered   a worker's answer of these accounts was written, or something came back: whoever waits looks again
 *   slots      workers that hold slots of a limit a minute are to return what is cold
 *
 * Signals are hints: none is needed for a limit to hold, which the ledger's transactions see to. One that is lost costs
 * time: recalls are said again every 250 ms while somebody waits, and who waits reads the ledger every 50 ms beside. They
 * may come late, twice, or back to their sender. A control plane that hears a signal tells nobody else of it.
 *
 * Not here: how signals travel, and who may send them.
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

/** The other control planes. Telling them neither waits nor throws. */
export interface RecallPeers {
  send(signal: UsageSignal): void
}

/** This control plane, as the others reach it. */
export interface RecallReceiver {
  receiveSignal(signal: UsageSignal): void
}

/** There is no other control plane. */
export const noPeers: RecallPeers = { send: () => undefined }
