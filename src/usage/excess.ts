/**
 * Charges above the list price bound of a request (usage/lease/README.md rule 19).
 *
 * 1. A gateway compares the reported cost with the bound of the request, and the outcome says by how much it exceeds
 *    it.
 * 2. The ledger keeps the worst excess of each provider and model, in the transaction that books the outcome.
 * 3. The control plane copies it to the state, with an event. Gateways add it to the bounds of later requests.
 *
 * So a limit can be exceeded only by requests that were running when a new worst excess was seen, each by the
 * difference. Later requests are admitted only if the limit covers the excess too.
 */
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import type { Event } from '../events/event.ts'
import { fromNano, toNano } from '../lib/money.ts'
import { insert, newStateVersion, statement, update } from '../store/query.ts'
import { excesses } from '../store/schema/state/limits.ts'
import type { Statement } from '../store/statement.ts'
import { countsMoney } from './account-name.ts'
import { maxAmount } from './lease/lease.ts'

/** The row for all models of a provider that have no row of their own. */
export const anyModel = '*'

/** Callers may choose model names. Above this number the other models of a provider share a row. */
const maxModels = 100

export const excessDetails = z.object({
  provider_id: z.string().max(64),
  model: z.string().min(1).max(300).describe("The provider's name of the model"),
  excess: z.number().positive().describe('US dollars beyond the most that the request could cost by the list price'),
})
export type ExcessDetails = z.infer<typeof excessDetails>

/** The largest charge above the bound, in nano-dollars, by provider and model. */
export type Excesses = ReadonlyMap<string, number>

export const noExcesses: Excesses = new Map()

/** The id of a row of `excesses`. Provider ids contain no slash. */
export const excessId = (providerId: string, model: string): string => `${providerId}/${model}`

export const excessOf = (excesses: Excesses, providerId: string, model: string): number =>
  excesses.size === 0
    ? 0
    : (excesses.get(excessId(providerId, model)) ?? excesses.get(excessId(providerId, anyModel)) ?? 0)

/** The details in an outcome whose cost exceeds its bound. `excess` is in nano-dollars. */
export const excessDetailsOf = (providerId: string, model: string, excess: number): ExcessDetails => ({
  provider_id: providerId,
  model,
  excess: fromNano(excess),
})

/**
 * Stores the excesses that outcomes report. An excess is never larger than what the outcome books, whatever it
 * reports.
 */
export function excessStatements(events: readonly Event[], now: number): Statement[] {
  const found = events.flatMap(({ details, settlements = [], event_attribution: { token_id } }) => {
    const reported =
      details?.bound_exceeded === undefined ? undefined : excessDetails.safeParse(details.bound_exceeded).data
    const booked = Math.max(0, ...settlements.map(({ account, amount }) => (countsMoney(account) ? amount : 0)))
    const amount = Math.min(toNano(reported?.excess ?? 0), booked, maxAmount)
    return reported === undefined || amount === 0 ? [] : [{ ...reported, amount, token_id }]
  })
  return found.map(({ provider_id, model, amount, token_id }) => ({
    sql: `insert into price_excesses (provider_id, model, amount, token_id, at)
      values (?1, iif((select count(*) from price_excesses where provider_id = ?1 and model <> ?2) < ${maxModels}, ?2, '${anyModel}'),
        ?3, ?4, ?5)
      on conflict (provider_id, model) do update set amount = excluded.amount, token_id = excluded.token_id,
        at = excluded.at where excluded.amount > amount`,
    args: [provider_id, model, amount, token_id, now],
  }))
}

export interface UnpublishedExcess {
  provider_id: string
  model: string
  amount: number
  published: number
  token_id: string | null
}

export const unpublishedExcesses = `select provider_id, model, amount, published, token_id from price_excesses where amount > published`

/** The change of the state that publishes an excess to gateways. */
export const publishExcess = ({ provider_id, model, amount }: UnpublishedExcess): Statement => {
  const row = { amount, version: newStateVersion, deleted: 0 }
  return statement(
    insert(excesses)
      .values({ id: excessId(provider_id, model), providerId: provider_id, model, ...row })
      .onConflictDoUpdate({ target: excesses.id, set: row }),
  )
}

/** The ledger's part of the same change. Fails if another control plane was first. */
export const markPublished = ({ provider_id, model, amount, published }: UnpublishedExcess): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 where not exists (
      select 1 from price_excesses where provider_id = ? and model = ? and published = ?)`,
    args: [provider_id, model, published],
  },
  {
    sql: 'update price_excesses set published = ? where provider_id = ? and model = ?',
    args: [amount, provider_id, model],
  },
]

/** Deletes an excess from the state and the ledger. */
export const forgetExcess = (providerId: string, model: string): { state: Statement[]; ledger: Statement[] } => ({
  state: [
    statement(
      update(excesses)
        .set({ deleted: 1, version: newStateVersion })
        .where(eq(excesses.id, excessId(providerId, model))),
    ),
  ],
  ledger: [{ sql: 'delete from price_excesses where provider_id = ? and model = ?', args: [providerId, model] }],
})
