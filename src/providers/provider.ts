/**
 * A provider kind says how to reach one sort of provider: the address for a family, the credential's headers. Most are
 * reached by fetch; the simulator answers in the process. To add one, write its file and its line in
 * `providers/kinds/index.ts`: the catalog, prices, traces, the first start and the command line follow from the kind.
 */
import { type Family, isTranslated } from '../languages/families.ts'
import type { LanguageName } from '../languages/neutral.ts'
import type { ModelNames } from './model-name.ts'
import type { Price } from './prices/price.ts'

/** A provider of the catalog with its credentials opened. */
export interface Provider {
  id: string
  name: string
  kind: string
  baseUrl: string | null
  apiKey: string | null
  /** Further headers the operator set. */
  headers: Readonly<Record<string, string>>
  allowUnlistedModels: boolean
  /** The price of models that nobody else gives one; absent or null where there is none. */
  defaultPrice?: Price | null
  /** What holds for it instead of the settings. */
  timeouts?: ProviderTimeouts | null
}

/** Seconds; null where the setting holds. */
export interface ProviderTimeouts {
  connectSeconds: number | null
  firstByteSeconds: number | null
  idleSeconds: number | null
  totalSeconds: number | null
}

export interface UpstreamCall {
  family: Family
  /** The model's name as the provider knows it. */
  model: string
  stream: boolean
  body: Uint8Array
  contentType: string
  /** Headers of the caller that may be passed on, by the allow-list; names in lower case. */
  headers: Readonly<Record<string, string>>
  signal: AbortSignal
  /** The most bytes of an answer that are held. */
  answerLimit: number
  /**
   * Told, where the request is sent as several calls, what they have cost so far whenever it changes: tokens of input
   * that were reported, null where none were, and an estimate of those sent that were not.
   */
  counted?(reported: number | null, unreported: number): void
}

export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>

export interface ProviderKind {
  kind: string
  /** `gen_ai.provider.name` in traces: the name that OpenTelemetry's conventions give it, otherwise the kind. */
  telemetryName: string
  /** Its name in the embedded price table; null where the table does not have it. */
  priceName: string | null
  /** The variables from which a start makes such a provider; null where it makes none. */
  environment: { readonly apiKey: string; readonly baseUrl: string | null } | null
  /** Whether its language has `prompt_cache_key`. */
  takesCacheKey: boolean
  /** What a record lacks so that there is an address to call, and how to write it; null where it lacks nothing. */
  addressProblem(baseUrl: string | null, headers: Provider['headers']): string | null
  /** Those that it speaks itself: their bytes pass as they come. */
  families: readonly Family[]
  /** The language in which it is asked for a text family that is not among them; absent where it answers none. */
  language?: LanguageName
  /** Another of its families, for what `language` cannot say: of models whose record lists it, and of these providers. */
  further?: { language: Extract<LanguageName, Family>; of(provider: Provider): boolean }
  /** Whether a model may be called so at such a provider, beyond what holds for every kind; absent: any may. */
  takesName?(name: string): boolean
  /**
   * The names of a model that no record of the catalog lists; null where this kind has none of that name. Absent: the
   * name has no other.
   */
  modelNames?(name: string): ModelNames | null
  /** Throws what a model cannot be told of a family that it translates itself, the field named; absent where it does not. */
  check?(family: Family, body: Readonly<Record<string, unknown>>, model: string): void
  /** The URL whose host is connected to; absent for a kind that answers within the process. */
  address?(provider: Provider): string | null
  /** Sends the call and gives the answer when its headers are there. Rejects on connection failure or abort. */
  send(provider: Provider, call: UpstreamCall, fetch: Fetch): Promise<Response>
}

/** The language in which a kind is asked for a family that it does not speak; null where it speaks it, or cannot be asked. */
const languageFor = ({ families, language }: ProviderKind, family: Family): LanguageName | null =>
  language === undefined || families.includes(family) || !isTranslated(family) ? null : language

/**
 * The languages in which a model may be asked for a family, the first one first; none where it speaks the family itself or
 * cannot be asked. `listed`: the families that its record says it speaks, null where it does not say.
 */
export function languagesFor(
  { kind, provider }: { kind: ProviderKind; provider: Provider },
  family: Family,
  listed: readonly Family[] | null,
): readonly LanguageName[] {
  const { language, further, families } = kind
  if (language === undefined || !isTranslated(family)) return none
  const told = listed === null ? none : textOf(kind, listed)
  const spoken: readonly Family[] = told.length === 0 ? families : told
  if (spoken.includes(family)) return none
  const first = told.length > 0 && further !== undefined && !told.some((name) => name === language) ? [] : [language]
  const goesFurther =
    further !== undefined && (listed === null ? further.of(provider) : told.includes(further.language))
  return goesFurther ? [...first, further.language] : first
}

const none: readonly never[] = []

/** The text families among these that a kind speaks itself. */
const textOf = ({ families }: ProviderKind, listed: readonly Family[]): readonly Family[] =>
  listed.filter((name) => isTranslated(name) && families.includes(name))

/**
 * Whether a model whose record lists these families may be asked for one: for a text family also where the provider
 * speaks another one that is listed, since they are translated into each other.
 */
export const servesListed = (kind: ProviderKind, listed: readonly Family[], family: Family): boolean =>
  listed.includes(family) || (kind.language !== undefined && isTranslated(family) && textOf(kind, listed).length > 0)

export const serves = (kind: ProviderKind, family: Family): boolean =>
  kind.families.includes(family) || languageFor(kind, family) !== null
