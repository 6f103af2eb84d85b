/**
 * Checks an object by the schema of OCSF 1.5.0: members that must be there, members that there are not, their types and
 * values, and "at least one of". `ocsf-1.5.json` is made from github.com/ocsf/ocsf-schema (Apache License 2.0) with what
 * classes and objects inherit, without profiles: `name:type`, `[]` for a list, `!` for what is required, `=` for the
 * numbers that it may be.
 */
import { z } from 'zod'
import schema from './ocsf-1.5.json' with { type: 'json' }

const described = z.object({ attributes: z.string(), at_least_one: z.array(z.string()).optional() })
const parsed = z
  .object({ classes: z.record(z.string(), described), objects: z.record(z.string(), described) })
  .parse(schema)

const attribute = /^(\w+):(\w+)(\[\])?(!)?(?:=([\d|]+))?$/
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What is wrong with an event, each with its place; none: it is valid. */
export function ocsfFaults(event: Record<string, unknown>): string[] {
  const of = parsed.classes[String(event.class_uid)]
  return of === undefined ? [`class_uid: there is no class ${String(event.class_uid)}`] : faultsOf(event, of, '')
}

function faultsOf(value: Record<string, unknown>, { attributes, at_least_one }: z.infer<typeof described>, at: string) {
  const known = new Map(attributes.split(' ').map((text) => [text.slice(0, text.indexOf(':')), attribute.exec(text)]))
  const faults = Object.keys(value).flatMap((name) =>
    known.has(name) ? [] : [`${at}${name}: there is no such member`],
  )
  for (const [name, match] of known) {
    const [, , type = '', list, required, values] = match ?? []
    const given = value[name]
    if (given === undefined) {
      if (required !== undefined) faults.push(`${at}${name}: is missing`)
      continue
    }
    if (list !== undefined && !Array.isArray(given)) faults.push(`${at}${name}: is no list`)
    const each = list !== undefined && Array.isArray(given) ? given : [given]
    for (const one of each) faults.push(...faultsOfValue(one, type, `${at}${name}`))
    if (values !== undefined && !values.split('|').includes(String(given))) {
      faults.push(`${at}${name}: cannot be ${String(given)}`)
    }
  }
  if (at_least_one?.every((name) => value[name] === undefined)) faults.push(`${at}: has none of ${at_least_one.join()}`)
  return faults
}

const texts = /^(string|hostname|username|uuid|resource_uid|url|email|mac|ip)_t$/
const numbers = /^(integer|long|port|timestamp)_t$/

function faultsOfValue(value: unknown, type: string, at: string): string[] {
  const wrong = [`${at}: is no ${type}`]
  if (type === 'ip_t') return typeof value === 'string' && /^[\d.]+$|:/.test(value) ? [] : wrong
  if (texts.test(type)) return typeof value === 'string' && value !== '' ? [] : wrong
  if (numbers.test(type)) return Number.isSafeInteger(value) ? [] : wrong
  if (type === 'boolean_t') return typeof value === 'boolean' ? [] : wrong
  if (!isObject(value)) return wrong
  const of = parsed.objects[type]
  // `object` may hold anything; other objects are none that Gatehouse writes.
  return of === undefined
    ? type === 'object'
      ? []
      : [`${at}: its type ${type} is not known here`]
    : faultsOf(value, of, `${at}.`)
}
