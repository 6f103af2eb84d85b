/**
 * What the state keeps of the metadata of tokens. The hosts of all gateways have the state, so it holds only the
 * entries that dimensions of attribution read. The ledger has all of them.
 *
 * SQL text: members of a JSON object, chosen by a table of the same transaction.
 */
import { type SQL, sql } from 'drizzle-orm'
import { attributionDimensions as dimensions } from './state/limits.ts'

/** The keys that dimensions read. */
export const keptKeys = sql`(select ${dimensions.sourceKey} from ${dimensions}
  where ${dimensions.sourceKind} = 'token_metadata' and ${dimensions.deleted} = 0)`

/** The entries of a token's metadata that the state keeps, chosen by the dimensions that there are when it is written. */
export const keptMetadata = (metadata: Readonly<Record<string, string>>): SQL<Readonly<Record<string, string>>> =>
  sql`(select json_group_object(key, value) from json_each(${JSON.stringify(metadata)}) where key in ${keptKeys})`
