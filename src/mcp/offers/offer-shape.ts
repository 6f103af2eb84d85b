/**
 * Checks the shape of an offer before it is shown (Model Context Protocol 2025-11-25, schema: Tool, Prompt, Resource,
 * ResourceTemplate). Callers refuse a whole list for one malformed offer, so one server could hide what all others
 * offer. Unknown members are allowed.
 *
 * - Keywords of an output schema are checked too, because callers compile it when they list. They do not compile the
 *   input schema, and servers are careless there.
 * - Names with invisible characters or direction overrides are refused, because such a tool can look like another to
 *   the person who approves it.
 */
import { isNumber } from '../../lib/json/exact-json.ts'
import type { OfferKind } from '../connection.ts'
import { isJson } from '../protocol.ts'

/** A path may hold names chosen by the server. */
const misfitLength = 300

/** The fault of a value as a path and text; null without one. */
type Check = (value: unknown) => string | null

const misfit = (words: string): string => ` ${words}`
const when =
  (fits: (value: unknown) => boolean, words: string): Check =>
  (value) =>
    fits(value) ? null : misfit(words)

const text = when((value) => typeof value === 'string', 'must be a string')
const flag = when((value) => typeof value === 'boolean', 'must be true or false')
const number = when(isNumber, 'must be a number')
const object = when(isJson, 'must be an object')
const oneOf = (...words: string[]): Check =>
  when((value) => typeof value === 'string' && words.includes(value), `must be one of ${words.join(', ')}`)
const share = when((value) => typeof value === 'number' && value >= 0 && value <= 1, 'must be between 0 and 1')
const timeForm = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$/
const time = when(
  (value) => typeof value === 'string' && timeForm.test(value) && !Number.isNaN(Date.parse(value)),
  'must be a time',
)
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u
/** Display text may join emoji and letters, but not hide words or change their direction. */
const misleading = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u
const without =
  (characters: RegExp): Check =>
  (value) =>
    text(value) ?? (characters.test(String(value)) ? misfit('has characters that cannot be seen') : null)
const identifier = without(unseen)
const label = without(misleading)

const list =
  (of: Check): Check =>
  (value) =>
    Array.isArray(value) ? firstMisfit(value.entries(), () => of) : misfit('must be a list')

const values =
  (of: Check): Check =>
  (value) =>
    isJson(value) ? firstMisfit(Object.entries(value), () => of) : misfit('must be an object')

/** An object with these members, each absent or valid; those of `required` must be present. */
const members =
  (checks: Readonly<Record<string, Check>>, required: readonly string[] = []): Check =>
  (value) => {
    if (!isJson(value)) return misfit('must be an object')
    const given = Object.entries(checks).flatMap(([name]): [string, unknown][] =>
      value[name] !== undefined || required.includes(name) ? [[name, value[name]]] : [],
    )
    return firstMisfit(given, (name) => checks[name] ?? object)
  }

function firstMisfit(
  entries: Iterable<[string | number, unknown]>,
  checkOf: (name: string | number) => Check,
): string | null {
  for (const [name, value] of entries) {
    const found = checkOf(name)(value)
    if (found !== null) return `.${name}${found}`
  }
  return null
}

const icon = members({ src: text, mimeType: text, sizes: list(text), theme: oneOf('light', 'dark') }, ['src'])
const base = { title: label, icons: list(icon), description: text, _meta: object }

const schemaTypes = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']
const schemaType: Check = (value) => (Array.isArray(value) ? list(oneOf(...schemaTypes)) : oneOf(...schemaTypes))(value)
const pattern = when(isPattern, 'must be a regular expression')
const subschema: Check = (value) => (typeof value === 'boolean' ? null : keywords(value))
const subschemas = list(subschema)
const namedSchemas = values(subschema)

const each = (names: string, check: Check): Record<string, Check> =>
  Object.fromEntries(names.split(' ').map((name) => [name, check]))

/** The JSON Schema keywords that validators compile, with the forms they require. */
const keywordForms: Readonly<Record<string, Check>> = {
  ...{ type: schemaType, pattern, required: list(text), format: text, uniqueItems: flag, $ref: text },
  ...each('minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength', number),
  ...each('minItems maxItems minContains maxContains minProperties maxProperties', number),
  enum: when((value) => Array.isArray(value) && value.length > 0, 'must be a list with something in it'),
  patternProperties: (given) => patternNames(given) ?? namedSchemas(given),
  items: (given) => (Array.isArray(given) ? subschemas : subschema)(given),
  ...each('properties $defs definitions dependentSchemas', namedSchemas),
  ...each('prefixItems allOf anyOf oneOf', subschemas),
  ...each('not if then else contains additionalProperties propertyNames unevaluatedProperties', subschema),
}
const keywords: Check = (value) => members(keywordForms)(value)

const patternNames: Check = (value) =>
  isJson(value) && !Object.keys(value).every(isPattern) ? misfit('must be named by regular expressions') : null

function isPattern(value: unknown): boolean {
  try {
    return typeof value === 'string' && new RegExp(value, 'u') instanceof RegExp
  } catch {
    // A validator could not compile it either.
    return false
  }
}

const toolSchema = members({ type: oneOf('object'), properties: values(object), required: list(text) }, ['type'])
const outputSchema: Check = (value) => toolSchema(value) ?? keywords(value) ?? references(value)

/** Every reference in a schema must resolve within it, because nobody fetches remote ones. */
function references(schema: unknown): string | null {
  const waiting: unknown[] = [schema]
  const named = new Set<unknown>(['#'])
  const wanted: string[] = []
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (Array.isArray(value)) waiting.push(...value)
    if (!isJson(value)) continue
    if (typeof value.$ref === 'string') wanted.push(value.$ref)
    named.add(value.$id)
    named.add(`#${value.$anchor}`)
    waiting.push(...Object.values(value))
  }
  const lost = wanted.find((reference) => !named.has(reference) && !leadsSomewhere(schema, reference))
  return lost === undefined ? null : misfit('refers to what it does not have')
}

/** RFC 6901, section 6. */
function leadsSomewhere(schema: unknown, reference: string): boolean {
  if (!reference.startsWith('#/') || /%(?![0-9a-f]{2})/i.test(reference)) return false
  let at: unknown = schema
  for (const step of decodeURIComponent(reference.slice(2)).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined
  }
  return at !== undefined
}

const contentAnnotations = members({ audience: list(oneOf('user', 'assistant')), priority: share, lastModified: time })

const shapes: Readonly<Record<OfferKind, Check>> = {
  tool: members(
    {
      ...base,
      name: identifier,
      inputSchema: toolSchema,
      outputSchema,
      annotations: members({
        ...{ title: text, readOnlyHint: flag, destructiveHint: flag, idempotentHint: flag, openWorldHint: flag },
      }),
      execution: members({ taskSupport: oneOf('required', 'optional', 'forbidden') }),
    },
    ['name', 'inputSchema'],
  ),
  prompt: members(
    {
      ...base,
      name: identifier,
      arguments: list(members({ name: text, title: text, description: text, required: flag }, ['name'])),
    },
    ['name'],
  ),
  resource: members(
    { ...base, name: label, uri: identifier, mimeType: text, size: number, annotations: contentAnnotations },
    ['name', 'uri'],
  ),
  resource_template: members(
    { ...base, name: label, uriTemplate: identifier, mimeType: text, annotations: contentAnnotations },
    ['name', 'uriTemplate'],
  ),
}

/** Why an offer cannot be shown, by member; null when it can. */
export function shapeFault(kind: OfferKind, offer: unknown): string | null {
  const found = shapes[kind](offer)
  return found === null ? null : found.replace(/^[. ]/, '').slice(0, misfitLength)
}
