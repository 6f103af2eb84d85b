/**
 * The table of a language's members: one row for each outermost member of its requests, which says how policies read it,
 * what the gateway does by it, and what becomes of it where the provider speaks another language. What follows from it:
 *
 * - the texts of a request, in the table's order (`reading/texts/request-texts.ts`)
 * - the fields that the gateway acts on: output limit, choices, tier, session (`reading/request-fields.ts`)
 * - what a clamp of the output writes (`reading/output-limit.ts`)
 * - the check of a request before its translation (`translation/field-readers.ts`)
 * - the settings that are read and written by name (`translation/settings.ts`)
 * - the tables in `languages.md` (`translation/matrix.ts`)
 */

export type MemberTable = Readonly<Record<string, Member>>

export interface Member {
  /** How policies read it. Absent: after all others, as nobody's words, like a member that no table knows. */
  readonly text?: MemberText
  /** What the gateway does by it. */
  readonly role?: MemberRole
  /** The value with which a service tier asks for nothing. */
  readonly usual?: string
  /** The setting of the neutral form that it is. */
  readonly setting?: Setting
  /** What becomes of it where the provider speaks another language. Absent: it is not known there, and refused. */
  readonly translation?: Translation
  /** An answer of the language repeats it: the caller's own words, or a setting with the provider's defaults. */
  readonly repeated?: 'words' | 'setting'
}

/**
 * - `own`: the dialect reads it itself, as it does a conversation.
 * - `system`, `user`, `assistant`: words of that role, in whatever shape.
 * - `description`: of tools, formats and the like, which the model reads as the system's words (`user description`: as
 *   the user's); what only holds a description together is not read.
 * - `none`: a word, a name or a switch. No language reads a member of this name, whichever has it.
 * - `none here`: the same, but in other languages a member of this name may be a text.
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
  /** Limits the output. Several are names of one: providers follow either, and the gateway writes the first. */
  | 'output limit'
  /** How many answers are asked for; of several the largest counts. */
  | 'choices'
  /** Names a service tier; of several the last one counts that is given. */
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
 * `carried` into the neutral form; a `hint`, carried to the other OpenAI language and left out elsewhere; `withoutEffect`
 * on the answer, and left out; or `refused` with 400. All but the first say why. `onlyAs`: without effect with one of
 * these values, and refused with any other.
 */
export type Translation =
  | 'carried'
  | { readonly hint: string }
  | { readonly withoutEffect: string }
  | { readonly refused: string; readonly onlyAs?: readonly unknown[] }

/** The members of a table for which this holds, in its order. */
export const membersWhere = (table: MemberTable, holds: (member: Member) => boolean): readonly string[] =>
  Object.entries(table).flatMap(([name, member]) => (holds(member) ? [name] : []))
