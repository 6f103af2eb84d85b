/**
 * The table of a language's members: one row for each outermost member of its requests. A row says how policies read
 * the member, how the gateway uses it, and what happens to it if the provider speaks another language. The following
 * modules work from the table:
 *
 * - the texts of a request, in the table's order (`reading/texts/request-texts.ts`)
 * - the fields that the gateway acts on: output limit, choices, tier, session (`reading/request-fields.ts`)
 * - the members that a clamp of the output writes (`reading/output-limit.ts`)
 * - the check of a request before its translation (`translation/field-readers.ts`)
 * - the settings that are read and written by name (`translation/settings.ts`)
 * - the tables in `languages.md` (`translation/matrix.ts`)
 */

export type MemberTable = Readonly<Record<string, Member>>

export interface Member {
  /** How policies read it. Absent: after all others and with no known role, like a member that no table lists. */
  readonly text?: MemberText
  /** How the gateway uses it. */
  readonly role?: MemberRole
  /** The smallest number that the language allows, for a role that the gateway reads as a number; absent: 1. */
  readonly least?: number
  /** The service tier value that requests nothing special. */
  readonly usual?: string
  /** Its name among the settings of the neutral form. */
  readonly setting?: Setting
  /** What happens to it if the provider speaks another language. Absent: it is unknown there, and refused. */
  readonly translation?: Translation
  /** An answer of the language repeats it: the caller's own words, or a setting with the provider's defaults. */
  readonly repeated?: 'words' | 'setting'
}

/**
 * - `own`: the dialect has its own code to read it, for example a conversation.
 * - `system`, `user`, `assistant`: words of that role, in any shape.
 * - `description`: of tools, formats and the like, which the model reads as the system's words (`user description`:
 *   as the user's); the structure around a description is not read.
 * - `none`: a word, a name or a switch. A member of this name is not read in any language.
 * - `none here`: not read in this language; in other languages a member of this name may be a text.
 */
export type MemberText =
  | 'own'
  | 'system'
  | 'user'
  | 'assistant'
  | 'description'
  | 'user description'
  | 'none'
  | 'none here'

export type MemberRole =
  /** The list of messages or items. */
  | 'conversation'
  | 'stream'
  /** Limits the output. If a language has several, providers follow any of them, and the gateway writes the first. */
  | 'output limit'
  /** How many answers the caller asks for; of several members the largest value counts. */
  | 'choices'
  /** Names a service tier; of several members the last one given counts. */
  | 'service tier'
  | 'session'
  /** Asks for prompt caching, in the gateway's own words. */
  | 'prompt cache'
  /** Holds `include_usage`. */
  | 'usage frame'
  /** May hold tokens in place of text. */
  | 'tokens'

/** Numbers and words that steer the model, by their names in the neutral form. */
export type Setting =
  | 'maxOutputTokens'
  | 'temperature'
  | 'topP'
  | 'topK'
  | 'seed'
  | 'frequencyPenalty'
  | 'presencePenalty'
  | 'stop'

/**
 * - `carried` into the neutral form
 * - `hint`: carried to the other OpenAI language and left out elsewhere
 * - `withoutEffect` on the answer, and left out
 * - `refused` with 400
 * - `leftOut`, and noted, by a lenient translation; `refused` by a strict one
 *
 * All but the first give a reason. `onlyAs`: without effect with one of these values, and refused with any other.
 * `where`: only values for which it holds are left out; `otherwise` says which those are not.
 */
export type Translation =
  | 'carried'
  | { readonly hint: string }
  | { readonly withoutEffect: string }
  | { readonly refused: string; readonly onlyAs?: readonly unknown[] }
  | {
      readonly leftOut: string
      readonly onlyAs?: readonly unknown[]
      readonly where?: (value: unknown) => boolean
      readonly otherwise?: string
    }

/** The members of a table that match a condition, in the table's order. */
export const membersWhere = (table: MemberTable, holds: (member: Member) => boolean): readonly string[] =>
  Object.entries(table).flatMap(([name, member]) => (holds(member) ? [name] : []))
