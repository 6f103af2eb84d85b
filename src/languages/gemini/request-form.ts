/**
 * The form in which the gateway reads a Gemini request: one object, as in every other language. On the wire the model,
 * and whether to stream, stand in the address, and the settings inside `generationConfig`. Here `model` and `stream`
 * are members, and each setting is one, under its path: `generationConfig.temperature`. So the checks, limits and edits
 * of outermost members work, and an error names the caller's own field. `wireForm` makes the request that a provider
 * gets.
 *
 * Google takes each name in camel case and in snake case (ProtoJSON). The names of the language become camel case here,
 * those of schemas, arguments and labels stay. A request that has one member in both cases is refused.
 */
import { Failure } from '../../failure.ts'
import { pathOf } from '../../lib/http/request-path.ts'
import { parseExactObject } from '../../lib/json/exact-json.ts'
import { isObject, type JsonObject } from '../reading/json-value.ts'
import { settingPrefix } from './members.ts'

export const geminiModelsPath = '/v1beta/models'

/** The address of a model in both versions of the API; Google's client calls the second one unless told otherwise. */
const address = /^\/v1(?:beta)?\/models\/(.+):([^:]*)$/

const invalid = (param: string, message: string) => new Failure('invalid_parameter', { param, message })

/** What the address of a request says. */
export interface Asked {
  model: string
  /** What follows the last colon: `generateContent`. */
  method: string
}

/** Null if the path names no model and method. Throws `invalid_parameter` for a name that is badly encoded. */
export function askedIn(path: string): Asked | null {
  const [, model, method = ''] = address.exec(path) ?? []
  return model === undefined ? null : { model: decoded(model), method }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch (thrown) {
    throw new Failure('invalid_parameter', { param: 'model', message: 'The model is badly encoded', cause: thrown })
  }
}

/** The request as the gateway reads it, from a JSON object and the address that it came to. */
export function gatewayForm(text: string, url: string): string {
  const given = parseExactObject(text)
  const asked = askedIn(pathOf(url))
  if (given === null || asked === null) return text
  const body = plainNames(given, '')
  const inner = body.generateContentRequest
  const request = asked.method === 'countTokens' && isObject(inner) ? inner : body
  checkModel(request.model, asked.model)
  const { generationConfig: config = {}, ...rest } = request
  if (!isObject(config)) throw invalid('generationConfig', 'generationConfig must be an object')
  for (const name in rest) {
    if (name.startsWith(settingPrefix)) throw invalid(name, `${name} belongs inside generationConfig`)
  }
  const settings = Object.entries(config).map(([name, value]) => [settingPrefix + name, value])
  return JSON.stringify({
    ...rest,
    ...Object.fromEntries(settings),
    model: asked.model,
    stream: asked.method === 'streamGenerateContent',
  })
}

/** A body may repeat the model of its address, with or without `models/`. */
function checkModel(said: unknown, asked: string): void {
  if (said === undefined || said === asked || said === `models/${asked}`) return
  throw invalid('model', 'model must be the model of the address: leave it out of the body')
}

/** The request that a provider gets, from the one that the gateway read and edited. */
export function wireForm(text: string): string {
  const body = parseExactObject(text)
  if (body === null) return text
  const { model: _named, stream: _asked, ...rest } = body
  const request: JsonObject = {}
  const config: JsonObject = {}
  for (const [name, value] of Object.entries(rest)) {
    if (name.startsWith(settingPrefix)) config[name.slice(settingPrefix.length)] = value
    else request[name] = value
  }
  return JSON.stringify(Object.keys(config).length === 0 ? request : { ...request, generationConfig: config })
}

/** Members whose value has names of the caller's own, or of JSON Schema. */
const ownNames: ReadonlySet<string> = new Set([
  ...['args', 'labels', 'parameters', 'parametersJsonSchema', 'responseSchema', 'responseJsonSchema'],
  ...['metadata', 'customMetadata'],
])

const isSnake = /^[a-z]+(?:_[a-z0-9]+)+$/

const camel = (name: string): string =>
  isSnake.test(name) ? name.replace(/_([a-z0-9])/g, (_, first: string) => first.toUpperCase()) : name

/** An object with its names in camel case, at every depth. `around`: the member that it is the value of. */
function plainNames(object: JsonObject, around: string): JsonObject {
  const renamed: JsonObject = {}
  for (const [given, value] of Object.entries(object)) {
    const name = camel(given)
    if (Object.hasOwn(renamed, name)) throw invalid(name, `The request has ${name} in two spellings: send one`)
    // `response` holds what a function gave; in a declaration it is a schema.
    renamed[name] = ownNames.has(name) || (name === 'response' && around !== '') ? value : plainValue(value, name)
  }
  return renamed
}

function plainValue(value: unknown, around: string): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => plainValue(element, around))
  return isObject(value) && !JSON.isRawJSON(value) ? plainNames(value, around) : value
}
