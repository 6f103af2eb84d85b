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
  /** The price of models without any other price; absent or null if there is none. */
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
   * If the request is sent as several calls, called with their cost so far whenever it changes: reported input tokens, null if none were reported, and an
   * estimate of those sent but not reported.
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
  /** The variables from which a start creates such a provider; null if it creates none. */
  environment: { readonly apiKey: string; readonly baseUrl: string | null } | null
  /** Whether its language has `prompt_cache_key`. */
  takesCacheKey: boolean
  /** The missing value without which there is no address to call, and how to write it; null if nothing is missing. */
  addressProblem(baseUrl: string | null, headers: Provider['headers']): string | null
  /** Those that it speaks itself: their bytes pass as they come. */
  families: readonly Family[]
  /** The language for a text family that the kind does not speak; absent if it answers none. */
  language?: LanguageName
  /** Another of its families, for requests that `language` cannot express: only for models whose record lists it, and at these providers. */
  further?: { language: Extract<LanguageName, Family>; of(provider: Provider): boolean }
  /** Whether such a provider accepts this model name, beyond the rules for every kind; absent: any name. */
  takesName?(name: string): boolean
  /**
   * The names of a model that no record of the catalog lists; null where this kind has none of that name. Absent: the
   * name has no other.
   */
  modelNames?(name: string): ModelNames | null
  /** Throws, naming the field, for what a model cannot express of a family that the kind translates itself; absent if it translates none. */
  check?(family: Family, body: Readonly<Record<string, unknown>>, model: string): void
  /** The URL whose host is connected to; absent for a kind that answers within the process. */
  address?(provider: Provider): string | null
  /** Sends the call and returns the answer once its headers are there. Rejects on connection failure or abort. */
  send(provider: Provider, call: UpstreamCall, fetch: Fetch): Promise<Response>
}

/** The language in which to ask a kind for a family that it does not speak; null if it speaks the family, or cannot be asked. */
const languageFor = ({ families, language }: ProviderKind, family: Family): LanguageName | null =>
  language === undefined || families.includes(family) || !isTranslated(family) ? null : language

/**
 * The languages in which a model may be asked for a family, the preferred one first; none if it speaks the family itself or cannot be asked. `listed`: the
 * families that its record lists, null if it lists none.
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
