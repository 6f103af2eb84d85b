/**
 * One kind of record as data: a provider, a budget, a team. The commands of the command line (list, get, create,
 * update, delete), their help, their page of the handbook and the five routes (`resource-routes.ts`) follow from it.
 * The schemas say what a record has: a field that a schema gains is a flag and a field of the console's form. `flags`
 * names exceptions only.
 *
 * A flag follows from the field's schema, as JSON Schema shows it: `max_output_tokens` is `--max-output-tokens N`; a
 * boolean is `--enabled` and `--no-enabled`; an enum lists its values; a list is a flag in the singular that is
 * repeated; a member of an object has the object's name before its own (`--oauth-client-id`). For a secret the flag
 * names the environment variable that holds it (`--api-key-env`), because others can read a command line. What may be
 * null in `update` can be taken away by `--clear FIELD`.
 */
import { z } from 'zod'
import type { Permission } from '../identity/permissions.ts'

/** How a field is written on a command line, where its schema does not say it all. */
export interface FlagOptions {
  /** Instead of the field's own name; without dashes before it. */
  name?: string
  /** What stands for the value in the help: `USD`. */
  hint?: string
  /** The value is written as JSON instead of one flag for each member, such as this example. */
  json?: string
  /** A comma belongs to a value of the list, and does not separate two. */
  commas?: true
  /** A text of several words, separated by blanks: the flag is repeated, one word each. */
  words?: true
  /** What a new record has where the flag is absent, although the API asks for it. */
  default?: string | Readonly<Record<string, never>>
}

type Fields = z.ZodObject<z.ZodRawShape, z.core.$ZodObjectConfig>

export interface Resource {
  /** As commands name it: `mcp-server`. */
  name: string
  /** As a sentence names it: `MCP server`. */
  one: string
  /** The member of a page that holds the records: `mcp_servers`. */
  plural: string
  /** `/v1/catalog/mcp-servers` */
  path: string
  /** The group in the API's description. */
  tag: string
  access: { read: Permission; write: Permission }
  /** What names a record in a path, such as `{ id }`. Where `create` has it too, the caller chooses it. */
  params: z.ZodObject<z.ZodRawShape>
  /** What the commands are for, in one sentence. */
  about: string
  /** What each call does, in one sentence. Without `delete` a record is never deleted. */
  summaries: { list: string; get: string; create: string; update: string; delete?: string }
  /** What a caller of the API must know beside the summary, after which it stands in the API's description. */
  notes?: { list?: string; get?: string; create?: string; update?: string }
  /** Its `version` is the entity tag: a change can ask for a version by `If-Match`. */
  record: Fields
  create: Fields
  update: Fields
  /** The answer to an update, where it has more members than the record. */
  updated?: Fields
  /** What a list can be limited to. */
  filters?: Fields
  /** The members that a table of records shows. */
  columns: readonly string[]
  /** By the field's path: `timeouts.idle_seconds`. `null`: the field has no flag. */
  flags?: Readonly<Record<string, FlagOptions | null>>
}

/**
 * For `.meta`: the field names records of another kind, by their ids or names. Forms offer those that there are, and a
 * command takes a name for an id. It stands in the API's description as `x-record`.
 */
export const refersTo = (path: string, by: 'id' | 'name' = 'id') => ({ 'x-record': { path, by } })

/** For `.meta`: as `refersTo`; the value of the member beside the field, such as `kind`, says which records are meant. */
export const refersToKind = (member: string, kinds: Readonly<Record<string, { path: string; by: 'id' | 'name' }>>) => ({
  'x-record-of': { member, kinds },
})

/** For `.meta`: the field counts only where the member beside it has this value. Forms show it only there. */
export const onlyWhere = (member: string, value: string) => ({ 'x-only-where': { member, value } })

/** For `.meta`: the text is a secret. Forms hide it, and a flag names the environment variable that holds it. */
export const secret = { format: 'password' } as const

/** The parameters of the path of a record whose id the control plane makes. */
export const idParams = z.object({ id: z.uuid() })

/** The member that names a record. */
export const idName = ({ params }: Pick<Resource, 'params'>): string => Object.keys(params.shape)[0] ?? 'id'

/** Checks a description and keeps the types of its schemas. */
export const resource = <const Description extends Resource>(description: Description): Description => description
