/**
 * Bounds the work of a JSON Schema validator, which runs synchronously on a thread that serves all callers. Each
 * subschema gets one more keyword, which counts each checked value by its size and throws beyond the limit. The
 * library's `uniqueItems` compares all items with all others; here each is looked up.
 */
import type { Ajv2020 } from 'ajv/dist/2020.js'
import { WorkBudgetExceeded } from '../../inspection/work-budget.ts'

/** Some milliseconds of work. */
const mostSteps = 50_000
/** How many units of a text, or entries of a list of values in a schema, count as a step. */
const unitsOfStep = 512
const entriesOfStep = 16
/** The same of a text that is written anew. */
const unitsWritten = 64
const keyword = 'gatehouse-steps'

const oneSchema = ['additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then'] as const
const unevaluated = ['unevaluatedItems', 'unevaluatedProperties'] as const
const schemaLists = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const
const schemaRecords = ['$defs', 'definitions', 'dependentSchemas', 'properties'] as const

export class SchemaSteps {
  #count = 0

  /** Counts from nothing again. */
  begin(): void {
    this.#count = 0
  }

  /** Throws `WorkBudgetExceeded` if there are more values than any schema could check. */
  requireFew(root: unknown): void {
    const open = [root]
    let values = 0
    for (let value = open.pop(); value !== undefined; value = open.pop()) {
      if (++values + open.length > mostSteps) throw new WorkBudgetExceeded()
      if (Array.isArray(value)) for (const each of value) open.push(each)
      else if (isObject(value)) for (const name of Object.keys(value)) open.push(value[name])
    }
  }

  addTo(ajv: Ajv2020): void {
    const count = (weight: number, value: unknown): boolean => {
      this.#add(weight + sizeOf(value))
      return true
    }
    ajv.addKeyword({ keyword, schemaType: 'number', validate: count, errors: false, before: '$ref' })
    ajv.removeKeyword('uniqueItems')
    ajv.addKeyword({
      ...{ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean' },
      validate: (isAsked: boolean, items: unknown[]) => !isAsked || this.#areUnique(items),
    })
  }

  /** The schema with the keyword in it. */
  counted(schema: Record<string, unknown>): Record<string, unknown> {
    const made: Record<string, unknown> = { ...schema }
    for (const name of [...oneSchema, ...unevaluated]) if (name in made) made[name] = this.#countedAny(made[name])
    for (const name of schemaLists) {
      const list = made[name]
      if (Array.isArray(list)) made[name] = list.map((each: unknown) => this.#countedAny(each))
    }
    for (const name of schemaRecords) {
      const record = made[name]
      if (!isObject(record)) continue
      made[name] = Object.fromEntries(Object.entries(record).map(([key, each]) => [key, this.#countedAny(each)]))
    }
    made[keyword] = 1 + Math.floor(entriesOf(schema) / entriesOfStep)
    return made
  }

  #countedAny(schema: unknown): unknown {
    return isObject(schema) ? this.counted(schema) : schema
  }

  #add(steps: number): void {
    this.#count += steps
    if (this.#count > mostSteps) throw new WorkBudgetExceeded()
  }

  #areUnique(items: readonly unknown[]): boolean {
    const seen = new Set<string>()
    for (const item of items) {
      const written = this.#canonical(item)
      if (seen.has(written)) return false
      seen.add(written)
    }
    return true
  }

  /** The same text for equal values, whatever the order of their members. */
  #canonical(value: unknown): string {
    this.#add(1 + (typeof value === 'string' ? Math.floor(value.length / unitsWritten) : sizeOf(value)))
    if (Array.isArray(value)) return `[${value.map((each: unknown) => this.#canonical(each)).join()}]`
    if (!isObject(value)) return JSON.stringify(value) ?? 'null'
    const members = Object.keys(value).sort()
    return `{${members.map((name) => `${JSON.stringify(name)}:${this.#canonical(value[name])}`).join()}}`
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The steps of a value: each keyword may read a whole text, or look at all members of an object. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return Math.floor(value.length / unitsOfStep)
  return isObject(value) ? Object.keys(value).length : 0
}

/** How many values a schema itself compares with: each of `enum`, and the parts of `const`. */
function entriesOf({ enum: allowed, const: constant, properties, required }: Record<string, unknown>): number {
  const parts = [allowed, constant, properties, required].filter((part) => part !== undefined)
  return parts.length === 0 ? 0 : JSON.stringify(parts).length / 8
}
