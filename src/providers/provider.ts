/**
 * A provider kind says how to reach one sort of provider: the address for a family, the headers of the credential. Most
 * are reached by fetch; the simulator answers in the process. To add one, see providers/README.md. The catalog, prices,
 * traces, the first start and the command line follow from the kind.
 */
import { type Family, isTranslated } from '../languages/families.ts'
import type { LanguageName } from '../languages/neutral.ts'
import type { JsonObject } from '../languages/reading/json-value.ts'
import type { ClientSocket, SocketHandlers } from '../lib/http/dial-socket.ts'
import type { ModelNames } from './model-name.ts'
import type { Price } from './prices/price.ts'

/** A provider of the catalog with its credentials opened. */
export interface Provider {
  id: string
  name: string
  kind: string
  baseUrl: string | null
  apiKey: string | null
  /** The provider once with each of its keys, this one first; null or absent if it has no more than one. */
  keys?: readonly Provider[] | null
  /** Further headers the operator set. */
  headers: Readonly<Record<string, string>>
  allowUnlistedModels: boolean
  /** The price of models that have no other price; absent or null where there is none. */
  defaultPrice?: Price | null
  /** Replace the timeouts of the settings. */
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
  /** Only the tokens of the input are wanted: the answer is `{input_tokens}` (ProviderKind.countsTokens). */
  countTokens?: true
  /** Another method or path than those of the family, after the base; with a method that has no body, none is sent. */
  endpoint?: { readonly method: 'GET' | 'POST' | 'DELETE'; readonly path: string }
  body: Uint8Array
  contentType: string
  /** Headers of the caller that may be passed on, by the allow-list; names in lower case. */
  headers: Readonly<Record<string, string>>
  signal: AbortSignal
  /**
   * Its number among all running calls (`lib/http/slots.ts`), by which it gets a pool of connections; the first if
   * absent.
   */
  slot?: number
  /** Called when a piece of a large body is taken to be sent, which shows that the call goes on. */
  sending?(): void
  /** The most bytes of an answer that are held in memory. */
  answerLimit: number
  /**
   * Called when a request is sent as several calls and their cost so far changes: the input tokens that the provider
   * reported (null if it reported none), and an estimate of the input tokens that were sent without a report.
   */
  counted?(reported: number | null, unreported: number): void
}

/** Opens a realtime session. `headers`: the caller's that may be passed on; the operator's win. */
export type SessionCall = Pick<UpstreamCall, 'model' | 'headers'>

/** A model as its provider lists it. */
export interface OfferedModel {
  name: string
  displayName: string | null
  /** Milliseconds since the epoch; null if the provider does not say. */
  createdAt: number | null
}

export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>

export interface ProviderKind {
  kind: string
  /** `gen_ai.provider.name` in traces: the name that OpenTelemetry's conventions give it, otherwise the kind. */
  telemetryName: string
  /** Its name in the embedded price table, `@pydantic/genai-prices`; null where the table does not have it. */
  priceName: string | null
  /** The environment variables from which a start registers such a provider; null where it registers none. */
  environment: { readonly apiKey: string; readonly baseUrl: string | null } | null
  /** Whether it accepts the member `prompt_cache_key`. */
  takesCacheKey: boolean
  /** Says what a record lacks for an address to be known, and how to write it; null if nothing is missing. */
  addressProblem(baseUrl: string | null, headers: Provider['headers']): string | null
  /**
   * Says what is wrong with a key, or with having none, at this address; null if it can be used. Absent: every key of
   * visible characters can.
   */
  keyProblem?(apiKey: string | null, baseUrl: string | null): string | null
  /** The secrets in a key; absent: the key, and its parts between colons. */
  secretsIn?(apiKey: string): readonly string[]
  /** The kind as which one of its models is asked, where its models speak different languages. */
  forModel?(model: string): ProviderKind
  /** The families that it speaks itself: their bytes are forwarded unchanged. */
  families: readonly Family[]
  /** The language into which other text families are translated for it; absent if it serves no other family. */
  language?: LanguageName
  /**
   * A second family, for requests that `language` cannot express. It is used for models whose record lists it, and
   * without such a list for the providers that `of` accepts.
   */
  further?: { language: Extract<LanguageName, Family>; of(provider: Provider): boolean }
  /** Further rules for model names at such a provider; absent: every valid model name is accepted. */
  takesName?(name: string): boolean
  /**
   * The id and aliases of a model that the catalog does not list; null if this kind has no model of that name. Absent:
   * the model has only the given name.
   */
  modelNames?(name: string): ModelNames | null
  /** Counts the tokens of a messages request, in the body that it would get to answer it. */
  countsTokens?: true
  /** It stores responses and conversations of the responses family, and gives them again (`UpstreamCall.endpoint`). */
  storesResponses?: true
  /** The families of which it takes batches of requests, by files and batches as OpenAI has them; absent: none. */
  batches?: readonly Family[]
  /** For a kind that translates a family itself: throws for a field that the model does not support, and names it. */
  check?(family: Family, body: Readonly<Record<string, unknown>>, model: string): void
  /** The URL whose host is connected to; absent for a kind that answers within the process. */
  address?(provider: Provider): string | null
  /** How the provider is asked which models it offers (`catalog/offered-models.ts`); absent if it has no such list. */
  offered?: {
    request(provider: Provider): { url: string; headers: Readonly<Record<string, string>> }
    read(body: Readonly<JsonObject>): readonly OfferedModel[]
  }
  /** Opens a realtime session; absent if the kind does not speak that family. Failures are reported as its end. */
  openSession?(provider: Provider, call: SessionCall, handlers: SocketHandlers): ClientSocket
  /** Sends the call. Resolves when the headers of the answer are there; rejects on connection failure or abort. */
  send(provider: Provider, call: UpstreamCall, fetch: Fetch): Promise<Response>
}

/**
 * The language in which to ask a kind for a family that it does not speak; null if it speaks the family, or cannot be
 * asked.
 */
const languageFor = ({ families, language }: ProviderKind, family: Family): LanguageName | null =>
  language === undefined || families.includes(family) || !isTranslated(family) ? null : language

/**
 * The languages in which a model may be asked for a family, the preferred one first; none if it speaks the family
 * itself or cannot be asked. `listed`: the families that its record lists, null if it lists none.
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

/** The secrets in a provider's key, which no answer may show. */
export const secretsIn = (kind: Pick<ProviderKind, 'secretsIn'>, apiKey: string | null): readonly string[] =>
  apiKey === null ? none : (kind.secretsIn?.(apiKey) ?? [apiKey, ...apiKey.split(':')])

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
