/**
 * Translates a request for a provider that speaks another language (languages/README.md). The request is read into the
 * neutral form once, and written for each path that needs it, before anything is reserved or sent. If the requested
 * model's provider lacks a field, the request is refused with the name of the field; such a fallback is left out.
 *
 * The translated body is the one that would be sent: after policies and the gateway's own edits. Edits for one language
 * are made here for the others: `cache_control` of chat and responses becomes a marker in a language that has markers,
 * and OpenAI's cache key is left out. What the translation leaves out of the body that is sent is noted.
 */

import { Failure } from '../../failure.ts'
import { type Family, isTranslated } from '../../languages/families.ts'
import type { LanguageName, NeutralPart, NeutralRequest } from '../../languages/neutral.ts'
import { isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import { withCacheAtEnd } from '../../languages/translation/cache-marker.ts'
import { languages } from '../../languages/translation/languages.ts'
import { Lenience } from '../../languages/translation/lenience.ts'
import type { CallerLanguage, ProviderLanguage } from '../../languages/translation-language.ts'
import { holdsInexact, parseExactly, parseExactObject } from '../../lib/json/exact-json.ts'
import { languagesFor } from '../../providers/provider.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, keepPaths, type ResolvedModel, required } from '../exchange.ts'

export function translateRequest(exchange: Exchange, gateway: Gateway): void {
  for (const path of exchange.paths) {
    if (languageOf(exchange, path) === null && path.kind.check === undefined) continue
    keepPaths(exchange, (each) => checkTranslation(exchange, gateway, each))
    return
  }
}

function checkTranslation(exchange: Exchange, gateway: Gateway, path: ResolvedModel): void {
  const language = languageOf(exchange, path)
  if (language === null) path.kind.check?.(exchange.dialect.family, required(exchange.parsed), path.upstreamModel)
  else chooseLanguage(exchange, gateway, path, language)
}

/** Keeps the first language of a path if it can express the request, else uses the next one that can. */
function chooseLanguage(exchange: Exchange, gateway: Gateway, path: ResolvedModel, language: LanguageName): void {
  try {
    written(exchange, gateway, path, language)
  } catch (thrown) {
    const [, further] = languagesOf(exchange, path)
    if (further === undefined || !(thrown instanceof Failure) || thrown.code !== 'translation_unsupported') throw thrown
    try {
      written(exchange, gateway, path, further)
    } catch {
      // The caller can act on the refusal of the first language.
      throw thrown
    }
    exchange.otherLanguages ??= new Map()
    exchange.otherLanguages.set(path, further)
  }
}

const languagesOf = ({ dialect }: Exchange, path: ResolvedModel): readonly LanguageName[] =>
  languagesFor(path, dialect.family, path.listed?.families ?? null)

/** The language in which the provider of a path is called; null when it speaks the caller's own. */
export const languageOf = (exchange: Exchange, path: ResolvedModel): LanguageName | null =>
  exchange.otherLanguages?.get(path) ?? languagesOf(exchange, path)[0] ?? null

const encoder = new TextEncoder()

/** The body for a provider in its own language. */
export const translatedRequest = (
  exchange: Exchange,
  gateway: Gateway,
  path: ResolvedModel,
  language: LanguageName,
): Uint8Array => {
  const { body, notes } = written(exchange, gateway, path, language)
  for (const note of notes) if (!exchange.notes.includes(note)) exchange.notes.push(note)
  return encoder.encode(JSON.stringify(body))
}

/** The language of the callers of a text family. Throws `internal` when the language tables disagree. */
export function callerLanguageOf(family: Family): CallerLanguage {
  return required(isTranslated(family) ? languages[family].caller : null)
}

export const providerLanguageOf = (name: LanguageName): ProviderLanguage => languages[name].provider

/** A request for a provider, and notes of what was left out or replaced in it. */
interface Written {
  body: JsonObject
  notes: readonly string[]
}

function written(exchange: Exchange, gateway: Gateway, path: ResolvedModel, language: LanguageName): Written {
  const { request: read, body: asked, notes } = neutralOf(exchange)
  const isStrict = path.listed?.isTranslatedStrictly === true
  // A strict reading names the first field that a lenient one left out.
  if (isStrict && notes.length > 0) callerLanguageOf(exchange.dialect.family).readRequest(asked)
  const lenience = isStrict ? undefined : new Lenience()
  const request = { ...read, model: path.upstreamModel }
  const body = providerLanguageOf(language).writeRequest(
    markersOf.has(language) && asksForCaching(exchange, gateway) ? withMarker(request, exchange) : request,
    { catalogMaximum: path.listed?.maxOutputTokens ?? null, lenience },
  )
  return { body, notes: [...notes, ...(lenience?.notes ?? [])] }
}

function neutralOf(exchange: Exchange): NonNullable<Exchange['neutral']> {
  // An output limit that the budget lowered later is only in the body.
  if (exchange.neutral !== null && exchange.maxOutputTokens === null) return exchange.neutral
  const lenience = new Lenience()
  const body = editedBody(exchange)
  const request = callerLanguageOf(exchange.dialect.family).readRequest(body, lenience)
  exchange.neutral = { request, body, notes: lenience.notes }
  return exchange.neutral
}

/** The body as the native provider would get it, without alias and cache key; its numbers are exact. */
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

/** Languages with cache markers for parts of the conversation. */
const markersOf: ReadonlySet<LanguageName> = new Set<LanguageName>(['messages', 'converse'])

export const hasCacheMarkers = (language: LanguageName | null): boolean => language !== null && markersOf.has(language)

/** Whether `cache_control` was removed from the body and the gateway's record allows caching. */
const asksForCaching = ({ parsed, edits }: Exchange, { worker }: Gateway): boolean =>
  edits.get('cache_control') === null && isObject(parsed?.cache_control) && worker.view.gateway.promptCaching

/**
 * Marks the end of the common prefix: the instructions, which follow the tools in these caches; without instructions
 * the tools; without either the end of the conversation, with which the next request begins.
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
