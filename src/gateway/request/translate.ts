/**
 * A request whose provider speaks another language than the caller (languages/README.md): it is read into the
 * neutral form once and written for each path that needs it, before anything is reserved or sent. What the provider of
 * the model that was asked for cannot be told is refused with the field named; a fallback that cannot is left out.
 *
 * What is translated is the body as it would be sent: as policies left it, with the gateway's own edits. Those that are
 * for one language are made here for the others: `cache_control` of chat and responses becomes a marker where the
 * provider's language has markers, and the key that OpenAI takes in its place is left out.
 */

import { Failure } from '../../failure.ts'
import { type Family, isTranslated } from '../../languages/families.ts'
import type { LanguageName, NeutralPart, NeutralRequest } from '../../languages/neutral.ts'
import { isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import { withCacheAtEnd } from '../../languages/translation/cache-marker.ts'
import { languages } from '../../languages/translation/languages.ts'
import type { CallerLanguage, ProviderLanguage } from '../../languages/translation-language.ts'
import { holdsInexact, parseExactly, parseExactObject } from '../../lib/json/exact-json.ts'
import { languagesFor } from '../../providers/provider.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'

export function translateRequest(exchange: Exchange, gateway: Gateway): void {
  for (const path of exchange.paths) {
    if (languageOf(exchange, path) === null && path.kind.check === undefined) continue
    exchange.paths = translatablePaths(exchange, gateway)
    return
  }
}

const translatablePaths = (exchange: Exchange, gateway: Gateway): ResolvedModel[] =>
  exchange.paths.filter((path, index) => {
    const language = languageOf(exchange, path)
    try {
      if (language === null) path.kind.check?.(exchange.dialect.family, required(exchange.parsed), path.upstreamModel)
      else settleLanguage(exchange, gateway, path, language)
      return true
    } catch (thrown) {
      // Only what cannot be said in the fallback's language passes it over; a mistake of ours is none of its business.
      if (index === 0 || !(thrown instanceof Failure)) throw thrown
      return false
    }
  })

/** Leaves a path its first language where that can say the request, else the next one that can. */
function settleLanguage(exchange: Exchange, gateway: Gateway, path: ResolvedModel, language: LanguageName): void {
  try {
    written(exchange, gateway, path, language)
  } catch (thrown) {
    const [, further] = languagesOf(exchange, path)
    if (further === undefined || !(thrown instanceof Failure) || thrown.code !== 'translation_unsupported') throw thrown
    try {
      written(exchange, gateway, path, further)
    } catch {
      // The first language is the one that the caller can do something about.
      throw thrown
    }
    exchange.furtherLanguages ??= new Map()
    exchange.furtherLanguages.set(path, further)
  }
}

const languagesOf = ({ dialect }: Exchange, path: ResolvedModel): readonly LanguageName[] =>
  languagesFor(path, dialect.family, path.listed?.families ?? null)

/** The language in which a path's provider is asked; null where it speaks the caller's own. */
export const languageOf = (exchange: Exchange, path: ResolvedModel): LanguageName | null =>
  exchange.furtherLanguages?.get(path) ?? languagesOf(exchange, path)[0] ?? null

const encoder = new TextEncoder()

/** The body that a provider is sent in its own language. */
export const translatedRequest = (
  exchange: Exchange,
  gateway: Gateway,
  path: ResolvedModel,
  language: LanguageName,
): Uint8Array => encoder.encode(JSON.stringify(written(exchange, gateway, path, language)))

/** The language that a text family's callers speak. Throws `internal` where the tables of languages do not agree. */
export function callerLanguageOf(family: Family): CallerLanguage {
  return required(isTranslated(family) ? languages[family].caller : null)
}

export const providerLanguageOf = (name: LanguageName): ProviderLanguage => languages[name].provider

function written(exchange: Exchange, gateway: Gateway, path: ResolvedModel, language: LanguageName): JsonObject {
  // A limit of the output that the budget lowered since is in the body alone.
  if (exchange.neutral === null || exchange.maxOutputTokens !== null) {
    exchange.neutral = callerLanguageOf(exchange.dialect.family).readRequest(editedBody(exchange))
  }
  const request = { ...exchange.neutral, model: path.upstreamModel }
  return providerLanguageOf(language).writeRequest(
    markersOf.has(language) && asksForCaching(exchange, gateway) ? withMarker(request, exchange) : request,
    path.listed?.maxOutputTokens ?? null,
  )
}

/** The body as its native provider would be sent it, but for the alias and the cache key; its numbers are exact. */
function editedBody({ body: bytes, parsed, edits }: Exchange): JsonObject {
  const text = new TextDecoder().decode(required(bytes))
  const body = (holdsInexact(text) ? parseExactObject(text) : null) ?? { ...required(parsed) }
  for (const [name, json] of edits) {
    if (name === 'prompt_cache_key') continue
    if (json === null) delete body[name]
    else body[name] = parseExactly(json)
  }
  return body
}

/** Languages in which a part of the conversation can be marked as worth keeping in the provider's cache. */
const markersOf: ReadonlySet<LanguageName> = new Set<LanguageName>(['messages', 'converse'])

export const hasCacheMarkers = (language: LanguageName | null): boolean => language !== null && markersOf.has(language)

/** Whether `cache_control` was taken out of the body, and the gateway's record allows what it asks for. */
const asksForCaching = ({ parsed, edits }: Exchange, { worker }: Gateway): boolean =>
  edits.get('cache_control') === null && isObject(parsed?.cache_control) && worker.view.gateway.promptCaching

/**
 * Marks the end of what requests have in common: the instructions, which come after the tools in what these providers
 * cache; without instructions, the tools; without either, the end of the conversation, which the next turn begins with.
 */
function withMarker(request: NeutralRequest, { parsed }: Exchange): NeutralRequest {
  const asked = parsed?.cache_control
  const ttl = isObject(asked) && (asked.ttl === '5m' || asked.ttl === '1h') ? asked.ttl : null
  const cache: NeutralPart['cache'] = { value: { ttl }, at: 'cache_control' }
  const { instructions, tools } = request
  const [instruction, tool] = [instructions.at(-1), tools.at(-1)]
  if (instruction !== undefined) return { ...request, instructions: instructions.with(-1, { ...instruction, cache }) }
  if (tool !== undefined) return { ...request, tools: tools.with(-1, { ...tool, cache }) }
  return { ...request, turns: withCacheAtEnd(request.turns, asked) }
}
